"""Elements in other places, as values: turned, shifted, repeated, continued at the border, picked by index.

Part of the namespace that operators' declarations run over (`Namespace`); named as NumPy's side names them
(`backends.numpy`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ...shapes import broadcast_shapes, wrap_dim, wrap_dims
from ..graph import view_algebra as algebra
from ..graph.value import Graph, Unsupported, Value
from .indexed_kernels import added, taken

#: sums of so many shifted copies, at most: windows that are wider are added up by NumPy
WINDOWS = 16
FLOATS = ("float32", "float64")


class Moves:
    """Functions of the namespace over a graph's values."""

    graph: Graph

    def requires_range(self, index: Value, count: int, but: int | None = None) -> None:
        """Let everything depend on indices being such, `but` apart."""
        raise NotImplementedError

    # ----- whole arrays -----

    def flip(self, x: Value, dims: Any) -> Value:
        strides, offset = list(x.strides), x.offset
        for d in wrap_dims(dims, x.ndim) if len(dims) else ():
            offset += max(0, x.shape[d] - 1) * strides[d]
            strides[d] = -strides[d]
        return self.graph.view(x, x.shape, strides, offset) if x.size else x

    def roll(self, x: Value, shifts: Any, dims: Any = ()) -> Value:
        shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
        dims = (dims,) if isinstance(dims, int) else tuple(dims)
        if not dims and len(shifts) == 1:
            return self.graph.reshape(self.roll(self.graph.reshape(x, (x.size,)), shifts, (0,)), x.shape)
        if len(dims) != len(shifts) or not x.ndim:
            raise Unsupported("shifts that fit no dimensions")
        for shift, dim in zip(shifts, dims, strict=True):
            axis = wrap_dim(dim, x.ndim)
            n = x.shape[axis]
            last = shift % n if n else 0
            if last:
                x = self.graph.cat([self.graph.slice(x, axis, n - last, last), self.graph.slice(x, axis, 0, n - last)],
                                   axis)
        return x

    def rot90(self, x: Value, k: int = 1, dims: Any = (0, 1)) -> Value:
        a, b = (wrap_dim(d, x.ndim) for d in dims)
        order = list(range(x.ndim))
        order[a], order[b] = b, a
        if k % 2 == 0:
            return self.flip(x, (a, b)) if k % 4 else x
        return self.graph.permute(self.flip(x, (b if k % 4 == 1 else a,)), order)

    def repeat(self, x: Value, repeats: Any) -> Value:
        repeats = tuple(map(int, repeats))
        lead = len(repeats) - x.ndim
        if lead < 0 or any(r < 0 for r in repeats):
            raise Unsupported("repeats that fit no dimensions")
        shape = (1,) * lead + x.shape
        apart = self.graph.reshape(x, tuple(n for extent in shape for n in (1, extent)))
        apart = self.graph.expand(apart, tuple(n for pair in zip(repeats, shape, strict=True) for n in pair))
        return self.graph.reshape(apart, tuple(r * n for r, n in zip(repeats, shape, strict=True)))

    # ----- borders -----

    def bordered(self, x: Value, pad: Any, mode: str) -> Value:
        for axis, places in _borders(x.shape, pad, mode):
            x = self._along(x, self.graph.constant(places), axis)
        return x

    def gather_border(self, x: Value, size: Any, pad: Any, mode: str) -> Value:
        for axis, places in reversed(_borders(tuple(size), pad, mode)):
            shape = (*x.shape[:axis], size[axis], *x.shape[axis + 1:])
            x = self._back_along(x, self.graph.constant(places), shape, axis)
        return x

    # ----- gradients of views -----

    def embed_diagonal(self, x: Value, size: Any, offset: int, dim1: int, dim2: int) -> Value:
        size = tuple(size)
        a, b = wrap_dim(dim1, len(size)), wrap_dim(dim2, len(size))
        rows = algebra.dense_strides(size)
        strides = [*(rows[d] for d in range(len(size)) if d not in (a, b)), rows[a] + rows[b]]
        start = offset * rows[b] if offset >= 0 else -offset * rows[a]
        zero = self.graph.constant(0, x.dtype)
        if not x.size:
            return self.graph.expand(zero, size)
        return self.graph.assemble(size, zero, [x], [(tuple(strides), start)])

    def embed_windows(self, x: Value, size: Any, dimension: int, window: int, step: int) -> Value:
        size = tuple(size)
        if not size or not x.size or window > WINDOWS:
            raise Unsupported(f"windows of {window} elements")
        axis, rows = wrap_dim(dimension, len(size)), algebra.dense_strides(size)
        strides = tuple(step * s if d == axis else s for d, s in enumerate(rows))
        total: Value | None = None
        for i in range(window):
            part = self.graph.assemble(size, self.graph.constant(0, x.dtype),
                                       [self.graph.select_index(x, x.ndim - 1, i)], [(strides, i * rows[axis])])
            total = part if total is None else self.graph.apply("add", total, part)
        assert total is not None
        return total

    # ----- by index -----

    def _along(self, x: Value, index: Value, axis: int) -> Value:
        """The places along a dimension that a vector of indices, known to be in range, names."""
        shape = (*x.shape[:axis], index.size, *x.shape[axis + 1:])
        if not math.prod(shape):
            raise Unsupported("an index of nothing")
        return taken(x, self._across(index, axis, x.ndim), shape, axis)

    def _back_along(self, x: Value, index: Value, shape: tuple[int, ...], axis: int) -> Value:
        """Zeros of a shape with x added at places along a dimension: the transpose of `_along`."""
        if x.dtype.name not in FLOATS or not x.size:
            raise Unsupported(f"sums at indices of {x.dtype}")
        return added(x, self._across(index, axis, x.ndim), shape, axis)

    def _across(self, index: Value, axis: int, ndim: int) -> Value:
        return self.graph.reshape(index, (1,) * axis + (index.size,) + (1,) * (ndim - 1 - axis))

    def rows_taken(self, x: Value, index: Value, dim: int) -> Value:
        if not x.ndim or index.ndim > 1 or index.dtype.name not in ("int32", "int64"):
            raise Unsupported("an index of this kind")
        axis = wrap_dim(dim, x.ndim)
        self.requires_range(index, x.shape[axis])
        return self._along(x, index, axis)

    def rows_added(self, x: Value, index: Value, source: Value, dim: int, alpha: Any = 1) -> Value:
        axis = wrap_dim(dim, x.ndim) if x.ndim else 0
        shape = (*x.shape[:axis], index.size, *x.shape[axis + 1:])
        if not x.ndim or index.ndim > 1 or index.dtype.name not in ("int32", "int64") or source.shape != shape or (
                source.dtype != x.dtype):
            raise Unsupported("an index of this kind")
        self.requires_range(index, x.shape[axis])
        more = self._back_along(source if alpha == 1 else source * alpha, index, x.shape, axis)
        return self.graph.apply("add", x, more)

    def index_at(self, x: Value, *indices: Any) -> Value:
        first, index, shape = self._joined(x.shape, indices)
        merged = math.prod(x.shape[first:first + shape[1]])
        flat = self.graph.reshape(x, (*x.shape[:first], merged, *x.shape[first + shape[1]:]))
        found = self._along(flat, self.graph.reshape(index, (index.size,)), first)
        return self.graph.reshape(found, (*x.shape[:first], *index.shape, *x.shape[first + shape[1]:]))

    def add_at_indices(self, x: Value, *indices: Any, size: Any) -> Value:
        size = tuple(size)
        first, index, shape = self._joined(size, indices)
        before, behind = size[:first], size[first + shape[1]:]
        full = self.graph.expand(x, (*before, *index.shape, *behind))
        flat = self.graph.reshape(full, (*before, index.size, *behind))
        merged = (*before, math.prod(size[first:first + shape[1]]), *behind)
        found = self._back_along(flat, self.graph.reshape(index, (index.size,)), merged, first)
        return self.graph.reshape(found, size)

    def _joined(self, size: Sequence[int], indices: Sequence[Any]) -> tuple[int, Value, tuple[int, int]]:
        """Indices of dimensions that lie side by side as one, which is never negative.

        Returns:
            The first of the dimensions, the index, and (the first, how many dimensions there are).
        """
        given = indices[0] if len(indices) == 1 and isinstance(indices[0], list) else indices
        places = [i for i, each in enumerate(given) if each is not None]
        if not places or places != list(range(places[0], places[-1] + 1)):
            raise Unsupported("indices of dimensions that lie apart")
        shape = reduce(broadcast_shapes, (given[i].shape for i in places))
        total: Value | None = None
        for i in places:
            index, n = given[i], size[i]
            if index.dtype.name not in ("int32", "int64") or not index.size:
                raise Unsupported(f"an index of {index.dtype}")
            index = self.graph.cast(index, np.dtype(np.int64))
            counted = self.graph.select(self.graph.apply("lt", index, 0), index + n, index)
            self.requires_range(counted, n)
            counted = self.graph.expand(counted, shape)
            total = counted if total is None else total * n + counted
        assert total is not None
        return places[0], total, (places[0], len(places))

    def _gather_dim(self, x: Value, index: Value, dim: int) -> Value:
        if not x.ndim:
            return self.graph.expand(x, index.shape)
        axis = wrap_dim(dim, x.ndim)
        full = index if index.ndim == x.ndim else self.graph.unsqueeze(index, axis)
        if not full.size:
            raise Unsupported("an index of nothing")
        return self.graph.reshape(taken(x, full, full.shape, axis), index.shape)

    def _scatter_dim(self, g: Value, index: Value, dim: int, size: Any, repeats: bool = False) -> Value:
        size = tuple(size)
        if not size:
            return self.graph.reshape(g, ())
        axis = wrap_dim(dim, len(size))
        if index.ndim != len(size):
            g, index = self.graph.unsqueeze(g, axis), self.graph.unsqueeze(index, axis)
        if index.shape[axis] != 1:
            if not index.size or g.dtype.name not in FLOATS:
                raise Unsupported("an index of this kind")
            return added(g, index, size, axis)
        numbers = self.graph.constant(np.arange(size[axis]))
        here = self.graph.apply("eq", self.graph.expand(self._across(numbers, axis, len(size)), size),
                                self.graph.expand(index, size))
        return self.graph.select(here, self.graph.expand(g, size), self.graph.constant(0, g.dtype))

    # ----- extrema -----

    def _max_dim(self, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        return self._extremum("max", x, dim, keepdim)

    def _min_dim(self, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        return self._extremum("min", x, dim, keepdim)

    def _extremum(self, name: str, x: Value, dim: int, keepdim: bool) -> tuple[Value, Value]:
        """The extremum along a dimension, and where it is."""
        if not x.ndim or not x.size or x.dtype.kind not in "fiu":
            raise Unsupported(f"{name} of no dimensions, or of {x.dtype}")
        axis = wrap_dim(dim, x.ndim)
        shape = tuple(1 if d == axis else n for d, n in enumerate(x.shape) if keepdim or d != axis)
        return tuple(self.graph.reshape(self.graph.reduce(each, x, (axis,)), shape)  # type: ignore[return-value]
                     for each in (name, f"arg{name}"))


def _borders(shape: tuple[int, ...], pad: Any, mode: str) -> list[tuple[int, np.ndarray]]:
    """For each dimension that changes, which of its places the new ones show."""
    found = []
    for i in range(len(pad) // 2):
        axis, before, after = len(shape) - 1 - i, int(pad[2 * i]), int(pad[2 * i + 1])
        if not before and not after:
            continue
        n = shape[axis]
        places = np.arange(-before, n + after)
        if mode == "reflect":
            places = np.abs(places)
            places = np.where(places >= n, 2 * (n - 1) - places, places)
        elif mode == "edge":
            places = places.clip(0, n - 1)
        else:
            raise Unsupported(f"a border of mode {mode}")
        if not places.size or places.min() < 0 or places.max() >= n:
            raise Unsupported("a border wider than what it continues")
        found.append((axis, places))
    return found


__all__ = ["Moves"]
