"""Complex numbers over IR values: conversions, and what is not one operation on parts."""

from __future__ import annotations

from typing import Any

from ..graph.complex_graph import ComplexGraph
from ..graph.value import Unsupported, Value
from .namespace import Namespace


class ComplexNumbers(Namespace):
    """Primitives of complex values."""

    graph: ComplexGraph

    def complex(self, real: Value, imag: Value) -> Value:
        return self.graph.complex(real, imag)

    def polar(self, size: Value, angle: Value) -> Value:
        g = self.graph
        return g.complex(size * g.apply("cos", angle), size * g.apply("sin", angle))

    def real(self, x: Value) -> Value:
        return self.graph.parts(x)[0]

    def imag(self, x: Value) -> Value:
        return self.graph.parts(x)[1]

    def conj(self, x: Value) -> Value:
        if x.dtype.kind != "c":
            return x
        real, imag = self.graph.parts(x)
        return self.graph.complex(real, -imag)

    def angle(self, x: Value) -> Value:
        g = self.graph
        if x.dtype.kind == "c":
            real, imag = g.parts(x)
            return g.apply("atan2", imag, real)
        if x.dtype.kind != "f":
            raise Unsupported("the angle of integers")
        return g.apply("atan2", g.expand(g.constant(0, x.dtype), x.shape), x)

    def sgn(self, x: Value) -> Value:
        g = self.graph
        if x.dtype.kind != "c":
            return super().sgn(x)
        size = g.apply("abs", x)
        scale = g.select(g.apply("eq", size, 0.0), 0.0, g.apply("recip", size))
        real, imag = g.parts(x)
        return g.complex(real * scale, imag * scale)

    def view_as_real(self, x: Value) -> Value:
        g = self.graph
        pair = g.reinterpret(x, x.dtype)
        assert pair is not None
        return g.reshape(pair, (*x.shape, 2))

    def view_as_complex(self, x: Value) -> Value:
        g = self.graph
        return g.complex(*(g.select_index(x, x.ndim - 1, k) for k in (0, 1)))

    def mean(self, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
        if x.dtype.kind != "c":
            return super().mean(x, dim, keepdim, dtype)
        return self.graph.complex(*(super(ComplexNumbers, self).mean(each, dim, keepdim) for each in self.graph.parts(
            x)))

    def pow_scalar(self, x: Value, exponent: Any) -> Value:
        if x.dtype.kind == "c" and exponent not in (1, 2, 3):
            raise Unsupported("a power of complex numbers")
        return super().pow_scalar(x, exponent)


__all__ = ["ComplexNumbers"]
