"""Elementwise primitives and reductions that the CPU computes by NumPy, over IR values of a device's program."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....shapes import wrap_dims
from ...graph.value import BOOL, FLOAT32, INT64, Graph, Unsupported, Value


class DeviceElementwise:
    """Divisions, signs, counts and products of vectors."""

    graph: Graph

    # ----- division -----

    def floor_divide(self, x: Any, y: Any) -> Value:
        g = self.graph
        x, y = g.operands([x, y])
        if x.dtype.kind != "f":
            quotient = self._integer_quotient(x, y)
            if x.dtype.kind == "u":
                return quotient
            rest = g.apply("sub", x, g.apply("mul", quotient, y))
            negative = g.apply("xor", g.apply("lt", rest, 0), g.apply("lt", y, 0))
            below = g.apply("and", g.apply("ne", rest, 0), negative)
            return g.apply("sub", quotient, g.cast(below, x.dtype))
        left = g.apply("fmod", x, y)
        quotient = g.apply("div", g.apply("sub", x, left), y)
        other = g.apply("xor", g.apply("lt", y, 0.0), g.apply("lt", left, 0.0))
        quotient = g.select(g.apply("and", g.apply("ne", left, 0.0), other), g.apply("sub", quotient, 1.0), quotient)
        floor = g.apply("floor", quotient)
        floor = g.select(g.apply("gt", g.apply("sub", quotient, floor), 0.5), g.apply("add", floor, 1.0), floor)
        ratio = g.apply("div", x, y)
        floor = g.select(g.apply("eq", quotient, 0.0), g.apply("copysign", g.constant(0.0, x.dtype), ratio), floor)
        return g.select(g.apply("eq", y, 0.0), ratio, floor)

    def trunc_divide(self, x: Any, y: Any) -> Value:
        x, y = self.graph.operands([x, y])
        if x.dtype.kind != "f":
            return self._integer_quotient(x, y)
        return self.graph.apply("trunc", self.graph.apply("div", x, y))

    def trunc_divide_narrow(self, x: Any, y: Any) -> Value:
        quotient = self.graph.cast(self.graph.apply("div", x, y), x.dtype)
        return self.graph.cast(self.graph.apply("trunc", quotient), x.dtype)

    def _integer_quotient(self, x: Value, y: Value) -> Value:
        """x / y of integers, truncated; 0 for a divisor of 0."""
        if x.dtype.kind == "b":
            raise Unsupported("a quotient of bool")
        shape, args = self.graph.broadcast([x, y])
        return self.graph.make("div", tuple(args), None, shape, x.dtype)

    def fmod(self, x: Any, y: Any) -> Value:
        g = self.graph
        x, y = g.operands([x, y])
        if x.dtype.kind == "f":
            return g.apply("fmod", x, y)
        return g.apply("sub", x, g.apply("mul", self._integer_quotient(x, y), y))

    def remainder(self, x: Any, y: Any) -> Value:
        g = self.graph
        x, y = g.operands([x, y])
        if x.dtype.kind == "f":
            return g.apply("remainder", x, y)
        return g.apply("sub", x, g.apply("mul", self.floor_divide(x, y), y))

    # ----- signs and parts -----

    def signbit(self, x: Value) -> Value:
        if x.dtype.kind != "f":
            return self.graph.apply("lt", x, 0) if x.dtype.kind == "i" else self.graph.expand(
                self.graph.constant(False, BOOL), x.shape)
        return self.graph.apply("lt", self.graph.apply("copysign", self.graph.constant(1.0, x.dtype), x), 0.0)

    def sign(self, x: Value) -> Value:
        g = self.graph
        if x.dtype.kind == "b":
            return x
        zero = g.constant(0, x.dtype)
        positive = g.cast(g.apply("gt", x, zero), x.dtype)
        return positive if x.dtype.kind == "u" else g.apply("sub", positive, g.cast(g.apply("lt", x, zero), x.dtype))

    sgn = sign

    def angle(self, x: Value) -> Value:
        g = self.graph
        return g.select(g.apply("lt", x, 0.0), math.pi, g.select(g.apply("ne", x, x), x, g.constant(0.0, x.dtype)))

    def isreal(self, x: Value) -> Value:
        return self.graph.expand(self.graph.constant(True, BOOL), x.shape)

    def logaddexp2(self, x: Any, y: Any) -> Value:
        g = self.graph
        x, y = g.operands([x, y])
        larger = g.apply("maximum", x, y)
        gap = g.apply("neg", g.apply("abs", g.apply("sub", x, y)))
        more = g.apply("mul", g.apply("log1p", g.apply("exp2", gap)), 1 / math.log(2))
        return g.select(g.apply("eq", x, y), g.apply("add", larger, 1.0), g.apply("add", larger, more))

    def pow_scalar(self, x: Value, exponent: Any) -> Value:
        if x.dtype.kind in "iu" and isinstance(exponent, int) and exponent >= 0:
            return self._integer_power(x, exponent)
        return super().pow_scalar(x, exponent)  # type: ignore[misc]

    def _integer_power(self, x: Value, exponent: int) -> Value:
        """A power by squares, which wraps as PyTorch's does."""
        result, square = self.graph.expand(self.graph.constant(1, x.dtype), x.shape), x
        while exponent:
            if exponent & 1:
                result = self.graph.apply("mul", result, square)
            exponent >>= 1
            square = self.graph.apply("mul", square, square) if exponent else square
        return result

    def zeros(self, size: Any, dtype: Any = None) -> Value:
        made: Value = self.full(tuple(size), 0, dtype)  # type: ignore[attr-defined]
        return made

    def ones_like(self, x: Value, dtype: Any = None) -> Value:
        made: Value = self.full_like(x, 1, dtype)  # type: ignore[attr-defined]
        return made

    # ----- reductions -----

    def aminmax(self, x: Value, dim: Any = None, keepdim: bool = False) -> tuple[Value, Value]:
        return self.amin(x, dim, keepdim), self.amax(x, dim, keepdim)  # type: ignore[attr-defined]

    def count_nonzero(self, x: Value, dim: Any = None) -> Value:
        counted = self.graph.cast(self.graph.apply("ne", x, self.graph.constant(0, x.dtype)), INT64)
        result: Value = self.sum(counted, dim)  # type: ignore[attr-defined]
        return result

    def nansum(self, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
        g = self.graph
        if dtype is not None:
            x = g.cast(x, dtype.numpy)
        if x.dtype.kind not in "biu":
            x = g.select(g.apply("ne", x, x), g.constant(0.0, FLOAT32 if x.dtype.kind == "V" else x.dtype), x)
        result: Value = self.sum(x, dim, keepdim)  # type: ignore[attr-defined]
        return result

    def _any_or_all(self, name: str, x: Value, dim: Any, keepdim: bool) -> Value:
        if dim == () or dim == []:
            raise Unsupported(f"{name} over no dimensions")
        truth = x if x.dtype == BOOL else self.graph.apply("ne", x, self.graph.constant(0, x.dtype))
        result: Value = self._reduce(name, truth, dim, keepdim)  # type: ignore[attr-defined]
        return self.graph.cast(result, x.dtype) if x.dtype == np.uint8 else result

    def sum_to_size(self, x: Value, size: Any) -> Value:
        size = tuple(size)
        lead = x.ndim - len(size)
        axes = tuple(d for d in range(x.ndim) if d < lead or (size[d - lead] == 1 and x.shape[d] != 1))
        if not axes:
            return self.graph.reshape(x, size)
        whole = x if x.dtype.kind not in "biu" else self.graph.cast(x, INT64)
        return self.graph.cast(self.graph.reshape(self.graph.reduce("sum", whole, axes), size), x.dtype)

    def dist(self, x: Value, y: Value, p: Any = 2) -> Value:
        result: Value = self.linalg_vector_norm(x - y, p)  # type: ignore[attr-defined]
        return result

    # ----- products of vectors and matrices -----

    def cross(self, x: Value, y: Value, dim: int) -> Value:
        g, shape = self.graph, self.graph.broadcast([x, y])[0]
        if not x.ndim or x.ndim != y.ndim:
            raise Unsupported("a cross product of no dimensions")
        [axis] = wrap_dims((dim,), x.ndim)
        if x.shape[axis] != 3 or y.shape[axis] != 3:
            raise Unsupported("a cross product of vectors of another length")
        x, y = g.expand(x, shape), g.expand(y, shape)

        def rolled(value: Value, by: int) -> Value:
            parts = [g.slice(value, axis, (i + by) % 3, 1) for i in range(3)]
            return g.cat(parts, axis)

        return rolled(x, 1) * rolled(y, 2) - rolled(x, 2) * rolled(y, 1)

    def _factor(self, x: Value, factor: Any) -> Value:
        """The value times a number; the number's dtype is the value's."""
        if factor == 1 or factor is True:
            return x
        if isinstance(factor, float) and x.dtype.kind in "biu":
            raise Unsupported("a float as a factor of integers")
        return x * factor

    def addr(self, input: Value, x: Value, y: Value, beta: Any = 1, alpha: Any = 1) -> Value:
        g = self.graph
        if input.dtype == BOOL:
            raise Unsupported("addr of bool")
        outer = g.reshape(x, (x.size, 1)) * self._factor(y, alpha)
        return outer if beta == 0 else outer + self._factor(input, beta)

    def addbmm(self, input: Value, x: Value, y: Value, beta: Any = 1, alpha: Any = 1) -> Value:
        g, (b, n, m) = self.graph, x.shape
        left = g.reshape(g.permute(x, (1, 0, 2)), (n, b * m))
        product = self._factor(g.matmul(left, g.reshape(y, (b * m, y.shape[2]))), alpha)
        return product if beta == 0 else product + self._factor(input, beta)

    def trilinear(self, x: Value, w: Value, y: Value) -> Value:
        g, (o, i, j) = self.graph, w.shape
        maps = g.matmul(y, g.reshape(g.permute(w, (2, 0, 1)), (j, o * i)))
        found = g.matmul(g.reshape(maps, (y.shape[0], o, i)), g.reshape(x, (x.shape[0], i, 1)))
        return g.reshape(found, (x.shape[0], o))

    def cdist(self, x: Value, y: Value, p: float) -> Value:
        g = self.graph
        gap = g.apply("abs", g.apply("sub", g.unsqueeze(x, x.ndim - 1), g.unsqueeze(y, y.ndim - 2)))
        axes = (gap.ndim - 1,)
        if p == 0:
            return g.reduce("sum", g.apply("minimum", g.apply("ceil", gap), 1.0), axes)
        if p == 1:
            return g.reduce("sum", gap, axes)
        if p == math.inf:
            return g.reduce("max", gap, axes)
        if p == 2:
            return g.apply("sqrt", g.reduce("sum", gap * gap, axes))
        return g.apply("pow", g.reduce("sum", g.apply("pow", gap, float(p)), axes), 1 / p)

    def euclidean_dist(self, x: Value, y: Value) -> Value:
        g = self.graph
        squares = [g.reduce("sum", each * each, (each.ndim - 1,)) for each in (x, y)]
        total = g.apply("add", g.unsqueeze(squares[0], x.ndim - 1), g.unsqueeze(squares[1], y.ndim - 2))
        order = [*range(y.ndim - 2), y.ndim - 1, y.ndim - 2]
        return g.apply("sqrt", g.apply("maximum", total - g.matmul(x, g.permute(y, order)) * 2.0, 0.0))

    def pdist(self, x: Value, p: float) -> Value:
        n = x.shape[0]
        rows, columns = np.triu_indices(n, 1)
        if not rows.size:
            raise Unsupported("distances of one row")
        both = self.cdist(x, x, p)
        result: Value = self.take(self.graph.reshape(both, (n * n,)),  # type: ignore[attr-defined]
                                  self.graph.constant(rows * n + columns))
        return result

    def block_diag(self, *blocks: Value) -> Value:
        g = self.graph
        parts = [g.reshape(a, (1, a.size)) if a.ndim < 2 else a for a in blocks]
        if not parts or any(a.ndim > 2 or not a.size for a in parts) or len({a.dtype for a in parts}) > 1:
            raise Unsupported("blocks of no elements, or that are no matrices")
        shape = sum(a.shape[0] for a in parts), sum(a.shape[1] for a in parts)
        places, row, column = [], 0, 0
        for a in parts:
            places.append(((shape[1], 1), row * shape[1] + column))
            row, column = row + a.shape[0], column + a.shape[1]
        return g.assemble(shape, g.constant(0, parts[0].dtype), parts, places)


__all__ = ["DeviceElementwise"]
