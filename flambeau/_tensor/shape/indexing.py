"""Indexing: `x[...]` taken apart into selects, slices and new axes, which are views, and index arrays.

What is basic (ints, slices, None, ...) gives a view; arrays and masks give a copy.
Assignment writes through the same view, or puts values at the same index arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.numpy.indexing import put_at
from ...engine.grad_mode import grad_mode, inference
from ...modes import special
from ...ops.declare import REGISTRY
from ..dispatch.apply import apply
from ..dispatch.binding import functions_of
from ..dispatch.inplace import overwrite
from ..dispatch.write_checks import check_apart, check_writable, is_tracked
from ..fastpath.views import Step, plan_keeping, viewed_in_steps, viewing
from ..tensor import Tensor, wrap
from ..tracer_notifications import tell_reading
from .copying import copy_, fill_
from .reshaping import expand, unsqueeze, view

__all__: list[str] = []

_select = viewing("select", "input_shape", "dim", "index")
_slice = viewing("slice", "input_shape", "dim", "start", "end", "step")
_unsqueeze = viewing("unsqueeze", "input_shape")
_alias = viewing("_alias")

_NOT_AN_INDEX = ("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                 "(got {})")
NOT_INDICES = "tensors used as indices must be long, int, byte or bool tensors"
_ZERO_DIM = ("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
             "0-dim tensor to a number")
_NON_TUPLE = ("Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch "
              "2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
              "x[torch.tensor(seq)], which will result either in an error or a different result")
MASK_HIDDEN = ("vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over "
               "indexing with a boolean mask.")
ON_EXPANDED = ("Use of {} on expanded tensors is deprecated. Please clone() the tensor before performing this "
                "operation. "
                "This also applies to advanced indexing e.g. {}")


# ----- basic steps: each a view ------------------------------------------------------------


def _selected(x: Tensor, dim: int, index: int) -> Tensor:
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


def _sliced(x: Tensor, dim: int, key: slice, always: bool = False) -> Tensor:
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
    if not always and step == 1 and not start and (end is None or end >= a.shape[dim]):
        return x
    if special[0]:
        return apply(REGISTRY["slice"], [x], {"dim": dim, "start": start, "end": end, "step": step})
    return _slice(x, a[(slice(None),) * dim + (slice(start, end, step),)], a.shape, dim, start, end, step)


def _aliased(x: Tensor) -> Tensor:
    if special[0]:
        return apply(REGISTRY["_alias"], [x])
    return _alias(x, x._array[...])


# ----- taking a key apart --------------------------------------------------------------------


def _as_index(obj: Any) -> Tensor:
    """A sequence or an array that stands for a tensor in an index; floats become integers."""
    from ..creation.from_data import tensor

    if isinstance(obj, np.ndarray):
        found = wrap(obj if obj.dtype.kind != "f" else obj.astype(np.int64))
        if not obj.dtype.isnative:
            found = wrap(obj.astype(obj.dtype.newbyteorder("=")))
        dtypes.of(found._array.dtype)
        return found
    if isinstance(obj, str):
        raise TypeError("new(): invalid data type 'str'")
    found = tensor(list(obj) if not isinstance(obj, (list, tuple)) else obj)
    if found._array.dtype.kind not in "iub":
        found = wrap(found._array.astype(np.int64))
    return found


def _is_sequence(obj: Any) -> bool:
    return isinstance(obj, (list, tuple, range, str)) or (
        hasattr(obj, "__getitem__") and hasattr(obj, "__len__") and not isinstance(obj, (dict, np.generic)))


def _as_tuple(key: Any) -> tuple[Any, ...]:
    """The key as PyTorch reads it: some lists count as tuples."""
    if key.__class__ is tuple:
        return key
    if isinstance(key, (Tensor, np.ndarray)) or not _is_sequence(key):
        return (key,)
    if len(key) < 32:
        for obj in key:
            if obj is None or obj is Ellipsis or isinstance(obj, (Tensor, slice)) or (
                    _is_sequence(obj) and not isinstance(obj, np.generic)):
                warnings.warn(_NON_TUPLE, UserWarning, stacklevel=3)
                return tuple(key)
    return (key,)


def _specified(key: tuple[Any, ...]) -> int:
    """How many dimensions the key names."""
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


def _resolve(x: Tensor, key: tuple[Any, ...]) -> tuple[Tensor, list[Tensor | None]]:
    """The view that the key's basic parts make, and the index tensors, by dimension, to apply to it."""
    n = x._array.ndim
    names = _specified(key)
    if names > n:
        if n == 0 and len(key) == 1 and isinstance(key[0], int):
            raise IndexError(_ZERO_DIM)
        raise IndexError(f"too many indices for tensor of dimension {n}")
    found = x
    indices: list[Tensor | None] = []
    dim = 0

    def put(index: Tensor) -> None:
        nonlocal dim
        indices.extend([None] * (dim - len(indices)))
        indices.append(index)
        dim += 1

    for place, obj in enumerate(key):
        kind = obj.__class__
        if kind is bool or kind is np.bool_:
            found = unsqueeze(found, dim)
            put(wrap(np.zeros(1 if obj else 0, np.int64)))
        elif kind is int:
            found = _selected_at(found, dim, obj, place)
        elif kind is slice:
            found = _sliced(found, dim, obj)
            dim += 1
        elif obj is Ellipsis:
            dim += n - names
        elif obj is None:
            found = unsqueeze(found, dim)
            dim += 1
        else:
            if not isinstance(obj, Tensor):
                if isinstance(obj, np.generic) and obj.dtype.kind in "iu":
                    found = _selected(found, dim, int(obj))
                    continue
                if not isinstance(obj, np.ndarray) and not _is_sequence(obj):
                    if hasattr(obj, "__index__"):
                        found = _selected(found, dim, obj.__index__())
                        continue
                    raise IndexError(_NOT_AN_INDEX.format(type(obj).__name__))
                obj = _as_index(obj)
            a = obj._array
            if special[0] and a.__class__ is not np.ndarray and (a.dtype == np.bool_ or not a.ndim):
                if a.dtype == np.bool_:
                    raise RuntimeError(MASK_HIDDEN)
                if a.dtype.kind not in "iu":
                    raise IndexError(NOT_INDICES)
                put(obj if a.dtype.itemsize >= 4 else obj.to(dtypes.int64))
            elif a.ndim == 0 and a.dtype.kind in "iub":
                if a.dtype == np.bool_ or a.dtype == np.uint8:
                    found = unsqueeze(found, dim)
                    put(wrap(np.zeros(1 if a else 0, np.int64)))
                else:
                    if special[0]:
                        tell_reading(obj, "an index")
                    found = _selected(found, dim, a.item())
            elif a.dtype == np.bool_ or a.dtype == np.uint8:
                if a.dtype == np.uint8:
                    warnings.warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
                                  "instead.", UserWarning, stacklevel=3)
                shape = found._array.shape
                for k, s in enumerate(a.shape):
                    if dim + k >= len(shape) or shape[dim + k] != s:
                        raise IndexError(f"The shape of the mask {list(a.shape)} at index {k} does not match the "
                                         f"shape of the indexed tensor {list(shape)} at index {dim + k}")
                if a.__class__ is not np.ndarray:
                    raise RuntimeError(MASK_HIDDEN)
                if special[0]:
                    tell_reading(obj, "indexing with a mask")
                for places in np.nonzero(a):
                    put(wrap(places))
            elif a.dtype == np.int64 or a.dtype == np.int32:
                put(obj)
            else:
                raise IndexError(NOT_INDICES)
    if indices:
        shapes = [i._array.shape for i in indices if i is not None]
        first = shapes[0]
        if any(s != first for s in shapes):
            try:
                np.broadcast_shapes(*shapes)
            except ValueError:
                raise IndexError("shape mismatch: indexing tensors could not be broadcast together with shapes "
                                 + ", ".join(str(list(s)) for s in shapes)) from None
    return found, indices


def _selected_at(found: Tensor, dim: int, index: int, place: int) -> Tensor:
    """`_selected`, whose error names the place in the key, as the user counts."""
    size = found._array.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {place} with size {size}")
    return _selected(found, dim, index)


# ----- x[key] --------------------------------------------------------------------------------


def __getitem__(self: Tensor, key: Any) -> Tensor:
    kind = key.__class__
    a = self._array
    if not special[0]:
        if kind is int:
            try:
                return _select(self, a[key, ...], a.shape, 0, key)
            except IndexError:
                if not a.ndim:
                    raise IndexError(_ZERO_DIM) from None
                raise IndexError(f"index {key} is out of bounds for dimension 0 with size {a.shape[0]}") from None
        if kind is tuple:
            for obj in key:
                k = obj.__class__
                if k is int or obj is Ellipsis or (k is slice and obj.step is None):
                    continue
                if obj is None:
                    dim = _place_of_new(key, a.ndim)
                    if dim is not None:
                        return unsqueeze(self, dim)
                break
            else:
                try:
                    array = a[key] if Ellipsis in key else a[(*key, ...)]
                except (IndexError, TypeError):
                    pass  # said in PyTorch's words below
                else:
                    if self._steps is None:  # else every step on the way is remembered
                        if not (self._requires_grad and grad_mode.get()):
                            return _alias(self, array)
                        steps = _steps(a.shape, key)
                        return viewed_in_steps(self, array, steps) if steps else _alias(self, array)
        elif isinstance(key, Tensor) and not (self._requires_grad and grad_mode.get()):
            index = key._array
            if index.ndim and (index.dtype is _INT64 or index.dtype is _BOOL) and not inference.get():
                try:
                    return wrap(a[index])
                except IndexError:
                    pass  # said in PyTorch's words below
    if kind is slice:
        return _sliced(self, 0, key, always=True)
    if key is None:
        return unsqueeze(self, 0)
    if key is Ellipsis:
        return _aliased(self)
    found, indices = _resolve(self, _as_tuple(key))
    if indices:
        return apply(REGISTRY["_index"], [found, *indices])
    return _aliased(self) if found is self else found


def _place_of_new(key: tuple[Any, ...], ndim: int) -> int | None:
    """Where a key of one None beside whole slices puts its dimension; None for other keys."""
    dim = None
    for place, obj in enumerate(key):
        if obj is None:
            if dim is not None:
                return None
            dim = place
        elif obj is Ellipsis and len(key) == 2:
            if not place:
                return ndim if key[1] is None else None
        elif obj.__class__ is not slice or not obj.start is obj.stop is obj.step is None:
            return None
    return dim if len(key) <= ndim + 1 else None


_SELECT = plan_keeping("select", "input_shape", "dim", "index")
_SLICE = plan_keeping("slice", "input_shape", "dim", "start", "end", "step")
_INT64, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)


def _steps(shape: tuple[int, ...], key: tuple[Any, ...]) -> list[Step]:
    """The views that a key of ints, slices and ... stands for, one after the other."""
    steps: list[Step] = []
    dim = 0
    for obj in key:
        kind = obj.__class__
        if kind is int:
            steps.append((*_SELECT, (shape, dim, obj)))
            shape = (*shape[:dim], *shape[dim + 1:])
        elif kind is slice:
            if obj.start or (obj.stop is not None and obj.stop < shape[dim]):
                first, last, _ = slice(obj.start, obj.stop).indices(shape[dim])
                steps.append((*_SLICE, (shape, dim, obj.start, obj.stop, 1)))
                shape = (*shape[:dim], max(last - first, 0), *shape[dim + 1:])
            dim += 1
        else:  # ...
            dim = len(shape) - sum(1 for k in key[key.index(obj) + 1:] if k is not Ellipsis)
    return steps


# ----- x[key] = value ------------------------------------------------------------------------


def _is_plain_key(key: Any) -> bool:
    """Whether the key consists of ints, slices of step 1, None and ... alone."""
    if key.__class__ is not tuple:
        key = (key,)
    for obj in key:
        kind = obj.__class__
        if not (kind is int or obj is None or obj is Ellipsis or (kind is slice and obj.step is None)):
            return False
    return True


def _written_plainly(self: Tensor, key: Any, value: Any) -> bool:
    """Assign where nothing is recorded and nothing is unusual; False where the general way is needed."""
    a = self._array
    base = self._base
    if (special[0] or self._requires_grad or self._inference or (base is not None and (
            base._requires_grad or self._creation is not None)) or not _is_plain_key(key)):
        return False
    if isinstance(value, Tensor):
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
        if a.dtype.kind != "f" or 0 in a.strides or not -65504.0 <= value <= 65504.0:  # what any float dtype holds
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
    if _written_plainly(self, key, value):
        return
    if not isinstance(value, Tensor):
        if not isinstance(value, (bool, int, float, complex, np.generic)):
            name = type(value).__name__ if type(value).__module__ == "builtins" else (
                f"{type(value).__module__}.{type(value).__qualname__}")
            raise TypeError(f"can't assign a {name} to a torch.{self.dtype.legacy}")
        from ..creation.from_data import number_array
        from ..tracer_notifications import tell_created

        value = wrap(number_array(value.item() if isinstance(value, np.generic) else value, self.dtype))
        if special[0]:
            tell_created(value._array)
    if key is Ellipsis:
        _assign(self, value)
        return
    if key is True or key is False:
        if key:
            _assign(unsqueeze(self, 0), value)
        return
    if key.__class__ is int:
        found: Tensor = __getitem__(self, key)
        indices: list[Tensor | None] = []
    elif key.__class__ is slice:
        found, indices = _sliced(self, 0, key), []
    else:
        found, indices = _resolve(self, _as_tuple(key))
    if not indices:
        _assign(found, value)
        return
    if value._array.shape[:1] == (1,):
        value = view(value, _without_leading_ones(value._array.shape))
    write_at(found, indices, value, False)


def _without_leading_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    for i, s in enumerate(shape):
        if s != 1:
            return shape[i:]
    return ()


def _assign(target: Tensor, value: Tensor) -> None:
    """Copy a value into a view, stretching it where it is smaller."""
    shape = target._array.shape
    if value._array.shape == shape:
        copy_(target, value)
    elif not value._array.ndim:
        fill_(target, value)
    else:
        found = view(value, _without_leading_ones(value._array.shape))
        copy_(target, found if found._array.shape == shape else expand(found, shape))


def write_at(target: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool) -> Tensor:
    """Write, or add, values at index tensors of `target` itself.

    Raises:
        RuntimeError: the dtypes differ, or the values do not fit.
    """
    a = target._array
    check_writable(target, is_tracked((target, values)))
    if values._array.dtype != a.dtype:
        raise RuntimeError("Index put requires the source and destination dtypes match, got "
                           f"{target.dtype.scalar_name} for the destination and {values.dtype.scalar_name} for the "
                           "source.")
    if is_expanded(a):
        warnings.warn(ON_EXPANDED.format("index_put_", "tensor[indices] = tensor"), UserWarning, stacklevel=4)
    arrays = [None if i is None else i._array for i in indices]
    check_apart(a, values._array, *(i for i in arrays if i is not None))
    return overwrite(REGISTRY["_index_put"], [target, values, *indices], {"accumulate": accumulate},
                     lambda: put_at(a, values._array, arrays, accumulate))


def is_expanded(a: np.ndarray) -> bool:
    """Whether elements of the array share memory, as `expand` makes them."""
    return a.size > 1 and any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape, strict=True))


def __delitem__(self: Tensor, key: Any) -> None:
    raise TypeError("Tensor does not support deleting items")


def __iter__(self: Tensor) -> Iterator[Tensor]:
    if not self._array.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(functions_of(REGISTRY["unbind"])(self, dim=0))


def __reversed__(self: Tensor) -> Any:
    return self.flip(0) if self._array.ndim else self


def __len__(self: Tensor) -> int:
    if not self._array.ndim:
        raise TypeError("len() of a 0-d tensor")
    return self._array.shape[0]


METHODS: dict[str, Any] = {
    "__getitem__": __getitem__, "__setitem__": __setitem__, "__delitem__": __delitem__, "__iter__": __iter__,
    "__reversed__": __reversed__, "__len__": __len__,
}
