"""Functions and operators of masked tensors that are neither elementwise, nor reductions, nor rearrangements.

`core.FUNCTIONS` and `core.OPERATORS` are complete once this module is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from ... import devices, dtypes
from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.custom_functions.function import Function
from ...engine.engine import current_graph_task_id
from . import binary, passthrough, reductions, unary
from .core import (
    DERIVATIVES,
    FUNCTIONS,
    OPERATORS,
    MaskedTensor,
    _get_data,
    _masks_match,
    _maybe_get_mask,
    is_masked_tensor,
)

TABLES = (binary, passthrough, reductions, unary)  # filled by these modules too


def _check_lengths(args: Any, kwargs: Any, place: str, n_args: int | None = None, n_kwargs: int | None = None) -> None:
    if n_args is not None and n_args != len(args):
        raise ValueError(f"{place}: len(args) must be {n_args} but got {len(args)}")
    if n_kwargs is not None and n_kwargs != len(kwargs):
        raise ValueError(f"{place}: len(kwargs) must be {n_kwargs} but got {len(kwargs)}")


def _checked(name: str, x: Any) -> None:
    if not is_masked_tensor(x):
        raise ValueError(f"{name} forward: input must be a MaskedTensor.")


# ----- differentiable conversions --------------------------------------------------------------------


class _MaskedContiguous(Function):
    """A copy with contiguous data and mask, if they are not."""

    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        _checked("MaskedContiguous", input)
        if input.is_contiguous():
            return input
        return MaskedTensor(input.get_data().contiguous(), input.get_mask().contiguous())

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output


class _MaskedToDense(Function):
    """A masked tensor with strided data and mask."""

    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        _checked("MaskedToDense", input)
        if input.layout == devices.strided:
            return input
        ctx.layout = input.layout
        return MaskedTensor(input.get_data().to_dense(), input.get_mask().to_dense())

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        layout = ctx.layout
        if layout == devices.sparse_coo:
            return _MaskedToSparse.apply(grad_output)
        if layout == devices.sparse_csr:
            return _MaskedToSparseCsr.apply(grad_output)
        if layout == devices.strided:
            return _MaskedToDense.apply(grad_output)
        raise ValueError(f"to_dense: Unsupported input layout: {layout}")


class _MaskedToSparse(Function):
    """A masked tensor with data and mask in COO layout."""

    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        _checked("MaskedToSparse", input)
        if input.layout == devices.sparse_coo:
            return input
        mask = input.get_mask().to_sparse_coo().coalesce()
        return MaskedTensor(input.get_data().sparse_mask(mask), mask)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return _MaskedToDense.apply(grad_output)


class _MaskedToSparseCsr(Function):
    """A masked tensor with data and mask in CSR layout."""

    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        _checked("MaskedToSparseCsr", input)
        if input._masked_data.ndim != 2:
            raise ValueError("Only 2D tensors can be converted to the SparseCsr layout but got shape: "
                             f"{input._masked_data.size()}")
        if input.layout == devices.sparse_csr:
            return input
        mask = input.get_mask().to_sparse_csr()
        return MaskedTensor(input.get_data().sparse_mask(mask), mask)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return _MaskedToDense.apply(grad_output)


def _masked_out(x: Any) -> Any:
    """The data with everything masked out."""
    return MaskedTensor(x.get_data(), fn.zeros_like(x.get_mask()).bool())


class _MaskedWhere(Function):
    """`where`, data and mask alike; a gradient is there where its tensor was chosen."""

    @staticmethod
    def forward(ctx: Any, cond: Any, self: Any, other: Any) -> Any:
        ctx.mark_non_differentiable(cond)
        ctx.save_for_backward(cond)
        return where(None, cond, self, other)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        (cond,) = ctx.saved_tensors
        nothing = _masked_out(grad_output)
        return None, where(None, cond, grad_output, nothing), where(None, cond, nothing, grad_output)


# ----- functions -------------------------------------------------------------------------------------


def _function_where(*args: Any, **kwargs: Any) -> Any:
    _check_lengths(args, kwargs, "__torch_function__, torch.where", 3, 0)
    return _MaskedWhere.apply(*args)


def _is_contiguous(x: Any, memory_format: Any = None) -> bool:
    data = x._masked_data
    if data.layout != devices.strided:
        raise ValueError("MaskedTensors with sparse data do not have is_contiguous")
    return bool(data.is_contiguous() if memory_format is None else data.is_contiguous(memory_format=memory_format))


def _contiguous(x: Any, memory_format: Any = None) -> Any:
    return _MaskedContiguous.apply(x)


methods: Any = Tensor  # its methods are installed when the package is imported
FUNCTIONS.update({
    fn.where: _function_where, methods.where: _function_where, methods.contiguous: _contiguous,
    methods.is_contiguous: _is_contiguous,
    methods.to_dense: lambda x, *args, **kwargs: _MaskedToDense.apply(x),
    methods.to_sparse: lambda x, *args, **kwargs: _MaskedToSparse.apply(x),
    methods.to_sparse_coo: lambda x: _MaskedToSparse.apply(x),
    methods.to_sparse_csr: lambda x, *args, **kwargs: _MaskedToSparseCsr.apply(x),
})


# ----- operators -------------------------------------------------------------------------------------


def operator(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register an implementation of operators."""
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return register


def _place(packet: Any) -> str:
    return f"__torch_dispatch__, {packet}"


@operator("contiguous")
def contiguous(packet: Any, x: Any, **kwargs: Any) -> Any:
    if _get_data(x).layout != devices.strided:
        raise ValueError("MaskedTensors with sparse data do not have contiguous")
    return _MaskedContiguous.apply(x)


@operator("new_empty_strided")
def new_empty_strided(packet: Any, *args: Any, **kwargs: Any) -> Any:
    _check_lengths(args, kwargs, _place(packet), 3)
    data = _get_data(args[0])
    if tuple(args[1]) != tuple(data.size()):
        raise ValueError(f"{_place(packet)}: args[1] expected to be the same as data.size()")
    if tuple(args[2]) != tuple(data.stride()):
        raise ValueError(f"{_place(packet)}: args[2] expected to be the same as data.stride()")
    return MaskedTensor(packet(data, args[1], args[2], **kwargs), _maybe_get_mask(args[0]))


@operator("_local_scalar_dense")
def _local_scalar_dense(packet: Any, x: Any) -> Any:
    if not _maybe_get_mask(x):
        raise ValueError(f"{_place(packet)}: expected a mask tensor")
    return _get_data(x).item()


@operator("detach", "clone")
def _apply_fn_on_data(packet: Any, x: Any, **kwargs: Any) -> Any:
    return MaskedTensor(packet(_get_data(x)), _maybe_get_mask(x))


@operator("_to_copy")
def _to_copy(packet: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    data = packet(_get_data(x), *args, **kwargs)
    return MaskedTensor(data, packet(_maybe_get_mask(x), *args, **{**kwargs, "dtype": dtypes.bool_}))


@operator("_softmax")
def _softmax(packet: Any, *args: Any, **kwargs: Any) -> Any:
    _check_lengths(args, kwargs, _place(packet), 3, 0)
    mask = _maybe_get_mask(args[0])
    filled = _get_data(args[0]).masked_fill(~mask, -inf)
    result = fn.softmax(filled, args[1]).masked_fill(~mask, 0.0)  # nan where a row is masked out whole
    return MaskedTensor(result, mask)


@operator("_softmax_backward_data")
def _softmax_backward_data(packet: Any, *args: Any, **kwargs: Any) -> Any:
    _check_lengths(args, kwargs, _place(packet), 4)
    return _softmax_backward(packet, *args[:3])


def _softmax_backward(packet: Any, grad: Any, output: Any, dim: int) -> Any:
    if not (is_masked_tensor(grad) and is_masked_tensor(output)):
        raise ValueError(f"{_place(packet)}: grad and output must both be MaskedTensors")
    if not _masks_match(grad, output):
        raise ValueError(f"{_place(packet)}: expected the masks of grad and output to match")
    mask, probability = grad.get_mask(), _get_data(output)
    product = (_get_data(grad) * probability).masked_fill(~mask, 0.0)
    result = product - probability * product.sum(dim, keepdim=True)
    return MaskedTensor(result.masked_fill(~mask, 0.0), mask)


def _elementwise_derivative(overload: Any, *args: Any, **kwargs: Any) -> Any:
    """An elementwise operator of masked tensors whose masks are the same."""
    mask = next(x.get_mask() for x in args if is_masked_tensor(x))
    return MaskedTensor(overload(*map(_get_data, args), **kwargs), mask)


DERIVATIVES.update({"_softmax_backward": _softmax_backward, **dict.fromkeys(
    ("isfinite", "logical_and", "logical_or", "rsub"), _elementwise_derivative)})


@operator("ones_like")
def ones_like(packet: Any, *args: Any, **kwargs: Any) -> Any:
    _check_lengths(args, kwargs, _place(packet), 1)
    kwargs = {name: value for name, value in kwargs.items() if name != "pin_memory"}
    return MaskedTensor(packet(_get_data(args[0]), **kwargs), _maybe_get_mask(args[0]))


@operator("copy_")
def copy_(packet: Any, *args: Any, **kwargs: Any) -> Any:
    _check_lengths(args, kwargs, _place(packet), 2)
    packet(_get_data(args[0]), _get_data(args[1]))
    return args[0]


@operator("where")
def where(packet: Any, *args: Any, **kwargs: Any) -> Any:
    _check_lengths(args, kwargs, "__torch_dispatch__, aten.where", 3, 0)
    if not isinstance(args[0], Tensor):
        raise ValueError("__torch_dispatch__, aten.where: expected args[0] to be a tensor")
    cond, x, y = args
    x, y = _masked(x), _masked(y)
    if current_graph_task_id() >= 0:  # derivatives choose by comparisons, which are masked as their operands are
        cond = _get_data(cond)
    return MaskedTensor(fn.where(cond, x.get_data(), y.get_data()), fn.where(cond, x.get_mask(), y.get_mask()))


def _masked(x: Any) -> Any:
    """A tensor without a mask as a masked tensor that has all elements."""
    return x if is_masked_tensor(x) else MaskedTensor(x, fn.ones_like(x, dtype=dtypes.bool_))


@operator("_to_sparse")
def _to_sparse(packet: Any, *args: Any, **kwargs: Any) -> Any:
    _check_lengths(args, kwargs, _place(packet), 1, 0)
    return _MaskedToSparse.forward(None, _masked(args[0]))


@operator("_to_sparse_csr")
def _to_sparse_csr(packet: Any, *args: Any, **kwargs: Any) -> Any:
    _check_lengths(args, kwargs, _place(packet), 1, 0)
    return _MaskedToSparseCsr.forward(None, _masked(args[0]))


@operator("_to_dense")
def _to_dense(packet: Any, *args: Any, **kwargs: Any) -> Any:
    x = args[0]
    return MaskedTensor(_get_data(x).to_dense(), _maybe_get_mask(x).to_dense())


@operator("is_same_size")
def is_same_size(packet: Any, *args: Any, **kwargs: Any) -> Any:
    _check_lengths(args, kwargs, _place(packet), 2)
    return _get_data(args[0]).is_same_size(_get_data(args[1]))


@operator("_is_any_true")
def _is_any_true(packet: Any, *args: Any, **kwargs: Any) -> Any:
    _check_lengths(args, kwargs, _place(packet), 1, 0)
    data, mask = _get_data(args[0]), _maybe_get_mask(args[0])
    if mask is None:
        raise ValueError(f"{_place(packet)}: expected args[0] to be a MaskedTensor")
    if data.dtype is not dtypes.bool_:
        raise ValueError(f"{_place(packet)}: expected a boolean tensor")
    if data.layout != devices.strided:
        raise ValueError(f"MaskedTensors with sparse data do not have {packet}")
    return MaskedTensor((data & mask).any(), fn.tensor(True))


_MASKEDTENSOR_FUNCTION_TABLE = FUNCTIONS
_MASKEDTENSOR_DISPATCH_TABLE = OPERATORS

__all__: list[str] = []
