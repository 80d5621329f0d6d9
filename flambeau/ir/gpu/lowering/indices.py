"""Gathers, scatters and advanced indices over IR values of a device's program.

A write at indices of which several may be equal keeps the last one, as on the CPU: a kernel finds for each place the
last source that is written there, and the elements are gathered from the sources.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....codegen.gpu.sorting import prefix
from ....dtypes import NARROW
from ....shapes import broadcast_shapes, wrap_dim
from ...graph.value import BOOL, FLOAT32, INT64, Unsupported, Value
from ..device_kernels import device_kernel
from .ranges import Ranges


class DeviceIndexing(Ranges):
    """Primitives that take indices."""

    # ----- gathers -----

    def _gather_rows(self, x: Value, index: Value) -> Value:
        width = math.prod(x.shape[1:])
        result = self.taken(self.graph.reshape(x, (x.shape[0], width)), self.graph.reshape(index, (index.size, 1)),
                            (index.size, width), 0)
        return self.graph.reshape(result, (*index.shape, *x.shape[1:]))

    def gather(self, x: Value, index: Value, dim: int, sparse_grad: bool = False) -> Value:
        self._checked_index(index)
        if not x.ndim or not index.ndim:
            flat = self.taken(self.graph.reshape(x, (x.size,)), self.graph.reshape(index, (index.size,)),
                              (index.size,), 0)
            return self.graph.reshape(flat, index.shape)
        axis = wrap_dim(dim, x.ndim)
        if index.ndim != x.ndim or any(n > m for d, (n, m) in enumerate(zip(index.shape, x.shape, strict=True))
                                       if d != axis):
            raise Unsupported("a gather whose index is larger than the array")
        part = x
        for d, n in enumerate(index.shape):
            if d != axis:
                part = self.graph.slice(part, d, 0, n)
        return self.taken(part, index, index.shape, axis)

    def index_select(self, x: Value, index: Value, dim: int) -> Value:
        self._checked_index(index)
        if index.ndim > 1:
            raise Unsupported("an index that is no vector")
        if not x.ndim:
            if index.size != 1:
                raise Unsupported("several elements of a scalar")
            return self.graph.reshape(self.taken(self.graph.reshape(x, (1,)), self.graph.reshape(index, (1,)), (1,),
                                                 0), ())
        axis = wrap_dim(dim, x.ndim)
        shape = (*x.shape[:axis], index.size, *x.shape[axis + 1:])
        return self.taken(x, self._along(index, axis, x.ndim), shape, axis)

    def _along(self, index: Value, axis: int, ndim: int) -> Value:
        return self.graph.reshape(index, (1,) * axis + (index.size,) + (1,) * (ndim - 1 - axis))

    def take(self, x: Value, index: Value) -> Value:
        if index.op == "constant":  # of the declarations: in range
            from ...lowering.indexed_kernels import take as gather

            flat = self.graph.reshape(index, (index.size,))
            return self.graph.reshape(gather(self.graph.reshape(x, (x.size,)), flat, (index.size,), 0), index.shape)
        if index.dtype != INT64 or not index.size or not x.size:
            raise Unsupported("an index of this dtype or shape")
        found = self.taken(self.graph.reshape(x, (x.size,)), self.graph.reshape(index, (index.size,)), (index.size,),
                           0, True)
        return self.graph.reshape(found, index.shape)

    def gather_planes(self, x: Value, index: Value, dims: int) -> Value:
        lead = math.prod(x.shape[:x.ndim - dims])
        rows = self.graph.reshape(x, (lead, x.size // lead))
        index_rows = self.graph.reshape(index, (lead, index.size // lead))
        return self.graph.reshape(self.taken(rows, index_rows, index_rows.shape, 1), index.shape)

    # ----- sums at indices -----

    def _sums(self, source: Value, index: Value, shape: tuple[int, ...], dim: int, wraps: bool = False) -> Value:
        """Sums at indices along a dimension; of narrow floats in float32, which is not rounded."""
        if source.dtype.kind == "b":
            raise Unsupported("sums of bool")
        if source.dtype.kind in "iu" and source.dtype.itemsize < 4:
            wide = self.scattered(self.graph.cast(source, np.dtype(np.int32)), index, shape, dim, "add", wraps)
            return self.graph.cast(wide, source.dtype)
        if source.dtype in NARROW:
            source = self.graph.cast(source, FLOAT32)
        return self.scattered(self.graph.copy(source), index, shape, dim, "add", wraps)

    def _added(self, x: Value, sums: Value) -> Value:
        """An array and sums, of which those of narrow floats are wider, in the array's dtype."""
        wide = self.graph.apply("add", self.graph.cast(x, sums.dtype), sums)
        return self.graph.cast(wide, x.dtype)

    def add_rows(self, g: Value, indices: Value, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Value:
        index = self._checked_index(indices)
        values = self._zero_padding_rows(g, index, padding_idx, scale_grad_by_freq)  # type: ignore[attr-defined]
        rest = g.shape[index.ndim:]
        width = math.prod(rest)
        result = self._sums(self.graph.reshape(values, (index.size, width)), self.graph.reshape(
            index, (index.size, 1)), (rows, width), 0)
        return self.graph.cast(self.graph.reshape(result, (rows, *rest)), g.dtype)

    def scatter_add(self, x: Value, index: Value, src: Value, dim: int) -> Value:
        part, index, axis, whole = self._scatter_operands(x, index, src, dim)
        sums = self._sums(part, index, self._reached(whole, index, axis), axis)
        return self.graph.reshape(self._added(whole, self._padded(sums, whole.shape)), x.shape)

    def _scatter_operands(self, x: Value, index: Value, src: Any, dim: int) -> tuple[Value, Value, int, Value]:
        """Source, index, axis and array of a scatter, of one dimension at least; sources are cut to the index."""
        self._checked_index(index)
        graph = self.graph
        axis = wrap_dim(dim, max(x.ndim, 1))
        whole = graph.reshape(x, (1,)) if not x.ndim else x
        index = graph.reshape(index, (index.size,)) if not index.ndim else index
        if isinstance(src, Value) and src.ndim:
            part = src
        else:
            value = src if isinstance(src, Value) else graph.constant(src, x.dtype)
            part = graph.expand(graph.reshape(value, (1,) * index.ndim), index.shape)
        if index.ndim != whole.ndim or part.ndim != index.ndim or any(n > m for n, m in zip(
                index.shape, part.shape, strict=True)) or any(n > m for d, (n, m) in enumerate(zip(
                    index.shape, whole.shape, strict=True)) if d != axis):
            raise Unsupported("a scatter whose index is larger than the array or the source")
        for d, n in enumerate(index.shape):
            part = graph.slice(part, d, 0, n)
        return graph.cast(part, x.dtype), index, axis, whole

    @staticmethod
    def _reached(x: Value, index: Value, axis: int) -> tuple[int, ...]:
        """The shape of the part of an array that an index reaches."""
        return tuple(x.shape[d] if d == axis else n for d, n in enumerate(index.shape))

    def _padded(self, x: Value, shape: tuple[int, ...]) -> Value:
        """The value in the first places of zeros of a shape."""
        if x.shape == shape:
            return x
        strides = [math.prod(shape[d + 1:]) for d in range(len(shape))]
        return self.graph.assemble(shape, self.graph.constant(0, x.dtype), [x], [(tuple(strides), 0)])

    def index_add(self, x: Value, index: Value, source: Value, dim: int, alpha: Any = 1) -> Value:
        index, axis, whole, part = self._slices(x, index, source, dim)
        wide = part
        if alpha != 1:
            wide = self.graph.cast(part, FLOAT32) * alpha if part.dtype in NARROW else part * alpha
            wide = self.graph.cast(wide, x.dtype)
        return self.graph.reshape(self._added(whole, self._sums(wide, index, whole.shape, axis)), x.shape)

    def _slices(self, x: Value, index: Value, source: Value, dim: int) -> tuple[Value, int, Value, Value]:
        """Index, axis, array and source of an operator on slices, of one dimension at least."""
        self._checked_index(index)
        axis = wrap_dim(dim, max(x.ndim, 1))
        whole = self.graph.reshape(x, (1,)) if not x.ndim else x
        shape = (*whole.shape[:axis], index.size, *whole.shape[axis + 1:])
        if source.shape != shape and source.size == index.size == 1 == whole.size:
            source = self.graph.reshape(source, shape)
        if index.ndim > 1 or source.shape != shape or source.dtype != x.dtype:
            raise Unsupported("an index of this dtype or shape")
        return self._along(index, axis, whole.ndim), axis, whole, source

    # ----- writes at indices -----

    def _last_writers(self, index: Value, count: int, wraps: bool) -> Value:
        """For each of `count` places the last element of an index that names it; -1 where none does."""
        flat = self.graph.reshape(index, (index.size,))
        if self.asserted is None:
            flat = self._from_start(flat, count) if wraps else flat
            self.requires_range(flat, count)
        inputs = [flat] if self.asserted is None else [flat, self.asserted]
        return device_kernel("last_writers", inputs, [((count,), INT64)], wraps=wraps)[0]

    def scatter(self, x: Value, index: Value, src: Any, dim: int) -> Value:
        part, index, axis, whole = self._scatter_operands(x, index, src, dim)
        graph = self.graph
        reached = self._reached(whole, index, axis)
        self.requires_range(index, whole.shape[axis])
        places = self._linear(index, reached, axis)
        writer = self._last_writers(places, math.prod(reached), False)
        written = self._written(writer, graph.reshape(graph.copy(part), (part.size,)), reached)
        old = whole
        for d, n in enumerate(reached):
            old = graph.slice(old, d, 0, n)
        new = graph.select(graph.reshape(graph.apply("ge", writer, 0), reached), written, old)
        return graph.reshape(self._over(whole, new), x.shape)

    def _over(self, x: Value, part: Value) -> Value:
        """An array with its first elements of each dimension replaced."""
        if part.shape == x.shape:
            return part
        strides = [math.prod(x.shape[d + 1:]) for d in range(x.ndim)]
        return self.graph.assemble(x.shape, x, [self.graph.cast(part, x.dtype)], [(tuple(strides), 0)])

    def _linear(self, index: Value, shape: tuple[int, ...], axis: int) -> Value:
        """The places in an array of a shape that an index along an axis names; those of wrong indices are outside."""
        graph, total = self.graph, self.graph.cast(index, INT64)
        inside = graph.apply("and", graph.apply("ge", total, 0), graph.apply("lt", total, shape[axis]))
        place: Value | None = None
        for d in range(len(shape)):
            step = math.prod(shape[d + 1:])
            if d == axis:
                term = total * step
            else:
                own = graph.constant(np.arange(index.shape[d]) * step)
                term = graph.reshape(own, (1,) * d + (index.shape[d],) + (1,) * (len(shape) - d - 1))
            place = term if place is None else graph.apply("add", place, term)
        assert place is not None
        return graph.select(inside, graph.expand(place, index.shape), graph.constant(-1, INT64))

    def _written(self, writer: Value, sources: Value, shape: tuple[int, ...]) -> Value:
        """The elements of a vector that writers name."""
        from ...lowering.indexed_kernels import take as gather

        at = self.graph.apply("maximum", writer, 0)
        return self.graph.reshape(gather(sources, at, writer.shape, 0), shape)

    def _replace_slices(self, x: Value, index: Value, source: Value, axis: int, wraps: bool) -> Value:
        """The slices along an axis at an index replaced by those of a source."""
        from ...lowering.indexed_kernels import take as gather

        graph = self.graph
        writer = self._last_writers(index, x.shape[axis], wraps)
        along = self._along(writer, axis, x.ndim)
        source = graph.expand(source, (*x.shape[:axis], index.size, *x.shape[axis + 1:]))
        found = gather(source, graph.apply("maximum", along, 0), x.shape, axis)
        return graph.select(graph.expand(graph.apply("ge", along, 0), x.shape), found, x)

    def index_copy(self, x: Value, index: Value, source: Value, dim: int) -> Value:
        if index.dtype != INT64:
            raise Unsupported("an index of this dtype")
        index, axis, whole, part = self._slices(x, index, source, dim)
        return self.graph.reshape(self._replace_slices(whole, index, part, axis, False), x.shape)

    def index_fill(self, x: Value, index: Value, value: Any, dim: int) -> Value:
        graph = self.graph
        if index.dtype != INT64 or not index.size or index.ndim > 1 or (
                isinstance(value, Value) and value.ndim):
            raise Unsupported("an index of this dtype or shape")
        if not isinstance(value, Value) and isinstance(value, (complex, float)) and x.dtype.kind in "biu":
            raise Unsupported("a float in an array of integers")
        axis = wrap_dim(dim, max(x.ndim, 1))
        whole = graph.reshape(x, (1,)) if not x.ndim else x
        writer = self._last_writers(index, whole.shape[axis], True)
        written = graph.expand(graph.apply("ge", self._along(writer, axis, whole.ndim), 0), whole.shape)
        filling = graph.cast(value, x.dtype) if isinstance(value, Value) else graph.constant(value, x.dtype)
        return graph.reshape(graph.select(written, filling, whole), x.shape)

    def put(self, x: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
        graph = self.graph
        if index.dtype != INT64 or source.dtype != x.dtype or index.size != source.size or not index.size or (
                not x.size):
            raise Unsupported("an index or a source of this dtype or shape")
        if self.deterministic and not accumulate:
            raise Unsupported("put_, which PyTorch has no deterministic version of")
        flat, places = graph.reshape(x, (x.size,)), graph.reshape(index, (index.size,))
        values = graph.reshape(source, (source.size,))
        if accumulate:
            result = self._added(flat, self._sums(values, places, flat.shape, 0, True))
        else:
            result = self._replace_slices(flat, places, values, 0, True)
        return graph.reshape(result, x.shape)

    # ----- x[i, j] -----

    def _advanced(self, size: Sequence[int], indices: Sequence[Any]) -> tuple[list[int], list[Value], tuple[int, ...]]:
        """The indexed dimensions, their indices, and the shape that these broadcast to."""
        given = indices[0] if len(indices) == 1 and indices[0].__class__ is list else indices
        dims = [d for d, each in enumerate(given) if each is not None]
        found = [self._checked_index(given[d]) for d in dims]
        if not dims or len(given) > len(size) or any(not size[d] for d in dims):
            raise Unsupported("no indices, or more than dimensions")
        shape: tuple[int, ...] = ()
        for each in found:
            shape = tuple(broadcast_shapes(shape, each.shape))
        return dims, found, shape

    def _places(self, size: Sequence[int], dims: list[int], indices: list[Value], shape: tuple[int, ...]
                ) -> tuple[Value, bool]:
        """The places among the indexed dimensions, and whether their kernel checks and wraps them."""
        graph = self.graph
        if len(dims) == 1:
            return graph.expand(indices[0], shape), True
        total: Value | None = None
        for d, index in zip(dims, indices, strict=True):
            wrapped = self._from_start(index, size[d])
            self.requires_range(wrapped, size[d])
            wrapped = graph.expand(wrapped, shape)
            total = wrapped if total is None else total * size[d] + wrapped
        assert total is not None
        return total, False

    def index(self, x: Value, *indices: Any) -> Value:
        dims, found, shape = self._advanced(x.shape, indices)
        rest = [d for d in range(x.ndim) if d not in dims]
        places, wraps = self._places(x.shape, dims, found, shape)
        count, graph = math.prod(shape), self.graph
        moved = graph.permute(x, [*dims, *rest])
        kept = [x.shape[d] for d in rest]
        adjacent = dims == list(range(dims[0], dims[-1] + 1))
        lead = dims[0] if adjacent else 0
        merged = math.prod(x.shape[d] for d in dims)
        if adjacent:  # the places stay where the dimensions were
            flat = graph.reshape(x, (*kept[:lead], merged, *kept[lead:]))
        else:
            flat = graph.reshape(moved, (merged, *kept))
        index = self._along(graph.reshape(places, (count,)), lead, flat.ndim)
        taken = self.taken(flat, index, (*kept[:lead], count, *kept[lead:]), lead, wraps)
        return graph.reshape(taken, (*kept[:lead], *shape, *kept[lead:]))

    def _flat_values(self, values: Value, kept: list[int], lead: int, shape: tuple[int, ...]) -> Value:
        """Values that broadcast to what indices name, of shape (kept..., places, kept...)."""
        whole = (*kept[:lead], *shape, *kept[lead:])
        if values.ndim > len(whole):
            raise Unsupported("values of more dimensions than what is indexed")
        return self.graph.reshape(self.graph.expand(values, whole), (*kept[:lead], math.prod(shape), *kept[lead:]))

    def index_put(self, x: Value, values: Value, *indices: Any, accumulate: bool = False) -> Value:
        dims, found, shape = self._advanced(x.shape, indices)
        if values.dtype != x.dtype:
            raise Unsupported("values of another dtype")
        rest = [d for d in range(x.ndim) if d not in dims]
        graph, kept = self.graph, [x.shape[d] for d in rest]
        adjacent = dims == list(range(dims[0], dims[-1] + 1))
        lead = dims[0] if adjacent else 0
        order = list(range(x.ndim)) if adjacent else [*dims, *rest]
        merged = math.prod(x.shape[d] for d in dims)
        moved = graph.permute(x, order)
        flat = graph.reshape(moved, (*kept[:lead], merged, *kept[lead:]))
        places, wraps = self._places(x.shape, dims, found, shape)
        count = math.prod(shape)
        source = self._flat_values(values, kept, lead, shape)
        if accumulate:
            index = self._along(graph.reshape(places, (count,)), lead, flat.ndim)
            result = self._added(flat, self._sums(source, index, flat.shape, lead, wraps))
        else:
            result = self._replace_slices(flat, graph.reshape(places, (count,)), source, lead, wraps)
        back = [order.index(d) for d in range(x.ndim)]
        return graph.permute(graph.reshape(result, [x.shape[d] for d in order]), back)

    def add_at_indices(self, x: Value, *indices: Any, size: Any) -> Value:
        zeros = self.graph.expand(self.graph.constant(0, x.dtype), tuple(size))
        return self.index_put(zeros, x, *indices, accumulate=True)

    # ----- masks -----

    def counted(self, mask: Value) -> tuple[Value, Value]:
        """The number of true elements before each tile of a mask that is no view, and the number of all."""
        sums, number = device_kernel("count_true", [mask], [((prefix.tiles_of(mask.size),), INT64), ((1,), INT64)])
        return sums, number

    def _ranks(self, mask: Value) -> tuple[Value, Value]:
        """For each element the number of true ones before it, and the number of all true ones."""
        dense = self.graph.copy(mask)
        sums, number = self.counted(dense)
        return device_kernel("ranks", [dense, sums], [(mask.shape, INT64)])[0], number

    def masked_scatter(self, x: Value, mask: Value, source: Value) -> Value:
        from ...lowering.indexed_kernels import take as gather

        graph = self.graph
        if mask.dtype != BOOL or source.dtype != x.dtype or not source.size:
            raise Unsupported("a mask or a source of this dtype or shape")
        shape, (mask, x) = graph.broadcast([mask, x])
        mask, x = graph.expand(mask, shape), graph.expand(x, shape)
        if not shape:
            mask, x = graph.reshape(mask, (1,)), graph.reshape(x, (1,))
        rank, number = self._ranks(mask)
        self.requires_range(number, source.size + 1)
        at = graph.apply("minimum", graph.reshape(rank, (rank.size,)), source.size - 1)
        found = gather(graph.reshape(source, (source.size,)), at, (at.size,), 0)
        return graph.reshape(graph.select(mask, graph.reshape(found, mask.shape), x), shape)

    def masked_scatter_gradient(self, g: Value, mask: Value, size: Any) -> Value:
        graph, count = self.graph, math.prod(size)
        mask = graph.expand(mask, g.shape)
        if not g.ndim or not count:
            raise Unsupported("a gradient of no dimensions or elements")
        rank, _ = self._ranks(mask)
        inside = graph.apply("and", mask, graph.apply("lt", rank, count))
        at = graph.select(inside, rank, graph.constant(-1, INT64))
        writer = device_kernel("last_writers", [graph.reshape(at, (at.size,))], [((count,), INT64)], wraps=False)[0]
        found = self._written(writer, graph.reshape(graph.copy(g), (g.size,)), (count,))
        zero = graph.constant(0, g.dtype)
        return graph.reshape(graph.select(graph.apply("ge", writer, 0), found, zero), tuple(size))


__all__ = ["DeviceIndexing"]
