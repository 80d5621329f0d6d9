"""Calls with rare arguments compared with PyTorch: results, and the first line of errors."""

from __future__ import annotations

import warnings
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
    **{f"diag into out, {name}": call for name, call in {
        "another category": lambda t, x: t.diag(x[0, 0], out=t.zeros(2, 2, dtype=t.int64)),
        "another dtype": lambda t, x: t.diag(x[0, 0].int(), out=t.zeros(2, 2)),
        "a leaf": lambda t, x: t.diag(x[0, 0], out=t.zeros(2, 2, requires_grad=True)),
        "from a leaf": lambda t, x: t.diag(x[0, 0].clone().requires_grad_(), out=t.zeros(2, 2)),
        "three dimensions": lambda t, x: t.diag(x, out=t.zeros(2)), "a list": lambda t, x: t.diag(x[0, 0], out=[x]),
        "expanded": lambda t, x: t.diag(x[0, 0], out=t.zeros(1).expand(2, 2))}.items()},
    **{f"reduction by number {n}, {name}": lambda t, x, call=call, n=n: call(t, x, n) for n in (0, 1, 2, "sum")
       for name, call in {
        "bce": lambda t, x, n: t.binary_cross_entropy_with_logits(x, x.sigmoid(), None, x[0], n),
        "kl_div": lambda t, x, n: t.kl_div(x, x.exp(), n, log_target=False),
        "ctc": lambda t, x, n: t.ctc_loss(x.log_softmax(2), t.ones(4, 1, dtype=t.int64), (3, 2, 3, 3), (1,) * 4, 0, n),
        "aten bce": lambda t, x, n: t.ops.aten.binary_cross_entropy_with_logits(x, x.sigmoid(), None, None, n),
        "aten ctc": lambda t, x, n: t.ops.aten.ctc_loss(
            x.log_softmax(2), t.ones(4, 1, dtype=t.int64), (3, 2, 3, 3), (1,) * 4, 0, n)}.items() if n != "sum" or
       not name.startswith("aten")},
    "default reductions": lambda t, x: (
        t.binary_cross_entropy_with_logits(x, x.sigmoid()), t.ops.aten.binary_cross_entropy_with_logits(x, x),
        t.ctc_loss(x.log_softmax(2), t.ones(4, 1, dtype=t.int64), (3, 2, 3, 3), (1,) * 4),
        t.ops.aten.ctc_loss(x.log_softmax(2), t.ones(4, 1, dtype=t.int64), (3, 2, 3, 3), (1,) * 4)),
    "bce of a smaller target": lambda t, x: t.binary_cross_entropy_with_logits(x, x[:1], reduction=1),
    "bce of a larger target": lambda t, x: t.binary_cross_entropy_with_logits(x[:1], x, reduction=1),
    "ctc of a tuple and a tensor": lambda t, x: t.ctc_loss(x, x[:1], (3, 2, 3, 3), t.ones(4, dtype=t.int64), 0, 1),
    **{f"cholesky of {shape}": lambda t, x, shape=shape: (
        t.tensor(t.cholesky(t.ones(shape, requires_grad=True)).grad_fn.name() == "CholeskyBackward0"),
        t.cholesky(t.zeros(shape, dtype=t.int64)))
       for shape in ((0,), (0, 2, 3), (2, 0, 0), (0, 2, 2), (2, 3), (1, 1))},
    "remainder of a complex number into out": lambda t, x: t.remainder(1j, x, out=x.clone()),
    "polygamma of complex numbers": lambda t, x: t.polygamma(1, x.to(t.complex64)),
    "polygamma into integers": lambda t, x: t.polygamma(1, x.abs(), out=t.zeros(x.shape, dtype=t.int64)),
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


def written(make: Callable[..., Any]) -> Callable[..., Any]:
    """The base of a view with columns 1 and 2 of (2, 3), which is given as `out=`."""
    def run(t: Any, x: Any) -> Any:
        base = t.zeros(2, 3)
        make(t, base[:, 1:])
        return base
    return run


CASES |= {f"{_name} with {_type.__name__} as dtype": lambda t, x, n=_name, d=_type: getattr(t, n)(x, 1, dtype=d)
          for _name in ("cumsum", "cumprod", "nanmean", "softmax") for _type in (bool, int, float, complex)
          if (_name, _type) not in (("softmax", bool), ("softmax", int), ("softmax", complex))}
CASES |= {f"{_name} of {_type.__name__}": lambda t, x, n=_name, d=_type: getattr(t, n)(2, 2, dtype=d)
          for _name in ("eye", "tril_indices", "linspace", "range") for _type in (bool, int, float)
          if _name != "linspace"}
CASES |= {
    "nansum as float": lambda t, x: x.nansum(dtype=float),
    "nansum as complex": lambda t, x: x.nansum(dtype=complex),
    "norm as float": lambda t, x: t.linalg.norm(x[0], dtype=float),
    "hann_window as float": lambda t, x: t.hann_window(3, dtype=float),
    "fftfreq as float": lambda t, x: t.fft.fftfreq(3, dtype=float),
    "frombuffer as float": lambda t, x: t.frombuffer(bytearray(16), dtype=float),
    "empty_strided as int": lambda t, x: t.empty_strided((2, 0), (4, 5), dtype=int),
    "strides of empty tensors": lambda t, x: t.tensor(t.empty_strided((2, 0, 3), (4, 5, 6)).stride()),
    "empty_strided without strides": lambda t, x: t.empty_strided((2,), ()),
    "type(float)": lambda t, x: x.type(float),
    "type(3)": lambda t, x: x.type(3),
    "linspace of bool": lambda t, x: t.linspace(0, 1, 3, dtype=t.bool),
    "logspace to complex": lambda t, x: t.logspace(0, 1j, 3, dtype=t.float32),
    "linspace into a view": written(lambda t, out: t.linspace(0, 3, 4, out=out)),
    "logspace into a view": written(lambda t, out: t.logspace(0, 3, 4, out=out)),
    "arange into a view": written(lambda t, out: t.arange(0, 4, out=out)),
    "arange into a smaller view": written(lambda t, out: t.arange(0, 5, out=out)),
    "zeros into a view": written(lambda t, out: t.ones(2, 2, out=out)),
    "linspace into an expanded tensor": lambda t, x: t.linspace(0, 1, 3, out=t.ones(1).expand(3)),
    "full of another dtype": lambda t, x: t.full((2,), 3., out=t.zeros(2, dtype=t.int64)),
    "full of complex": lambda t, x: t.full((2,), 1j, out=t.zeros(2)),
    "zeros in another layout": lambda t, x: t.zeros(2, layout=t.sparse_coo, out=t.zeros(2)),
    "random_ up to the largest": lambda t, x: (t.manual_seed(0), t.zeros(4, dtype=t.int8).random_(-128, None))[1],
    "random_ of all 64 bits": lambda t, x: (
        t.manual_seed(0), t.zeros(4, dtype=t.int64).random_(-2 ** 63, None))[1],
    "random_ up to the largest exact float": lambda t, x: (t.manual_seed(0), t.zeros(4).random_(0, None))[1],
    "randperm of all uint8": lambda t, x: t.randperm(256, dtype=t.uint8).sum(),
    "randperm of too many": lambda t, x: t.randperm(257, dtype=t.uint8),
    "unravel_index of a float": lambda t, x: t.unravel_index(x, (2,)),
    "unravel_index of 0-d": lambda t, x: t.unravel_index(t.tensor(7), (2, 2)),
    "unravel_index in a float": lambda t, x: t.unravel_index(t.tensor(1), 2.5),
    "unravel_index in floats": lambda t, x: t.unravel_index(t.tensor(1), (2, 2.5)),
    "cat of empty vectors": lambda t, x: t.cat((x[:0, 0, 0], x[:0, 0, 0]), 1),
    "nonzero into floats": lambda t, x: t.nonzero(x, out=t.zeros(2)),
    "nonzero into a tuple": lambda t, x: t.nonzero(x, as_tuple=True, out=t.zeros(2, dtype=t.int64)),
    "view of larger elements at an offset": lambda t, x: x[0, 0, 1:].view(t.float64),
    "view of larger elements with an odd offset": lambda t, x: x.view(-1)[1:3].view(t.float64),
    "strides of an empty view as bytes": lambda t, x: t.tensor(x[:0].view(t.uint8).stride()),
    "resize_ too large": lambda t, x: x.resize_(2 ** 30, 2 ** 33),
    "resize_ of too many bytes": lambda t, x: x.resize_(2 ** 62),
    "resize_ with strides too large": lambda t, x: x.resize_(0, 4, 2 ** 61),
    "resize_ to preserve_format": lambda t, x: x.resize_(2, memory_format=t.preserve_format),
    "resize_ to channels_last": lambda t, x: x.resize_(2, memory_format=t.channels_last),
    "resize_as_ in its format": lambda t, x: t.tensor(t.zeros(1).resize_as_(
        t.zeros(2, 3, 5, 5).to(memory_format=t.channels_last), memory_format=t.preserve_format).stride()),
    "broadcast_shapes of a negative size": lambda t, x: t.broadcast_shapes((-1,), (3,)),
    "fill_diagonal_ with wrap in a transposed tensor": lambda t, x: t.zeros(3, 5).t().fill_diagonal_(2., wrap=True),
    "normal of shapes that do not broadcast": lambda t, x: t.normal(t.zeros(6), t.ones(2, 3)),
    "use_deterministic_algorithms(1)": lambda t, x: t.use_deterministic_algorithms(1),
    "circular padding of nothing": lambda t, x: (t.nn.functional.pad(x, (0, 0), mode="circular").fill_(4), x)[1],
    "Module.to with a flag for a dtype": lambda t, x: t.nn.Linear(1, 1).to(t.device("cpu"), True),
    "Module.to with a flag after None": lambda t, x: t.nn.Linear(1, 1).to(None, True),
    "Module.to(int)": lambda t, x: t.nn.Linear(1, 1).to(int),
    "Module.to(float)": lambda t, x: t.zeros_like(t.nn.Linear(1, 1).to(float).weight),
    "strides of an empty as_strided": lambda t, x: t.tensor(x.as_strided((0, 2, 0), (12, 4, 1)).stride()),
    "a list that contains itself": lambda t, x: (z := [0], z.append(z), t.tensor(z)),
    **{f"solve_triangular of {a} and {b}": lambda t, x, a=a, b=b: t.linalg.solve_triangular(
        (x[:2, :2, 0].triu() + 3 * t.eye(2)).to(getattr(t, a)), x[:2, :1, 0].to(getattr(t, b)), upper=True)
       for a, b in (("float32", "float64"), ("float64", "float32"), ("complex64", "float32"),
                    ("float32", "complex64"))},
    "set_ to a storage of another dtype": lambda t, x: t.zeros(0, dtype=t.int64).set_(x.storage()),
    "values of another dtype and shape": lambda t, x: t.arange(4).index_put_((t.tensor([0, 1]),), t.ones(3)),
    "index_put of another dtype and shape": lambda t, x: t.index_put(t.arange(4), (t.arange(4) > 1,), t.ones(3)),
    "index_put of another dtype": lambda t, x: t.index_put(t.arange(4), (t.arange(4) > 1,), t.ones(2)),
    "asarray without history": lambda t, x: t.tensor([t.asarray(y, requires_grad=False).requires_grad for y in (
        x.clone().requires_grad_(), x.clone().requires_grad_() * 2, x)]),
    "asarray with history": lambda t, x: t.tensor([t.asarray(y, requires_grad=True).grad_fn is None for y in (
        x.clone().requires_grad_(), x.clone().requires_grad_() * 2, x)]),
}


def filled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Memory without values where determinism is required."""
    def run(t: Any, x: Any) -> Any:
        t.use_deterministic_algorithms(True)
        try:
            return tuple(function(t, d).to(t.float64) for d in (
                t.float32, t.int32, t.uint8, t.bool, t.bfloat16, t.int64))
        finally:
            t.use_deterministic_algorithms(False)
    return run


CASES |= {
    "filled empty": filled(lambda t, d: t.empty(2, dtype=d)),
    "filled empty with out": filled(lambda t, d: t.empty(2, out=t.zeros(0, dtype=d))),
    "filled empty_like": filled(lambda t, d: t.empty_like(t.ones(2, dtype=d))),
    "filled empty_strided": filled(lambda t, d: t.empty_strided((2,), (1,), dtype=d)),
    "filled empty_permuted": filled(lambda t, d: t.empty_permuted((2,), (0,), dtype=d)),
    "filled new_empty": filled(lambda t, d: t.ones(1, dtype=d).new_empty(2)),
    "filled resize_": filled(lambda t, d: t.ones(1, dtype=d).resize_(3)),
}


def deterministic(function: Callable[..., Any], warn_only: bool = False) -> Callable[..., Any]:
    """The result, or the message of the warning, where operators must be deterministic."""
    def call(t: Any, x: Any) -> Any:
        t.use_deterministic_algorithms(True, warn_only=warn_only)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = function(t, x)
            if caught:
                raise RuntimeError(str(caught[0].message).split(" (Triggered")[0])
            return result
        finally:
            t.use_deterministic_algorithms(False)
    return call


def _unpooled(t: Any, x: Any, rank: int) -> Any:
    values = x.flatten()[:3 ** rank].reshape(1, *[3] * rank)
    pool = getattr(t.nn, f"MaxUnpool{rank}d")(2, 1)
    return pool(values, t.arange(3 ** rank).reshape(values.shape))


def _put(accumulate: bool) -> Callable[..., Any]:
    return lambda t, x: x.clone().put_(t.tensor([0, 1]), t.ones(2), accumulate=accumulate)


def _partial_mask(t: Any, x: Any) -> Any:
    mask = t.tensor([True, False, True])
    return mask[1:].masked_fill_(mask[:-1], False)


def _unscaled(t: Any, x: Any) -> Any:
    """Whether the sum of two elements at one place, infinite in float16, is found."""
    p = t.sparse_coo_tensor([[0, 0]], [1., 1.], (2,), dtype=t.float16)
    p.grad = t.sparse_coo_tensor([[0, 0]], [64000., 64000.], (2,), dtype=t.float16)
    scaler = t.amp.GradScaler("cpu")
    return list(scaler._unscale_grads_(t.optim.SGD([p], lr=1.), t.full((1,), .25), t.zeros(1), True).values())


CASES |= {
    "overflow of sparse gradients": _unscaled,
    "deterministic put": deterministic(_put(False)), "deterministic sum": deterministic(_put(True)),
    "warning of put": deterministic(_put(False), True),
    **{f"deterministic unpool {n}": deterministic(lambda t, x, n=n: _unpooled(t, x, n)) for n in (1, 2)},
    "cummax into another dtype": lambda t, x: t.cummax(x, 0, out=(t.empty(0).double(), t.empty(0, dtype=t.int64))),
    "cummin into other indices": lambda t, x: t.cummin(x, 0, out=(t.empty(0), t.empty(0))),
    "mask on its own memory": _partial_mask,
    "roll of no dimension": lambda t, x: t.roll(x, 1, None),
    "vmap of a roll": lambda t, x: t.func.vmap(lambda y: t.roll(y, 1, None))(x),
    "promote_types of an int": lambda t, x: t.promote_types(t.int32, 1),
    "promote_types of a string": lambda t, x: t.promote_types("a", t.int32),
    "can_cast of None": lambda t, x: t.can_cast(t.int32, None),
    "can_cast of an int": lambda t, x: t.can_cast(1, t.int8),
    "isclose with a tensor": lambda t, x: t.isclose(x, x, t.tensor(1.5), t.tensor(1)),
    "isclose with a leaf": lambda t, x: t.isclose(x, x, 1, t.tensor(1., requires_grad=True)),
    "isclose with a vector": lambda t, x: t.isclose(x, x, t.tensor([1.])),
    "isclose with a string": lambda t, x: t.isclose(x, x, "a"),
    "dim_order of a sparse tensor": lambda t, x: x.to_sparse().dim_order(),
    "running mean with gradient": lambda t, x: t.nn.functional.batch_norm(
        x, t.zeros(4, requires_grad=True), t.ones(4), training=True),
    "running var with gradient": lambda t, x: t.nn.functional.batch_norm(
        x, t.zeros(4), t.ones(4, requires_grad=True)),
    "sizes of a nested tensor": lambda t, x: t.nested.nested_tensor([x, x[:1]]).is_same_size(x),
    "sizes of nested tensors": lambda t, x: t.tensor(t.nested.nested_tensor([x, x[:1]]).is_same_size(
        t.nested.nested_tensor([x, x[:2]]))),
    "element of nothing": lambda t, x: t.ops.aten._local_scalar_dense(x[:0]),
    "subclass of FloatTensor": lambda t, x: type("Mine", (t.FloatTensor,), {}),
    "size of storages": lambda t, x: t.tensor([
        (m.FloatStorage(10).__sizeof__() - m.FloatStorage().__sizeof__()) for m in (t,)]),
    **{f"accumulated {d}": lambda t, x, d=d: t.linspace(0, 1, 5, dtype=getattr(t, d)).put(
        t.tensor([1, 1, 4, 1, 4, 0]), t.linspace(1.3, 2.7, 6, dtype=getattr(t, d)), accumulate=True).float()
       for d in ("float16", "bfloat16")},
    "overlaps": lambda t, x: t.tensor([t._debug_has_internal_overlap(y) for y in (
        x, x.mT, x[:, ::2], x[:1].expand(3, 4, 2), x.as_strided([2, 1, 5], [1, 0, 2]), x[:0])]),
    "private names of storages": lambda t, x: (lambda s: t.tensor([
        s._element_size(), s._nbytes(), s._setitem(0, 3) or s._deepcopy({})[0], s._resize_(4) or len(s),
        x._typed_storage()._size()]))(t.FloatStorage(2)),
    **{f"capsule, copy {c}": lambda t, x, c=c: t.asarray(t.utils.dlpack.to_dlpack(x), copy=c)
       for c in (None, False, True)},
    "cummax of a scalar": lambda t, x: t.cummax(x[0, 0, 0], 100),
    "cummin of a scalar": lambda t, x: x[0, 0, 0].cummin(-2),
    "default storage": lambda t, x: type(t.Storage(2)) and t.tensor(t.Storage([1.5])),
    "weak references": lambda t, x: t.tensor([x._fix_weakref() is x.untyped_storage()._fix_weakref() is None]),
}


def run(library: Any, function: Callable[..., Any]) -> Any:
    """Results as arrays; an error as its type and first line."""
    try:
        result = function(library, library.tensor(X))
    except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError, AttributeError) as error:
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
