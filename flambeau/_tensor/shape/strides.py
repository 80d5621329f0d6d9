"""Parts, strides and sizes: what shows a tensor's memory otherwise, and what changes a tensor's own shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backends.numpy.memory import element_strides, strided
from ...modes import active_tracer, special
from ...ops.declare import REGISTRY
from ...shapes import wrap_dim
from ..dispatch.apply import apply
from ..dispatch.array_kernels import kernel_of
from ..dispatch.binding import functions_of
from ..dispatch.graph_recording import record
from ..dispatch.inplace import rebase
from ..dispatch.write_checks import check_writable, is_tracked
from ..storage import storage_offset as storage_offset_of
from ..tensor import Tensor, wrap
from ..view_geometry import Geometry
from .reshaping import as_ints

__all__ = ["as_strided", "as_strided_copy", "as_strided_scatter", "is_same_size", "narrow", "narrow_copy",
           "numel", "squeeze_copy"]


# ----- parts and strides ---------------------------------------------------------------------


def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` elements from `start` on, of dimension `dim`.

    >>> import flambeau as torch
    >>> torch.narrow(torch.arange(4), 0, 1, 2)
    tensor([1, 2])
    """
    if isinstance(start, Tensor):
        if start._array.ndim or start._array.dtype.kind not in "iu":
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = start.item()
    axis, start = _narrowed(input, dim, start, length)
    return apply(REGISTRY["slice"], [input], {"dim": axis, "start": start, "end": start + length, "step": 1})


def narrow_copy(input: Tensor, dim: int, start: int, length: int, *, out: Any = None) -> Tensor:
    """A copy of `length` elements from `start` on, of dimension `dim`.

    >>> import flambeau as torch
    >>> torch.narrow_copy(torch.arange(4), 0, 1, 2)
    tensor([1, 2])
    """
    axis, start = _narrowed(input, dim, start, length)
    return functions_of(REGISTRY["narrow_copy"])(input, dim=axis, start=start, length=length, out=out)


def _narrowed(input: Tensor, dim: int, start: int, length: int) -> tuple[int, int]:
    """Dimension and start, counted from the front.

    Raises:
        RuntimeError, IndexError: they lie outside the tensor.
    """
    shape = input._array.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    axis = wrap_dim(dim, len(shape))
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = shape[axis]
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    if start < 0:
        start += size
    if start > size - length:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return axis, start


def _strided_params(input: Tensor, size: Any, stride: Any, storage_offset: Any) -> dict[str, Any]:
    size, stride = as_ints(size, "as_strided", "size"), as_ints(stride, "as_strided", "stride")
    if special[0] and input._array.__class__ is not np.ndarray:
        return _strided_in_each(input, size, stride, storage_offset)
    array = strided(input._array, size, stride, storage_offset)
    return {"size": size, "stride": stride, "storage_offset": storage_offset,
            "geometry": Geometry(input._array, array)}


def _strided_in_each(input: Any, size: tuple[int, ...], stride: tuple[int, ...], offset: int | None) -> dict[str, Any]:
    """What shows the same part of each element of a batch, for the batch's value.

    Raises:
        RuntimeError: it would show more than the elements (PyTorch's text).
    """
    value, k = input._value._array, len(input._levels)
    steps, first = element_strides(value), storage_offset_of(input._value)
    start = first if offset is None else offset
    last = start + sum((n - 1) * s for n, s in zip(size, stride, strict=False))
    end = first + sum((n - 1) * s for n, s in zip(value.shape[k:], steps[k:], strict=True))
    if 0 not in size and 0 not in value.shape and not first <= start <= last <= end:
        raise RuntimeError(
            f"result = tensor.as_strided({list(size)}, {list(stride)}, {start}) can access memory outside of `tensor`. "
            f"`result` can access some memory in range [{start}, {last + 1}], but `tensor` can only access some memory "
            f"in range [{first}, {end + 1}]. This is not supported inside of vmap, please try to rewrite the "
            "`as_strided` call as a sequence of PyTorch view operations")
    return _strided_params(input._value, (*value.shape[:k], *size), (*steps[:k], *stride), start)


def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the storage by shape, strides (in elements) and offset.

    >>> import flambeau as torch
    >>> torch.as_strided(torch.arange(4), (2, 2), (1, 2))
    tensor([[0, 2],
            [1, 3]])
    """
    return apply(REGISTRY["_as_strided"], [input], _strided_params(input, size, stride, storage_offset))


def as_strided_copy(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None, *,
                    out: Any = None) -> Tensor:
    """A copy of what `as_strided` shows."""
    params = _strided_params(input, size, stride, storage_offset)
    return functions_of(REGISTRY["_as_strided_copy"])(input, **params, out=out)


def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any,
                       storage_offset: int | None = None) -> Tensor:
    """A copy of `input` with `src` at the strided places."""
    if special[0] and input._array.__class__ is not np.ndarray:
        _strided_params(input, size, stride, storage_offset)  # which refuses what lies outside
        one: Any = input._value._array[(0,) * len(input._levels)]
        params = _strided_params(wrap(one), size, stride, storage_offset)
    else:
        params = _strided_params(input, size, stride, storage_offset)
    if src._array.shape != tuple(size):
        raise RuntimeError("expected src to have a size equal to the slice of self. src size = "
                           f"{list(src._array.shape)}, slice size = {list(size)}")
    return apply(REGISTRY["_as_strided_scatter"], [input, src], params)


def squeeze_copy(input: Tensor, dim: Any = None, *, out: Any = None) -> Tensor:
    """A copy of what `squeeze` shows."""
    key = ("_squeeze_all_copy" if dim is None else
           "_squeeze_dims_copy" if isinstance(dim, (tuple, list)) else "_squeeze_dim_copy")
    return functions_of(REGISTRY[key])(input, **({} if dim is None else {"dim": dim}), out=out)


# ----- sizes -----------------------------------------------------------------------------


def numel(input: Tensor) -> int:
    """The number of elements.

    >>> import flambeau as torch
    >>> torch.numel(torch.ones(2, 3))
    6
    """
    return input._array.size


def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one dimension."""
    if dim is None:
        return self.shape
    shape = self._array.shape
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return shape[wrap_dim(dim, len(shape))]


def stride(self: Tensor, dim: int | None = None) -> Any:
    """The strides, in elements, or one of them."""
    strides = element_strides(self._array)
    if dim is None:
        return strides
    if not strides:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return strides[wrap_dim(dim, len(strides))]


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether the shapes are equal."""
    return input._array.shape == other._array.shape


def _dimensions(self: Tensor) -> int:
    return self._array.ndim


def _numel(self: Tensor) -> int:
    return self._array.size


# ----- in place --------------------------------------------------------------------------


def _reviewing(self: Tensor, key: str, params: dict[str, Any]) -> Tensor:
    """Change the shape and strides of a tensor itself."""
    if special[0] and self._array.__class__ is not np.ndarray:
        return _reviewing_each(self, key, params)
    op = REGISTRY[key]
    tracked = is_tracked([self])
    check_writable(self, tracked)
    array: np.ndarray = kernel_of(op)(self._array, **params)
    if special[0] and (tracer := active_tracer.get()) is not None:
        tracer.on_version_bump(self)
    if tracked and self._base is None:
        node = record(op, [self], [wrap(array)], params)
        self._array = array
        self._bump_version()
        rebase(self, node)
    else:
        self._array = array
        self._bump_version()
    return self


def _reviewing_each(self: Any, key: str, params: dict[str, Any]) -> Tensor:
    """Change the shape and strides of each element of a batch."""
    k, n = len(self._levels), self._array.ndim
    if key == "_t_":
        key, params = "_transpose_", {"dim0": 0, "dim1": 1 if n == 2 else 0}
    elif key == "_squeeze_all_":
        key, params = "_squeeze_dims_", {"dim": tuple(range(n))}
    if "geometry" not in params:  # which is the value's already
        m = n + 1 if key == "_unsqueeze_" else n

        def behind(dim: Any) -> Any:
            return tuple(map(behind, dim)) if isinstance(dim, (tuple, list)) else wrap_dim(dim, m) + k

        if n or key == "_unsqueeze_":
            params = {name: behind(dim) for name, dim in params.items()}
        else:
            key, params = "_squeeze_dims_", {"dim": ()}
    _reviewing(self._value, key, params)
    return self


def squeeze_(self: Tensor, dim: Any = None) -> Tensor:
    """`squeeze`, of this tensor itself."""
    key = "_squeeze_all_" if dim is None else "_squeeze_dims_" if isinstance(dim, (tuple, list)) else "_squeeze_dim_"
    return _reviewing(self, key, {} if dim is None else {"dim": dim})


def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """`unsqueeze`, of this tensor itself."""
    return _reviewing(self, "_unsqueeze_", {"dim": dim})


def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """`transpose`, of this tensor itself."""
    return _reviewing(self, "_transpose_", {"dim0": dim0, "dim1": dim1})


def t_(self: Tensor) -> Tensor:
    """`t`, of this tensor itself."""
    check_writable(self, is_tracked([self]))
    if self._array.ndim > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {self._array.ndim}D")
    return _reviewing(self, "_t_", {})


def as_strided_(self: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """`as_strided`, of this tensor itself."""
    return _reviewing(self, "_as_strided_", _strided_params(self, size, stride, storage_offset))


METHODS = {
    "narrow": narrow, "narrow_copy": narrow_copy, "as_strided": as_strided,
    "as_strided_scatter": as_strided_scatter, "size": size, "stride": stride, "dim": _dimensions,
    "ndimension": _dimensions, "numel": _numel, "nelement": _numel, "is_same_size": is_same_size,
    "squeeze_": squeeze_, "unsqueeze_": unsqueeze_, "transpose_": transpose_, "swapaxes_": transpose_,
    "swapdims_": transpose_, "t_": t_, "as_strided_": as_strided_,
}
