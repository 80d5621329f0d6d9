"""Formulas over the lanes of LLVM values: Python operators that emit instructions, for scalars and vectors alike.

A `Lanes` says what is computed on: a builder, a floating format and a number of lanes (0 for a scalar). Its values are
`Real` (float or double), `Whole` (integers as wide as the format) and `Mask` (one bit a lane). Nothing emitted
carries fast-math flags: what is written is what is rounded.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from llvmlite import ir

from ...runtime.target import host
from ..math import coefficients

Value = Any  # ir.Value: llvmlite has no types


@dataclass(frozen=True)
class Format:
    """A binary interchange format: its widths and the constants that bit patterns are made with."""

    name: str  # of the coefficient tables
    bits: int
    mantissa: int  # stored bits of it
    bias: int
    exp_low: float  # exp(x) is 0 below
    exp_high: float  # and inf above
    tiny: float  # the least normal number
    ln2_high: float  # ln 2 with so few bits that its product with any exponent is exact
    ln2_low: float

    @property
    def shifter(self) -> float:
        """1.5 · 2^mantissa: a number added to it is rounded to an integer, which then lies in the low bits."""
        return 1.5 * 2.0**self.mantissa

    def pattern(self, x: float) -> int:
        """The bits of x as a signed integer."""
        code = "<f" if self.bits == 32 else "<d"
        return int.from_bytes(struct.pack(code, x), "little", signed=True)


SINGLE = Format("single", 32, 23, 127, -104.0, 89.0, 2.0**-126,
                float.fromhex("0x1.62e4p-1"), float.fromhex("0x1.7f7d1cp-20"))
DOUBLE = Format("double", 64, 52, 1023, -746.0, 710.0, 2.0**-1022,
                float.fromhex("0x1.62e42fefa3800p-1"), float.fromhex("0x1.ef35793c76730p-45"))


@cache
def host_fuses() -> bool:
    """Whether the machine that code is made for multiplies and adds with a single rounding."""
    this = host()
    if this.triple.startswith(("x86_64", "amd64", "i686", "i386")):
        return "+fma" in this.features.split(",")
    return this.triple.startswith(("aarch64", "arm64", "powerpc64", "s390x", "riscv64"))


@cache
def host_scales() -> bool:
    """Whether that machine multiplies 512 bits of numbers by powers of two in one instruction."""
    this = host()
    return this.triple.startswith(("x86_64", "amd64")) and this.vector_bits == 512 and (
        "+avx512dq" in this.features.split(","))


@cache
def host_looks_up() -> bool:
    """Whether that machine picks each of 16 numbers in a vector of 512 bits by one of 16 others in one instruction."""
    this = host()
    return this.triple.startswith(("x86_64", "amd64")) and this.vector_bits == 512 and (
        "+avx512f" in this.features.split(","))


class Lanes:
    """What a formula computes on.

    Args:
        builder: where instructions go.
        type_: float, double, or a vector of either.
        fused: whether fma is one instruction; None asks the machine.
        precision: whose coefficients polynomials take: "single", "double", or "widened", double lanes for a result
            that is going to be rounded to float32.
    """

    def __init__(self, builder: Value, type_: Value, fused: bool | None = None, precision: str | None = None) -> None:
        self.builder = builder
        self.type = type_
        self.count: int = type_.count if isinstance(type_, ir.VectorType) else 0
        element = type_.element if self.count else type_
        if element == ir.FloatType():
            self.format = SINGLE
        elif element == ir.DoubleType():
            self.format = DOUBLE
        else:
            raise TypeError(f"functions are of float and double lanes, not {type_}")
        self.precision = precision or self.format.name
        self.fused = host_fuses() if fused is None else fused
        self.whole_type = self.spread(ir.IntType(self.format.bits))
        self.mask_type = self.spread(ir.IntType(1))

    def spread(self, element: Value) -> Value:
        """The type of as many elements as there are lanes."""
        return ir.VectorType(element, self.count) if self.count else element

    def over(self, element: Value, precision: str | None = None) -> Lanes:
        """As many lanes of another element type."""
        return Lanes(self.builder, self.spread(element), self.fused, precision)

    def table(self, name: str) -> Sequence[Any]:
        """The coefficients of a polynomial in this precision, lowest power first; for pieces, 16 numbers for each."""
        return getattr(coefficients, f"{name}_{self.precision.upper()}")

    def real(self, x: float | Real) -> Real:
        if isinstance(x, Real):
            return x
        if self.format is SINGLE:
            x = nearest_single(x)
        return Real(self, ir.Constant(self.type, x))

    def whole(self, i: int | Whole) -> Whole:
        if isinstance(i, Whole):
            return i
        i &= (1 << self.format.bits) - 1
        return Whole(self, ir.Constant(self.whole_type, i))

    @property
    def looks_up(self) -> bool:
        """Whether the machine has an instruction for `looked_up`."""
        return self.format is SINGLE and host_looks_up()

    def call(self, name: str, *args: Real) -> Real:
        """An LLVM intrinsic of values of this type."""
        suffix = ("f32" if self.format is SINGLE else "f64") if not self.count else \
            f"v{self.count}f{self.format.bits}"
        callee = declared(self.builder.module, f"llvm.{name}.{suffix}",
                          ir.FunctionType(self.type, [self.type] * len(args)))
        return Real(self, self.builder.call(callee, [a.ir for a in args]))


def nearest_single(x: float) -> float:
    """x rounded to float32; too large a number becomes infinite."""
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")


def declared(module: Value, name: str, type_: Value) -> Value:
    """The function of that name in the module, declared if it is not there yet."""
    found = module.globals.get(name)
    return found if found is not None else ir.Function(module, type_, name)


class Mask:
    """A truth value on each lane."""

    __slots__ = ("ir", "lanes")

    def __init__(self, lanes: Lanes, value: Value) -> None:
        self.lanes, self.ir = lanes, value

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.lanes, self.lanes.builder.and_(self.ir, other.ir))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.lanes, self.lanes.builder.or_(self.ir, other.ir))

    def __xor__(self, other: Mask) -> Mask:
        return Mask(self.lanes, self.lanes.builder.xor(self.ir, other.ir))

    def __invert__(self) -> Mask:
        return Mask(self.lanes, self.lanes.builder.not_(self.ir))

    def any(self) -> Value:
        """One bit: whether it holds on some lane."""
        builder, count = self.lanes.builder, self.lanes.count
        if not count:
            return self.ir
        bits = builder.bitcast(self.ir, ir.IntType(count))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(count), 0))


class Real:
    """A floating-point number on each lane."""

    __slots__ = ("ir", "lanes")

    def __init__(self, lanes: Lanes, value: Value) -> None:
        self.lanes, self.ir = lanes, value

    def _with(self, instruction: str, other: float | Real, reverse: bool = False) -> Real:
        a, b = self.ir, self.lanes.real(other).ir
        if reverse:
            a, b = b, a
        return Real(self.lanes, getattr(self.lanes.builder, instruction)(a, b))

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
        return Real(self.lanes, self.lanes.builder.fneg(self.ir))

    def __abs__(self) -> Real:
        return self.lanes.call("fabs", self)

    def _compare(self, relation: str, other: float | Real) -> Mask:
        return Mask(self.lanes, self.lanes.builder.fcmp_ordered(relation, self.ir, self.lanes.real(other).ir))

    def __lt__(self, other: float | Real) -> Mask:
        return self._compare("<", other)

    def __le__(self, other: float | Real) -> Mask:
        return self._compare("<=", other)

    def __gt__(self, other: float | Real) -> Mask:
        return self._compare(">", other)

    def __ge__(self, other: float | Real) -> Mask:
        return self._compare(">=", other)

    def equals(self, other: float | Real) -> Mask:
        """Ordered equality: false where either is NaN."""
        return self._compare("==", other)

    def isnan(self) -> Mask:
        return Mask(self.lanes, self.lanes.builder.fcmp_unordered("uno", self.ir, self.ir))

    def signbit(self) -> Mask:
        return self.bits() < 0

    def bits(self) -> Whole:
        return Whole(self.lanes, self.lanes.builder.bitcast(self.ir, self.lanes.whole_type))

    def sqrt(self) -> Real:
        return self.lanes.call("sqrt", self)

    def trunc(self) -> Real:
        return self.lanes.call("trunc", self)

    def copysign(self, sign: Real) -> Real:
        return self.lanes.call("copysign", self, sign)

    def to(self, lanes: Lanes) -> Real:
        """The same numbers in another format."""
        if lanes.format is self.lanes.format:
            return Real(lanes, self.ir)
        builder = self.lanes.builder
        convert = builder.fpext if lanes.format is DOUBLE else builder.fptrunc
        return Real(lanes, convert(self.ir, lanes.type))


class Whole:
    """An integer, as wide as the format, on each lane."""

    __slots__ = ("ir", "lanes")

    def __init__(self, lanes: Lanes, value: Value) -> None:
        self.lanes, self.ir = lanes, value

    def _with(self, instruction: str, other: int | Whole) -> Whole:
        return Whole(self.lanes, getattr(self.lanes.builder, instruction)(self.ir, self.lanes.whole(other).ir))

    def __add__(self, other: int | Whole) -> Whole:
        return self._with("add", other)

    def __sub__(self, other: int | Whole) -> Whole:
        return self._with("sub", other)

    def __and__(self, other: int | Whole) -> Whole:
        return self._with("and_", other)

    def __or__(self, other: int | Whole) -> Whole:
        return self._with("or_", other)

    def __xor__(self, other: int | Whole) -> Whole:
        return self._with("xor", other)

    def __lshift__(self, count: int) -> Whole:
        return self._with("shl", count)

    def __rshift__(self, count: int) -> Whole:
        """Arithmetic: the sign is kept."""
        return self._with("ashr", count)

    def _compare(self, relation: str, other: int | Whole) -> Mask:
        return Mask(self.lanes, self.lanes.builder.icmp_signed(relation, self.ir, self.lanes.whole(other).ir))

    def __lt__(self, other: int | Whole) -> Mask:
        return self._compare("<", other)

    def __gt__(self, other: int | Whole) -> Mask:
        return self._compare(">", other)

    def equals(self, other: int | Whole) -> Mask:
        return self._compare("==", other)

    def pattern(self) -> Real:
        """The number whose bits these are."""
        return Real(self.lanes, self.lanes.builder.bitcast(self.ir, self.lanes.type))

    def number(self) -> Real:
        """The integer as a floating-point number; it must be below 2^(mantissa - 1) in size."""
        lanes = self.lanes
        if lanes.format is SINGLE:
            return Real(lanes, lanes.builder.sitofp(self.ir, lanes.type))
        # 64-bit integers have no vector conversion on many machines: they are placed in the low bits of the shifter
        shifter = lanes.format.shifter
        return (self + lanes.format.pattern(shifter)).pattern() - shifter


def where(mask: Mask, a: float | Real, b: float | Real) -> Real:
    """a on the lanes where the mask holds, b on the others."""
    lanes = mask.lanes
    return Real(lanes, lanes.builder.select(mask.ir, lanes.real(a).ir, lanes.real(b).ir))


def where_whole(mask: Mask, a: int | Whole, b: int | Whole) -> Whole:
    """`where` of integers."""
    lanes = mask.lanes
    return Whole(lanes, lanes.builder.select(mask.ir, lanes.whole(a).ir, lanes.whole(b).ir))


def at_most(x: Real, bound: float) -> Real:
    """min(x, bound), NaN staying NaN."""
    return where(x > bound, bound, x)


def at_least(x: Real, bound: float) -> Real:
    """max(x, bound), NaN staying NaN."""
    return where(x < bound, bound, x)


def fma(a: Real, b: float | Real, c: float | Real) -> Real:
    """a b + c: one rounding where the machine has the instruction, two elsewhere."""
    lanes = a.lanes
    if lanes.fused:
        return lanes.call("fma", a, lanes.real(b), lanes.real(c))
    return a * b + c


def two_product(a: Real, b: float | Real) -> tuple[Real, Real]:
    """(p, e) with p = fl(a b) and p + e = a b exactly, where nothing underflows (Dekker's splitting without fma)."""
    lanes = a.lanes
    b = lanes.real(b)
    p = a * b
    if lanes.fused:
        return p, fma(a, b, -p)
    a_high, a_low = halves(a)
    b_high, b_low = halves(b)
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def halves(a: Real) -> tuple[Real, Real]:
    """(high, low): half of the mantissa's bits each, their sum a."""
    kept = (a.lanes.format.mantissa + 2) // 2
    high = (a.bits() & -(1 << kept)).pattern()
    return high, a - high


def two_sum(a: Real, b: Real) -> tuple[Real, Real]:
    """(s, e) with s = fl(a + b) and s + e = a + b exactly."""
    s = a + b
    b_seen = s - a
    return s, (a - (s - b_seen)) + (b - b_seen)


def fast_two_sum(a: Real, b: Real) -> tuple[Real, Real]:
    """The same where |a| >= |b|."""
    s = a + b
    return s, b - (s - a)


def power_of_two(n: Whole) -> Real:
    """2^n for exponents of normal numbers."""
    format_ = n.lanes.format
    return ((n + format_.bias) << format_.mantissa).pattern()


def scaled(p: Real, n: Whole) -> Real:
    """p 2^n with one rounding, results below the normal range included; |n| up to twice the exponent range."""
    if p.lanes.precision == "widened":  # whatever float32 can hold is a normal double
        return p * power_of_two(n)
    if p.lanes.count * p.lanes.format.bits == 512 and host_scales():
        return _scaled_at_once(p, n)
    half = n >> 1
    return p * power_of_two(half) * power_of_two(n - half)


def _scaled_at_once(p: Real, n: Whole) -> Real:
    """`scaled` by AVX-512's instruction for it, eight others' worth."""
    lanes = p.lanes
    builder, suffix = lanes.builder, "ps" if lanes.format is SINGLE else "pd"
    mask, rounding = ir.IntType(lanes.count), ir.IntType(32)
    callee = declared(builder.module, f"llvm.x86.avx512.mask.scalef.{suffix}.512",
                      ir.FunctionType(lanes.type, [*[lanes.type] * 3, mask, rounding]))
    exponent = builder.sitofp(n.ir, lanes.type)
    nothing, as_set = ir.Constant(lanes.type, ir.Undefined), ir.Constant(rounding, 4)
    return Real(lanes, builder.call(callee, [p.ir, exponent, nothing, ir.Constant(mask, -1), as_set]))


def looked_up(table: Sequence[float], index: Whole) -> Real:
    """The number in a table of 16 that the last four bits of an integer say; where `Lanes.looks_up`."""
    lanes, builder, count = index.lanes, index.lanes.builder, index.lanes.count
    sixteen, integers = ir.VectorType(ir.FloatType(), 16), ir.VectorType(ir.IntType(32), 16)
    callee = declared(builder.module, "llvm.x86.avx512.permvar.sf.512", ir.FunctionType(sixteen, [sixteen, integers]))
    numbers = ir.Constant(sixteen, [nearest_single(each) for each in table])
    if count == 16:
        return Real(lanes, builder.call(callee, [numbers, index.ir]))
    if not count:
        nothing = ir.Constant(integers, ir.Undefined)
        picked = builder.call(callee, [numbers, builder.insert_element(nothing, index.ir, _place(0))])
        return Real(lanes, builder.extract_element(picked, _place(0)))
    parts = [builder.call(callee, [numbers, _shuffled(builder, index.ir, range(i, i + 16), count)])
             for i in range(0, count, 16)]
    while len(parts) > 1:
        width = parts[0].type.count
        parts = [builder.shuffle_vector(low, high, ir.Constant(ir.VectorType(ir.IntType(32), 2 * width),
                                                               list(range(2 * width))))
                 for low, high in zip(parts[::2], parts[1::2], strict=True)]
    return Real(lanes, parts[0] if count > 16 else _shuffled(builder, parts[0], range(count), 16))


def _place(i: int) -> Value:
    return ir.Constant(ir.IntType(32), i)


def _shuffled(builder: Value, vector: Value, places: Sequence[int], count: int) -> Value:
    """The elements at these places of a vector of `count`; beyond its end, the last one."""
    picked = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), [min(i, count - 1) for i in places])
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), picked)


def floored(x: Real, bits: int) -> Real:
    """The largest number with so many bits behind the point that is not larger."""
    lanes = x.lanes
    if not (lanes.looks_up and lanes.count == 16):
        return lanes.call("floor", x * 2.0**bits) * 2.0**-bits
    mask, kind = ir.IntType(16), ir.IntType(32)
    callee = declared(lanes.builder.module, "llvm.x86.avx512.mask.rndscale.ps.512",
                      ir.FunctionType(lanes.type, [lanes.type, kind, lanes.type, mask, kind]))
    downwards, as_set = ir.Constant(kind, bits << 4 | 9), ir.Constant(kind, 4)
    nothing = ir.Constant(lanes.type, ir.Undefined)
    return Real(lanes, lanes.builder.call(callee, [x.ir, downwards, nothing, ir.Constant(mask, -1), as_set]))


def rounded(x: Real) -> tuple[Real, Whole]:
    """The nearest integer as number and as integer, for |x| < 2^(mantissa - 1)."""
    shifter = x.lanes.format.shifter
    shifted = x + shifter
    return shifted - shifter, shifted.bits() - x.lanes.format.pattern(shifter)


def polynomial(x: Real, table: str, in_turn: bool = False) -> Real:
    """Σ c_k x^k of the coefficients of that name.

    The last step is always x q(x) + c_0. A short q goes by Horner's rule; a long one as two or four polynomials of
    x² or x⁴ side by side: a chain of twenty dependent operations would leave a processor waiting. `in_turn`
    keeps to Horner's rule, which rounds a little less and, where several polynomials are computed, holds fewer values.
    """
    lowest, *rest = x.lanes.table(table)
    ways = 1 if in_turn or len(rest) < 7 else 2 if len(rest) < 13 else 4
    square = x * x if ways > 1 else x
    power = square * square if ways > 2 else square
    q = [_horner(power, rest[start::ways]) for start in range(ways)]
    if ways > 1:
        q = [fma(x, odd, even) for even, odd in zip(q[0::2], q[1::2], strict=True)]
    if ways > 2:
        q = [fma(square, q[1], q[0])]
    return fma(x, q[0], lowest)


def _horner(x: Real, lowest_first: Sequence[float]) -> Real:
    total = x.lanes.real(lowest_first[-1])
    for c in reversed(lowest_first[:-1]):
        total = fma(total, x, c)
    return total
