"""Indexing: `x[key]` and `x[key] = value`.

The basic parts of a key (ints, slices, None, ...) become view operators: select, slice, unsqueeze. Index tensors and
masks become one gather, which copies. Assignment writes into the same view, or at the same index tensors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ... import dtypes
from ...backends.bit_views import BitView, bits_used, resolve
from ...backends.numpy.indexing.advanced import check_values_fit, put_at
from ...backends.numpy.indexing.index_arrays import nonzero_places
from ...backends.numpy.indexing.masks import POSITIONS_FROM, elements_at_mask, fill_at_mask
from ...backends.numpy.memory import check_scalar_fits
from ...backends.sparse_array import SparseAccess, SparseArray
from ...engine.grad_mode import grad_mode, inference
from ...engine.tensor_interface import layer
from ...kernels.memory_format import layouts_seen
from ...modes import (
    active_tracer,
    active_tracers,
    device_memory,
    dispatch_in_use,
    forward_levels,
    inference_used,
    special,
)
from ...ops.declare import REGISTRY
from ...warning_location import user_stacklevel
from ..dispatch.apply import apply
from ..dispatch.bit_resolution import resolved
from ..dispatch.handlers import handlers
from ..dispatch.inplace import overwrite
from ..dispatch.public_functions import public_function
from ..dispatch.write_checks import check_history, check_no_overlap, check_writable, is_tracked
from ..fastpath.repeated_calls import ANY, repeated
from ..fastpath.views import ViewStep, plan_with_constants, view_chain, view_function
from ..meta import is_meta, lacks_elements
from ..methods.sparse import implementation as sparse_implementation
from ..overriding.dispatch import is_on_accelerator
from ..tensor import Tensor, wrap
from ..tracer_notifications import notify_read
from .copying import copy_
from .filling import fill_
from .reshaping import expand, unsqueeze, view

__all__: list[str] = []

_select = view_function("select", "input_shape", "dim", "index")
_slice = view_function("slice", "input_shape", "dim", "start", "end", "step")
_alias = view_function("_alias")

_NOT_AN_INDEX = ("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                 "(got {})")
_INDEX_DTYPES = ("int64", "int32", "bool", "uint8")
INDEX_DTYPE_ERROR = "tensors used as indices must be long, int, byte or bool tensors"
_ZERO_DIM = ("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
             "0-dim tensor to a number")
_NON_TUPLE = ("Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch "
              "2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
              "x[torch.tensor(seq)], which will result either in an error or a different result")
BATCHED_MASK_ERROR = ("vmap: We do not support batching operators that can support dynamic shape. Attempting to batch "
                      "over indexing with a boolean mask.")
EXPANDED_WARNING = ("Use of {} on expanded tensors is deprecated. Please clone() the tensor before performing this "
                "operation. "
                "This also applies to advanced indexing e.g. {}")


# ----- basic indexing: views ---------------------------------------------------------------


def _no_dimension(index: int) -> IndexError:
    """The error for an index of a tensor without dimensions: PyTorch's advice is for index 0."""
    return IndexError(f"index {index} is out of bounds for dimension 0 with size 0" if index else _ZERO_DIM)


def _select_dim(x: Tensor, dim: int, index: int) -> Tensor:
    a = x._array
    if not a.ndim:
        raise IndexError(_ZERO_DIM)
    size = a.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")
    if special[0]:
        return apply(REGISTRY["select"], [x], {"dim": dim, "index": index})
    return _select(x, a[(slice(None),) * dim + (index, ...)], a.shape, dim, index)


def _bound(value: Any) -> int | None:
    if value is None or value.__class__ is int:
        return value
    try:
        return value.__index__()
    except AttributeError:
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None


def _slice_dim(x: Tensor, dim: int, key: slice, always: bool = False) -> Tensor:
    a = x._array
    start, end, step = _bound(key.start), _bound(key.stop), _bound(key.step)
    if step is None:
        step = 1
    elif step == 0:
        raise ValueError("slice step cannot be zero")
    elif step < 0:
        raise ValueError("step must be greater than zero")
    if not a.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if dim >= a.ndim:  # after more than one `...`
        raise IndexError(f"Dimension out of range (expected to be in range of [{-a.ndim}, {a.ndim - 1}], "
                         f"but got {dim})")
    if not always and step == 1 and not start and (end is None or end >= a.shape[dim]):
        return x
    if special[0]:
        return apply(REGISTRY["slice"], [x], {"dim": dim, "start": start, "end": end, "step": step})
    return _slice(x, a[(slice(None),) * dim + (slice(start, end, step),)], a.shape, dim, start, end, step)


def _alias_of(x: Tensor) -> Tensor:
    if special[0]:
        return apply(REGISTRY["_alias"], [x])
    return _alias(x, x._array[...])


# ----- parsing a key -------------------------------------------------------------------------


def _as_index(obj: Any) -> Tensor:
    """A sequence or array in a key as an index tensor; floats are converted to integers."""
    from ..creation.from_data import tensor

    if isinstance(obj, np.ndarray):
        result = wrap(obj if obj.dtype.kind != "f" else obj.astype(np.int64))
        if not obj.dtype.isnative:
            result = wrap(obj.astype(obj.dtype.newbyteorder("=")))
        dtypes.of(result._array.dtype)
        return result
    if isinstance(obj, str):
        raise TypeError("new(): invalid data type 'str'")
    result = tensor(list(obj) if not isinstance(obj, (list, tuple)) else obj, device="cpu")
    if result._array.dtype.kind not in "iub":
        result = wrap(result._array.astype(np.int64))
    return result


def _is_sequence(obj: Any) -> bool:
    return isinstance(obj, (list, tuple, range, str)) or (
        hasattr(obj, "__getitem__") and hasattr(obj, "__len__") and not isinstance(obj, (dict, np.generic)))


def _as_tuple(key: Any) -> tuple[Any, ...]:
    """The key as a tuple; some lists count as tuples, as in PyTorch."""
    if key.__class__ is tuple:
        return key
    if isinstance(key, (Tensor, np.ndarray)) or not _is_sequence(key):
        return (key,)
    if len(key) < 32:
        for obj in key:
            if obj is None or obj is Ellipsis or isinstance(obj, (Tensor, slice)) or (
                    _is_sequence(obj) and not isinstance(obj, np.generic)):
                warnings.warn(_NON_TUPLE, UserWarning, stacklevel=user_stacklevel())
                return tuple(key)
    return (key,)


def _count_indexed_dims(key: tuple[Any, ...]) -> int:
    """The number of dimensions that the key indexes."""
    count = 0
    for obj in key:
        if isinstance(obj, Tensor):
            kind = obj._array.dtype
            count += obj._array.ndim if kind == np.bool_ or kind == np.uint8 else 1
        elif isinstance(obj, np.ndarray):
            count += obj.ndim if obj.dtype == np.bool_ else 1
        elif obj is not None and obj is not Ellipsis and obj is not True and obj is not False:
            count += 1
    return count


def _add_handled_mask(mask: Tensor, add_index: Callable[[Tensor], None]) -> None:
    """Add a mask that only a handler of `__torch_dispatch__` can read: one index, and one that it skips for each other
    dimension of the mask.
    """
    add_index(mask)
    for number in range(1, mask._array.ndim):
        skipped = wrap(np.zeros((), np.int64))
        skipped.__dict__["_of_mask"] = mask, number
        add_index(skipped)


def _resolve(x: Tensor, key: tuple[Any, ...]) -> tuple[Tensor, list[Tensor | None]]:
    """The view made by the basic parts of the key, and the index tensors to apply to it, by dimension."""
    n = x._array.ndim
    names = _count_indexed_dims(key)
    if names > n:
        raise IndexError(f"too many indices for tensor of dimension {n}")
    result = x
    indices: list[Tensor | None] = []
    dim = 0
    unfit = False  # whether an index tensor has another dtype, which PyTorch finds when the key is read to its end

    def add_index(index: Tensor) -> None:
        nonlocal dim
        indices.extend([None] * (dim - len(indices)))
        indices.append(index)
        dim += 1

    for position, obj in enumerate(key):
        kind = obj.__class__
        if kind is bool or kind is np.bool_:
            result = unsqueeze(result, dim)
            add_index(wrap(np.zeros(1 if obj else 0, np.int64)))
        elif kind is int:
            result = _select_named(result, dim, obj, position)
        elif kind is slice:
            result = _slice_dim(result, dim, obj)
            dim += 1
        elif obj is Ellipsis:
            dim += n - names
        elif obj is None:
            result = unsqueeze(result, dim)
            dim += 1
        else:
            if not isinstance(obj, Tensor):
                if isinstance(obj, np.generic) and obj.dtype.kind in "iu":
                    result = _select_named(result, dim, int(obj), position)
                    continue
                if not isinstance(obj, np.ndarray) and not _is_sequence(obj):
                    if hasattr(obj, "__index__"):
                        result = _select_named(result, dim, obj.__index__(), position)
                        continue
                    raise IndexError(_NOT_AN_INDEX.format(type(obj).__name__))
                obj = _as_index(obj)
            a = obj._array
            elsewhere = device_memory.count and is_on_accelerator(obj)
            if elsewhere and not a.ndim:
                a = handlers.download(obj)
            if special[0] and not isinstance(a, np.ndarray) and not elsewhere and (a.dtype == np.bool_ or not a.ndim):
                if a.dtype == np.bool_:
                    raise RuntimeError(BATCHED_MASK_ERROR)
                if a.dtype.kind not in "iu":
                    raise IndexError(INDEX_DTYPE_ERROR)
                add_index(obj if a.dtype.itemsize >= 4 else obj.to(dtypes.int64))
            elif a.ndim == 0 and a.dtype.kind in "iub":
                if dispatch_in_use[0] and lacks_elements(obj):
                    obj.item()  # raises, unless the value is known
                if a.dtype == np.bool_ or a.dtype == np.uint8:
                    result = unsqueeze(result, dim)
                    add_index(wrap(np.zeros(1 if a else 0, np.int64)))
                else:
                    if special[0]:
                        notify_read(obj, "an index")
                    result = _select_named(result, dim, a.item(), position)
            elif a.dtype == np.bool_ or a.dtype == np.uint8:
                if a.dtype == np.uint8:
                    warnings.warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
                                  "instead.", UserWarning, stacklevel=user_stacklevel())
                shape = result._array.shape
                for k, s in enumerate(a.shape):
                    if dim + k >= len(shape) or shape[dim + k] != s:
                        if unfit or any(isinstance(other, Tensor) and other._array.dtype.name not in _INDEX_DTYPES
                                        for other in key[position + 1:]):
                            raise IndexError(INDEX_DTYPE_ERROR)
                        shape = _basic_part(result, dim, key[position + 1:], n - names)._array.shape
                        raise IndexError(f"The shape of the mask {list(a.shape)} at index {k} does not match the "
                                         f"shape of the indexed tensor {list(shape)} at index {dim + k}")
                if elsewhere:
                    for places in layer.functions.nonzero(obj).unbind(1):
                        add_index(places)
                    continue
                if a.__class__ is not np.ndarray:
                    if lacks_elements(obj) and not hasattr(obj, "fake_mode") and layer.is_handled(obj) and not (
                            is_meta(obj)):
                        _add_handled_mask(obj, add_index)
                        continue
                    if lacks_elements(obj):
                        layer.functions.nonzero(obj)  # raises
                    raise RuntimeError(BATCHED_MASK_ERROR)
                if special[0]:
                    notify_read(obj, "indexing with a mask")
                    if dispatch_in_use[0] and lacks_elements(obj):
                        layer.functions.nonzero(obj)  # raises
                for number, places in enumerate(nonzero_places(a)):
                    add_index(wrap(places))
                    if special[0] and dispatch_in_use[0]:  # handlers are given the mask
                        indices[-1].__dict__["_of_mask"] = obj, number
            elif a.dtype == np.int64 or a.dtype == np.int32:
                add_index(obj)
            else:
                unfit = True
                dim += 1
    if unfit:
        check_history(result)
        raise IndexError(INDEX_DTYPE_ERROR)
    if indices:
        shapes = [i._array.shape for i in indices if i is not None]
        first = shapes[0]
        if any(s != first for s in shapes):
            try:
                np.broadcast_shapes(*shapes)
            except ValueError:
                check_history(result)
                raise IndexError("shape mismatch: indexing tensors could not be broadcast together with shapes "
                                 + ", ".join(str(list(s)) for s in shapes)) from None
    return result, indices


def _basic_part(result: Tensor, dim: int, rest: tuple[Any, ...], skipped: int) -> Tensor:
    """What the basic parts of a key behind a mask leave of a tensor: PyTorch compares masks with that.

    Args:
        skipped: the number of dimensions that `...` stands for.
    """
    dim += 1
    for obj in rest:
        scalar = obj._array if isinstance(obj, Tensor) and not obj._array.ndim else None
        if obj.__class__ is int:
            result = _select_dim(result, dim, obj)
        elif scalar is not None and scalar.dtype.kind in "iu" and scalar.dtype != np.uint8:
            result = _select_dim(result, dim, int(scalar))
        elif obj is None or obj.__class__ is bool or scalar is not None:
            result, dim = unsqueeze(result, dim), dim + 1
        elif obj.__class__ is slice:
            result, dim = _slice_dim(result, dim, obj), dim + 1
        else:
            dim += skipped if obj is Ellipsis else 1
    return result


def _select_named(result: Tensor, dim: int, index: int, position: int) -> Tensor:
    """`_select_dim`, whose error names the position in the key."""
    shape = result._array.shape
    size = shape[dim] if dim < len(shape) else 0  # behind all dimensions: after more than one `...`
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {position} with size {size}")
    return _select_dim(result, dim, index)


# ----- x[key] --------------------------------------------------------------------------------


def __getitem__(self: Tensor, key: Any) -> Tensor:
    """`self[key]`: a view for basic keys, a copy for index tensors and masks."""
    kind = key.__class__
    a = self._array
    if not special[0]:
        if kind is int:
            try:
                return _select(self, a[key, ...], a.shape, 0, key)
            except SparseAccess:
                return sparse_implementation("likes", "getitem")(self, key)
            except IndexError:
                if not a.ndim:
                    raise _no_dimension(key) from None
                raise IndexError(f"index {key} is out of bounds for dimension 0 with size {a.shape[0]}") from None
        if kind is tuple:
            for obj in key:
                k = obj.__class__
                if k is int or obj is Ellipsis or (k is slice and ((step := obj.step) is None or (
                        step.__class__ is int and step > 0))):
                    continue
                if obj is None:
                    dim = _only_new_axis(key, a.ndim)
                    if dim is not None:
                        return unsqueeze(self, dim)
                break
            else:
                try:
                    array = a[key] if Ellipsis in key else a[(*key, ...)]
                except (IndexError, TypeError):
                    pass  # the general path raises PyTorch's error
                except SparseAccess:
                    return sparse_implementation("likes", "getitem")(self, key)
                else:
                    if self._view_steps is None:  # else each view of the chain must be stored
                        if not (self._requires_grad and grad_mode.get()):
                            return _alias(self, array)
                        view_steps = _view_steps_of(a.shape, key)
                        return view_chain(self, array, view_steps) if view_steps else _alias(self, array)
        elif kind is slice and a.__class__ is np.ndarray and a.ndim:
            start, end, step = key.start, key.stop, key.step
            if (start is None or start.__class__ is int) and (end is None or end.__class__ is int) and (
                    step is None or (step.__class__ is int and step > 0)):
                return _slice(self, a[key], a.shape, 0, start, end, 1 if step is None else step)
        elif isinstance(key, Tensor) and not (self._requires_grad and grad_mode.get()):
            index = key._array
            is_mask, n = index.dtype is _BOOL, index.ndim
            if n and (is_mask or index.dtype is _INT64) and not (inference_used[0] and inference.get()) and not (
                    layouts_seen[0] and not (is_mask and n == a.ndim) and (  # such a result is a vector
                        not a.flags.c_contiguous or (n > 1 and not index.flags.c_contiguous) or (
                            layouts_seen[0] > 1 and (1 in a.shape or 1 in index.shape)))):
                try:
                    is_by_numpy = not is_mask or a.size < POSITIONS_FROM or n < a.ndim
                    return wrap(a[index] if is_by_numpy else elements_at_mask(a, index))
                except IndexError:
                    pass  # the general path raises PyTorch's error
        if kind is tuple or kind is Tensor:
            indices = _integer_indices(a, key if kind is tuple else (key,))
            if indices is not None:
                return _indexed(self, *indices)
    if isinstance(a, SparseArray):
        return sparse_implementation("likes", "getitem")(self, key)
    if kind is slice:
        return _slice_dim(self, 0, key, always=True)
    if key is None:
        return unsqueeze(self, 0)
    if key is Ellipsis:
        return _alias_of(self)
    if not a.ndim and (kind is int or isinstance(key, np.integer)):
        raise _no_dimension(int(key))
    result, indices = _resolve(self, _as_tuple(key))
    if indices:
        return apply(REGISTRY["_index"], [result, *indices])
    return _alias_of(self) if result is self else result


@partial(repeated, most=ANY)
def _indexed(x: Tensor, *indices: Tensor | None) -> Tensor:
    """The elements at index tensors, by dimension."""
    return apply(REGISTRY["_index"], [x, *indices])


def _integer_indices(a: Any, key: tuple[Any, ...]) -> list[Tensor | None] | None:
    """The indices of a key of int64 tensors of one shape and full slices, by dimension; None for other keys."""
    if a.__class__ is not np.ndarray or len(key) > a.ndim or not a.size:
        return None
    indices: list[Tensor | None] = []
    shape = None
    for obj in key:
        if obj.__class__ is Tensor:
            index = obj._array
            if index.__class__ is not np.ndarray or index.dtype is not _INT64 or not index.size or not index.ndim or (
                    shape is not None and index.shape != shape):
                return None
            shape = index.shape
            indices.append(obj)
        elif obj.__class__ is slice and obj.start is obj.stop is obj.step is None:
            indices.append(None)
        else:
            return None
    while indices and indices[-1] is None:
        indices.pop()
    return indices or None


def _only_new_axis(key: tuple[Any, ...], ndim: int) -> int | None:
    """The new dimension of a key that consists of one None and full slices; None for other keys."""
    dim = None
    for position, obj in enumerate(key):
        if obj is None:
            if dim is not None:
                return None
            dim = position
        elif obj is Ellipsis and len(key) == 2:
            if not position:
                return ndim if key[1] is None else None
        elif obj.__class__ is not slice or not obj.start is obj.stop is obj.step is None:
            return None
    return dim if len(key) <= ndim + 1 else None


_SELECT = plan_with_constants("select", "input_shape", "dim", "index")
_SLICE = plan_with_constants("slice", "input_shape", "dim", "start", "end", "step")
_INT64, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)


def _view_steps_of(shape: tuple[int, ...], key: tuple[Any, ...]) -> list[ViewStep]:
    """The chain of views of a key of ints, slices with positive steps and `...`."""
    view_steps: list[ViewStep] = []
    dim = 0
    for obj in key:
        kind = obj.__class__
        if kind is int:
            view_steps.append((*_SELECT, (shape, dim, obj)))
            shape = (*shape[:dim], *shape[dim + 1:])
        elif kind is slice:
            step = 1 if obj.step is None else obj.step
            if obj.start or step != 1 or (obj.stop is not None and obj.stop < shape[dim]):
                view_steps.append((*_SLICE, (shape, dim, obj.start, obj.stop, step)))
                shape = (*shape[:dim], len(range(*obj.indices(shape[dim]))), *shape[dim + 1:])
            dim += 1
        else:  # ...
            dim = len(shape) - sum(1 for k in key[key.index(obj) + 1:] if k is not Ellipsis)
    return view_steps


# ----- x[key] = value ------------------------------------------------------------------------


def _is_basic_key(key: Any) -> bool:
    """Whether the key consists of ints, slices of step 1, None and `...` only."""
    if key.__class__ is not tuple:
        key = (key,)
    for obj in key:
        kind = obj.__class__
        if not (kind is int or obj is None or obj is Ellipsis or (kind is slice and obj.step is None)):
            return False
    return True


def _fill_at_tensor(a: np.ndarray, index: np.ndarray, value: Any) -> bool:
    """Write a number at a mask or at indices, in place; False where the general path is needed."""
    if not (value.__class__ is float or value.__class__ is int) or a.__class__ is not np.ndarray or (
            index.__class__ is not np.ndarray or not index.ndim or not a.flags.c_contiguous or a.dtype.kind != "f"
            or not -65504.0 <= value <= 65504.0):
        return False
    try:
        if index.dtype is _BOOL:
            fill_at_mask(a, index, value)
        elif index.dtype is _INT64:
            a[index] = value
        else:
            return False
    except IndexError:
        return False
    return True


def _fast_setitem(self: Tensor, key: Any, value: Any) -> bool:
    """The fast path of assignment, where nothing is recorded; False where the general path is needed."""
    a = self._array
    base = self._base
    if (special[0] or self._requires_grad or self._inference or (base is not None and (
            base._requires_grad or self._creation is not None))):
        return False
    if not _is_basic_key(key):
        if not isinstance(key, Tensor) or not _fill_at_tensor(a, key._array, value):
            return False
    elif isinstance(value, Tensor):
        b = value._array
        if value._requires_grad or b.dtype is not a.dtype or 0 in a.strides:
            return False
        try:
            if b.ndim:
                part = a[key]
                if part.shape != b.shape or np.may_share_memory(a, b):
                    return False
                part[...] = b
            else:
                a[key] = b
        except (IndexError, TypeError):
            return False
    elif value.__class__ is float or value.__class__ is int:
        if a.dtype.kind != "f" or 0 in a.strides or not -65504.0 <= value <= 65504.0:  # float16's range
            return False
        try:
            a[key] = value
        except (IndexError, TypeError, OverflowError):
            return False
    else:
        return False
    counter = self._counter
    if counter is None:
        self._counter = [1]
    else:
        counter[0] += 1
    return True


def __setitem__(self: Tensor, key: Any, value: Any) -> None:
    """`self[key] = value`: a recorded in-place write."""
    if isinstance(self._array, SparseArray):
        raise TypeError("Cannot assign to a sparse tensor")
    if _fast_setitem(self, key, value):
        return
    if not isinstance(value, Tensor):
        if not isinstance(value, (bool, int, float, complex, np.integer)):
            name = type(value).__name__ if type(value).__module__ == "builtins" else (
                f"{type(value).__module__}.{type(value).__qualname__}")
            raise TypeError(f"can't assign a {name} to a torch.{self.dtype.legacy}")
        from ..creation.element_arrays import scalar_array
        from ..tracer_notifications import notify_created

        number = value.item() if isinstance(value, np.generic) else value
        if self._array.dtype in dtypes.NARROW:  # by way of double, so that what is out of range becomes infinite
            value = wrap(dtypes.cast(scalar_array(number, dtypes.float64), self._array.dtype))
        else:
            value = wrap(scalar_array(number, self.dtype))
        if special[0]:
            notify_created(value._array)
    if key is Ellipsis:
        _assign(self, value)
        return
    is_fake = special[0] and hasattr(self, "fake_mode")
    if (is_fake or (special[0] and active_tracer.get() is not None) or is_meta(self)) and _is_mask_of(key, self) and (
            not value._array.ndim and value._array.dtype == self._array.dtype):
        mask = view(key, (*key._array.shape, *[1] * (self._array.ndim - key._array.ndim)))
        filled = value._array.item() if is_fake and not lacks_elements(value) else value
        self.masked_fill_(mask, filled)  # not by positions, whose number a program cannot know
        return
    if key is True or key is False:
        if key:
            _assign(unsqueeze(self, 0), value)
        return
    if key.__class__ is int or (not self._array.ndim and isinstance(key, np.integer)):
        result: Tensor = __getitem__(self, key)
        indices: list[Tensor | None] = []
    elif key.__class__ is slice:
        result, indices = _slice_dim(self, 0, key), []
    else:
        try:
            result, indices = _resolve(self, _as_tuple(key))
        except IndexError as error:
            if str(error).startswith((INDEX_DTYPE_ERROR, "The shape of the mask")):  # PyTorch checks the write first
                check_writable(self, is_tracked((self, value)))
            raise
    if not indices:
        _assign(result, value)
        return
    number = None
    if value._array.dtype is not self._array.dtype and value._array.size == 1 and (
            isinstance(value._array, np.ndarray)) and _is_one_mask(key):
        check_scalar_fits(value.item(), self.dtype)  # PyTorch fills the mask with the number
        if active_tracers[0] or (dispatch_in_use[0] and (layer.is_handled(value) or layer.is_handled(self))) or (
                forward_levels):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = value.to(self.dtype)
        else:
            number = dtypes.cast(value._array.reshape(_without_leading_ones(value._array.shape)), self._array.dtype)
    if value._array.shape[:1] == (1,):
        value = view(value, _without_leading_ones(value._array.shape))
    write_at(result, indices, value, False, number)


def _is_mask_of(key: Any, x: Tensor) -> bool:
    """Whether a key is a boolean tensor over the first dimensions of a tensor."""
    if not isinstance(key, Tensor) or key._array.dtype != np.bool_ or not isinstance(key._array, np.ndarray):
        return False
    n = key._array.ndim
    return 0 < n <= x._array.ndim and key._array.shape == x._array.shape[:n]


def _is_one_mask(key: Any) -> bool:
    """Whether a mask is the only index tensor of a key."""
    found = 0
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, (list, np.ndarray)):
            part = _as_index(part)
        if part is True or part is False:
            return False
        if isinstance(part, Tensor):
            is_mask = part._array.dtype == np.bool_
            if is_mask != (part._array.ndim > 0) or (not is_mask and part._array.dtype.kind not in "iu"):
                return False
            found += is_mask
    return found == 1


def _without_leading_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    for i, s in enumerate(shape):
        if s != 1:
            return shape[i:]
    return ()


def _assign(target: Tensor, value: Tensor) -> None:
    """Copy a value into a view, broadcast to its shape."""
    shape = target._array.shape
    if value._array.shape == shape:
        copy_(target, value)
    elif not value._array.ndim:
        fill_(target, value)
    else:
        result = view(value, _without_leading_ones(value._array.shape))
        copy_(target, result if result._array.shape == shape else expand(result, shape))


def write_at(target: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool,
             converted: np.ndarray | None = None) -> Tensor:
    """Write, or add, values at index tensors of `target` itself.

    Args:
        converted: what is written, if `values` have another dtype; they are what is recorded.

    Raises:
        RuntimeError: the dtypes differ, or the values do not broadcast.
    """
    a = target._array
    if bits_used[0]:
        values = resolved(values)
    check_writable(target, is_tracked((target, values)))
    elements = values._array if converted is None else converted
    if elements.dtype != a.dtype:
        raise_dtype_mismatch(target, indices, values)
    if is_expanded(a):
        warnings.warn(EXPANDED_WARNING.format("index_put_", "tensor[indices] = tensor"),
                      UserWarning, stacklevel=user_stacklevel())
    arrays = [None if i is None else i._array for i in indices]
    check_no_overlap(a, elements, *(i for i in arrays if i is not None))

    def compute() -> None:
        if isinstance(a, BitView):
            resolved_target = resolve(a)
            put_at(resolved_target, elements, arrays, accumulate)
            a[...] = resolved_target
        else:
            put_at(a, elements, arrays, accumulate)

    return overwrite(REGISTRY["_index_put"], [target, values, *indices], {"accumulate": accumulate}, compute)


def is_expanded(a: np.ndarray) -> bool:
    """Whether a dimension of the array is expanded (stride 0)."""
    return a.size > 1 and any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape, strict=True))


def __delitem__(self: Tensor, key: Any) -> None:
    """Not supported."""
    raise TypeError("Tensor does not support deleting items")


def raise_dtype_mismatch(target: Tensor, indices: list[Tensor | None], values: Tensor) -> NoReturn:
    """Raise PyTorch's RuntimeError for values of another dtype, or first of a shape that does not broadcast."""
    a, array = target._array, values._array
    if a.__class__ is array.__class__ is np.ndarray:
        check_values_fit(a, array, [None if i is None else i._array for i in indices])
    raise RuntimeError("Index put requires the source and destination dtypes match, got "
                       f"{target.dtype.scalar_name} for the destination and {values.dtype.scalar_name} for the source.")


def __iter__(self: Tensor) -> Iterator[Tensor]:
    """Iterate over the slices of the first dimension, which are views."""
    if not self._array.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(public_function(REGISTRY["unbind"])(self, dim=0))


def __reversed__(self: Tensor) -> Any:
    """The tensor with its first dimension reversed."""
    return self.flip(0) if self._array.ndim else self


def __len__(self: Tensor) -> int:
    """The size of the first dimension."""
    if not self._array.ndim:
        raise TypeError("len() of a 0-d tensor")
    return self._array.shape[0]


METHODS: dict[str, Any] = {
    "__getitem__": __getitem__, "__setitem__": __setitem__, "__delitem__": __delitem__, "__iter__": __iter__,
    "__reversed__": __reversed__, "__len__": __len__,
}
