"""Optimizer update kernels against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends.compiled import run_update, thresholds, updates
from flambeau.optim import adam

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("Adam", {}), ("Adam", {"amsgrad": True, "weight_decay": 0.1}), ("AdamW", {}), ("AdamW", {"maximize": True}),
    ("Adam", {"betas": (0.3, 0.5)}), ("Adamax", {}), ("NAdam", {}), ("RAdam", {}), ("RMSprop", {}),
    ("RMSprop", {"centered": True, "momentum": 0.9}), ("Adagrad", {}), ("Adadelta", {}), ("ASGD", {}), ("Rprop", {}),
]


def trained(name, options, dtype=torch.float32, steps=8, schedule=None, shape=(50, 60), turned=False):
    random = np.random.default_rng(0)
    values = torch.tensor(random.standard_normal(shape), dtype=dtype)
    x = torch.nn.Parameter(values.t().contiguous().t() if turned else values)
    optimizer = getattr(torch.optim, name)([x], **options)
    for step in range(steps):
        if schedule is not None:
            optimizer.param_groups[0]["lr"] = schedule(step)
        x.grad = torch.tensor(random.standard_normal(shape), dtype=dtype)
        optimizer.step()
    state = optimizer.state[x]
    return [x.detach(), *(value for value in state.values() if isinstance(value, torch.Tensor))]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=[f"{n}-{'-'.join(o)}" for n, o in OPTIMIZERS])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_steps(impls, name, options, dtype):
    expected, found = impls.both(lambda: trained(name, options, dtype))
    assert len(expected) == len(found)
    for a, b in zip(expected, found, strict=True):
        assert (a.dtype, a.shape, a.stride(), a._version) == (b.dtype, b.shape, b.stride(), b._version)
        scale = np.abs(a.numpy()).max()
        tolerance = 3e-6 if dtype is torch.float32 else 1e-13
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=tolerance, atol=tolerance * scale)


def test_other_layouts(impls):
    expected, found = impls.both(lambda: trained("Adam", {}, turned=True))
    for a, b in zip(expected, found, strict=True):
        assert a.stride() == b.stride()
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=3e-6, atol=1e-7)


@pytest.mark.usefixtures("everything_large")
def test_a_new_learning_rate_compiles_no_kernel(monkeypatch):
    monkeypatch.setattr(updates, "_rules", {})
    trained("Adam", {"lr": 0.1}, steps=2)
    formulas = updates._rules[adam.rule]
    before = sum(map(len, formulas._formulas.values()))
    trained("Adam", {"lr": 0.2, "betas": (0.8, 0.99), "eps": 1e-6}, steps=12, schedule=lambda step: 0.1 / (step + 1))
    assert sum(map(len, formulas._formulas.values())) == before
    trained("Adam", {"lr": 0.2, "weight_decay": 0.1}, steps=2)  # a rule that goes another way
    assert sum(map(len, formulas._formulas.values())) == before + 1


@pytest.mark.usefixtures("everything_large")
def test_untraceable_rules_use_numpy():
    def rule(xp, param, grad, scale):
        param[...] = grad * scale if hasattr(param, "__array__") else param.sum()

    x, g = np.ones(5000, np.float32), np.full(5000, 2, np.float32)
    assert not run_update(rule, [x, g], 0, (0.5,), True)
    np.testing.assert_array_equal(x, 1)


@pytest.mark.usefixtures("everything_large")
@pytest.mark.parametrize("spoil", ["frozen", "gaps", "shared"])
def test_arrays_that_only_one_thread_may_update(spoil):
    values = np.arange(1.0, 9.0, dtype=np.float32)
    if spoil == "gaps":
        values = np.arange(1.0, 17.0, dtype=np.float32)[::2]
    x = torch.nn.Parameter(torch.from_numpy(values))
    x.grad = x.detach() if spoil == "shared" else torch.ones(8)
    if spoil == "frozen":
        x._array.setflags(write=False)
        with pytest.raises(ValueError, match="read-only"):
            torch.optim.SGD([x], lr=0.5).step()
        return
    before = values.copy()
    torch.optim.SGD([x], lr=0.5).step()
    np.testing.assert_array_equal(x.detach().numpy(), before * 0.5 if spoil == "shared" else before - 0.5)


@pytest.mark.skipif(not codegen.available() or not updates.has_fma(), reason="products are rounded here")
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=[f"{n}-{'-'.join(o)}" for n, o in OPTIMIZERS])
def test_small_parameters_are_updated_to_the_same_bits(impls, name, options):
    for size in (40, thresholds.OPTIMIZER_UPDATES[0]):
        expected, found = impls.both(lambda size=size: trained(name, options, shape=(size,), steps=5))
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_cached_scalars_are_reused_only_if_equal():
    """Parameters alternate with other scalars, dtypes, and missing arrays."""
    def rule(xp, x, y, z, a, flag):
        xp.add_(x, y, alpha=a)
        if flag:
            xp.mul_(x, 2)
        if z is not None:
            xp.add_(x, z, alpha=1)

    def expected(x, y, z, a, flag):
        x = (x + a * y) * (2 if flag else 1)
        return x if z is None else x + z

    calls = [(np.float32, 0.5, False, False), (np.float32, 0.5, False, False), (np.float32, 0.25, False, False),
             (np.float32, 0.25, True, False), (np.float32, 0.25, True, True), (np.float64, 0.25, True, True),
             (np.float32, 0.25, True, True), (np.float32, 0.5, False, False), (np.float32, 1, False, False),
             (np.float32, 1.0, False, True)]
    for dtype, a, flag, some in calls:
        for shape in ((8,), (2, 4), (4, 2)):
            x, y, z = ((np.arange(1, 9, dtype=dtype) * k).reshape(shape) for k in (1, 4, 8))
            z = z if some else None
            right = expected(x, y, z, a, flag)
            arrays = [each for each in (x, y, z) if each is not None]
            assert updates.run_update(rule, arrays, 0 if some else 0b100, (a, flag), True)
            assert x.tolist() == right.tolist()


def test_column_major_and_mixed_layouts_are_updated_in_place():
    def rule(xp, x, y, a):
        xp.add_(x, y, alpha=a)

    for orders in ("FF", "FC", "CF"):
        x, y = (np.array(np.arange(12.0).reshape(3, 4) * k, np.float32, order=order) for k, order in zip(
            (1, 4), orders, strict=True))
        right = x + 0.5 * y
        assert updates.run_update(rule, [x, y], 0, (0.5,), False)
        assert x.tolist() == right.tolist()
