"""`narrow`, `as_strided`, sizes and strides, and in-place changes of shape (`squeeze_`, `t_`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backends.numpy.memory import element_strides, strided_view
from ...backends.sparse_array import SparseAccess, SparseArray, format_name
from ...engine.grad_mode import grad_mode
from ...kernels.memory_format import note_layout
from ...modes import active_tracer, dispatch_in_use, special
from ...ops.declare import REGISTRY
from ...shapes import wrap_dim
from ..argument_errors.guards import raise_refusal, refused
from ..dispatch.apply import apply
from ..dispatch.array_kernels import kernel_of
from ..dispatch.graph_recording import record
from ..dispatch.inplace import set_history
from ..dispatch.interception import notify_operator
from ..dispatch.public_functions import public_function
from ..dispatch.write_checks import check_writable, is_tracked
from ..fastpath.known_views import known_views
from ..memory.addresses import storage_offset as storage_offset_of
from ..methods.sparse import implementation as sparse_implementation
from ..overriding.aten_arguments import aten_overload
from ..overriding.dispatch import ask, dispatch_modes, handles, no_dispatch
from ..overriding.other_objects import with_other_object
from ..tensor import Tensor, wrap
from ..views.geometry import Geometry
from .reshaping import as_ints

__all__ = ["as_strided", "as_strided_copy", "as_strided_scatter", "is_same_size", "narrow", "narrow_copy",
           "numel", "squeeze_copy"]


# ----- views by strides ----------------------------------------------------------------------


#: classes of numbers that are no positions
_NO_INTEGERS = frozenset((bool, float))


@known_views
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` slices from `start` on along dimension `dim`, a view.

    >>> import flambeau as torch
    >>> torch.narrow(torch.arange(4), 0, 1, 2)
    tensor([1, 2])
    """
    if start.__class__ in _NO_INTEGERS or length.__class__ in _NO_INTEGERS:
        raise TypeError("narrow(): start and length must be int")  # a guard says more
    if isinstance(start, Tensor):
        if start._array.ndim or start._array.dtype.kind not in "iu":
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = start.item()
    axis, start = _narrow_range(input, dim, start, length)
    return apply(REGISTRY["slice"], [input], {"dim": axis, "start": start, "end": start + length, "step": 1})


def narrow_copy(input: Tensor, dim: int, start: int, length: int, *, out: Any = None) -> Tensor:
    """A copy of `length` slices from `start` on along dimension `dim`.

    >>> import flambeau as torch
    >>> torch.narrow_copy(torch.arange(4), 0, 1, 2)
    tensor([1, 2])
    """
    if isinstance(input._array, SparseArray):
        return apply(REGISTRY["narrow_copy"], [input], {"dim": dim, "start": start, "length": length})
    rank = input._array.ndim
    if dim >= rank > 0:
        raise RuntimeError("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.  (Could "
                           "this error message be improved?  If so, please report an enhancement request to PyTorch.)")
    if length < 0 and rank and -(n := input._array.shape[wrap_dim(dim, rank)]) <= start <= n:
        start += n if start < 0 else 0
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    axis, start = _narrow_range(input, dim, start, length)
    return public_function(REGISTRY["narrow_copy"])(input, dim=axis, start=start, length=length, out=out)


def _narrow_range(input: Tensor, dim: int, start: int, length: int) -> tuple[int, int]:
    """Dimension and start as non-negative ints.

    Raises:
        RuntimeError, IndexError: they are out of range.
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
    if special[0] and not isinstance(input._array, np.ndarray):
        return _strided_params_batched(input, size, stride, storage_offset)
    array = strided_view(input._array, size, stride, storage_offset)
    return {"size": size, "stride": stride, "storage_offset": storage_offset,
            "geometry": Geometry(input._array, array)}


def _strided_params_batched(input: Any, size: tuple[int, ...], stride: tuple[int, ...],
                            offset: int | None) -> dict[str, Any]:
    """The parameters of `as_strided` for the value of a batched tensor.

    Raises:
        RuntimeError: the view would exceed an example (PyTorch's text).
    """
    value, k = input._value._array, len(input._levels)
    strides, first = element_strides(value), storage_offset_of(input._value)
    start = first if offset is None else offset
    last = start + sum((n - 1) * s for n, s in zip(size, stride, strict=False))
    end = first + sum((n - 1) * s for n, s in zip(value.shape[k:], strides[k:], strict=True))
    if 0 not in size and 0 not in value.shape and not first <= start <= last <= end:
        raise RuntimeError(
            f"result = tensor.as_strided({list(size)}, {list(stride)}, {start}) can access memory outside of `tensor`. "
            f"`result` can access some memory in range [{start}, {last + 1}], but `tensor` can only access some memory "
            f"in range [{first}, {end + 1}]. This is not supported inside of vmap, please try to rewrite the "
            "`as_strided` call as a sequence of PyTorch view operations")
    return _strided_params(input._value, (*value.shape[:k], *size), (*strides[:k], *stride), start)


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
    """`as_strided`, as a copy.

    >>> import flambeau as torch
    >>> torch.as_strided_copy(torch.arange(4), (2,), (2,))
    tensor([0, 2])
    """
    params = _strided_params(input, size, stride, storage_offset)
    return public_function(REGISTRY["_as_strided_copy"])(input, **params, out=out)


def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any,
                       storage_offset: int | None = None) -> Tensor:
    """A copy of `input` with `src` written into its `as_strided` view.

    >>> import flambeau as torch
    >>> torch.as_strided_scatter(torch.zeros(4), torch.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    if special[0] and not isinstance(input._array, np.ndarray):
        _strided_params(input, size, stride, storage_offset)  # raises if the view exceeds an example
        one: Any = input._value._array[(0,) * len(input._levels)]
        params = _strided_params(wrap(one), size, stride, storage_offset)
    else:
        params = _strided_params(input, size, stride, storage_offset)
    if src._array.shape != tuple(size):
        raise RuntimeError("expected src to have a size equal to the slice of self. src size = "
                           f"{list(src._array.shape)}, slice size = {list(size)}")
    return apply(REGISTRY["_as_strided_scatter"], [input, src], params)


def squeeze_copy(input: Tensor, dim: Any = None, *, out: Any = None) -> Tensor:
    """`squeeze`, as a copy.

    >>> import flambeau as torch
    >>> torch.squeeze_copy(torch.ones(1, 2))
    tensor([1., 1.])
    """
    key = ("_squeeze_all_copy" if dim is None else
           "_squeeze_dims_copy" if isinstance(dim, (tuple, list)) else "_squeeze_dim_copy")
    return public_function(REGISTRY[key])(input, **({} if dim is None else {"dim": dim}), out=out)


# ----- sizes -----------------------------------------------------------------------------


def numel(input: Tensor) -> int:
    """The number of elements.

    >>> import flambeau as torch
    >>> torch.numel(torch.ones(2, 3))
    6
    """
    try:
        return input._array.size
    except AttributeError as error:
        return int(with_other_object(error, numel, (input,)))


def size(self: Tensor, dim: int | None = None, *, axis: int | None = None) -> Any:
    """The shape, or the size of one dimension.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).size(1)
    3
    """
    if dim is None:
        if axis is None:
            return self.shape
        dim = axis
    shape = self._array.shape
    if not shape:
        raise_refusal(refused("size", (self,), (("dim", dim, None),)))
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    try:
        return shape[wrap_dim(dim, len(shape))]
    except (TypeError, ValueError, RuntimeError, IndexError):
        raise_refusal(refused("size", (self,), (("dim", dim, None),)))
        raise


def stride(self: Tensor, dim: int | None = None) -> Any:
    """The strides in elements, or that of one dimension.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).stride()
    (3, 1)
    """
    try:
        strides = element_strides(self._array)
    except SparseAccess:
        if not self.is_sparse:
            raise RuntimeError(f"Sparse {format_name(self._array)} tensors do not have strides") from None
        strides = (0,) * self._array.ndim
    if dim is None:
        return strides
    if not strides:
        raise_refusal(refused("stride", (self,), (("dim", dim, None),)))
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    try:
        return strides[wrap_dim(dim, len(strides))]
    except (TypeError, ValueError, RuntimeError, IndexError):
        raise_refusal(refused("stride", (self,), (("dim", dim, None),)))
        raise


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether the shapes are equal.

    >>> import flambeau as torch
    >>> torch.is_same_size(torch.ones(2), torch.ones(3))
    False
    """
    return input._array.shape == other._array.shape


def _dimensions(self: Tensor) -> int:
    """The number of dimensions.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).dim()
    2
    """
    return self._array.ndim


def _numel(self: Tensor) -> int:
    """The number of elements.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).numel()
    6
    """
    return self._array.size


# ----- in place --------------------------------------------------------------------------


def _restride(self: Tensor, key: str, params: dict[str, Any], args: tuple[Any, ...] | None = None) -> Tensor:
    """Apply a view operator in place: change the shape and strides of the tensor.

    Args:
        args: the arguments that modes see, if they are not the parameters.
    """
    if special[0] and not isinstance(self._array, np.ndarray):
        return _restride_batched(self, key, params)
    op = REGISTRY[key]
    tracked = is_tracked([self])
    check_writable(self, tracked)
    try:
        array: np.ndarray = kernel_of(op)(self._array, **params)
    except SparseAccess:
        return sparse_implementation("dispatch", "restride")(self, key.strip("_"), params)
    if array.__class__ is np.ndarray:
        note_layout(array)
    if special[0] and (tracer := active_tracer.get()) is not None:
        tracer.on_version_bump(self)
    node = record(op, [self], [wrap(array)], params) if tracked else None
    if special[0] and dispatch_in_use[0] and key in _OVERLOADS and dispatch_modes.get() and not no_dispatch.get() and (
            not handles(type(self))):
        # they change the tensor by calling the overload
        _ask_modes(self, *_OVERLOADS[key], tuple(params.values()) if args is None else args)
    else:
        self._array = array
        if self._view_steps is not None:
            self._view_steps = (*self._view_steps, array)
        self._bump_version()
    if node is not None:
        hooks = self._hooks
        set_history(self, node)
        self._hooks = hooks  # they stay at the node before, and later ones join them there, as in PyTorch
    if special[0]:
        if self._tangents:
            self._tangents = {level: apply(op, [tangent], params) for level, tangent in self._tangents.items()}
        if active_tracer.get() is None:  # to tracers it is a change of the tensor that no operator explains
            notify_operator(op, [self], params, [self], True)
    return self


#: key -> packet and overload that modes see
_OVERLOADS = {"_squeeze_all_": ("squeeze_", "default"), "_squeeze_dim_": ("squeeze_", "dim"),
              "_squeeze_dims_": ("squeeze_", "dims"), "_unsqueeze_": ("unsqueeze_", "default"),
              "_transpose_": ("transpose_", "default"), "_t_": ("t_", "default"),
              "_as_strided_": ("as_strided_", "default")}


def _ask_modes(self: Tensor, packet: str, overload: str, args: tuple[Any, ...]) -> None:
    """Let modes run an operator that changes the shape of a tensor, below autograd."""
    token = grad_mode.set(False)
    try:
        ask(aten_overload(packet, overload), [], (self, *args), {})
    finally:
        grad_mode.reset(token)


def _restride_batched(self: Any, key: str, params: dict[str, Any]) -> Tensor:
    """`_restride` of a batched tensor."""
    k, n = len(self._levels), self._array.ndim
    if key == "_t_":
        key, params = "_transpose_", {"dim0": 0, "dim1": 1 if n == 2 else 0}
    elif key == "_squeeze_all_":
        key, params = "_squeeze_dims_", {"dim": tuple(range(n))}
    if "geometry" not in params:  # `_strided_params` has computed those of the value
        m = n + 1 if key == "_unsqueeze_" else n

        def shift(dim: Any) -> Any:
            return tuple(map(shift, dim)) if isinstance(dim, (tuple, list)) else wrap_dim(dim, m) + k

        if n or key == "_unsqueeze_":
            params = {name: shift(dim) for name, dim in params.items()}
        else:
            key, params = "_squeeze_dims_", {"dim": ()}
    _restride(self._value, key, params)
    return self


def squeeze_(self: Tensor, dim: Any = None) -> Tensor:
    """`squeeze`, in place: changes the shape and strides of this tensor."""
    key = "_squeeze_all_" if dim is None else "_squeeze_dims_" if isinstance(dim, (tuple, list)) else "_squeeze_dim_"
    return _restride(self, key, {} if dim is None else {"dim": dim})


def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """`unsqueeze`, in place: changes the shape and strides of this tensor."""
    return _restride(self, "_unsqueeze_", {"dim": dim})


def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """`transpose`, in place: changes the shape and strides of this tensor."""
    return _restride(self, "_transpose_", {"dim0": dim0, "dim1": dim1})


def swapaxes_(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """`swapaxes`, in place: changes the shape and strides of this tensor."""
    return _restride(self, "_transpose_", {"dim0": axis0, "dim1": axis1})


def t_(self: Tensor) -> Tensor:
    """`t`, in place: changes the shape and strides of this tensor."""
    check_writable(self, is_tracked([self]))
    if self._array.ndim > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {self._array.ndim}D")
    return _restride(self, "_t_", {})


def as_strided_(self: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """`as_strided`, in place: changes the shape and strides of this tensor."""
    return _restride(self, "_as_strided_", _strided_params(self, size, stride, storage_offset),
                     (size, stride, storage_offset))


METHODS = {
    "narrow": narrow, "narrow_copy": narrow_copy, "as_strided": as_strided,
    "as_strided_scatter": as_strided_scatter, "size": size, "stride": stride, "dim": _dimensions,
    "ndimension": _dimensions, "numel": _numel, "nelement": _numel, "is_same_size": is_same_size,
    "squeeze_": squeeze_, "unsqueeze_": unsqueeze_, "transpose_": transpose_, "swapaxes_": swapaxes_,
    "swapdims_": transpose_, "t_": t_, "as_strided_": as_strided_,
}
