"""Writes and reductions at indices over IR values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.graph import view_algebra as algebra
from ....ir.graph.extern_kernels import ExternKernel
from ....ir.graph.value import BOOL, FLOAT32, INT64, Unsupported, Value
from ....ir.lowering.indexed_kernels import _put_launches, scatter_add, scatter_set
from ....ir.lowering.namespace import Namespace
from ....shapes import wrap_dim

#: reduction -> the operation that scatters combine elements by
_OPERATIONS = {"sum": "add", "mean": "add", "prod": "mul", "amax": "maximum", "amin": "minimum"}


def _scatter_by(op: str, source: Value, index: Value, shape: tuple[int, ...], dim: int) -> Value:
    """Scatter into the identity of an operation, and combine by it."""
    kernel = ExternKernel("put", _put_launches, {"dim": dim, "op": op})
    return source.graph.extern(kernel, [source, index], [(shape, source.dtype), ((2,), INT64)])[0]


class Scattering(Namespace):
    """Primitives that write at indices."""

    def index_put(self, x: Value, values: Any, *indices: Any, accumulate: bool = False) -> Value:
        g = self.graph
        first, index, (_, count) = self._linear_index(x.shape, indices)
        leading, trailing = x.shape[:first], x.shape[first + count:]
        merged = (*leading, math.prod(x.shape[first:first + count]), *trailing)
        if not isinstance(values, Value):
            values = g.constant(values, x.dtype)
        source = g.expand(values, (*leading, *index.shape, *trailing))
        flat = g.reshape(source, (*leading, index.size, *trailing))
        along = self._index_along(g.reshape(index, (index.size,)), first, len(merged))
        return g.reshape(self._put(g.reshape(x, merged), flat, along, first, accumulate), x.shape)

    def _put(self, x: Value, source: Value, index: Value, axis: int, accumulate: bool) -> Value:
        g = self.graph
        if not source.size:
            return x
        if accumulate:
            if x.dtype.kind not in "iuf":
                raise Unsupported(f"sums at indices of {x.dtype}")
            return x + scatter_add(source, index, x.shape, axis)
        alone = tuple(n if d == axis else 1 for d, n in enumerate(x.shape))
        written = scatter_set(g.expand(g.constant(True, BOOL), index.shape), index, alone, axis)
        return g.select(g.expand(written, x.shape), scatter_set(source, index, x.shape, axis), x)

    def index_copy(self, x: Value, index: Value, source: Value, dim: int) -> Value:
        if not x.ndim or index.ndim > 1 or source.ndim != x.ndim:
            raise Unsupported("an index of this shape")
        axis = wrap_dim(dim, x.ndim)
        self.requires_range(index, x.shape[axis])
        return self._put(x, source, self._index_along(index, axis, x.ndim), axis, False)

    def index_fill(self, x: Value, index: Value, value: Any, dim: int) -> Value:
        g = self.graph
        if not x.ndim or index.ndim > 1:
            raise Unsupported("an index of this shape")
        axis = wrap_dim(dim, x.ndim)
        wrapped = g.select(g.apply("lt", index, 0), index + x.shape[axis], index)
        self.requires_range(wrapped, x.shape[axis])
        shape = (*x.shape[:axis], index.size, *x.shape[axis + 1:])
        filled = g.expand(g.cast(value, x.dtype) if isinstance(value, Value) else g.constant(value, x.dtype), shape)
        return self._put(x, filled, self._index_along(wrapped, axis, x.ndim), axis, False)

    def scatter_reduce(self, x: Value, index: Value, src: Value, dim: int, reduce: str,
                       include_self: bool = True) -> Value:
        return self._scatter_reduced(x, index, src, dim, reduce, include_self)

    def index_reduce_kernel(self, x: Value, index: Value, source: Value, dim: int, reduce: str,
                            include_self: bool = True) -> Value:
        if not x.ndim:
            raise Unsupported("a reduction into no dimensions")
        along = self._index_along(index, wrap_dim(dim, x.ndim), x.ndim)
        return self._scatter_reduced(x, self.graph.expand(along, source.shape), source, dim, reduce, include_self)

    def _scatter_reduced(self, x: Value, index: Value, src: Value, dim: int, reduce: str, include_self: bool) -> Value:
        g = self.graph
        axis = wrap_dim(dim, max(x.ndim, 1))
        self._checked_index(index)
        if not x.ndim or x.dtype.kind not in "iuf" or x.dtype != src.dtype:
            raise Unsupported(f"a reduction of {x.dtype} at indices, or into no dimensions")
        self.requires_range(index, x.shape[axis])
        narrow = x.dtype if x.dtype.itemsize < 4 and x.dtype.kind == "f" else None
        if narrow is not None:
            x, src = g.cast(x, FLOAT32), g.cast(src, FLOAT32)
        src = self._leading(src, index.shape)
        # the positions that have an index at all: the leading ones in the other dimensions
        reached = tuple(n if d == axis else index.shape[d] for d, n in enumerate(x.shape))
        part = self._leading(x, reached)
        combined = _scatter_by(_OPERATIONS[reduce], src, index, reached, axis)
        count = scatter_add(g.expand(g.constant(1, INT64), index.shape), index, reached, axis)
        is_written = g.apply("gt", count, 0)
        if include_self:
            op = _OPERATIONS[reduce]
            combined = g.apply(op, part, combined)
            count = count + 1
        if reduce == "mean":
            least = g.apply("maximum", count, 1)
            if x.dtype.kind == "f":
                combined = combined / g.cast(least, x.dtype)
            else:
                combined = g.cast(self.floor_divide(g.cast(combined, INT64), least), x.dtype)
        part = g.select(is_written, combined, part)
        if part.shape != x.shape:
            x = g.assemble(x.shape, x, [part], [(algebra.dense_strides(x.shape), 0)])
        else:
            x = part
        return x if narrow is None else g.cast(x, narrow)

    def scatter(self, x: Value, index: Value, src: Any, dim: int) -> Value:
        """Also of an index that is smaller than the array in other dimensions."""
        return self._in_reach(super().scatter, x, index, src, dim)

    def scatter_add(self, x: Value, index: Value, src: Value, dim: int) -> Value:
        """Also of an index that is smaller than the array in other dimensions."""
        return self._in_reach(super().scatter_add, x, index, src, dim)

    def _in_reach(self, scatter: Callable[..., Value], x: Value, index: Value, src: Any, dim: int) -> Value:
        """A scatter into the leading part of the array that the index reaches; the rest is kept."""
        g = self.graph
        axis = wrap_dim(dim, max(x.ndim, 1))
        self._checked_index(index)
        if not x.ndim:
            raise Unsupported("a scatter into no dimensions")
        reached = tuple(n if d == axis else index.shape[d] for d, n in enumerate(x.shape))
        if reached == x.shape:
            return scatter(x, index, src, dim)
        part = scatter(g.copy(self._leading(x, reached)), index, src, dim)
        return g.assemble(x.shape, x, [part], [(algebra.dense_strides(x.shape), 0)])

    def add_at_flat_positions(self, x: Value, positions: Any, size: Any) -> Value:
        """Zeros of a shape with the elements added at flat positions; those of -1 are skipped."""
        g = self.graph
        total = math.prod(size)
        places = positions if isinstance(positions, Value) else g.constant(np.asarray(positions, np.int64))
        if not places.size:
            return g.expand(g.constant(0, x.dtype), tuple(size))
        flat, values = g.reshape(places, (places.size,)), g.reshape(x, (places.size,))
        is_kept = g.apply("ge", flat, 0)
        self.requires_range(flat, total, -1)
        values = g.select(is_kept, values, g.constant(0, x.dtype))
        return g.reshape(scatter_add(values, g.apply("maximum", flat, 0), (total,), 0), tuple(size))


__all__ = ["Scattering"]
