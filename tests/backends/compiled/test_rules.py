"""Declarations and gradient rules as programs against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau.ir.decompositions import composites, gradient_rules

F = torch.nn.functional
SHAPES = [(50, 100), (4, 25, 60), (4800,)]


def array(shape, dtype=torch.float32, seed=0):
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def gradients(function, *inputs):
    """The result of a function and the gradients of its inputs, for one cotangent."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    out = function(*leaves)
    out = out[0] if isinstance(out, tuple) else out
    out.backward(array(tuple(out.shape), out.dtype, 7))
    return [out.detach(), *(x.grad for x in leaves)]


def same(expected, found, rtol=2e-5):
    for a, b in zip(expected, found, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert all(n == 1 or s == t for n, s, t in zip(a.shape, a.stride(), b.stride(), strict=True))
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=rtol, atol=rtol)


REDUCTIONS = {
    "norm": torch.linalg.vector_norm, "norm1": lambda x, **k: torch.linalg.vector_norm(x, 1, **k),
    "norm3": lambda x, **k: torch.linalg.vector_norm(x, 3, **k), "var": torch.var, "std": torch.std,
    "norm1.5": lambda x, **k: torch.linalg.vector_norm(x, 1.5, **k),
    "norm0.5": lambda x, **k: torch.linalg.vector_norm(x, 0.5, **k),
    "norminf": lambda x, **k: torch.linalg.vector_norm(x, float("inf"), **k),
    "biased": lambda x, **k: torch.var(x, correction=0, **k), "amax": torch.amax, "amin": torch.amin,
    "logsumexp": torch.logsumexp, "var_mean": torch.var_mean, "std_mean": torch.std_mean, "aminmax": torch.aminmax,
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_reductions(impls, name, shape, dtype):
    f, x = REDUCTIONS[name], array(shape, dtype)
    several = name not in ("aminmax",)
    for dim in [0, -1, *([(0, len(shape) - 1)] if len(shape) > 1 and several else [])]:
        for keepdim in (False, True):
            same(*impls.both(lambda dim=dim, keepdim=keepdim: gradients(lambda x: f(x, dim=dim, keepdim=keepdim), x)))


@pytest.mark.parametrize("f", [torch.max, torch.min, torch.std, torch.var, torch.norm])
def test_reductions_of_all(impls, f):
    for x in (array((50, 100)), array((50, 100)).t(), array((50, 200))[:, ::2], array((50, 100)).round(),
              torch.zeros(50, 100), array((1, 100)).expand(50, 100)):
        same(*impls.both(lambda x=x: gradients(f, x)))


def test_nan_ties_with_nan(impls):
    x = array((50, 100))
    x[3, 4] = x[7, 8] = float("nan")
    same(*impls.both(lambda: gradients(torch.max, x)))
    same(*impls.both(lambda: gradients(lambda x: torch.amax(x, 0), x)))


LOSSES = {
    "mse": F.mse_loss, "smooth_l1": F.smooth_l1_loss, "huber": F.huber_loss,
    "beta": lambda x, y, **k: F.smooth_l1_loss(x, y, beta=0.3, **k),
    "delta": lambda x, y, **k: F.huber_loss(x, y, delta=0.3, **k), "soft_margin": F.soft_margin_loss,
    "bce": lambda x, y, **k: F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), **k),
    "logits": F.binary_cross_entropy_with_logits,
    "weights": lambda x, y, **k: F.binary_cross_entropy_with_logits(
        x, y, weight=array((100,), x.dtype, 2).abs(), pos_weight=array((100,), x.dtype, 3).abs(), **k),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_losses(impls, name, reduction, dtype):
    f, x, y = LOSSES[name], array((50, 100), dtype), array((50, 100), dtype, 1)
    y_only = name == "soft_margin"
    run = (lambda x: f(x, y, reduction=reduction)) if y_only else lambda x, y: f(x, y, reduction=reduction)
    for a, b in ((x, y), (x.t().contiguous().t(), y), (array((100, 100), dtype)[::2], y)):
        same(*impls.both(lambda a=a, b=b: gradients(run, a) if y_only else gradients(run, a, b)), 1e-4)


def test_probabilities_are_checked(impls):
    x = torch.full((50, 100), 0.5)
    x[4, 5] = 1.5
    for way in (impls.numpy, impls.kernels):
        with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
            way(lambda: F.binary_cross_entropy(x, torch.ones(50, 100)))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_glu(impls, dim):
    for x in (array((50, 100)), array((100, 50)).t(), array((20, 30, 40), torch.float64)):
        same(*impls.both(lambda x=x: gradients(lambda x: F.glu(x, dim), x)))


def test_glu_of_an_odd_size_raises(impls):
    for way in (impls.numpy, impls.kernels):
        with pytest.raises(RuntimeError, match="Halving dimension must be even, but dimension 1 is size 101"):
            way(lambda: F.glu(array((50, 101)), 1))


def test_second_derivatives(impls):
    def second():
        x = array((50, 100), torch.float64).requires_grad_()
        found = []
        for f in (torch.std, torch.norm, lambda x: torch.logsumexp(x, (0, 1)), lambda x: F.glu(x, 1).sum(),
                  lambda x: F.binary_cross_entropy_with_logits(x, x.detach() * 0 + 0.5)):
            g, = torch.autograd.grad(f(x), x, create_graph=True)
            found += [g.detach(), *torch.autograd.grad((g * g).sum(), x)]
        return found

    same(*impls.both(second), 1e-9)


def test_rules_have_programs(monkeypatch, impls):
    """Listed rules do not fall back to NumPy silently."""
    made = []
    program = composites._plan_program

    def watched(title, *args):
        found = program(title, *args)
        made.append((title, found is not None))
        return found

    monkeypatch.setattr(composites, "_plan_program", watched)
    x = array((51, 102))

    def run():
        for f in (torch.max, torch.min, torch.std, torch.var, torch.norm, lambda x: torch.amax(x, 0),
                  lambda x: torch.logsumexp(x, 1), lambda x: F.glu(x), lambda x: F.huber_loss(x, x.detach() + 1),
                  lambda x: F.binary_cross_entropy_with_logits(x, x.detach()),
                  lambda x: F.binary_cross_entropy(x.sigmoid(), x.detach().sigmoid())):
            gradients(f, x)

    impls.kernels(run)
    assert [title for title, found in made if not found] == []
    assert len([title for title, _ in made if title.startswith("gradient")]) >= 11


def test_rule_keys_are_operators():
    from flambeau.ops.declare import REGISTRY

    assert all(key in REGISTRY for key in (*gradient_rules.OPERATORS, *composites.DECOMPOSED_OPERATORS))


@pytest.mark.parametrize("shape", [(50, 100), (20, 30, 40), (400, 700), (3, 4), (0, 5), (4, 5000)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.complex64], ids=str)
def test_means(shape, dtype):
    """A mean's gradient is constant, in an array of its own."""
    x = torch.zeros(shape, dtype=dtype, requires_grad=True)
    for dim in (None, 0, -1, (0, 1)):
        for keepdim in (False, True) if dim is not None else (False,):
            out = x.mean() if dim is None else x.mean(dim, keepdim)
            g = array(tuple(out.shape)).to(dtype)
            seen = []
            y = x * 1
            y.register_hook(seen.append)
            (y.mean() if dim is None else y.mean(dim, keepdim)).backward(g)
            count = x.numel() // max(1, out.numel())
            axes = tuple(range(len(shape))) if dim is None else (dim,) if isinstance(dim, int) else dim
            kept = g.numpy().reshape([1 if i in {a % len(shape) for a in axes} else n for i, n in enumerate(shape)])
            wide = kept.astype(np.float32) if dtype == torch.float16 else kept
            expected = np.broadcast_to(wide / count if count else wide, shape).astype(kept.dtype)
            assert seen[0].is_contiguous()
            assert seen[0].dtype == dtype
            np.testing.assert_array_equal(seen[0].numpy(), expected)
