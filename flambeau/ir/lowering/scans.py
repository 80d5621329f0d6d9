"""Scans as values: running sums, products, extrema and recurrences along a dimension, by kernels of their own.

Part of the namespace that operators' declarations run over (`Namespace`); named as NumPy's side names them.
"""

from __future__ import annotations

from typing import Any

from ...runtime.launch import Launch, Spec
from ...shapes import wrap_dim
from ..graph import view_algebra as algebra
from ..graph.extern_kernels import ExternKernel
from ..graph.value import INT64, Graph, Unsupported, Value

FLOATS = ("float32", "float64")


def _family(outputs: list[Spec], inputs: list[Spec], scan: str, dim: int, back: bool) -> list[Launch]:
    from ...backends.compiled.families.scans import scan_of

    return scan_of(scan, inputs[0].dtype).launches(outputs, inputs, dim, back)


class Scans:
    """Functions of the namespace over a graph's values."""

    graph: Graph

    def _scanned(self, scan: str, values: list[Value], dim: int, back: bool = False) -> list[Value]:
        x = values[0]
        if x.dtype.name not in FLOATS or not x.size or not x.ndim:
            raise Unsupported(f"a scan of {x.dtype}, or of nothing")
        outputs = [(x.shape, x.dtype), (x.shape, INT64)][:2 if scan in ("max", "min") else 1]
        native = ExternKernel("scan", _family, {"scan": scan, "dim": wrap_dim(dim, x.ndim), "back": back})
        return self.graph.extern(native, values, outputs)

    def _cast_to(self, x: Value, dtype: Any) -> Value:
        return x if dtype is None else self.graph.cast(x, dtype.numpy)

    def cumsum(self, x: Value, dim: int, dtype: Any = None) -> Value:
        return self._scanned("add", [self._cast_to(x, dtype)], dim)[0]

    def cumprod(self, x: Value, dim: int, dtype: Any = None) -> Value:
        return self._scanned("mul", [self._cast_to(x, dtype)], dim)[0]

    def _cumsum_backward(self, g: Value, dim: int) -> Value:
        return g if not g.ndim else self._scanned("add", [g], dim, True)[0]

    def cummax(self, x: Value, dim: int) -> tuple[Value, ...]:
        return tuple(self._scanned("max", [x], dim))

    def cummin(self, x: Value, dim: int) -> tuple[Value, ...]:
        return tuple(self._scanned("min", [x], dim))

    def logcumsumexp(self, x: Value, dim: int) -> Value:
        return self._scanned("logarithms", [x], dim)[0]

    def _recurrence(self, x: Value, factor: Value, dim: int, reverse: bool = False) -> Value:
        if factor.dtype != x.dtype:
            raise Unsupported(f"a recurrence of {x.dtype} and {factor.dtype}")
        return self._scanned("recurrence", [x, self.graph.expand(factor, x.shape)], dim, reverse)[0]

    def _shift_along(self, x: Value, dim: int, by: int, edge: bool = False) -> Value:
        """Each element's neighbour, before it (`by` 1) or behind; zeros, or the element itself, where there is none."""
        g = self.graph
        if not x.ndim:
            return x if edge else g.constant(0, x.dtype)
        axis, rows = wrap_dim(dim, x.ndim), algebra.dense_strides(x.shape)
        n = x.shape[axis]
        if n < 2:
            return x if edge else g.expand(g.constant(0, x.dtype), x.shape)
        part = g.slice(x, axis, 0 if by > 0 else 1, n - 1)
        return g.assemble(x.shape, x if edge else g.constant(0, x.dtype), [part],
                          [(rows, rows[axis] if by > 0 else 0)])

    def _exclusive_cumprod(self, x: Value, dim: int, reverse: bool = False) -> Value:
        g = self.graph
        one = g.constant(1, x.dtype)
        if not x.ndim:
            return one
        axis = wrap_dim(dim, x.ndim)
        n = x.shape[axis]
        if n < 2:
            return g.expand(one, x.shape)
        part = self._scanned("mul", [g.slice(x, axis, 1 if reverse else 0, n - 1)], axis, reverse)[0]
        rows = algebra.dense_strides(x.shape)
        return g.assemble(x.shape, one, [part], [(rows, 0 if reverse else rows[axis])])

    def _cumprod_backward(self, grad: Value, x: Value, out: Value, dim: int) -> Value:
        if not x.ndim:
            return grad
        total = self._recurrence(grad, self._shift_along(x, dim, -1), dim, True)
        return self._exclusive_cumprod(x, dim) * total


__all__ = ["Scans"]
