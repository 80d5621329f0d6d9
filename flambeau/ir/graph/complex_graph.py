"""IR graphs whose kernels compute with real numbers, so that complex values are pairs.

Each complex value knows its real and imaginary parts. Operations combine parts; only where memory must hold complex
numbers (results, inputs that are written to, gathers) are the pairs interleaved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...runtime.launch import Launch, Spec
from . import view_algebra as algebra
from .extern_kernels import ExternKernel
from .value import Graph, Unsupported, Value

Pair = tuple[Value, Value]


def _copy_launches(outputs: list[Spec], inputs: list[Spec], to: str) -> list[Launch]:
    """A copy of memory, as real numbers."""
    from ...codegen.elementwise import elementwise
    from ...codegen.scalar.scalar_ir import variable

    out, source = (_as_reals(each[0]) for each in (outputs, inputs))
    return elementwise.launches([variable(0, out.dtype)], [out], [source])


def _as_reals(spec: Spec) -> Spec:
    """The spec of dense memory as real numbers."""
    dtype = real_dtype(spec.dtype)
    return Spec.dense((spec.size * spec.dtype.itemsize // dtype.itemsize,), dtype)


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of complex numbers; a real dtype itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of complex numbers with parts of a dtype."""
    return np.dtype(f"c{dtype.itemsize * 2}")


def is_complex(x: Any) -> bool:
    """Whether an operand is complex: a value, an array or a number."""
    return isinstance(x, complex) or (hasattr(x, "dtype") and x.dtype.kind == "c")


class ComplexGraph(Graph):
    """A graph whose elementwise operations, sums and products are also of complex values."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: dict[Value, Pair] = {}  # by value that is no view

    # ----- pairs -----

    def complex(self, real: Value, imag: Value) -> Value:
        """Complex numbers with these parts, of one shape."""
        if real.dtype.itemsize < 4:
            raise Unsupported(f"complex numbers with parts of {real.dtype}")
        shape, (real, imag) = self.broadcast([real, imag])
        real, imag = (self.copy(self.expand(each, shape)) for each in (real, imag))
        result = self._as_complex(self._interleaved(real, imag), shape)
        self._parts[result] = real, imag
        return result

    def _interleaved(self, real: Value, imag: Value) -> Value:
        """The parts as one vector: real, imaginary, real, ..."""
        n = real.size
        parts = [self.reshape(each, (n,)) for each in (real, imag)]
        return self.assemble((2 * n,), None, parts, [((2,), 0), ((2,), 1)])

    def _as_complex(self, reals: Value, shape: tuple[int, ...]) -> Value:
        kernel = ExternKernel("interleave", _copy_launches, {"to": "complex"})
        [result] = self.extern(kernel, [reals], [(shape, complex_dtype(reals.dtype))])
        return result

    def _as_reals(self, value: Value) -> Value:
        kernel = ExternKernel("interleave", _copy_launches, {"to": "real"})
        [result] = self.extern(kernel, [value], [((2 * value.size,), real_dtype(value.dtype))])
        return result

    def parts(self, value: Value) -> Pair:
        """The real and the imaginary part of a value."""
        if value.dtype.kind != "c":
            return value, self.expand(self.constant(0, value.dtype), value.shape)
        base = value.base
        pair = self._parts.get(base)
        if pair is None:
            pair = self._parts[base] = self._new_parts(base)
        if value is base:
            return pair
        real, imag = (self.view(each, value.shape, value.strides, value.offset) for each in map(self._dense, pair))
        return real, imag

    def _dense(self, part: Value) -> Value:
        """A part as a value that is no view with other strides, so that views of the whole are views of it."""
        if part.op == "view" and not (part.offset == 0 and part.size == part.base.size and algebra.is_dense(
                part.shape, part.strides)):
            return self.make("copy", (part,), None, part.shape, part.dtype)
        return part

    def _new_parts(self, base: Value) -> Pair:
        if base.op == "constant":
            a = self.array(base)
            real, imag = (self.expand(self.constant(np.array(each, order="C")), base.shape)
                          for each in (a.real, a.imag))
            return real, imag
        reals = self._as_reals(base)
        n = base.size
        real, imag = (self.reshape(self.copy(self.view(reals, (n,), (2,), k)), base.shape) for k in (0, 1))
        return real, imag

    def reinterpret(self, value: Value, dtype: np.dtype) -> Value | None:
        """All elements of memory as another dtype, flat: complex numbers as pairs of real ones, or the reverse."""
        if value.dtype.kind == "c":
            return self._interleaved(*(self.copy(each) for each in self.parts(value)))
        n = value.size // 2
        flat = self.reshape(self.copy(value), (2 * n,))
        return self.complex(*(self.view(flat, (n,), (2,), flat.offset + k) for k in (0, 1)))

    # ----- operations -----

    def apply(self, op: str, *values: Any) -> Value:
        if not any(map(is_complex, values)):
            return super().apply(op, *values)
        rule: Callable[..., Value] | None = getattr(self, f"_{op}_of_pairs", None)
        if rule is None:
            raise Unsupported(f"{op} of complex numbers")
        dtype = next((real_dtype(x.dtype) for x in values if isinstance(x, Value) and x.dtype.kind in "fc"), None)
        if dtype is None:
            raise Unsupported("complex numbers among integers")
        return rule(*(self._pair(x, dtype) for x in values))

    def _pair(self, x: Any, dtype: np.dtype) -> Pair:
        if isinstance(x, Value):
            return self.parts(x)
        number = np.asarray(x)
        return self.constant(number.real.astype(dtype)), self.constant(number.imag.astype(dtype))

    def _add_of_pairs(self, x: Pair, y: Pair) -> Value:
        return self.complex(x[0] + y[0], x[1] + y[1])

    def _sub_of_pairs(self, x: Pair, y: Pair) -> Value:
        return self.complex(x[0] - y[0], x[1] - y[1])

    def _mul_of_pairs(self, x: Pair, y: Pair) -> Value:
        return self.complex(x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0])

    def _div_of_pairs(self, x: Pair, y: Pair) -> Value:
        a, b = (super(ComplexGraph, self).apply("abs", each) for each in y)
        scale = super().apply("recip", super().apply("maximum", a, b))
        c, d = y[0] * scale, y[1] * scale
        factor = scale / (c * c + d * d)
        return self.complex((x[0] * c + x[1] * d) * factor, (x[1] * c - x[0] * d) * factor)

    def _recip_of_pairs(self, x: Pair) -> Value:
        return self._div_of_pairs((self.constant(1, x[0].dtype), self.constant(0, x[0].dtype)), x)

    def _neg_of_pairs(self, x: Pair) -> Value:
        return self.complex(-x[0], -x[1])

    def _abs_of_pairs(self, x: Pair) -> Value:
        from ..lowering.namespace import namespace_of

        return namespace_of(self).hypot(*x)

    def _exp_of_pairs(self, x: Pair) -> Value:
        size = super().apply("exp", x[0])
        return self.complex(size * super().apply("cos", x[1]), size * super().apply("sin", x[1]))

    def _log_of_pairs(self, x: Pair) -> Value:
        return self.complex(super().apply("log", self._abs_of_pairs(x)), super().apply("atan2", x[1], x[0]))

    def _eq_of_pairs(self, x: Pair, y: Pair) -> Value:
        return super().apply("and", *(super(ComplexGraph, self).apply("eq", a, b) for a, b in zip(x, y, strict=True)))

    def _ne_of_pairs(self, x: Pair, y: Pair) -> Value:
        return super().apply("not", self._eq_of_pairs(x, y))

    def select(self, condition: Value, x: Any, y: Any) -> Value:
        if not (is_complex(x) or is_complex(y)):
            return super().select(condition, x, y)
        dtype = next(real_dtype(v.dtype) for v in (x, y) if isinstance(v, Value))
        pairs = zip(self._pair(x, dtype), self._pair(y, dtype), strict=True)
        return self.complex(*(super(ComplexGraph, self).select(condition, a, b) for a, b in pairs))

    def cast(self, value: Value, dtype: np.dtype) -> Value:
        if value.dtype == dtype or "c" not in (value.dtype.kind, dtype.kind):
            return super().cast(value, dtype)
        if dtype.kind != "c":
            return super().cast(self.parts(value)[0], dtype)
        part = real_dtype(dtype)
        if value.dtype.kind != "c":
            value = super().cast(value, part)
        return self.complex(*(super(ComplexGraph, self).cast(each, part) for each in self.parts(value)))

    def copy(self, value: Value) -> Value:
        if value.op != "view" or value.dtype.kind != "c":
            return super().copy(value)
        return self.complex(*self.parts(value))

    def assemble(self, shape: Sequence[int], background: Value | None, pieces: Sequence[Value],
                 locations: Sequence[tuple[tuple[int, ...], int]]) -> Value:
        if pieces[0].dtype.kind != "c":
            return super().assemble(shape, background, pieces, locations)
        behind = (None, None) if background is None else self.parts(background)
        parts = zip(behind, zip(*map(self.parts, pieces), strict=True), strict=True)
        return self.complex(*(super(ComplexGraph, self).assemble(shape, old, new, locations) for old, new in parts))

    def reduce(self, name: str, value: Value, dims: Sequence[int]) -> Value:
        if value.dtype.kind != "c":
            return super().reduce(name, value, dims)
        if name != "sum":
            raise Unsupported(f"{name} of complex numbers")
        return self.complex(*(super(ComplexGraph, self).reduce(name, each, dims) for each in self.parts(value)))

    def matmul(self, a: Value, b: Value) -> Value:
        if not (is_complex(a) or is_complex(b)):
            return super().matmul(a, b)
        product = super().matmul
        (c, d), (e, f) = self.parts(a), self.parts(b)
        return self.complex(product(c, e) - product(d, f), product(c, f) + product(d, e))


__all__ = ["ComplexGraph", "complex_dtype", "is_complex", "real_dtype"]
