"""Reductions at indices, windows and planes over IR values of a device's program."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....kernels.convolution import output_size as window_counts
from ...graph.value import FLOAT32, INT64, Unsupported, Value
from ..device_kernels import device_kernel
from .indices import DeviceIndexing
from .ordering import DeviceOrdering

#: reductions whose order shows, or that have no atomic operation, and their operations of scalar IR
_BY_SEGMENTS = {"prod": "mul", "amax": "maximum", "amin": "minimum"}


class DeviceReductionsAt(DeviceIndexing, DeviceOrdering):
    """Primitives that reduce elements into places, or move windows of images."""

    # ----- reductions at indices -----

    def scatter_reduce(self, x: Value, index: Value, src: Any, dim: int, reduce: str, include_self: bool = True,
                       what: str = "scatter") -> Value:
        if not isinstance(src, Value) or src.dtype != x.dtype or x.dtype.kind == "b":
            raise Unsupported("a source of another dtype")
        if reduce == "sum" and include_self:
            return self.scatter_add(x, index, src, dim)
        part, index, axis, whole = self._scatter_operands(x, index, src, dim)
        graph, reached = self.graph, self._reached(whole, index, axis)
        self.requires_range(index, whole.shape[axis])
        old = whole
        for d, n in enumerate(reached):
            old = graph.slice(old, d, 0, n)
        if reduce in _BY_SEGMENTS:
            new = self._by_segments(old, index, part, axis, _BY_SEGMENTS[reduce], include_self)
        else:
            new = self._sum_or_mean(old, index, part, axis, reduce, include_self)
        return graph.reshape(self._over(whole, new), x.shape)

    def _by_segments(self, old: Value, index: Value, source: Value, axis: int, op: str, include: bool) -> Value:
        graph, count = self.graph, index.size
        places = graph.reshape(self._linear(index, old.shape, axis), (1, count))
        keys, order = self._sorted_rows(graph.copy(places), False)
        inputs = [graph.copy(graph.reshape(each, (each.size,))) for each in (old, keys, order, source)]
        [made] = device_kernel("segments", inputs, [((old.size,), old.dtype)], op=op, include=bool(include))
        return graph.reshape(made, old.shape)

    def _sum_or_mean(self, old: Value, index: Value, source: Value, axis: int, reduce: str, include: bool) -> Value:
        graph = self.graph
        if reduce not in ("sum", "mean") or (reduce == "mean" and old.dtype.kind in "iu"):
            raise Unsupported(f"a reduction by {reduce}")
        sums = self._sums(source, index, old.shape, axis)
        ones = graph.copy(graph.expand(graph.constant(1, np.dtype(np.int32)), index.shape))
        counts = self.scattered(ones, index, old.shape, axis)
        written = graph.apply("gt", counts, 0)
        wide = graph.cast(old, sums.dtype)
        own = wide if include else graph.select(written, graph.constant(0, wide.dtype), wide)
        total = graph.apply("add", own, sums)
        if reduce == "mean":
            number = graph.apply("maximum", counts + 1 if include else counts, 1)
            total = graph.apply("div", total, graph.cast(number, total.dtype))
        return graph.cast(total, old.dtype)

    def index_reduce_kernel(self, x: Value, index: Value, source: Value, dim: int, reduce: str,
                            include_self: bool = True) -> Value:
        along, axis, whole, part = self._slices(x, index, source, dim)
        full = self.graph.expand(along, part.shape)
        result = self.scatter_reduce(whole, full, part, axis, reduce, include_self)
        return self.graph.reshape(result, x.shape)

    def count_classes(self, target: Value, scores: Value, ended: bool) -> Value:
        g, classes = self.graph, scores.shape[1]
        if not target.size:
            raise Unsupported("no targets")
        self.requires_range(target, classes, -1 if ended else None)
        is_class = g.cast(g.apply("ge", target, 0), FLOAT32)
        before_end = g.apply("gt", self.cumprod(is_class, 1), 0.0)  # type: ignore[attr-defined]
        column = g.constant(np.arange(classes, dtype=target.dtype))
        equal = g.apply("eq", g.unsqueeze(target, 2), g.reshape(column, (1, 1, classes)))
        counted = g.cast(g.apply("and", equal, g.unsqueeze(before_end, 2)), INT64)
        return g.cast(g.reduce("sum", counted, (1,)), scores.dtype)

    # ----- planes and windows -----

    def max_unpool(self, x: Value, indices: Value, output_size: Any) -> Value:
        graph, size = self.graph, tuple(output_size)
        lead = x.shape[:x.ndim - len(size)]
        rows, area = math.prod(lead), math.prod(size)
        if indices.shape != x.shape or not x.size or indices.dtype != INT64:
            raise Unsupported("indices of another shape")
        self.requires_range(indices, area)
        index = graph.reshape(indices, (rows, x.size // rows))
        places = self._linear(index, (rows, area), 1)
        writer = self._last_writers(places, rows * area, False)
        written = self._written(writer, graph.reshape(graph.copy(x), (x.size,)), (rows * area,))
        result = graph.select(graph.apply("ge", writer, 0), written, graph.constant(0, x.dtype))
        return graph.cast(graph.reshape(result, (*lead, *size)), x.dtype)

    def im2col(self, x: Value, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Value:
        graph = self.graph
        if x.ndim == 3:
            return self._without_batch(self.im2col(graph.unsqueeze(x, 0), kernel_size, dilation, padding, stride))
        n, c = x.shape[:2]
        positions = window_counts(x.shape[2:], kernel_size, stride, padding, dilation)
        if any(padding):
            pad = [p for each in reversed(padding) for p in (each, each)]
            x = self.constant_pad(x, pad, 0)  # type: ignore[attr-defined]
        else:
            x = graph.copy(x)
        batch, channel, *steps = (math.prod(x.shape[d + 1:]) for d in range(x.ndim))
        strides = (batch, channel, *(t * d for t, d in zip(steps, dilation, strict=True)),
                   *(t * s for t, s in zip(steps, stride, strict=True)))
        windows = graph.view(x, (n, c, *kernel_size, *positions), strides, 0)
        return graph.reshape(windows, (n, c * math.prod(kernel_size), math.prod(positions)))

    def _without_batch(self, x: Value) -> Value:
        return self.graph.reshape(x, x.shape[1:])

    def col2im(self, x: Value, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Value:
        graph = self.graph
        if x.ndim == 2:
            return self._without_batch(self.col2im(graph.unsqueeze(x, 0), output_size, kernel_size, dilation, padding,
                                                   stride))
        n, c = x.shape[0], x.shape[1] // math.prod(kernel_size)
        positions = window_counts(output_size, kernel_size, stride, padding, dilation)
        padded = [m + 2 * p for m, p in zip(output_size, padding, strict=True)]
        grid: Any = np.zeros((1,) * (2 * len(padded)), np.int64)  # (kernel..., positions...)
        for d, length in enumerate(padded):
            along = np.arange(kernel_size[d])[:, None] * dilation[d] + np.arange(positions[d]) * stride[d]
            shape = [1] * (2 * len(padded))
            shape[d], shape[d + len(padded)] = kernel_size[d], positions[d]
            grid = grid * length + along.reshape(shape)
        index = graph.reshape(graph.constant(np.broadcast_to(grid, (*kernel_size, *positions)).reshape(-1)), (
            1, math.prod(kernel_size) * math.prod(positions)))
        sums = self._sums(graph.reshape(x, (n * c, index.size)), index, (n * c, math.prod(padded)), 1)
        whole = graph.reshape(sums, (n, c, *padded))
        for d, (p, m) in enumerate(zip(padding, output_size, strict=True)):
            whole = graph.slice(whole, d + 2, p, m)
        return graph.cast(graph.copy(whole), x.dtype)


__all__ = ["DeviceReductionsAt"]
