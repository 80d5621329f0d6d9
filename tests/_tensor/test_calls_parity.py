"""Calls with rare arguments compared with PyTorch: results, and the first line of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]

X = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32)


class Index:
    """An object that is an index, but no number."""

    def __index__(self) -> int:
        return 3


def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of the sum of squares of `function`, on a view's base that is written in place."""
    def run(t: Any, x: Any) -> Any:
        w = x.clone().requires_grad_()
        y = function(t, w * 1)
        (y * y).sum().backward()
        return w.grad
    return run


def dual(function: Callable[..., Any]) -> Callable[..., Any]:
    """The primal and the tangent of `function`."""
    def run(t: Any, x: Any) -> Any:
        with t.autograd.forward_ad.dual_level():
            return tuple(t.autograd.forward_ad.unpack_dual(function(t, t.autograd.forward_ad.make_dual(x, x * .5 + 1))))
    return run


def write(base: Callable[..., Any], view: Callable[..., Any], value: Callable[..., Any]) -> Callable[..., Any]:
    """Write into a view of a base; the base."""
    def run(t: Any, x: Any) -> Any:
        result = base(t, x)
        view(result).copy_(value(x))
        return result
    return run


CASES: dict[str, Callable[..., Any]] = {
    "gradient of as_strided": gradient(lambda t, x: x.as_strided((3, 2), (2, 1), 1)),
    "gradient of an overlapping view": gradient(lambda t, x: x.as_strided((3, 3), (2, 1))),
    "gradient of a written view": gradient(lambda t, x: (x.as_strided((2, 3), (5, 2), 1).mul_(3), x)[1]),
    "tangent into a row": dual(write(lambda t, x: t.zeros(3, 4, 2), lambda b: b[0], lambda x: x[0])),
    "tangent into a transposed row": dual(write(
        lambda t, x: t.zeros(3, 4, 2), lambda b: b[0].t(), lambda x: x[0].t())),
    "tangent into a strided view": dual(write(
        lambda t, x: t.ones(3, 4, 2), lambda b: b.view(-1).as_strided((2, 3), (5, 2), 1), lambda x: x[:2, :3, 0])),
    "tangent over a tangent": dual(write(lambda t, x: x.clone(), lambda b: b[0], lambda x: x[1])),
    "dual_level as a decorator": lambda t, x: t.autograd.forward_ad.dual_level()(
        lambda: t.autograd.forward_ad.unpack_dual(t.autograd.forward_ad.make_dual(x, x) * 2).tangent)(),
    "copy_ of a number": lambda t, x: x.clone().copy_(3), "copy_ of a list": lambda t, x: x.clone().copy_([1]),
    "linear of a number": lambda t, x: t.nn.functional.linear(x, 3), "x @ 3": lambda t, x: x @ 3,
    "max_pool2d sizes": lambda t, x: t.nn.functional.max_pool2d(x, (1, 2, 3)),
    "avg_pool1d sizes": lambda t, x: t.nn.functional.avg_pool1d(x, (1, 2)),
    "conv_transpose2d padding": lambda t, x: t.nn.functional.conv_transpose2d(
        x, x.new_ones(3, 2, 3, 3), output_padding=(3, 1)),
    "nll_loss sizes": lambda t, x: t.nn.functional.nll_loss(x.reshape(1, 2, 3, 4), t.zeros(1, 3, 3, dtype=t.long)),
    "meshgrid of nothing": lambda t, x: t.meshgrid(), "unflatten sizes": lambda t, x: t.unflatten(x, 1, (3, 2)),
    "unflatten nothing": lambda t, x: t.unflatten(x, 1, ()), "adjoint of a vector": lambda t, x: x[0, 0].adjoint(),
    "adjoint of a scalar": lambda t, x: x[0, 0, 0].adjoint(),
    "mH of a scalar": lambda t, x: t.complex(x, x)[0, 0, 0].mH.resolve_conj(),
    "mT of a scalar": lambda t, x: x[0, 0, 0].mT, "mH of a vector": lambda t, x: x[0, 0].mH,
    "reshape with NumPy sizes": lambda t, x: x.reshape((np.int64(3), -1)),
    "reshape with a float": lambda t, x: x.reshape((2.5, -1)),
    "tensor of an index": lambda t, x: t.tensor([Index(), 2]), "zeros of an index": lambda t, x: t.zeros(Index()),
    "asarray of a result": lambda t, x: t.asarray(x.clone().requires_grad_() * 2, requires_grad=True),
    "set_ without strides": lambda t, x: t.empty(0).set_(x.untyped_storage(), 1, (2, 3)),
    "_make_subclass": lambda t, x: t.Tensor._make_subclass(t.nn.Parameter, x, True),
    "type_as": lambda t, x: x.type_as(t.ones(1, dtype=t.int)), "threshold_": lambda t, x: t.nn.functional.threshold_(
        x.clone(), .1, 2.),
    "leaky_relu_": lambda t, x: t.nn.functional.leaky_relu_(x.clone(), .1),
    "elu_": lambda t, x: t.nn.functional.elu_(x.clone(), .1),
    "relu6 inplace": lambda t, x: t.nn.functional.relu6(x * 9, inplace=True),
    "einsum too few indices": lambda t, x: t.einsum("ij->i", x),
    "einsum unknown output": lambda t, x: t.einsum("ijk->il", x),
    "einsum repeated output": lambda t, x: t.einsum("ijk->ii", x),
    "einsum index lists": lambda t, x: t.einsum(x, [0, 1, 2], [0]),
    "vector_norm of nothing": lambda t, x: t.linalg.vector_norm(x[:0], float("inf")),
    "vector_norm along nothing": lambda t, x: t.linalg.vector_norm(x[:0], float("inf"), dim=0),
    "unique's gradient": lambda t, x: t.unique(x.clone().requires_grad_()).sum().backward(),
    "unique_consecutive's gradient": lambda t, x: t.unique_consecutive(x.clone().requires_grad_()).sum().backward(),
    "scatter's gradient": lambda t, x: t.scatter(x.clone().requires_grad_(), 1, t.zeros(3, 4, 2, dtype=t.long), 2.,
                                                 reduce="add").sum().backward(),
}
CASES |= {f"{_name}(axis, keepdims)": lambda t, x, n=_name: getattr(t, n)(x, axis=1, keepdims=True) for _name in (
    "sum", "mean", "prod", "amax", "amin", "all", "any", "logsumexp", "std", "var", "argmax", "median", "max", "norm",
    "std_mean", "var_mean", "mode", "nansum", "nanmean", "aminmax")}
CASES |= {f"{_name}(axis)": lambda t, x, n=_name: getattr(t, n)(x, axis=1) for _name in (
    "cumsum", "softmax", "cummax", "argsort", "sort", "unbind", "squeeze", "unsqueeze", "diff", "count_nonzero")}
CASES |= {f"{_name}() without its dimension": lambda t, x, n=_name: getattr(t, n)(x) for _name in (
    "unsqueeze", "cumsum", "softmax")}
CASES |= {f"{_name} along no elements": lambda t, x, n=_name: getattr(t, n)(
    x[:0], *((1,) if n in ("kthvalue", "topk") else ()), dim=1) for _name in (
    "median", "mode", "nanmedian", "kthvalue", "max", "min", "argmax", "sort", "topk", "cummax")}
CASES |= {f"{_name} of {_kind} as {_dtype}": lambda t, x, n=_name, k=_kind, d=_dtype: getattr(t.linalg, n)(
    x.to(getattr(t, k)), dtype=getattr(t, d)) for _name in ("vector_norm", "matrix_norm")
    for _kind in ("float32", "float64", "complex64")
    for _dtype in ("float64", "float32", "float16", "int32", "complex64", "complex128")}


def run(library: Any, function: Callable[..., Any]) -> Any:
    """Results as arrays; an error as its type and first line."""
    try:
        result = function(library, library.tensor(X))
    except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}".split("\n")[0].replace("flambeau", "torch")
    return [x.detach().numpy() for x in (result if isinstance(result, (tuple, list)) else (result,))]


@pytest.mark.parametrize("name", CASES)
def test_call_is_pytorchs(name: str) -> None:
    expected, result = run(pytorch, CASES[name]), run(flambeau, CASES[name])
    if isinstance(expected, str) or isinstance(result, str):
        assert result == expected
        return
    for x, y in zip(result, expected, strict=True):
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
