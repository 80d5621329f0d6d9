"""Distances of pairs of rows over IR values: kernels reduce differences that are never in memory."""

from __future__ import annotations

import math

import numpy as np

from ....ir.graph.value import Value
from ....ir.lowering.indexed_kernels import take
from ....ir.lowering.namespace import Namespace
from ....shapes import broadcast_shapes


class Distances(Namespace):
    """Primitives behind `cdist` and `pdist`."""

    def _differences(self, x1: Value, x2: Value) -> Value:
        """x1[..., i, :] - x2[..., j, :]: (..., P, R, M)."""
        g = self.graph
        lead = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
        shape = (*lead, x1.shape[-2], x2.shape[-2], x1.shape[-1])
        a, b = g.unsqueeze(x1, x1.ndim - 1), g.unsqueeze(x2, x2.ndim - 2)
        return g.expand(a, shape) - g.expand(b, shape)

    def cdist(self, x1: Value, x2: Value, p: float) -> Value:
        g = self.graph
        if not x1.shape[-1]:
            return g.expand(g.constant(0, x1.dtype), (*broadcast_shapes(x1.shape[:-2], x2.shape[:-2]), x1.shape[-2],
                                                      x2.shape[-2]))
        d = self._differences(x1, x2)
        axis = (d.ndim - 1,)
        if p == 2:
            return g.apply("sqrt", g.reduce("sum", d * d, axis))
        size = g.apply("abs", d)
        if p == 0:
            return g.reduce("sum", g.cast(g.apply("ne", d, 0), d.dtype), axis)
        if p == 1:
            return g.reduce("sum", size, axis)
        if p == math.inf:
            return g.reduce("max", size, axis)
        return g.apply("pow", g.reduce("sum", g.apply("pow", size, float(p)), axis), 1 / float(p))

    def euclidean_dist(self, x1: Value, x2: Value) -> Value:
        """By one product: |a|² + |b|² - 2ab, cut off at 0."""
        g = self.graph
        a, b = (g.reduce("sum", x * x, (x.ndim - 1,)) for x in (x1, x2))
        order = [*range(x2.ndim - 2), x2.ndim - 1, x2.ndim - 2]
        product = g.matmul(x1, g.permute(x2, order))
        square = g.unsqueeze(a, a.ndim) + g.unsqueeze(b, b.ndim - 1) - product * 2
        return g.apply("sqrt", g.apply("maximum", square, 0.0))

    def pdist(self, x: Value, p: float) -> Value:
        n = x.shape[0]
        rows, columns = np.triu_indices(n, 1)
        flat = self.graph.reshape(self.cdist(x, x, p), (n * n,))
        return take(flat, self.graph.constant(rows * n + columns), (len(rows),), 0)


__all__ = ["Distances"]
