"""Geometry of views: which elements of its base a view shows, by shapes, strides and an offset."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..backends.numpy.memory import address, lying, owner
from ..shapes import contiguous_strides


class Geometry:
    """Where a view lies in its base: positions in the base's own, row-major order.

    Holds shapes and strides only, no memory; what it gives is made when asked for.
    """

    __slots__ = ("base_dtype", "base_shape", "base_strides", "dtype", "offset", "shape", "strides")

    def __init__(self, base: np.ndarray, view: np.ndarray) -> None:
        self.base_shape, self.base_strides, self.base_dtype = base.shape, base.strides, base.dtype
        self.shape, self.strides, self.dtype = view.shape, view.strides, view.dtype
        offset = address(view) - address(base)
        if not 0 <= offset <= base.nbytes:  # far apart, or in other memory, if the base was given other `data` since
            offset += address(owner(base)) - address(owner(view))
        self.offset = offset

    def __repr__(self) -> str:
        return (f"Geometry({self.shape}, {self.strides}, {self.offset} of {self.base_shape}, {self.base_strides}, "
                f"{self.base_dtype} as {self.dtype})")

    def repeated(self, sizes: tuple[int, ...]) -> Geometry:
        """The same in each of as many bases side by side: what has `sizes` in front."""
        reach = self.base_dtype.itemsize
        if 0 not in self.base_shape:
            reach += sum((n - 1) * t for n, t in zip(self.base_shape, self.base_strides, strict=True))
        front: list[int] = []
        for n in reversed(sizes):
            front.insert(0, reach)
            reach *= n
        found = object.__new__(Geometry)
        found.base_shape, found.base_strides = (*sizes, *self.base_shape), (*front, *self.base_strides)
        found.shape, found.strides = (*sizes, *self.shape), (*front, *self.strides)
        found.base_dtype, found.dtype, found.offset = self.base_dtype, self.dtype, self.offset
        return found

    def _memory(self, dtype: Any, fill: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Memory that holds both base and view: all of it, the base's elements, and the view's."""
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
        """The view's elements, in its shape, as positions in the flattened base; -1 where they are none of it."""
        if self.dtype != self.base_dtype:
            raise NotImplementedError("a view of another dtype")
        if 0 in self.shape:
            return np.zeros(self.shape, np.int64)
        _, base, view = self._memory(np.int64, -1)
        base[...] = np.arange(base.size).reshape(self.base_shape)
        return view

    def window(self, whole: np.ndarray) -> np.ndarray | None:
        """The view, in a row-major array shaped as the base; None where the base was not row-major."""
        if self.dtype != self.base_dtype or self.offset < 0 or not whole.flags.c_contiguous:
            return None
        item = self.base_dtype.itemsize
        if 0 not in self.base_shape and any(
                n != 1 and t != s * item for n, t, s in zip(self.base_shape, self.base_strides,
                                                            contiguous_strides(self.base_shape), strict=True)):
            return None
        try:
            wide = whole.itemsize  # gradients may be of another precision
            return lying(whole, self.shape, tuple(t // item * wide for t in self.strides), self.offset // item * wide)
        except (ValueError, TypeError):
            return None

    def of_parts(self) -> Geometry:
        """The same place, in real numbers: complex ones are pairs of them, along one more dimension."""
        parts = object.__new__(Geometry)
        parts.offset = self.offset
        if self.dtype.kind == "c":
            half = np.dtype(f"f{self.dtype.itemsize // 2}")
            parts.shape, parts.strides = (*self.shape, 2), (*self.strides, half.itemsize)
        else:
            half, parts.shape, parts.strides = self.dtype, self.shape, self.strides
        parts.dtype = parts.base_dtype = half
        parts.base_shape, parts.base_strides = self.base_shape, self.base_strides
        if self.base_dtype.kind == "c":
            parts.base_shape = (*self.base_shape, 2)
            parts.base_strides = (*self.base_strides, half.itemsize)
        return parts

    def is_expanded(self) -> bool:
        """Whether an element is repeated along a dimension, as `expand` does."""
        return 0 not in self.shape and any(s == 0 and n > 1 for s, n in zip(self.strides, self.shape, strict=True))

    def take(self, whole: np.ndarray) -> np.ndarray:
        """A copy of the view's elements of a row-major array shaped as the base; 0 where they are none of it."""
        part = self.window(whole)
        if part is not None:
            return np.array(part, order="C", copy=True)
        positions = self.positions()
        if not whole.size:
            return np.zeros(positions.shape, whole.dtype)
        found = np.array(whole.reshape(-1)[positions])
        found[positions < 0] = np.zeros((), whole.dtype)
        return found

    def put(self, whole: np.ndarray, values: object) -> None:
        """Write values at the view's elements of a row-major array shaped as the base."""
        part = self.window(whole)
        if part is not None:
            part[...] = values
            return
        positions = self.positions()
        inside = positions >= 0
        whole.reshape(-1)[positions[inside]] = np.broadcast_to(np.asarray(values), positions.shape)[inside]

    def embed(self, values: np.ndarray) -> np.ndarray:
        """Zeros shaped as the base, with the values added at the view's elements.

        What falls between the base's elements is lost; where elements of the base are one, they share.
        """
        whole = np.zeros(self.base_shape, values.dtype)
        shared = _overlap(self.base_shape, self.base_strides)
        part = None if shared or _overlap(self.shape, self.strides) else self.window(whole)
        if part is not None:
            part[...] = values
            return whole
        if 0 in self.shape or not whole.size:
            return whole
        memory, base, _ = self._memory(values.dtype)
        places, of_base, of_view = self._memory(np.int64)
        places[...] = np.arange(places.size)
        np.add.at(memory, of_view, values)
        whole[...] = base
        if shared:
            sharers = np.bincount(of_base.reshape(-1), minlength=places.size)
            whole /= sharers[of_base]
        return whole


def _extent(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> int:
    """How many places of memory elements reach over."""
    if 0 in shape:
        return 1
    return 1 + sum((s - 1) * (t // item) for s, t in zip(shape, strides, strict=True))


def _overlap(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether two elements may be one."""
    reach = 0
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False
