"""Scans over IR values: cumulative sums, products, extrema and linear recurrences, as extern kernels.

A mixin of the namespace that declarations are traced over (`Namespace`); primitives have the names of
`backends.numpy`.
"""

from __future__ import annotations

from typing import Any

from ...runtime.launch import Launch, Spec
from ...shapes import wrap_dim
from ..graph import view_algebra as algebra
from ..graph.extern_kernels import ExternKernel
from ..graph.value import INT64, Graph, Unsupported, Value

FLOATS = ("float32", "float64")


def _scan_launches(outputs: list[Spec], inputs: list[Spec], scan: str, dim: int, back: bool) -> list[Launch]:
    from ...backends.compiled.families.scans import scan_of

    return scan_of(scan, inputs[0].dtype).launches(outputs, inputs, dim, back)


class Scans:
    """Scan primitives of the namespace."""

    graph: Graph

    def _scan(self, scan: str, values: list[Value], dim: int, back: bool = False) -> list[Value]:
        x = values[0]
        if x.dtype.name not in FLOATS or not x.size or not x.ndim:
            raise Unsupported(f"a scan of {x.dtype}, or of no elements")
        outputs = [(x.shape, x.dtype), (x.shape, INT64)][:2 if scan in ("max", "min") else 1]
        kernel = ExternKernel("scan", _scan_launches, {"scan": scan, "dim": wrap_dim(dim, x.ndim), "back": back})
        return self.graph.extern(kernel, values, outputs)

    def _cast_to(self, x: Value, dtype: Any) -> Value:
        return x if dtype is None else self.graph.cast(x, dtype.numpy)

    def cumsum(self, x: Value, dim: int, dtype: Any = None) -> Value:
        return self._scan("add", [self._cast_to(x, dtype)], dim)[0]

    def cumprod(self, x: Value, dim: int, dtype: Any = None) -> Value:
        return self._scan("mul", [self._cast_to(x, dtype)], dim)[0]

    def _cumsum_backward(self, g: Value, dim: int) -> Value:
        return g if not g.ndim else self._scan("add", [g], dim, True)[0]

    def cummax(self, x: Value, dim: int) -> tuple[Value, ...]:
        return tuple(self._scan("max", [x], dim))

    def cummin(self, x: Value, dim: int) -> tuple[Value, ...]:
        return tuple(self._scan("min", [x], dim))

    def logcumsumexp(self, x: Value, dim: int) -> Value:
        return self._scan("logarithms", [x], dim)[0]

    def _recurrence(self, x: Value, factor: Value, dim: int, reverse: bool = False) -> Value:
        if factor.dtype != x.dtype:
            raise Unsupported(f"a recurrence of {x.dtype} and {factor.dtype}")
        return self._scan("recurrence", [x, self.graph.expand(factor, x.shape)], dim, reverse)[0]

    def _shift_along(self, x: Value, dim: int, by: int, edge: bool = False) -> Value:
        """Shift by one along a dimension (`by` 1 or -1); zeros, or the edge element, where there is no neighbour."""
        g = self.graph
        if not x.ndim:
            return x if edge else g.constant(0, x.dtype)
        axis, strides = wrap_dim(dim, x.ndim), algebra.dense_strides(x.shape)
        n = x.shape[axis]
        if n < 2:
            return x if edge else g.expand(g.constant(0, x.dtype), x.shape)
        part = g.slice(x, axis, 0 if by > 0 else 1, n - 1)
        return g.assemble(x.shape, x if edge else g.constant(0, x.dtype), [part],
                          [(strides, strides[axis] if by > 0 else 0)])

    def _exclusive_cumprod(self, x: Value, dim: int, reverse: bool = False) -> Value:
        g = self.graph
        one = g.constant(1, x.dtype)
        if not x.ndim:
            return one
        axis = wrap_dim(dim, x.ndim)
        n = x.shape[axis]
        if n < 2:
            return g.expand(one, x.shape)
        part = self._scan("mul", [g.slice(x, axis, 1 if reverse else 0, n - 1)], axis, reverse)[0]
        strides = algebra.dense_strides(x.shape)
        return g.assemble(x.shape, one, [part], [(strides, 0 if reverse else strides[axis])])


__all__ = ["Scans"]
