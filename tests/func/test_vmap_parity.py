"""Functions under `vmap` compared with PyTorch's `vmap`: results, and the first line of errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 2)).astype(np.float32)
I = RNG.integers(0, 4, (3, 5, 2))
S = RNG.normal(size=3).astype(np.float32)
COUNTS = np.array([[1, 2, 0, 1], [0, 0, 4, 0], [1, 1, 1, 1]])

#: name -> function of the library and the tensors of one example, and the batched arrays
CASES: dict[str, tuple[Any, ...]] = {
    "repeat_interleave": (lambda t, x, n: t.repeat_interleave(x, n, dim=0), X, COUNTS),
    "repeat_interleave flat": (lambda t, x, n: t.repeat_interleave(x, n), X[..., 0], COUNTS),
    "repeat_interleave of counts": (lambda t, n: t.repeat_interleave(n), COUNTS),
    "repeat_interleave output_size": (lambda t, x, n: t.repeat_interleave(x, n, 0, output_size=4), X, COUNTS),
    "repeat_interleave shared input": (lambda t, n: t.repeat_interleave(t.arange(4.), n), COUNTS),
    "resize_": (lambda t, x: x.clone().resize_(2, 4), X),
    "resize_ smaller": (lambda t, x: x.clone().resize_(2, 2), X),
    "t_": (lambda t, x: x.clone().t_(), X), "t_ of a vector": (lambda t, x: x.clone().t_(), X[..., 0]),
    "t_ of a scalar": (lambda t, x: x.clone().t_(), S),
    "transpose_": (lambda t, x: x.clone().transpose_(0, 1), X),
    "swapdims_": (lambda t, x: x.clone().swapdims_(0, -1), X),
    "unsqueeze_": (lambda t, x: x.clone().unsqueeze_(-1), X),
    "unsqueeze_ of a scalar": (lambda t, x: x.clone().unsqueeze_(0), S),
    "squeeze_": (lambda t, x: x.clone().unsqueeze(0).squeeze_(), X),
    "squeeze_ one": (lambda t, x: x.clone().unsqueeze(0).squeeze_(0), X),
    "squeeze_ several": (lambda t, x: x.clone().unsqueeze(0).unsqueeze(0).squeeze_((0, 1)), X),
    "squeeze_ of a scalar": (lambda t, x: x.clone().squeeze_(0), S),
    "squeeze_ of a scalar, all": (lambda t, x: x.clone().squeeze_(), S),
    "view(dtype)": (lambda t, x: x.view(t.int32), X), "view(wider)": (lambda t, x: x.view(t.float64), X),
    "view(narrower)": (lambda t, x: x.view(t.int16), X), "view(dtype) 0-D": (lambda t, x: x.view(t.int32), S),
    "view(narrower) 0-D": (lambda t, x: x.view(t.int16), S),
    "broadcast_to": (lambda t, x: t.broadcast_to(x, (2, 4, 2)), X),
    "view_as_real": (lambda t, x: t.view_as_real(t.complex(x, x)), X),
    "one_hot": (lambda t, i: t.nn.functional.one_hot(i, 6), I),
    "one_hot inferred": (lambda t, i: t.nn.functional.one_hot(i), I),
    "fill": (lambda t, x, s: t.fill(x, s), X, S), "fill shared": (lambda t, s: t.fill(t.ones(2), s), S),
    "new_full": (lambda t, x, s: x.new_full((2,), s), X, S),
    "new_empty_strided": (lambda t, x: x.new_empty_strided((2, 2), (3, 1)).fill_(2.) * x.sum(), X),
    "unique": (lambda t, i: t.unique(i), I), "unique dim": (lambda t, i: t.unique(i, dim=0), I),
    "unique_consecutive": (lambda t, i: t.unique_consecutive(i), I), "nonzero": (lambda t, i: t.nonzero(i), I),
    "where(condition)": (lambda t, x: t.where(x > 0), X), "unravel_index": (lambda t, i: t.unravel_index(i, (2, 2)), I),
    "nonzero_static": (lambda t, i: t.nonzero_static(i, size=4), I),
    "bincount": (lambda t, i: t.bincount(i[:, 0], minlength=4), I),
    "sort stable": (lambda t, x: t.sort(x, dim=0, stable=True), X), "detach_copy": (lambda t, x: t.detach_copy(x), X),
    "item": (lambda t, x: x.sum().item(), X), "bool": (lambda t, x: x if x.sum() > 0 else -x, X),
    "nbytes": (lambda t, x: x * x.nbytes, X), "reversed": (lambda t, x: t.stack(list(reversed(x))), X),
    "cond": (lambda t, x: t.linalg.cond(x[:2]), X), "cond fro": (lambda t, x: t.linalg.cond(x[:2], "fro"), X),
    "pinv": (lambda t, x, s: t.linalg.pinv(x, atol=abs(s) * 0), X, S),
    "matrix_rank": (lambda t, x, s: t.linalg.matrix_rank(x, atol=abs(s)), X, S),
    "native_layer_norm": (lambda t, x: t.native_layer_norm(x, (2,), None, None, 1e-5), X),
    "native_group_norm": (lambda t, x: t.native_group_norm(x.reshape(1, 4, 2), None, None, 1, 4, 2, 2, 1e-5), X),
    "embedding padding_idx": (lambda t, x, i: t.func.grad(lambda w: t.nn.functional.embedding(
        i, w, padding_idx=1).sum())(x), X, I),
    "embedding scale_grad_by_freq": (lambda t, x, i: t.func.grad(lambda w: t.nn.functional.embedding(
        i, w, scale_grad_by_freq=True).sum())(x), X, I),
    "bernoulli_ shared target": (lambda t, x: t.zeros(4, 2).bernoulli_(x.sigmoid()), X),
    "bernoulli_ unbatched": (lambda t, x: t.zeros(3).bernoulli_(t.tensor(.5)) + x.sum(), X),
    "bernoulli_": (lambda t, x: x.clone().bernoulli_(x * 0), X),
    "mul matrix": (lambda t, x: t.ones(2, 3) @ x[:3], X),
    "addr": (lambda t, x: t.addr(t.ones(4, 4), x[:, 0], x[:, 1]), X),
}
for _reduce in ("add", "multiply"):
    CASES |= {
        f"scatter {_reduce}": (lambda t, x, i, r=_reduce: x.scatter(0, i, x.new_ones(5, 2) * 3, reduce=r), X, I),
        f"scatter_ {_reduce}": (lambda t, x, i, r=_reduce: x.clone().scatter_(
            0, i, x.new_ones(5, 2) * 3, reduce=r), X, I),
        f"scatter {_reduce} scalar": (lambda t, x, i, r=_reduce: x.scatter(0, i, 3., reduce=r), X, I),
        f"scatter {_reduce} shared": (lambda t, i, r=_reduce: t.ones(4, 2).scatter(0, i, 3., reduce=r), I),
        f"scatter_ {_reduce} shared": (lambda t, i, r=_reduce: t.ones(4, 2).scatter_(0, i, 3., reduce=r), I)}


def run(library: Any, function: Callable[..., Any], arrays: tuple[np.ndarray, ...]) -> Any:
    """Results as arrays; an error as its type and first line."""
    try:
        mapped = library.func.vmap(lambda *x: function(library, *x), randomness="different")
        result = mapped(*map(library.tensor, arrays))
    except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}".split("\n")[0]
    return [x.numpy() for x in (result if isinstance(result, (tuple, list)) else (result,))]


@pytest.mark.parametrize("name", CASES)
def test_vmap_is_pytorchs(name: str) -> None:
    function, *arrays = CASES[name]
    expected, result = (run(library, function, tuple(arrays)) for library in (pytorch, flambeau))
    if isinstance(expected, str) or isinstance(result, str):
        assert result == expected
        return
    for x, y in zip(result, expected, strict=True):
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1, 4, 5])
@pytest.mark.parametrize("chunks", [-1, 0, 1, 2, 3, 7])
def test_a_batch_in_a_number_of_chunks_is_pytorchs(size: int, chunks: int) -> None:
    from functorch.experimental import chunk_vmap as expected

    from flambeau.functorch.experimental import chunk_vmap

    found = []
    for library, mapped in ((flambeau, chunk_vmap), (pytorch, expected)):
        calls: list[Any] = []

        def function(x: Any, y: Any, library: Any = library, calls: list[Any] = calls) -> Any:
            calls.append(1)
            return library.sin(x) * y, x.sum()

        x, y = library.arange(3. * size).reshape(3, size), library.tensor(2.)
        try:
            result = mapped(function, in_dims=(1, None), out_dims=(1, 0), chunks=chunks)(x, y)
        except (RuntimeError, ValueError) as error:
            found.append(str(error))
        else:
            found.append(([each.shape for each in result], [np.round(each.numpy(), 5).tolist() for each in result],
                          len(calls)))
    assert found[0] == found[1]


@pytest.mark.parametrize("in_dims", [d for d in itertools.product((0, None), repeat=4) if any(x == 0 for x in d)])
def test_vjp_in_jvp_of_arguments_of_which_some_are_batched(in_dims: Any) -> None:
    """A cotangent that is no batch may have a tangent that is one."""
    found = []
    for t in (pytorch, flambeau):
        func = t.func

        def push(x: Any, cotangent: Any, func: Any = func) -> Any:
            return func.vjp(lambda x: (x * x).sin(), x)[1](cotangent)

        def both(x: Any, g: Any, dx: Any, dg: Any, func: Any = func, push: Any = push) -> Any:
            return func.jvp(push, (x, g), (dx, dg))

        args = [t.arange(12.0).reshape(2, 6) * (i + 1) / 10 if d == 0 else t.arange(6.0) * (i + 2) / 10
                for i, d in enumerate(in_dims)]
        (primal,), (tangent,) = func.vmap(both, in_dims=in_dims)(*args)
        found.append((primal.tolist(), tangent.tolist()))
    for ours, theirs in zip(found[1], found[0], strict=True):
        assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-6)


IN_PLACE = sorted(name for name in dir(flambeau.Tensor) if name.endswith("_") and not name.startswith("_")
                  and name not in ("copy_", "masked_fill_", "subtract_"))


@pytest.mark.parametrize("name", IN_PLACE)
def test_an_in_place_operator_writes_no_samples_into_others(name: str) -> None:
    """Operands that do not fit one sample are refused, with PyTorch's sizes, also where they fit the batch."""
    found = []
    for t in (pytorch, flambeau):
        results = []
        method = getattr(t.Tensor, name)
        for shape, *others in (((3,), (3,)), ((3,), (3,), (3,)), ((3, 2), (2, 2)), ((3, 2), (3,)), ((3, 2), (3, 1, 2))):
            for dtype in (t.float32, t.int64):
                x = t.arange(6 if len(shape) > 1 else 3).reshape(shape).to(dtype)
                before = x.clone()
                operands = [t.ones(other, dtype=dtype) for other in others]
                try:
                    t.func.vmap(lambda x, method=method, operands=operands: method(x, *operands))(x)
                except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
                    results.append((str(error), bool((x == before).all())))
                else:
                    results.append(("", True))
        found.append(results)
    for theirs, ours in zip(*found, strict=True):  # other errors, of dtypes and numbers of operands, are not the point
        if theirs[0].startswith("output with shape"):
            assert ours == theirs
