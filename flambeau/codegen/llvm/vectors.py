"""Vector code generation: Python operators on LLVM values emit instructions on scalars or vectors.

A `VectorContext` holds the builder, the floating-point format and the number of vector lanes (0 for a scalar). Values
are `Real` (float or double), `Integer` (as wide as the format) and `Mask` (one bit per lane). No instruction has
fast-math flags: every operation is rounded as written.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from llvmlite import ir

from ...runtime.target import Host, code_target
from ..math import coefficients

Value = Any  # ir.Value: llvmlite has no type annotations


@dataclass(frozen=True)
class Format:
    """An IEEE 754 binary format, with constants for bit manipulation and argument reduction."""

    name: str  # of the coefficient tables
    bits: int
    mantissa: int  # stored bits
    bias: int
    exp_low: float  # exp(x) is 0 below this
    exp_high: float  # exp(x) is inf above this
    tiny: float  # the smallest normal number
    ln2_high: float  # ln 2 with few bits: its product with any exponent is exact
    ln2_low: float

    @property
    def shifter(self) -> float:
        """1.5 · 2^mantissa: adding it rounds a number to an integer, which is then in the low bits."""
        return 1.5 * 2.0**self.mantissa

    def bits_of(self, x: float) -> int:
        """The bits of x as a signed integer."""
        code = "<f" if self.bits == 32 else "<d"
        return int.from_bytes(struct.pack(code, x), "little", signed=True)


SINGLE = Format("single", 32, 23, 127, -104.0, 89.0, 2.0**-126,
                float.fromhex("0x1.62e4p-1"), float.fromhex("0x1.7f7d1cp-20"))
DOUBLE = Format("double", 64, 52, 1023, -746.0, 710.0, 2.0**-1022,
                float.fromhex("0x1.62e42fefa3800p-1"), float.fromhex("0x1.ef35793c76730p-45"))


def host_has_fma() -> bool:
    """Whether the target has a fused multiply-add instruction."""
    return _has_fma(code_target())


@cache
def _has_fma(this: Host) -> bool:
    if this.triple.startswith(("x86_64", "amd64", "i686", "i386")):
        return "+fma" in this.features.split(",")
    return this.triple.startswith(("aarch64", "arm64", "powerpc64", "s390x", "riscv64", "nvptx64"))


def host_has_scalef() -> bool:
    """Whether the target has AVX-512's `vscalef`, which multiplies by powers of two."""
    return _has_avx512(code_target(), "+avx512dq")


def host_has_permute() -> bool:
    """Whether the target has AVX-512's `vpermps` on 512 bits, a lookup in a table of 16 numbers."""
    return _has_avx512(code_target(), "+avx512f")


@cache
def _has_avx512(this: Host, feature: str) -> bool:
    return this.triple.startswith(("x86_64", "amd64")) and this.vector_bits == 512 and (
        feature in this.features.split(","))


class VectorContext:
    """The builder and the type on which a formula is evaluated.

    Args:
        builder: emits the instructions.
        type_: float, double, or a vector of either.
        fused: whether fma is one instruction; None: as on the target.
        precision: which polynomial coefficients to use: "single", "double", or "widened" (double for a result that is
            rounded to float32).
    """

    def __init__(self, builder: Value, type_: Value, fused: bool | None = None, precision: str | None = None) -> None:
        self.builder = builder
        self.type = type_
        self.lanes: int = type_.count if isinstance(type_, ir.VectorType) else 0
        element = type_.element if self.lanes else type_
        if element == ir.FloatType():
            self.format = SINGLE
        elif element == ir.DoubleType():
            self.format = DOUBLE
        else:
            raise TypeError(f"functions are of float and double lanes, not {type_}")
        self.precision = precision or self.format.name
        self.fused = host_has_fma() if fused is None else fused
        self.integer_type = self.vector_of(ir.IntType(self.format.bits))
        self.mask_type = self.vector_of(ir.IntType(1))

    def vector_of(self, element: Value) -> Value:
        """The type of this many lanes of an element type."""
        return ir.VectorType(element, self.lanes) if self.lanes else element

    def with_element(self, element: Value, precision: str | None = None) -> VectorContext:
        """A context with the same number of lanes of another element type."""
        return VectorContext(self.builder, self.vector_of(element), self.fused, precision)

    def table(self, name: str) -> Sequence[Any]:
        """Polynomial coefficients in this precision, lowest power first; a row of 16 for each in piecewise tables."""
        return getattr(coefficients, f"{name}_{self.precision.upper()}")

    def real(self, x: float | Real) -> Real:
        if isinstance(x, Real):
            return x
        if self.format is SINGLE:
            x = to_float32(x)
        return Real(self, ir.Constant(self.type, x))

    def integer(self, i: int | Integer) -> Integer:
        if isinstance(i, Integer):
            return i
        i &= (1 << self.format.bits) - 1
        return Integer(self, ir.Constant(self.integer_type, i))

    @property
    def has_table_lookup(self) -> bool:
        """Whether the target has an instruction for `table_lookup`."""
        return self.format is SINGLE and host_has_permute()

    def call(self, name: str, *args: Real) -> Real:
        """Call an LLVM intrinsic on values of this type."""
        suffix = ("f32" if self.format is SINGLE else "f64") if not self.lanes else \
            f"v{self.lanes}f{self.format.bits}"
        callee = declared(self.builder.module, f"llvm.{name}.{suffix}",
                          ir.FunctionType(self.type, [self.type] * len(args)))
        return Real(self, self.builder.call(callee, [a.ir for a in args]))


def to_float32(x: float) -> float:
    """Round x to float32; infinite if it is too large."""
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")


def declared(module: Value, name: str, type_: Value) -> Value:
    """The module's function of this name, which is declared if it does not exist."""
    function = module.globals.get(name)
    return function if function is not None else ir.Function(module, type_, name)


class Mask:
    """A bool in each lane."""

    __slots__ = ("context", "ir")

    def __init__(self, context: VectorContext, value: Value) -> None:
        self.context, self.ir = context, value

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.context, self.context.builder.and_(self.ir, other.ir))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.context, self.context.builder.or_(self.ir, other.ir))

    def __xor__(self, other: Mask) -> Mask:
        return Mask(self.context, self.context.builder.xor(self.ir, other.ir))

    def __invert__(self) -> Mask:
        return Mask(self.context, self.context.builder.not_(self.ir))

    def any(self) -> Value:
        """Whether any lane is true, as i1."""
        builder, count = self.context.builder, self.context.lanes
        if not count:
            return self.ir
        bits = builder.bitcast(self.ir, ir.IntType(count))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(count), 0))


class Real:
    """A floating-point number in each lane."""

    __slots__ = ("context", "ir")

    def __init__(self, context: VectorContext, value: Value) -> None:
        self.context, self.ir = context, value

    def _with(self, instruction: str, other: float | Real, reverse: bool = False) -> Real:
        a, b = self.ir, self.context.real(other).ir
        if reverse:
            a, b = b, a
        return Real(self.context, getattr(self.context.builder, instruction)(a, b))

    def __add__(self, other: float | Real) -> Real:
        return self._with("fadd", other)

    def __radd__(self, other: float) -> Real:
        return self._with("fadd", other, reverse=True)

    def __sub__(self, other: float | Real) -> Real:
        return self._with("fsub", other)

    def __rsub__(self, other: float) -> Real:
        return self._with("fsub", other, reverse=True)

    def __mul__(self, other: float | Real) -> Real:
        return self._with("fmul", other)

    def __rmul__(self, other: float) -> Real:
        return self._with("fmul", other, reverse=True)

    def __truediv__(self, other: float | Real) -> Real:
        return self._with("fdiv", other)

    def __rtruediv__(self, other: float) -> Real:
        return self._with("fdiv", other, reverse=True)

    def __neg__(self) -> Real:
        return Real(self.context, self.context.builder.fneg(self.ir))

    def __abs__(self) -> Real:
        return self.context.call("fabs", self)

    def _compare(self, relation: str, other: float | Real) -> Mask:
        return Mask(self.context, self.context.builder.fcmp_ordered(relation, self.ir, self.context.real(other).ir))

    def __lt__(self, other: float | Real) -> Mask:
        return self._compare("<", other)

    def __le__(self, other: float | Real) -> Mask:
        return self._compare("<=", other)

    def __gt__(self, other: float | Real) -> Mask:
        return self._compare(">", other)

    def __ge__(self, other: float | Real) -> Mask:
        return self._compare(">=", other)

    def equals(self, other: float | Real) -> Mask:
        """Ordered equality: false if either is NaN."""
        return self._compare("==", other)

    def isnan(self) -> Mask:
        return Mask(self.context, self.context.builder.fcmp_unordered("uno", self.ir, self.ir))

    def signbit(self) -> Mask:
        return self.bits() < 0

    def bits(self) -> Integer:
        return Integer(self.context, self.context.builder.bitcast(self.ir, self.context.integer_type))

    def sqrt(self) -> Real:
        return self.context.call("sqrt", self)

    def trunc(self) -> Real:
        return self.context.call("trunc", self)

    def copysign(self, sign: Real) -> Real:
        return self.context.call("copysign", self, sign)

    def to(self, context: VectorContext) -> Real:
        """Convert to the format of another context."""
        if context.format is self.context.format:
            return Real(context, self.ir)
        builder = self.context.builder
        convert = builder.fpext if context.format is DOUBLE else builder.fptrunc
        return Real(context, convert(self.ir, context.type))


class Integer:
    """An integer, as wide as the format, in each lane."""

    __slots__ = ("context", "ir")

    def __init__(self, context: VectorContext, value: Value) -> None:
        self.context, self.ir = context, value

    def _with(self, instruction: str, other: int | Integer) -> Integer:
        operation = getattr(self.context.builder, instruction)
        return Integer(self.context, operation(self.ir, self.context.integer(other).ir))

    def __add__(self, other: int | Integer) -> Integer:
        return self._with("add", other)

    def __sub__(self, other: int | Integer) -> Integer:
        return self._with("sub", other)

    def __and__(self, other: int | Integer) -> Integer:
        return self._with("and_", other)

    def __or__(self, other: int | Integer) -> Integer:
        return self._with("or_", other)

    def __xor__(self, other: int | Integer) -> Integer:
        return self._with("xor", other)

    def __lshift__(self, count: int) -> Integer:
        return self._with("shl", count)

    def __rshift__(self, count: int) -> Integer:
        """Arithmetic shift."""
        return self._with("ashr", count)

    def _compare(self, relation: str, other: int | Integer) -> Mask:
        return Mask(self.context, self.context.builder.icmp_signed(relation, self.ir, self.context.integer(other).ir))

    def __lt__(self, other: int | Integer) -> Mask:
        return self._compare("<", other)

    def __gt__(self, other: int | Integer) -> Mask:
        return self._compare(">", other)

    def equals(self, other: int | Integer) -> Mask:
        return self._compare("==", other)

    def as_real(self) -> Real:
        """Reinterpret the bits as a floating-point number."""
        return Real(self.context, self.context.builder.bitcast(self.ir, self.context.type))

    def to_real(self) -> Real:
        """Convert to floating point; |n| must be below 2^(mantissa - 1)."""
        context = self.context
        if context.format is SINGLE:
            return Real(context, context.builder.sitofp(self.ir, context.type))
        # many targets have no vector conversion of 64-bit integers: they are added to the low bits of the shifter
        shifter = context.format.shifter
        return (self + context.format.bits_of(shifter)).as_real() - shifter


def where(mask: Mask, a: float | Real, b: float | Real) -> Real:
    """a in the lanes of the mask, b in the others."""
    context = mask.context
    return Real(context, context.builder.select(mask.ir, context.real(a).ir, context.real(b).ir))


def where_integer(mask: Mask, a: int | Integer, b: int | Integer) -> Integer:
    """`where` of integers."""
    context = mask.context
    return Integer(context, context.builder.select(mask.ir, context.integer(a).ir, context.integer(b).ir))


def clamp_max(x: Real, bound: float) -> Real:
    """min(x, bound), NaN staying NaN."""
    return where(x > bound, bound, x)


def clamp_min(x: Real, bound: float) -> Real:
    """max(x, bound), NaN staying NaN."""
    return where(x < bound, bound, x)
