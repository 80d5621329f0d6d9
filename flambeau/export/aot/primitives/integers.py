"""Division of integers, and what follows from it, over IR values.

Kernels have no division of integers, which vectors of most processors lack. A quotient of floats is corrected: with a
remainder computed modulo 2⁶⁴ the second quotient is wrong by at most one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.graph.value import INT64, Unsupported, Value
from ....ir.lowering.namespace import Namespace

FLOAT64 = np.dtype(np.float64)
#: the largest float64 below 2⁶³
_GREATEST = 9223372036854774784.0


class Integers(Namespace):
    """Primitives that divide integers; a divisor of zero ends the run with a status."""

    def _nonzero(self, y: Value) -> None:
        """Guard the graph on divisors that are not zero."""
        g = self.graph
        if y.base.op == "constant" and np.all(g.array(y.base)):
            return
        wrong = g.apply("eq", y, 0)
        condition = (g.reduce("any", wrong, range(wrong.ndim)) if wrong.ndim else wrong, False)
        if condition not in g.conditions:
            g.conditions.append(condition)

    def _divided(self, x: Any, y: Any) -> tuple[Value, Value]:
        """The quotient rounded down, and the remainder, which has the sign of the divisor."""
        g = self.graph
        a, b = g.operands([x, y])
        dtype = a.dtype
        if dtype.kind not in "iu" or dtype == np.uint64:
            raise Unsupported(f"a division of {dtype}")
        self._nonzero(b)
        a, b = g.cast(a, INT64), g.cast(b, INT64)
        quotient: Any = 0
        rest = a
        for _ in range(2 if dtype.itemsize == 8 else 1):
            step = g.apply("floor", g.cast(rest, FLOAT64) / g.cast(b, FLOAT64))
            step = g.cast(g.apply("minimum", step, _GREATEST), INT64)
            quotient = step if isinstance(quotient, int) else quotient + step
            rest = a - quotient * b
        below = g.apply("or", g.apply("and", g.apply("lt", rest, 0), g.apply("gt", b, 0)),
                        g.apply("and", g.apply("gt", rest, 0), g.apply("lt", b, 0)))
        above = g.apply("or", g.apply("and", g.apply("gt", b, 0), g.apply("ge", rest, b)),
                        g.apply("and", g.apply("lt", b, 0), g.apply("le", rest, b)))
        change = g.select(below, g.constant(-1, INT64), g.select(above, g.constant(1, INT64), g.constant(0, INT64)))
        quotient, rest = quotient + change, rest - change * b
        return g.cast(quotient, dtype), g.cast(rest, dtype)

    def _is_integer(self, x: Any, y: Any) -> bool:
        return all(not isinstance(v, float) and getattr(v, "dtype", INT64).kind in "biu" for v in (x, y))

    def floor_divide(self, x: Any, y: Any) -> Value:
        g = self.graph
        if self._is_integer(x, y):
            return self._divided(x, y)[0]
        a, b = g.operands([x, y])  # as PyTorch: exact where the quotient is, and -0.0 and infinities kept
        rest = g.apply("fmod", a, b)
        quotient = (a - rest) / b
        differ = g.apply("ne", g.apply("lt", b, 0), g.apply("lt", rest, 0))
        quotient = g.select(g.apply("and", g.apply("ne", rest, 0), differ), quotient - 1, quotient)
        down = g.apply("floor", quotient)
        down = g.select(g.apply("gt", quotient - down, 0.5), down + 1, down)
        plain = a / b
        down = g.select(g.apply("eq", quotient, 0), g.apply("copysign", g.constant(0.0, a.dtype), plain), down)
        return g.select(g.apply("eq", b, 0), plain, down)

    def trunc_divide(self, x: Any, y: Any) -> Value:
        g = self.graph
        if not self._is_integer(x, y):
            return g.apply("trunc", g.apply("div", x, y))
        quotient, rest = self._divided(x, y)
        inexact = g.apply("and", g.apply("ne", rest, 0), g.apply("lt", quotient, 0))
        return quotient + g.cast(inexact, quotient.dtype)

    def remainder(self, x: Any, y: Any) -> Value:
        return self._divided(x, y)[1] if self._is_integer(x, y) else super().remainder(x, y)

    def fmod(self, x: Any, y: Any) -> Value:
        if not self._is_integer(x, y):
            return super().fmod(x, y)
        return self.graph.apply("sub", x, self.graph.apply("mul", self.trunc_divide(x, y), y))

    def sign(self, x: Value) -> Value:
        g = self.graph
        if x.dtype.kind not in "iu":
            return super().sign(x)
        one, zero = g.constant(1, x.dtype), g.constant(0, x.dtype)
        positive = g.select(g.apply("gt", x, 0), one, zero)
        return positive if x.dtype.kind == "u" else g.select(g.apply("lt", x, 0), g.constant(-1, x.dtype), positive)

    sgn = sign

    def pow_scalar(self, x: Value, exponent: Any) -> Value:
        """Also a power of integers, by squaring."""
        if x.dtype.kind not in "iu" or not isinstance(exponent, int) or isinstance(exponent, bool) or exponent < 0:
            return super().pow_scalar(x, exponent)
        result = self.graph.expand(self.graph.constant(1, x.dtype), x.shape)
        while exponent:
            if exponent & 1:
                result = result * x
            x, exponent = x * x, exponent >> 1
        return result


__all__ = ["Integers"]
