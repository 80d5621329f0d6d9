"""Layout operations over IR values: flips, rolls, repeats, padding, gathers and scatters.

A mixin of the namespace that declarations are traced over (`Namespace`); primitives have the names of
`backends.numpy`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ...shapes import broadcast_shapes, wrap_dim, wrap_dims
from ..graph import view_algebra as algebra
from ..graph.value import Unsupported, Value
from .data_guards import DataGuards
from .indexed_kernels import scatter_add, take

#: the widest window whose gradient is a sum of shifted copies; NumPy computes wider ones
MAX_WINDOW = 16
FLOATS = ("float32", "float64")


class LayoutOps(DataGuards):
    """Layout primitives of the namespace."""

    # ----- permutations and repeats -----

    def flip(self, x: Value, dims: Any) -> Value:
        strides, offset = list(x.strides), x.offset
        for d in wrap_dims(dims, x.ndim) if len(dims) else ():
            offset += max(0, x.shape[d] - 1) * strides[d]
            strides[d] = -strides[d]
        return self.graph.view(x, x.shape, strides, offset) if x.size else x

    def roll(self, x: Value, shifts: Any, dims: Any = ()) -> Value:
        shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
        dims = (dims,) if isinstance(dims, int) else tuple(dims or ())
        if not dims and len(shifts) == 1:
            return self.graph.reshape(self.roll(self.graph.reshape(x, (x.size,)), shifts, (0,)), x.shape)
        if len(dims) != len(shifts) or not x.ndim:
            raise Unsupported("shifts that do not match the dimensions")
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
            raise Unsupported("repeats that do not match the dimensions")
        shape = (1,) * lead + x.shape
        split = self.graph.reshape(x, tuple(n for extent in shape for n in (1, extent)))
        split = self.graph.expand(split, tuple(n for pair in zip(repeats, shape, strict=True) for n in pair))
        return self.graph.reshape(split, tuple(r * n for r, n in zip(repeats, shape, strict=True)))

    # ----- padding -----

    def border_pad(self, x: Value, pad: Any, mode: str) -> Value:
        for axis, indices in _padding_indices(x.shape, pad, mode):
            x = self._gather_axis(x, self.graph.constant(indices), axis)
        return x

    def border_pad_backward(self, x: Value, size: Any, pad: Any, mode: str) -> Value:
        for axis, indices in reversed(_padding_indices(tuple(size), pad, mode)):
            shape = (*x.shape[:axis], size[axis], *x.shape[axis + 1:])
            x = self._scatter_add_axis(x, self.graph.constant(indices), shape, axis)
        return x

    # ----- resampling -----

    def resample(self, x: Value, dim: int, size: int, positions: Any, weights: Any) -> Value:
        axis = wrap_dim(dim, x.ndim)
        total = None
        for i, row in enumerate(positions):
            term = self._gather_axis(x, self.graph.constant(np.array(row, np.int64)), axis)
            if weights is not None:
                term = term * self._weights_along(weights[i], x, axis)
            total = term if total is None else total + term
        assert total is not None
        return total

    def resample_backward(self, x: Value, dim: int, size: int, positions: Any, weights: Any) -> Value:
        axis = wrap_dim(dim, x.ndim)
        shape = (*x.shape[:axis], size, *x.shape[axis + 1:])
        total = None
        for i, row in enumerate(positions):
            source = x if weights is None else x * self._weights_along(weights[i], x, axis)
            term = self._scatter_add_axis(source, self.graph.constant(np.array(row, np.int64)), shape, axis)
            total = term if total is None else total + term
        assert total is not None
        return total

    def _weights_along(self, weights: Any, x: Value, axis: int) -> Value:
        values = np.array(weights, x.dtype).reshape((1,) * axis + (-1,) + (1,) * (x.ndim - 1 - axis))
        return self.graph.constant(values)

    # ----- gradients of views -----

    def embed_diagonal(self, x: Value, size: Any, offset: int, dim1: int, dim2: int) -> Value:
        size = tuple(size)
        a, b = wrap_dim(dim1, len(size)), wrap_dim(dim2, len(size))
        dense = algebra.dense_strides(size)
        strides = [*(dense[d] for d in range(len(size)) if d not in (a, b)), dense[a] + dense[b]]
        start = offset * dense[b] if offset >= 0 else -offset * dense[a]
        zero = self.graph.constant(0, x.dtype)
        if not x.size:
            return self.graph.expand(zero, size)
        return self.graph.assemble(size, zero, [x], [(tuple(strides), start)])

    def embed_windows(self, x: Value, size: Any, dimension: int, window: int, step: int) -> Value:
        size = tuple(size)
        if not size or not x.size or window > MAX_WINDOW:
            raise Unsupported(f"windows of {window} elements")
        axis, dense = wrap_dim(dimension, len(size)), algebra.dense_strides(size)
        strides = tuple(step * s if d == axis else s for d, s in enumerate(dense))
        total: Value | None = None
        for i in range(window):
            shifted = self.graph.assemble(size, self.graph.constant(0, x.dtype),
                                       [self.graph.select_index(x, x.ndim - 1, i)], [(strides, i * dense[axis])])
            total = shifted if total is None else self.graph.apply("add", total, shifted)
        assert total is not None
        return total

    # ----- by index -----

    def _gather_axis(self, x: Value, index: Value, axis: int) -> Value:
        """Gather along a dimension by a vector of indices, which are in range."""
        shape = (*x.shape[:axis], index.size, *x.shape[axis + 1:])
        if not math.prod(shape):
            raise Unsupported("an empty index")
        return take(x, self._index_along(index, axis, x.ndim), shape, axis)

    def _scatter_add_axis(self, x: Value, index: Value, shape: tuple[int, ...], axis: int) -> Value:
        """Scatter-add along a dimension into zeros: the transpose of `_gather_axis`."""
        if x.dtype.name not in FLOATS or not x.size:
            raise Unsupported(f"sums at indices of {x.dtype}")
        return scatter_add(x, self._index_along(index, axis, x.ndim), shape, axis)

    def _index_along(self, index: Value, axis: int, ndim: int) -> Value:
        return self.graph.reshape(index, (1,) * axis + (index.size,) + (1,) * (ndim - 1 - axis))

    def index_select(self, x: Value, index: Value, dim: int) -> Value:
        if not x.ndim or index.ndim > 1 or index.dtype.name not in ("int32", "int64"):
            raise Unsupported("an index of this dtype or shape")
        axis = wrap_dim(dim, x.ndim)
        self.requires_range(index, x.shape[axis])
        return self._gather_axis(x, index, axis)

    def index_add(self, x: Value, index: Value, source: Value, dim: int, alpha: Any = 1) -> Value:
        axis = wrap_dim(dim, x.ndim) if x.ndim else 0
        shape = (*x.shape[:axis], index.size, *x.shape[axis + 1:])
        if not x.ndim or index.ndim > 1 or index.dtype.name not in ("int32", "int64") or source.shape != shape or (
                source.dtype != x.dtype):
            raise Unsupported("an index of this dtype or shape")
        self.requires_range(index, x.shape[axis])
        more = self._scatter_add_axis(source if alpha == 1 else source * alpha, index, x.shape, axis)
        return self.graph.apply("add", x, more)

    def index(self, x: Value, *indices: Any) -> Value:
        first, index, shape = self._linear_index(x.shape, indices)
        merged = math.prod(x.shape[first:first + shape[1]])
        flat = self.graph.reshape(x, (*x.shape[:first], merged, *x.shape[first + shape[1]:]))
        found = self._gather_axis(flat, self.graph.reshape(index, (index.size,)), first)
        return self.graph.reshape(found, (*x.shape[:first], *index.shape, *x.shape[first + shape[1]:]))

    def add_at_indices(self, x: Value, *indices: Any, size: Any) -> Value:
        size = tuple(size)
        first, index, shape = self._linear_index(size, indices)
        leading, trailing = size[:first], size[first + shape[1]:]
        expanded = self.graph.expand(x, (*leading, *index.shape, *trailing))
        flat = self.graph.reshape(expanded, (*leading, index.size, *trailing))
        merged = (*leading, math.prod(size[first:first + shape[1]]), *trailing)
        total = self._scatter_add_axis(flat, self.graph.reshape(index, (index.size,)), merged, first)
        return self.graph.reshape(total, size)

    def _linear_index(self, size: Sequence[int], indices: Sequence[Any]) -> tuple[int, Value, tuple[int, int]]:
        """Combine the indices of adjacent dimensions into one non-negative linear index.

        Returns:
            The first dimension, the linear index, and (first dimension, number of dimensions).
        """
        by_dim = indices[0] if len(indices) == 1 and isinstance(indices[0], list) else indices
        dims = [i for i, each in enumerate(by_dim) if each is not None]
        if not dims or dims != list(range(dims[0], dims[-1] + 1)):
            raise Unsupported("indices of dimensions that are not adjacent")
        shape = reduce(broadcast_shapes, (by_dim[i].shape for i in dims))
        total: Value | None = None
        for i in dims:
            index, n = by_dim[i], size[i]
            if index.dtype.name not in ("int32", "int64") or not index.size:
                raise Unsupported(f"an index of {index.dtype}")
            index = self.graph.cast(index, np.dtype(np.int64))
            wrapped = self.graph.select(self.graph.apply("lt", index, 0), index + n, index)
            self.requires_range(wrapped, n)
            wrapped = self.graph.expand(wrapped, shape)
            total = wrapped if total is None else total * n + wrapped
        assert total is not None
        return dims[0], total, (dims[0], len(dims))

    def _gather_dim(self, x: Value, index: Value, dim: int) -> Value:
        if not x.ndim:
            return self.graph.expand(x, index.shape)
        axis = wrap_dim(dim, x.ndim)
        full = index if index.ndim == x.ndim else self.graph.unsqueeze(index, axis)
        if not full.size:
            raise Unsupported("an empty index")
        return self.graph.reshape(take(x, full, full.shape, axis), index.shape)

    def _scatter_dim(self, g: Value, index: Value, dim: int, size: Any, repeated: bool = False) -> Value:
        size = tuple(size)
        if not size:
            return self.graph.reshape(g, ())
        axis = wrap_dim(dim, len(size))
        if index.ndim != len(size):
            g, index = self.graph.unsqueeze(g, axis), self.graph.unsqueeze(index, axis)
        if index.shape[axis] != 1:
            if not index.size or g.dtype.name not in FLOATS:
                raise Unsupported("an index of this dtype or shape")
            return scatter_add(g, index, size, axis)
        positions = self.graph.constant(np.arange(size[axis]))
        is_index = self.graph.apply("eq", self.graph.expand(self._index_along(positions, axis, len(size)), size),
                                self.graph.expand(index, size))
        return self.graph.select(is_index, self.graph.expand(g, size), self.graph.constant(0, g.dtype))

    # ----- extrema -----

    def _max_dim(self, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        return self._extremum("max", x, dim, keepdim)

    def _min_dim(self, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        return self._extremum("min", x, dim, keepdim)

    def _extremum(self, name: str, x: Value, dim: int, keepdim: bool) -> tuple[Value, Value]:
        """The extremum along a dimension, and its index."""
        if not x.ndim or not x.size or x.dtype.kind not in "fiu":
            raise Unsupported(f"{name} of no dimensions, or of {x.dtype}")
        axis = wrap_dim(dim, x.ndim)
        shape = tuple(1 if d == axis else n for d, n in enumerate(x.shape) if keepdim or d != axis)
        return tuple(self.graph.reshape(self.graph.reduce(each, x, (axis,)), shape)  # type: ignore[return-value]
                     for each in (name, f"arg{name}"))


def _padding_indices(shape: tuple[int, ...], pad: Any, mode: str) -> list[tuple[int, np.ndarray]]:
    """For each padded dimension, the source index of every element."""
    result = []
    for i in range(len(pad) // 2):
        axis, before, after = len(shape) - 1 - i, int(pad[2 * i]), int(pad[2 * i + 1])
        if not before and not after:
            continue
        n = shape[axis]
        indices = np.arange(-before, n + after)
        if mode == "reflect":
            indices = np.abs(indices)
            indices = np.where(indices >= n, 2 * (n - 1) - indices, indices)
        elif mode == "edge":
            indices = indices.clip(0, n - 1)
        else:
            raise Unsupported(f"padding of mode {mode}")
        if not indices.size or indices.min() < 0 or indices.max() >= n:
            raise Unsupported("padding wider than the array")
        result.append((axis, indices))
    return result


__all__ = ["LayoutOps"]
