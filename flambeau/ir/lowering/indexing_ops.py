"""Embedding, gather, scatter and class-index losses over IR values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...shapes import wrap_dim
from ..graph.value import BOOL, Unsupported, Value
from .data_guards import DataGuards
from .indexed_kernels import scatter_add, scatter_set, take
from .neural import NeuralOps


class IndexingOps(NeuralOps, DataGuards):
    """Primitives that take indices."""

    def _gather_rows(self, x: Value, index: Value) -> Value:
        self.requires_range(index, x.shape[0])
        width = math.prod(x.shape[1:])
        result = take(self.graph.reshape(x, (x.shape[0], width)), self.graph.reshape(index, (index.size, 1)),
                      (index.size, width), 0)
        return self.graph.reshape(result, (*index.shape, *x.shape[1:]))

    def take_rows(self, weight: Value, indices: Value) -> Value:
        return self._gather_rows(weight, self._checked_index(indices))

    def _checked_index(self, index: Any) -> Value:
        if not isinstance(index, Value) or index.dtype.kind not in "iu" or not index.size:
            raise Unsupported("an index of this dtype or shape")
        return index

    def _zero_padding_rows(self, rows: Value, indices: Value, padding_idx: int, scale_grad_by_freq: bool) -> Value:
        """Rows, zero where the index is `padding_idx`."""
        if scale_grad_by_freq:
            raise Unsupported("scale_grad_by_freq")
        if padding_idx < 0:
            return rows
        keep = self.graph.reshape(self.graph.apply("ne", indices, padding_idx), (*indices.shape, *(
            1 for _ in rows.shape[indices.ndim:])))
        return self.graph.select(keep, rows, self.graph.constant(0, rows.dtype))

    def take_weighted_rows(self, x: Value, indices: Value, padding_idx: int, scale_grad_by_freq: bool) -> Value:
        rows = self._gather_rows(x, self._checked_index(indices))
        return self._zero_padding_rows(rows, indices, padding_idx, scale_grad_by_freq)

    def add_rows(self, g: Value, indices: Value, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Value:
        index = self._checked_index(indices)
        self.requires_range(index, rows)
        values = self._zero_padding_rows(g, index, padding_idx, scale_grad_by_freq)
        rest = g.shape[index.ndim:]
        width = math.prod(rest)
        result = scatter_add(self.graph.copy(self.graph.reshape(values, (index.size, width))),
                      self.graph.reshape(index, (index.size, 1)), (rows, width), 0)
        return self.graph.reshape(result, (rows, *rest))

    def gather(self, x: Value, index: Value, dim: int, sparse_grad: bool = False) -> Value:
        axis = wrap_dim(dim, max(x.ndim, 1))
        self._checked_index(index)
        if not x.ndim or index.ndim != x.ndim:
            raise Unsupported("a gather without dimensions")
        self.requires_range(index, x.shape[axis])
        part = x
        for d, n in enumerate(index.shape):
            if d != axis:
                part = self.graph.slice(part, d, 0, n)
        return take(part, index, index.shape, axis)

    def scatter_add(self, x: Value, index: Value, src: Value, dim: int) -> Value:
        axis = self._scattered_axis(x, index, dim)
        return x + scatter_add(self._leading(src, index.shape), index, x.shape, axis)

    def scatter(self, x: Value, index: Value, src: Any, dim: int) -> Value:
        axis, graph = self._scattered_axis(x, index, dim), self.graph
        if isinstance(src, Value) and src.ndim:
            part = graph.cast(self._leading(src, index.shape), x.dtype)
        else:
            part = graph.expand(graph.cast(src, x.dtype) if isinstance(src, Value) else graph.constant(src, x.dtype),
                                index.shape)
        written = scatter_set(graph.expand(graph.constant(True, BOOL), index.shape), index, x.shape, axis)
        return graph.select(written, scatter_set(part, index, x.shape, axis), x)

    def _scattered_axis(self, x: Value, index: Value, dim: int) -> int:
        """The dimension of a scatter whose index has the shape of the array in the other dimensions."""
        axis = wrap_dim(dim, max(x.ndim, 1))
        self._checked_index(index)
        if not x.ndim or any(n != m for d, (n, m) in enumerate(zip(index.shape, x.shape, strict=True)) if d != axis):
            raise Unsupported("a scatter whose index is smaller than the array")
        self.requires_range(index, x.shape[axis])
        return axis

    def _leading(self, x: Value, shape: tuple[int, ...]) -> Value:
        """The leading elements of each dimension."""
        for d, n in enumerate(shape):
            x = self.graph.slice(x, d, 0, n)
        return x

    # ----- class-index losses -----

    def _one_hot_mask(self, x: Value, target: Value) -> tuple[Value, int]:
        """One-hot mask of the targets along the class dimension, and that dimension."""
        axis = 1 if x.ndim > 1 else 0
        trailing = (-1, *(1 for _ in x.shape[axis + 1:]))
        classes = self.graph.reshape(self.graph.constant(np.arange(x.shape[axis])), (x.shape[axis], *trailing[1:]))
        expected = self.graph.unsqueeze(target, axis) if x.ndim > 1 else self.graph.reshape(target, (1,))
        return self.graph.apply("eq", self.graph.expand(classes, x.shape), self.graph.expand(expected, x.shape)), axis

    def _target_weights(self, one_hot: Value, axis: int, target: Value, weight: Any, ignore_index: int,
                        dtype: Any) -> Value:
        """The weight of each target, zero for `ignore_index`."""
        graph = self.graph
        counted = graph.apply("ne", target, ignore_index)
        if weight is None:
            return graph.cast(counted, dtype)
        along_classes = (-1, *(1 for _ in one_hot.shape[axis + 1:]))
        zero = graph.constant(0, weight.dtype)
        by_class = graph.expand(self.reshape(weight, along_classes), one_hot.shape)
        weights = self._reduce("sum", graph.select(one_hot, by_class, zero), axis, False)
        return graph.select(counted, graph.reshape(weights, target.shape), zero)

    def nll_loss(self, x: Value, target: Value, weight: Any, reduction: str, ignore_index: int) -> Value:
        self.requires_range(target, x.shape[1 if x.ndim > 1 else 0], ignore_index)
        one_hot, axis = self._one_hot_mask(x, target)
        counts = self._target_weights(one_hot, axis, target, weight, ignore_index, x.dtype)
        zero = self.graph.constant(0, x.dtype)
        loss = self.graph.reshape(-self._reduce("sum", self.graph.select(one_hot, x, zero), axis, False), target.shape)
        if weight is not None:
            loss = loss * counts
        loss = self.graph.select(self.graph.apply("ne", target, ignore_index), loss, zero)
        if reduction == "none":
            return loss
        total = self._reduce("sum", loss, None, False)
        return total if reduction == "sum" else total / self._reduce("sum", counts, None, False)

    def nll_loss_backward(self, g: Value, target: Value, weight: Any, size: Any, reduction: str,
                      ignore_index: int) -> Value:
        graph = self.graph
        self.requires_range(target, size[1 if len(size) > 1 else 0], ignore_index)
        probe = graph.expand(graph.constant(0, g.dtype), tuple(size))
        one_hot, axis = self._one_hot_mask(probe, target)
        counts = self._target_weights(one_hot, axis, target, weight, ignore_index, g.dtype)
        value = -g
        if reduction == "mean":
            value = value / self._reduce("sum", counts, None, False)
        if weight is not None:
            value = value * counts
        value = graph.select(graph.apply("ne", target, ignore_index), value, graph.constant(0, g.dtype))
        value = graph.expand(value, target.shape)
        if probe.ndim > 1:
            value = graph.unsqueeze(value, axis)
        else:
            value = graph.reshape(value, (1,))
        return graph.select(one_hot, graph.expand(value, tuple(size)), graph.constant(0, g.dtype))


__all__ = ["IndexingOps"]
