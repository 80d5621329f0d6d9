"""Factorizations and solutions of linear systems over IR values."""

from __future__ import annotations

from math import prod

import numpy as np

from ....ir.graph.extern_kernels import ExternKernel
from ....ir.graph.value import INT64, Unsupported, Value
from ....ir.lowering.indexed_kernels import take
from ....ir.lowering.namespace import Namespace
from ....runtime.launch import Launch, Spec
from ....shapes import broadcast_shapes

INT32 = np.dtype(np.int32)


def _cholesky_launches(outputs: list[Spec], inputs: list[Spec]) -> list[Launch]:
    from ....codegen.linalg import elimination

    return elimination.cholesky(*outputs, *inputs)


def _lu_launches(outputs: list[Spec], inputs: list[Spec]) -> list[Launch]:
    from ....codegen.linalg import elimination

    return elimination.lu(*outputs, *inputs)


def _substitution_launches(outputs: list[Spec], inputs: list[Spec], upper: bool, unit: bool) -> list[Launch]:
    from ....codegen.linalg import elimination

    return elimination.substitute(*outputs, *inputs, upper=upper, unit=unit)


class LinearAlgebra(Namespace):
    """Primitives of `torch.linalg` that have kernels."""

    def _matrices(self, a: Value) -> Value:
        """The matrices as (batch, m, n), row-major."""
        if a.ndim < 2 or not a.size or a.dtype.name not in ("float32", "float64"):
            raise Unsupported(f"matrices of {a.dtype}, or without elements")
        return self.graph.reshape(self.graph.copy(a), (prod(a.shape[:-2]), *a.shape[-2:]))

    def _transposed(self, a: Value) -> Value:
        return self.graph.permute(a, [*range(a.ndim - 2), a.ndim - 1, a.ndim - 2])

    def trilinear(self, x: Value, w: Value, y: Value) -> Value:
        """out[b, o] = Σ x[b, i] · w[o, i, j] · y[b, j]."""
        g, (o, i, j) = self.graph, w.shape
        maps = g.matmul(y, g.reshape(g.permute(w, (2, 0, 1)), (j, o * i)))
        return g.reduce("sum", g.reshape(maps, (y.shape[0], o, i)) * g.unsqueeze(x, 1), (2,))

    def cholesky(self, a: Value, upper: bool = False) -> tuple[Value, Value]:
        g = self.graph
        if upper:
            lower, info = self.cholesky(self._transposed(a))
            return self._transposed(lower), info
        flat = self._matrices(a)
        kernel = ExternKernel("cholesky", _cholesky_launches, {})
        lower, info = g.extern(kernel, [flat], [(flat.shape, a.dtype), (flat.shape[:1], INT32)])
        return g.reshape(lower, a.shape), g.reshape(info, a.shape[:-2])

    def solve_triangular(self, a: Value, b: Value, upper: bool, left: bool, unitriangular: bool) -> Value:
        g = self.graph
        if not left:
            return self._transposed(self.solve_triangular(self._transposed(a), self._transposed(b), not upper, True,
                                                          unitriangular))
        lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        flat, right = (self._matrices(g.expand(x, (*lead, *x.shape[-2:]))) for x in (a, g.cast(b, a.dtype)))
        kernel = ExternKernel("substitute", _substitution_launches,
                              {"upper": bool(upper), "unit": bool(unitriangular)})
        [x] = g.extern(kernel, [flat, right], [(right.shape, a.dtype)])
        return g.reshape(x, (*lead, *b.shape[-2:]))

    def cholesky_solve(self, b: Value, low: Value, upper: bool = False) -> Value:
        first = self._transposed(low) if upper else low
        half = self.solve_triangular(first, b, False, True, False)
        return self.solve_triangular(self._transposed(first), half, True, True, False)

    def cholesky_inverse(self, low: Value, upper: bool = False) -> Value:
        return self.cholesky_solve(self._identity(low), low, upper)

    def _identity(self, a: Value) -> Value:
        return self.graph.expand(self.graph.constant(np.eye(a.shape[-1], dtype=a.dtype)), a.shape)

    def _factors(self, a: Value) -> tuple[Value, Value, Value, Value]:
        """L and U in one matrix, the order of rows, the sign of the permutation, and the info codes."""
        g = self.graph
        flat = self._matrices(a)
        batch, n = flat.shape[:2]
        kernel = ExternKernel("lu", _lu_launches, {})
        found = g.extern(kernel, [flat], [(flat.shape, a.dtype), ((batch, n), INT64), ((batch,), a.dtype),
                                          ((batch,), INT32)])
        shapes = (a.shape, a.shape[:-1], a.shape[:-2], a.shape[:-2])
        factors, order, parity, info = (g.reshape(x, shape) for x, shape in zip(found, shapes, strict=True))
        return factors, order, parity, info

    def solve(self, a: Value, b: Value, left: bool = True) -> tuple[Value, Value]:
        g = self.graph
        if not left:
            x, info = self.solve(self._transposed(a), self._transposed(b))
            return self._transposed(x), info
        vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])
        right = g.unsqueeze(b, b.ndim) if vector else b
        factors, order, _, info = self._factors(a)
        lead = broadcast_shapes(a.shape[:-2], right.shape[:-2])
        right = g.expand(right, (*lead, *right.shape[-2:]))
        rows = g.expand(g.unsqueeze(g.expand(order, (*lead, a.shape[-1])), len(lead) + 1), right.shape)
        moved = take(right, rows, right.shape, right.ndim - 2)
        half = self.solve_triangular(factors, moved, False, True, True)
        x = self.solve_triangular(factors, half, True, True, False)
        return (g.reshape(x, x.shape[:-1]) if vector else x), info

    def inv(self, a: Value) -> tuple[Value, Value]:
        return self.solve(a, self._identity(a))

    def _diagonal(self, a: Value) -> Value:
        n, strides = a.shape[-1], a.strides
        return self.graph.view(a, (*a.shape[:-2], n), (*strides[:-2], strides[-2] + strides[-1]), a.offset)

    def det(self, a: Value) -> Value:
        factors, _, parity, _ = self._factors(a)
        diagonal = self._diagonal(factors)
        return parity * self.graph.reduce("prod", diagonal, (diagonal.ndim - 1,))

    def slogdet(self, a: Value) -> tuple[Value, Value]:
        g = self.graph
        factors, _, parity, _ = self._factors(a)
        diagonal = self._diagonal(factors)
        axis = (diagonal.ndim - 1,)
        sign = parity * g.reduce("prod", self.sign(diagonal), axis)
        return sign, g.reduce("sum", g.apply("log", g.apply("abs", diagonal)), axis)


__all__ = ["LinearAlgebra"]
