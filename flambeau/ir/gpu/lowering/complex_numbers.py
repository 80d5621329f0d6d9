"""Functions of complex numbers over IR values of a device's program, as real functions of their parts.

Branch cuts and signs of zeros are Kahan's ("Branch Cuts for Complex Elementary Functions", 1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....shapes import wrap_dim
from ...graph.complex_graph import Pair, is_complex
from ...graph.value import Value
from ...lowering.complex_numbers import ComplexNumbers
from ..interleaved_graph import InterleavedGraph

_LOG2, _LOG10 = math.log(2), math.log(10)
#: magnitudes for which the logarithm is computed from how far they are from 1
_NEAR_ONE = 0.7, 1.5


class DeviceComplexNumbers(ComplexNumbers):
    """Primitives of complex values; of real ones, those of the other classes."""

    graph: InterleavedGraph

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = super().__getattr__(name)
        rule = _RULES.get(name)
        if rule is not None:
            real = call

            def call(*args: Any) -> Any:
                if not any(map(is_complex, args)):
                    return real(*args)
                pairs = [self._pair(each, args) for each in args]
                return self.graph.complex(*rule(self, *pairs))

            setattr(self, name, call)
        return call

    def _pair(self, x: Any, args: tuple[Any, ...]) -> Pair:
        dtype = next(each.dtype for each in args if isinstance(each, Value))
        if isinstance(x, Value):
            return self.graph.parts(self.graph.cast(x, dtype))
        value = self.graph.constant(complex(x), dtype)
        return self.graph.parts(value)

    def _f(self, op: str, *values: Any) -> Value:
        return self.graph.apply(op, *values)

    def _zero(self, x: Value) -> Value:
        return self.graph.constant(0.0, x.dtype)

    # ----- of pairs -----

    def _sqrt(self, z: Pair) -> Pair:
        f, g = self._f, self.graph
        x, y = z
        size = f("sqrt", (f("abs", x) + self.hypot(x, y)) * 0.5)
        other = g.select(f("eq", size, 0.0), y, y / (size * 2.0))
        infinite = f("eq", f("abs", y), math.inf)
        real = g.select(f("lt", x, 0.0), f("abs", other), size)
        imag = g.select(f("lt", x, 0.0), f("copysign", size, y), other)
        return g.select(infinite, math.inf, real), g.select(infinite, y, imag)

    def _exp(self, z: Pair) -> Pair:
        f, g = self._f, self.graph
        x, y = z
        size = f("exp", x)
        vanishes = f("eq", size, 0.0)
        real = g.select(vanishes, self._zero(x), size * f("cos", y))
        imag = g.select(f("eq", y, 0.0), y, g.select(vanishes, self._zero(x), size * f("sin", y)))
        return g.select(f("eq", y, 0.0), size, real), imag

    def _log(self, z: Pair) -> Pair:
        f, g = self._f, self.graph
        x, y = z
        a, b = f("abs", x), f("abs", y)
        size = self.hypot(x, y)
        larger, smaller = f("maximum", a, b), f("minimum", a, b)
        near = f("log1p", (larger - 1.0) * (larger + 1.0) + smaller * smaller) * 0.5
        is_near = f("and", f("gt", size, _NEAR_ONE[0]), f("lt", size, _NEAR_ONE[1]))
        return g.select(is_near, near, f("log", size)), f("atan2", y, x)

    def _log1p(self, z: Pair) -> Pair:
        f, g = self._f, self.graph
        x, y = z
        near = f("log1p", x * (x + 2.0) + y * y) * 0.5
        is_near = f("lt", self.hypot(x, y), 0.5)
        return g.select(is_near, near, f("log", self.hypot(x + 1.0, y))), f("atan2", y, x + 1.0)

    def _expm1(self, z: Pair) -> Pair:
        f = self._f
        x, y = z
        half = f("sin", y * 0.5)
        more = f("expm1", x)
        return more * f("cos", y) - half * half * 2.0, (more + 1.0) * f("sin", y)

    def _sinh(self, z: Pair) -> Pair:
        f, g = self._f, self.graph
        x, y = z
        return f("sinh", x) * f("cos", y), g.select(f("eq", y, 0.0), y, f("cosh", x) * f("sin", y))

    def _cosh(self, z: Pair) -> Pair:
        f = self._f
        x, y = z
        return f("cosh", x) * f("cos", y), f("sinh", x) * f("sin", y)

    def _tanh(self, z: Pair) -> Pair:
        f, g = self._f, self.graph
        x, y = z
        tangent, sine, cosine = f("tanh", x), f("sin", y), f("cos", y)
        # 1 / cosh² from the exponential, which does not overflow
        decay = f("exp", f("abs", x) * -2.0)
        sech2 = decay * 4.0 / ((decay + 1.0) * (decay + 1.0))
        divisor = tangent * tangent + cosine * cosine * sech2
        flat = f("gt", f("abs", x), 20.0)
        real = g.select(flat, f("copysign", g.constant(1.0, x.dtype), x), tangent / divisor)
        return real, g.select(flat, sine * cosine * decay * 4.0, sine * cosine * sech2 / divisor)

    def _sin(self, z: Pair) -> Pair:
        return _divided_by_i(self._sinh(_times_i(z)))

    def _cos(self, z: Pair) -> Pair:
        return self._cosh(_times_i(z))

    def _tan(self, z: Pair) -> Pair:
        return _divided_by_i(self._tanh(_times_i(z)))

    def _roots(self, z: Pair) -> tuple[Pair, Pair]:
        """√(1 - z) and √(1 + z)."""
        x, y = z
        return self._sqrt((1.0 - x, -y)), self._sqrt((x + 1.0, y))

    def _asin(self, z: Pair) -> Pair:
        f = self._f
        (a, b), (c, d) = self._roots(z)
        return f("atan2", z[0], a * c - b * d), f("asinh", _imag_of((a, -b), (c, d)))

    def _acos(self, z: Pair) -> Pair:
        f = self._f
        (a, b), (c, d) = self._roots(z)
        return f("atan2", a, c) * 2.0, f("asinh", _imag_of((c, -d), (a, b)))

    def _acosh(self, z: Pair) -> Pair:
        f = self._f
        x, y = z
        (a, b), (c, d) = self._sqrt((x - 1.0, y)), self._sqrt((x + 1.0, y))
        return f("asinh", a * c + b * d), f("atan2", b, c) * 2.0

    def _asinh(self, z: Pair) -> Pair:
        return _divided_by_i(self._asin(_times_i(z)))

    def _atanh(self, z: Pair) -> Pair:
        f = self._f
        x, y = z
        size = f("abs", x)
        away = 1.0 - size
        real = f("log1p", size * 4.0 / (away * away + y * y)) * 0.25
        return f("copysign", real, x), f("atan2", y * 2.0, away * (size + 1.0) - y * y) * 0.5

    def _atan(self, z: Pair) -> Pair:
        return _divided_by_i(self._atanh(_times_i(z)))

    def _scaled(self, z: Pair, factor: float) -> Pair:
        return z[0] * factor, z[1] * factor

    def _quotient(self, z: Pair, w: Pair) -> Pair:
        """Smith's quotient, as PyTorch divides."""
        f, g = self._f, self.graph
        (a, b), (c, d) = z, w
        swapped = f("lt", f("abs", c), f("abs", d))
        larger, smaller = g.select(swapped, d, c), g.select(swapped, c, d)
        nothing = f("eq", larger, 0.0)
        ratio = smaller / larger
        scale = f("recip", larger + smaller * ratio)
        real = g.select(swapped, a * ratio + b, a + b * ratio) * scale
        imag = g.select(swapped, b * ratio - a, b - a * ratio) * scale
        return g.select(nothing, a / f("abs", c), real), g.select(nothing, b / f("abs", d), imag)

    def _reciprocal(self, z: Pair) -> Pair:
        one = self.graph.expand(self.graph.constant(1.0, z[0].dtype), z[0].shape)
        return self._quotient((one, self.graph.expand(self._zero(one), one.shape)), z)

    def _power(self, z: Pair, w: Pair) -> Pair:
        f, g = self._f, self.graph
        a, b = self._log(z)
        c, d = w
        real, imag = self._exp((a * c - b * d, a * d + b * c))
        none = f("and", f("eq", c, 0.0), f("eq", d, 0.0))
        zero = f("and", f("and", f("eq", z[0], 0.0), f("eq", z[1], 0.0)), f("gt", c, 0.0))
        real = g.select(none, 1.0, g.select(zero, self._zero(real), real))
        return real, g.select(f("or", none, zero), self._zero(imag), imag)

    # ----- primitives -----

    def real(self, x: Value) -> Value:
        return super().real(x) if x.dtype.kind == "c" else x

    def pow(self, x: Any, y: Any) -> Value:
        if not (is_complex(x) or is_complex(y)):
            return super().pow(x, y)
        if isinstance(x, Value) and not isinstance(y, Value) and not hasattr(y, "dtype"):
            return self.pow_scalar(x, y)
        return self.graph.complex(*self._power(self._pair(x, (x, y)), self._pair(y, (x, y))))

    def scalar_pow(self, base: Any, exponent: Value) -> Value:
        return self.pow(base, exponent) if is_complex(base) or is_complex(exponent) else super().scalar_pow(
            base, exponent)

    def pow_scalar(self, x: Value, exponent: Any) -> Value:
        if x.dtype.kind != "c" or exponent in (1, 2, 3):
            return super().pow_scalar(x, exponent)
        g, z = self.graph, self.graph.parts(x)
        if exponent == 0.5:
            return g.complex(*self._sqrt(z))
        if exponent == -0.5:
            return g.complex(*self._reciprocal(self._sqrt(z)))
        if exponent == -1:
            return g.complex(*self._reciprocal(z))
        if exponent == -2:
            return g.complex(*self._reciprocal(g.parts(g.apply("mul", x, x))))
        return g.complex(*self._power(z, self._pair(exponent, (x,))))

    def sgn(self, x: Value) -> Value:
        if x.dtype.kind != "c":
            return super().sgn(x)
        g = self.graph
        real, imag = g.parts(x)
        size = self.hypot(real, imag)
        nothing = g.apply("eq", size, 0.0)
        return g.complex(*(g.select(nothing, self._zero(each), each / size) for each in (real, imag)))

    def isreal(self, x: Value) -> Value:
        if x.dtype.kind != "c":
            return super().isreal(x)  # type: ignore[misc]
        return self._f("eq", self.graph.parts(x)[1], 0.0)

    def isnan(self, x: Value) -> Value:
        if x.dtype.kind != "c":
            return super().isnan(x)
        return self._f("or", *(super(DeviceComplexNumbers, self).isnan(each) for each in self.graph.parts(x)))

    def isinf(self, x: Value) -> Value:
        if x.dtype.kind != "c":
            return super().isinf(x)
        return self._f("or", *(super(DeviceComplexNumbers, self).isinf(each) for each in self.graph.parts(x)))

    def isfinite(self, x: Value) -> Value:
        if x.dtype.kind != "c":
            return super().isfinite(x)
        return self._f("and", *(super(DeviceComplexNumbers, self).isfinite(each) for each in self.graph.parts(x)))

    def lerp(self, input: Value, end: Value, weight: Any) -> Value:
        if not (is_complex(input) or is_complex(weight)):
            return super().lerp(input, end, weight)
        g = self.graph
        span = end - input
        if not isinstance(weight, Value):
            return input + span * weight if abs(weight) < 0.5 else end - span * (1 - weight)
        near = self._f("lt", g.apply("abs", weight), 0.5)
        rest = g.apply("sub", 1.0, weight)
        return g.select(near, input + weight * span, end - span * rest)

    def nan_to_num(self, x: Value, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Value:
        if x.dtype.kind != "c":
            return super().nan_to_num(x, nan, posinf, neginf)
        return self.graph.complex(*(super(DeviceComplexNumbers, self).nan_to_num(each, nan, posinf, neginf)
                                    for each in self.graph.parts(x)))

    # ----- by index -----

    def taken(self, x: Value, index: Value, shape: tuple[int, ...], dim: int, wraps: bool = False) -> Value:
        g = self.graph
        if x.dtype.kind != "c":
            return super().taken(x, index, shape, dim, wraps)  # type: ignore[misc]
        made = super().taken(g.pairs(x), g.for_pairs(index), (*shape, 2), dim, wraps)  # type: ignore[misc]
        return g.from_memory(made, shape)

    def scattered(self, source: Value, index: Value, shape: tuple[int, ...], dim: int, op: str = "add",
                  wraps: bool = False) -> Value:
        g = self.graph
        if source.dtype.kind != "c":
            return super().scattered(source, index, shape, dim, op, wraps)  # type: ignore[misc]
        made = super().scattered(g.pairs(source), g.for_pairs(index), (*shape, 2),  # type: ignore[misc]
                                 dim, op, wraps)
        return g.from_memory(made, shape)

    def _scatter_add_axis(self, x: Value, index: Value, shape: tuple[int, ...], axis: int) -> Value:
        g = self.graph
        if x.dtype.kind != "c":
            return super()._scatter_add_axis(x, index, shape, axis)
        return g.from_memory(super()._scatter_add_axis(g.pairs(x), index, (*shape, 2), axis), shape)

    # ----- scans -----

    def _scan(self, scan: str, values: list[Value], dim: int, back: bool = False) -> list[Value]:
        x = values[0]
        if x.dtype.kind != "c" or scan not in ("add", "mul", "recurrence") or not x.ndim:
            return super()._scan(scan, values, dim, back)
        g, axis = self.graph, wrap_dim(dim, x.ndim)
        if scan == "add":
            real, imag = (super(DeviceComplexNumbers, self)._scan(scan, [each], dim, back)[0] for each in g.parts(x))
            return [g.complex(real, imag)]
        one = g.constant(1.0, x.dtype)
        factor, step = values[-1], 1
        while step < x.shape[axis]:  # what came so far, combined with what came before that
            before = self._shifted(factor, axis, step, back, one)
            if scan == "mul":
                x = factor = g.apply("mul", factor, before)
            else:
                earlier = self._shifted(x, axis, step, back, g.constant(0.0, x.dtype))
                x, factor = g.apply("add", x, g.apply("mul", factor, earlier)), g.apply("mul", factor, before)
            step *= 2
        return [x]

    def _shifted(self, x: Value, axis: int, step: int, back: bool, edge: Value) -> Value:
        g, n = self.graph, x.shape[axis]
        rest = g.expand(edge, (*x.shape[:axis], step, *x.shape[axis + 1:]))
        kept = g.slice(x, axis, step if back else 0, n - step)
        return g.cat([kept, rest] if back else [rest, kept], axis)

    # ----- reductions -----

    def _moments(self, x: Value, dim: Any, correction: Any, keepdim: bool) -> tuple[Value, Value]:
        if x.dtype.kind != "c":
            return super()._moments(x, dim, correction, keepdim)
        (a, b), (c, d) = (super(DeviceComplexNumbers, self)._moments(each, dim, correction, keepdim)
                          for each in self.graph.parts(x))
        return a + c, self.graph.complex(b, d)

    def linalg_vector_norm(self, x: Value, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
                           ) -> Value:
        if x.dtype.kind == "c":
            real, imag = self.graph.parts(x if dtype is None else self.graph.cast(x, dtype.numpy))
            if ord == 2:
                total = self._reduce("sum", real * real + imag * imag, None if dim in ((), []) else dim, keepdim)
                return self._f("sqrt", total)
            x, dtype = self.hypot(real, imag), None
        return super().linalg_vector_norm(x, ord, dim, keepdim, dtype)

    def logsumexp(self, x: Value, dim: Any, keepdim: bool = False) -> Value:
        if x.dtype.kind != "c":
            return super().logsumexp(x, dim, keepdim)
        g = self.graph
        largest = self._reduce("max", g.parts(x)[0], dim, True)
        largest = g.select(super().isinf(largest), self._zero(largest), largest)
        shift = g.complex(largest, g.expand(self._zero(largest), largest.shape))
        total = self._reduce("sum", g.complex(*self._exp(g.parts(x - shift))), dim, True)
        result = g.complex(*self._log(g.parts(total))) + shift
        return result if keepdim else g.reshape(result, self._reduce("sum", x, dim, False).shape)


def _times_i(z: Pair) -> Pair:
    return -z[1], z[0]


def _divided_by_i(z: Pair) -> Pair:
    return z[1], -z[0]


def _imag_of(z: Pair, w: Pair) -> Value:
    """The imaginary part of a product."""
    return z[0] * w[1] + z[1] * w[0]


_D = DeviceComplexNumbers
#: primitive -> its rule of pairs
_RULES: dict[str, Callable[..., Pair]] = {
    "sqrt": _D._sqrt, "exp": _D._exp, "log": _D._log, "log1p": _D._log1p, "expm1": _D._expm1, "sinh": _D._sinh,
    "cosh": _D._cosh, "tanh": _D._tanh, "sin": _D._sin, "cos": _D._cos, "tan": _D._tan, "asin": _D._asin,
    "acos": _D._acos, "acosh": _D._acosh, "asinh": _D._asinh, "atanh": _D._atanh, "atan": _D._atan,
    "div": _D._quotient, "reciprocal": _D._reciprocal,
    "exp2": lambda self, z: self._exp(self._scaled(z, _LOG2)),
    "log2": lambda self, z: self._scaled(self._log(z), 1 / _LOG2),
    "log10": lambda self, z: self._scaled(self._log(z), 1 / _LOG10),
    "rsqrt": lambda self, z: self._reciprocal(self._sqrt(z)),
    "sigmoid": lambda self, z: self._reciprocal((self._exp((-z[0], -z[1]))[0] + 1.0, self._exp((-z[0], -z[1]))[1])),
}

__all__ = ["DeviceComplexNumbers"]
