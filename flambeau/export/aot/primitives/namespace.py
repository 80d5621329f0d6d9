"""The namespace `xp` of programs that are compiled ahead of time: no primitive of it runs in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.graph.complex_graph import ComplexGraph
from ....ir.graph.value import Value
from .distances import Distances
from .fourier import Fourier
from .grid_sampling import GridSampling
from .integers import Integers
from .linear_algebra import LinearAlgebra
from .ordering import Ordering
from .scattering import Scattering
from .windows import Windows


class AheadOfTimeNamespace(
    Fourier, Ordering, Scattering, Integers, Distances, GridSampling, LinearAlgebra, Windows
):
    """`Namespace` with more primitives, and with forwards of operators whose declarations compute with NumPy."""

    samples_grids = False

    def declared(self, op: Any) -> Callable[..., Any]:
        if op.name in ("_grid_sampler_2d", "_grid_sampler_3d"):
            return self.lower_grid_sampler
        return super().declared(op)


class CapturedGraph(ComplexGraph):
    """A graph whose constants are all different values, so that sizes for which some are equal have the same graph."""

    def make(self, op: str, args: tuple[Value, ...], attrs: Any, shape: tuple[int, ...], dtype: np.dtype) -> Value:
        """As `Graph.make`."""
        if op == "constant":
            self._interned.pop((op, args, attrs, shape, dtype), None)
        return super().make(op, args, attrs, shape, dtype)

    def matmul(self, a: Value, b: Value) -> Value:
        """As `Graph.matmul`; products of integers, which it has no kernel for, are sums of elementwise products."""
        if a.dtype != b.dtype or a.dtype.kind not in "iu" or a.shape[-1] != b.shape[-2] or not a.shape[-1]:
            return super().matmul(a, b)
        axes = (*range(b.ndim - 2), b.ndim - 1, b.ndim - 2)
        product = self.apply("mul", self.unsqueeze(a, a.ndim - 1), self.unsqueeze(self.permute(b, axes), b.ndim - 2))
        return self.cast(self.reduce("sum", product, [product.ndim - 1]), a.dtype)


def new_graph() -> CapturedGraph:
    """A graph into which operators are traced over this namespace."""
    graph = CapturedGraph()
    graph.__dict__["namespace"] = AheadOfTimeNamespace(graph)
    return graph


__all__ = ["AheadOfTimeNamespace", "CapturedGraph", "new_graph"]
