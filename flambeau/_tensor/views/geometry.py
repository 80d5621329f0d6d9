"""Geometry: the position of a view in its base, by shapes, strides and offset, and gather and scatter with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...backends.bit_views import bits_of
from ...backends.numpy.memory import address, owner, view_memory
from ...dtypes import is_complex
from ...shapes import contiguous_strides


class Geometry:
    """The position of a view in its base.

    Holds shapes, strides and the offset in bytes, but no memory. Arrays passed to its methods have the shape of the
    base and are row-major.
    """

    __slots__ = ("base_dtype", "base_shape", "base_strides", "conjugated", "dtype", "negated", "offset", "shape",
                 "strides")

    def __init__(self, base: np.ndarray, view: np.ndarray) -> None:
        self.base_shape, self.base_strides, self.base_dtype = base.shape, base.strides, base.dtype
        self.shape, self.strides, self.dtype = view.shape, view.strides, view.dtype
        of_view, of_base = bits_of(view), bits_of(base)
        self.conjugated, self.negated = of_view[0] != of_base[0], of_view[1] != of_base[1]
        offset = address(view) - address(base)
        if not 0 <= offset <= base.nbytes:  # in other memory, if `data` was set on the base since
            offset += address(owner(base)) - address(owner(view))
        self.offset = offset

    def as_strided_constants(self) -> tuple[tuple[int, ...], tuple[int, ...], int, Geometry]:
        """What the node of `as_strided` of the base saves: size, strides and offset in elements, and this."""
        itemsize = self.dtype.itemsize
        return self.shape, tuple(step // itemsize for step in self.strides), self.offset // itemsize, self

    def __repr__(self) -> str:
        return (f"Geometry({self.shape}, {self.strides}, {self.offset} of {self.base_shape}, {self.base_strides}, "
                f"{self.base_dtype} as {self.dtype})")

    def repeated(self, sizes: tuple[int, ...]) -> Geometry:
        """The geometry of a batch: `sizes` prepended to the shapes of base and view, the bases adjacent in memory."""
        reach = self.base_dtype.itemsize
        if 0 not in self.base_shape:
            reach += sum((n - 1) * t for n, t in zip(self.base_shape, self.base_strides, strict=True))
        front: list[int] = []
        for n in reversed(sizes):
            front.insert(0, reach)
            reach *= n
        result = object.__new__(Geometry)
        result.base_shape, result.base_strides = (*sizes, *self.base_shape), (*front, *self.base_strides)
        result.shape, result.strides = (*sizes, *self.shape), (*front, *self.strides)
        result.base_dtype, result.dtype, result.offset = self.base_dtype, self.dtype, self.offset
        result.conjugated, result.negated = self.conjugated, self.negated
        return result

    def _memory(self, dtype: Any, fill: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """New memory that spans base and view: (all of it, the base in it, the view in it)."""
        item = self.base_dtype.itemsize
        offset = self.offset // item
        first = min(0, offset)
        reach = max(_extent(self.base_shape, self.base_strides, item), offset + _extent(self.shape, self.strides, item))
        memory = np.full(reach - first, fill, dtype)
        wide = memory.itemsize
        base = as_strided(memory[-first:], self.base_shape, [wide * (t // item) for t in self.base_strides])
        view = as_strided(memory[offset - first:], self.shape, [wide * (t // item) for t in self.strides])
        return memory, base, view

    def positions(self) -> np.ndarray:
        """For each element of the view its index in the flattened base; -1 where it is not part of the base."""
        if self.dtype != self.base_dtype:
            raise NotImplementedError("a view of another dtype")
        if 0 in self.shape:
            return np.zeros(self.shape, np.int64)
        _, base, view = self._memory(np.int64, -1)
        base[...] = np.arange(base.size).reshape(self.base_shape)
        return view

    def window(self, array: np.ndarray) -> np.ndarray | None:
        """The view of a row-major array; None where the base is not row-major or the view exceeds it."""
        if self.dtype != self.base_dtype or self.offset < 0 or not array.flags.c_contiguous:
            return None
        item = self.base_dtype.itemsize
        if 0 not in self.base_shape and any(
                n != 1 and t != s * item for n, t, s in zip(self.base_shape, self.base_strides,
                                                            contiguous_strides(self.base_shape), strict=True)):
            return None
        try:
            wide = array.itemsize  # gradients may have another precision
            strides = tuple(t // item * wide for t in self.strides)
            return view_memory(array, self.shape, strides, self.offset // item * wide)
        except (ValueError, TypeError):
            return None

    def of_parts(self) -> Geometry:
        """The geometry after `view_as_real` of base and view: complex elements as one more dimension of size 2."""
        out = object.__new__(Geometry)
        out.offset, out.conjugated, out.negated = self.offset, self.conjugated, self.negated
        if is_complex(self.dtype):
            half = np.dtype(f"f{self.dtype.itemsize // 2}")
            out.shape, out.strides = (*self.shape, 2), (*self.strides, half.itemsize)
        else:
            half, out.shape, out.strides = self.dtype, self.shape, self.strides
        out.dtype = out.base_dtype = half
        out.base_shape, out.base_strides = self.base_shape, self.base_strides
        if is_complex(self.base_dtype):
            out.base_shape = (*self.base_shape, 2)
            out.base_strides = (*self.base_strides, half.itemsize)
        return out

    def is_expanded(self) -> bool:
        """Whether a dimension of the view is expanded (stride 0)."""
        return 0 not in self.shape and any(s == 0 and n > 1 for s, n in zip(self.strides, self.shape, strict=True))

    def take(self, array: np.ndarray) -> np.ndarray:
        """A copy of the view's elements; 0 for those that are not part of the base."""
        view = self.window(array)
        if view is not None:
            return np.array(view, order="C", copy=True)
        positions = self.positions()
        if not array.size:
            return np.zeros(positions.shape, array.dtype)
        result = np.array(array.reshape(-1)[positions])
        result[positions < 0] = np.zeros((), array.dtype)
        return result

    def put(self, array: np.ndarray, values: object) -> None:
        """Write values into the view's elements of an array."""
        view = self.window(array)
        if view is not None:
            view[...] = values
            return
        positions = self.positions()
        inside = positions >= 0
        array.reshape(-1)[positions[inside]] = np.broadcast_to(np.asarray(values), positions.shape)[inside]

    def embed(self, values: np.ndarray) -> np.ndarray:
        """Zeros of the base's shape, with the values added at the view's elements.

        Values at positions that are not part of the base are dropped. Where elements of the base overlap in memory,
        the value is divided among them.
        """
        array = np.zeros(self.base_shape, values.dtype)
        shared = _overlap(self.base_shape, self.base_strides)
        view = None if shared or _overlap(self.shape, self.strides) else self.window(array)
        if view is not None:
            view[...] = values
            return array
        if 0 in self.shape or not array.size:
            return array
        memory, base, _ = self._memory(values.dtype)
        places, of_base, of_view = self._memory(np.int64)
        places[...] = np.arange(places.size)
        np.add.at(memory, of_view, values)
        array[...] = base
        if shared:
            sharers = np.bincount(of_base.reshape(-1), minlength=places.size)
            array /= sharers[of_base]
        return array


def _extent(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> int:
    """The number of elements of memory that a strided array spans."""
    if 0 in shape:
        return 1
    return 1 + sum((s - 1) * (t // item) for s, t in zip(shape, strides, strict=True))


def _overlap(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether elements of a strided array may overlap in memory."""
    reach = 0
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False
