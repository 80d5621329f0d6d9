"""Masks of inputs and results; a reduction's identity takes the place of masked-out elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import devices, dtypes
from .._tensor import Tensor
from .._tensor import functions as fn
from .._tensor.custom_functions.function import Function
from .identities import _reduction_identity
from .maskedtensor.core import MaskedTensor, is_masked_tensor
from .sparse_layouts import LAYOUTS, canonical_mask, where_sparse

_REDUCTIONS = frozenset(("sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "norm", "var", "std",
                         "logsumexp"))
_NORMALIZATIONS = frozenset(("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"))


def _canonical_dim(dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions as a sorted tuple; all of them for None and ()."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    dims: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in dims:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        dims.append(d % ndim)
    return tuple(sorted(dims))


def _where(mask: Tensor, input: Tensor, fill_value: Any) -> Tensor:
    """The input where the mask is true, else the value; of sparse tensors, the elements where the mask is true."""
    if mask.layout == devices.strided:
        return fn.where(mask, input, fill_value)
    if mask.layout not in LAYOUTS:
        raise ValueError(f"_where expects strided or sparse COO or sparse CSR tensor but got {mask.layout}")
    return where_sparse(mask, input, fill_value)


def _input_mask(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The mask, given as `mask=`, as a bool tensor of the input's shape and layout."""
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.shape != input.shape or mask.layout != devices.strided or input.layout != devices.strided:
        mask = canonical_mask(input, mask)
    result: Tensor = mask.to(dtypes.bool_)
    return result


def _output_mask(op: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The mask of a result: which of its elements depend on an element that is not masked out."""
    if not callable(op):
        raise ValueError(f"_output_mask expected masked operation (got {type(op).__name__} object)")
    name = op.__name__
    if name in _NORMALIZATIONS:
        return _input_mask(input, *args, **kwargs)
    if name not in _REDUCTIONS:
        raise ValueError(f"_output_mask expected masked operation (got callable {op.__module__}.{name})")
    if name == "norm":
        args = args[1:]
    dim = args[0] if args else kwargs.get("dim")
    mask = _input_mask(input, *args, **kwargs)
    for d in reversed(_canonical_dim(dim, input.ndim)):
        mask = mask.any(dim=d, keepdim=bool(kwargs.get("keepdim", False)))
    return mask


def combined(name: str, input: Tensor, mask: Tensor | None, *args: Any, function: str | None = None,
             layouts: tuple[Any, ...] = LAYOUTS[:1]) -> Tensor:
    """The input with the reduction's identity in place of masked-out elements.

    Args:
        name: the reduction.
        function: the function that is called, for the error.
        layouts: the layouts that the reduction supports.

    Raises:
        ValueError: the input has another layout.
    """
    if input.layout not in layouts:
        names = [str(layout).rpartition(".")[2] for layout in layouts]
        expected = " or ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
        raise ValueError(f"masked {function or name} expects {expected} tensor (got {input.layout} tensor)")
    if is_masked_tensor(input):
        result: Tensor = Combine.apply(input.get_data(), input.get_mask(), name, args)
        return result
    if mask is None:
        return input
    return _where(_input_mask(input, mask=mask), input, _reduction_identity(name, input, *args))


class Combine(Function):
    """The data of a masked tensor with a reduction's identity in place of masked-out elements."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor, name: str, args: tuple[Any, ...]) -> Tensor:
        ctx.mask = mask
        return _where(_input_mask(data, mask=mask), data, _reduction_identity(name, data, *args))

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        data = grad_output.get_data() if is_masked_tensor(grad_output) else grad_output
        return MaskedTensor._from_values(data, ctx.mask), None, None, None
