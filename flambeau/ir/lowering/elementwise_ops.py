"""Elementwise primitives and factories over IR values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ..graph.value import BOOL, FLOAT32, Graph, Unsupported, Value, logical_operand


class ElementwiseOps:
    """Elementwise primitives whose definition is more than one operation; the others are in `Namespace`."""

    graph: Graph

    def fmod(self, x: Any, y: Any) -> Value:
        return self._float("fmod", x, y)

    def remainder(self, x: Any, y: Any) -> Value:
        return self._float("remainder", x, y)

    def _float(self, op: str, *values: Any) -> Value:
        if any(isinstance(v, Value) and v.dtype.kind != "f" for v in values):
            raise Unsupported(f"{op} of integers")
        return self.graph.apply(op, *values)

    def pow(self, x: Any, y: Any) -> Value:
        if isinstance(x, Value) and not isinstance(y, Value) and not hasattr(y, "dtype"):
            return self.pow_scalar(x, y)
        return self._float("pow", x, y)

    def pow_scalar(self, x: Value, exponent: Any) -> Value:
        apply = self.graph.apply
        if exponent == 1:
            return x
        if exponent == 2:
            return apply("mul", x, x)
        if exponent == 3:
            return apply("mul", apply("mul", x, x), x)
        if x.dtype.kind != "f":
            raise Unsupported("a power of integers")
        if exponent == 0.5:
            return apply("sqrt", x)
        if exponent == -0.5:
            return apply("rsqrt", x)
        if exponent == -1:
            return apply("recip", x)
        if exponent == -2:
            return apply("recip", apply("mul", x, x))
        return apply("pow", x, float(exponent))

    def scalar_pow(self, base: Any, exponent: Value) -> Value:
        if base == 2 and exponent.dtype.kind == "f":
            return self.graph.apply("exp2", exponent)
        return self._float("pow", base, exponent)

    def where(self, condition: Any, input: Any, other: Any) -> Value:
        return self.graph.select(condition, input, other)

    def masked_fill(self, x: Value, mask: Value, value: Any) -> Value:
        return self.graph.select(mask, value, x)

    def sign(self, x: Value) -> Value:
        if x.dtype.kind != "f":
            raise Unsupported("the sign of integers")
        one = self.graph.select(x > 0, 1.0, self.graph.constant(0.0, x.dtype))
        return self.graph.select(x < 0, -1.0, one)

    sgn = sign

    def isnan(self, x: Value) -> Value:
        return self.graph.apply("ne", x, x)

    def isinf(self, x: Value) -> Value:
        return self.graph.apply("eq", self.graph.apply("abs", x), math.inf)

    def isfinite(self, x: Value) -> Value:
        return self.graph.apply("lt", self.graph.apply("abs", x), math.inf)

    def _as_bool(self, x: Any) -> Any:
        return self.graph.cast(x, BOOL) if isinstance(x, Value) else logical_operand(x)

    def logical_and(self, x: Any, y: Any) -> Value:
        return self.graph.apply("and", self._as_bool(x), self._as_bool(y))

    def logical_or(self, x: Any, y: Any) -> Value:
        return self.graph.apply("or", self._as_bool(x), self._as_bool(y))

    def logical_xor(self, x: Any, y: Any) -> Value:
        return self.graph.apply("xor", self._as_bool(x), self._as_bool(y))

    def logical_not(self, x: Any) -> Value:
        return self.graph.apply("not", self._as_bool(x))

    def bitwise_and(self, x: Any, y: Any) -> Value:
        return self.graph.apply("and", x, y)

    def bitwise_or(self, x: Any, y: Any) -> Value:
        return self.graph.apply("or", x, y)

    def bitwise_xor(self, x: Any, y: Any) -> Value:
        return self.graph.apply("xor", x, y)

    def bitwise_not(self, x: Any) -> Value:
        return self.graph.apply("not", x)

    def hypot(self, x: Any, y: Any) -> Value:
        g = self.graph
        x, y = g.operands([x, y])
        if x.dtype == FLOAT32:  # squares of float32 neither overflow nor vanish in float64
            a, b = (g.cast(each, np.dtype(np.float64)) for each in (x, y))
            result = g.cast(g.apply("sqrt", a * a + b * b), FLOAT32)
        else:
            a, b = g.apply("abs", x), g.apply("abs", y)
            larger, smaller = g.apply("maximum", a, b), g.apply("minimum", a, b)
            ratio = smaller / g.select(g.apply("eq", larger, 0), 1, larger)
            result = larger * g.apply("sqrt", 1 + ratio * ratio)
        infinite = g.apply("or", g.apply("eq", g.apply("abs", x), math.inf), g.apply("eq", g.apply("abs", y), math.inf))
        return g.select(infinite, math.inf, result)

    def logaddexp(self, x: Any, y: Any) -> Value:
        g = self.graph
        maximum = g.apply("maximum", x, y)
        difference = g.apply("neg", g.apply("abs", g.apply("sub", x, y)))
        equal = g.apply("eq", x, y)  # also where both are infinite
        return g.select(equal, g.apply("add", maximum, math.log(2)), g.apply("add", maximum, g.apply(
            "log1p", g.apply("exp", difference))))

    def lerp(self, input: Value, end: Value, weight: Any) -> Value:
        span = end - input
        if isinstance(weight, (int, float)):
            return input + weight * span if abs(weight) < 0.5 else end - span * (1 - weight)
        return self.graph.select(self.graph.apply("abs", weight) < 0.5, input + weight * span,
                                 end - span * (1 - weight))

    def nan_to_num(self, x: Value, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Value:
        if x.dtype.kind in "biu":
            return x
        if x.dtype.kind != "f":
            raise Unsupported(f"nan_to_num of {x.dtype}")
        limits = dtypes.finfo(dtypes.of(x.dtype))
        g = self.graph
        values = [float(0.0 if nan is None else nan), float(limits.max if posinf is None else posinf),
                  float(limits.min if neginf is None else neginf)]
        low = g.select(g.apply("eq", x, -math.inf), values[2], x)
        high = g.select(g.apply("eq", x, math.inf), values[1], low)
        return g.select(self.isnan(x), values[0], high)

    def conj(self, x: Value) -> Value:
        return self._real(x)

    real = conj

    def _real(self, x: Value) -> Value:
        if x.dtype.kind == "c":
            raise Unsupported("complex numbers")
        return x

    def to(self, x: Value, dtype: Any) -> Value:
        return self.graph.cast(x, getattr(dtype, "numpy", dtype))

    def clone(self, x: Value, *_: Any, **__: Any) -> Value:
        return x

    def contiguous(self, x: Value, *_: Any, **__: Any) -> Value:
        return x

    # ----- factories -----

    def full(self, size: Sequence[int], value: Any, dtype: Any = None) -> Value:
        kind = dtypes.get_default_dtype().numpy if dtype is None else getattr(dtype, "numpy", dtype)
        single = self.graph.cast(value, kind) if isinstance(value, Value) else self.graph.constant(value, kind)
        return self.graph.expand(single, tuple(size))

    def full_like(self, x: Value, value: Any, dtype: Any = None) -> Value:
        return self.full(x.shape, value, x.dtype if dtype is None else dtype)

    def zeros_like(self, x: Value, dtype: Any = None) -> Value:
        return self.full_like(x, 0, dtype)


__all__ = ["ElementwiseOps"]
