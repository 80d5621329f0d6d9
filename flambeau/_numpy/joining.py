"""Joining and splitting arrays."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from . import _dtypes_impl, _util
from ._normalizations import ArrayLike, ArraySequence, CastingModes, DTypeLike, OutArray, normalizer


def _cast(tensors: tuple[Any, ...], out: Any, dtype: Any, casting: str) -> tuple[Any, ...]:
    """The tensors in the dtype of the result.

    Raises:
        ValueError: there is none.
        TypeError: both `out` and `dtype` are passed.
    """
    if tensors == ():
        raise ValueError("need at least one array to concatenate")
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    if dtype is None:
        dtype = _dtypes_impl.result_type_impl(*tensors) if out is None else out.dtype.torch_dtype
    return _util.typecast_tensors(tensors, dtype, casting)


def joined(tensors: tuple[Any, ...], axis: int | None = 0, out: Any = None, dtype: Any = None,
           casting: str = "same_kind") -> Any:
    """`concatenate` of tensors."""
    tensors, axis = _util.axis_none_flatten(*_cast(tensors, out, dtype, casting), axis=axis)
    return torch.cat(tensors, axis)


@normalizer
def concatenate(ar_tuple: ArraySequence, axis: Any = 0, out: OutArray = None, dtype: DTypeLike = None,
                casting: CastingModes = "same_kind") -> Any:
    """Arrays behind each other along an axis; None: all elements.

    >>> import flambeau._numpy as np
    >>> np.concatenate(([1, 2], [3.5]))
    torch.ndarray([1.0000, 2.0000, 3.5000], dtype=float64)
    """
    return joined(ar_tuple, axis, out, dtype, casting)


def _stacking(name: str) -> Any:
    def function(tup: ArraySequence, *, dtype: DTypeLike = None, casting: CastingModes = "same_kind") -> Any:
        return getattr(torch, name)(_cast(tup, None, dtype, casting))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Arrays behind each other: `torch.{name}`."
    return normalizer(function)


vstack, hstack, dstack = _stacking("vstack"), _stacking("hstack"), _stacking("dstack")
column_stack = _stacking("column_stack")
row_stack = vstack


@normalizer
def stack(arrays: ArraySequence, axis: int = 0, out: OutArray = None, *, dtype: DTypeLike = None,
          casting: CastingModes = "same_kind") -> Any:
    """Arrays along a new axis."""
    if out is not None and dtype is not None:
        raise TypeError("stack() only takes `out` or `dtype` as an argument, but both were provided.")
    tensors = _cast(arrays, None, dtype, casting)  # written to `out` at the end, whatever its dtype is
    return torch.stack(tensors, _util.normalize_axis_index(axis, tensors[0].ndim + 1))


@normalizer
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Any:
    """An array with values behind it; without an axis both are flattened."""
    return joined((arr, values), axis)


def _split(tensor: Any, indices_or_sections: Any, axis: int, strict: bool = False) -> Any:
    axis = _util.normalize_axis_index(axis, tensor.ndim)
    length = tensor.shape[axis]
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count <= 0:
            raise ValueError("number sections must be larger than 0.")
        size, longer = divmod(length, count)
        if longer and strict:
            raise ValueError("array split does not result in an equal division")
        return torch.split(tensor, [size + 1] * longer + [size] * (count - longer), axis)
    if not isinstance(indices_or_sections, (list, tuple)):
        raise TypeError(f"split_helper: {type(indices_or_sections)}")
    inside = [at for at in indices_or_sections if at <= length]
    ends = [*inside, length]
    sizes = [end - start for start, end in zip([0, *inside], ends, strict=True)]
    return torch.split(tensor, sizes + [0] * (len(indices_or_sections) - len(inside)), axis)


@normalizer
def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> Any:
    """Parts of an array: their number, or where each ends; the first parts may be longer by one.

    >>> import flambeau._numpy as np
    >>> np.array_split([1, 2, 3], 2)
    (torch.ndarray([1, 2]), torch.ndarray([3]))
    """
    return _split(ary, indices_or_sections, axis)


@normalizer
def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> Any:
    """Parts of an array: their number, which must divide it, or where each ends."""
    return _split(ary, indices_or_sections, axis, strict=True)


@normalizer
def hsplit(ary: ArrayLike, indices_or_sections: Any) -> Any:
    """`split` along columns."""
    if ary.ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return _split(ary, indices_or_sections, 1 if ary.ndim > 1 else 0, strict=True)


@normalizer
def vsplit(ary: ArrayLike, indices_or_sections: Any) -> Any:
    """`split` along rows."""
    if ary.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return _split(ary, indices_or_sections, 0, strict=True)


@normalizer
def dsplit(ary: ArrayLike, indices_or_sections: Any) -> Any:
    """`split` along the third axis."""
    if ary.ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return _split(ary, indices_or_sections, 2, strict=True)


__all__ = ["append", "array_split", "column_stack", "concatenate", "dsplit", "dstack", "hsplit", "hstack", "row_stack",
           "split", "stack", "vsplit", "vstack"]
