"""Building blocks of mathematical functions: error-free transformations, powers of two, tables, polynomials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from ..llvm.vectors import SINGLE, Integer, Real, VectorContext, declared, host_has_scalef, to_float32

Value = Any  # ir.Value: llvmlite has no type annotations


def fma(a: Real, b: float | Real, c: float | Real) -> Real:
    """a b + c: rounded once if the target has fma, else twice."""
    context = a.context
    if context.fused:
        return context.call("fma", a, context.real(b), context.real(c))
    return a * b + c


def two_product(a: Real, b: float | Real) -> tuple[Real, Real]:
    """(p, e) with p = fl(a b) and p + e = a b exactly, barring underflow (Dekker's algorithm without fma)."""
    context = a.context
    b = context.real(b)
    p = a * b
    if context.fused:
        return p, fma(a, b, -p)
    a_high, a_low = split_mantissa(a)
    b_high, b_low = split_mantissa(b)
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def split_mantissa(a: Real) -> tuple[Real, Real]:
    """(high, low) with half of the mantissa's bits each, and high + low = a."""
    cleared = (a.context.format.mantissa + 2) // 2
    high = (a.bits() & -(1 << cleared)).as_real()
    return high, a - high


def two_sum(a: Real, b: Real) -> tuple[Real, Real]:
    """(s, e) with s = fl(a + b) and s + e = a + b exactly."""
    s = a + b
    b_rounded = s - a
    return s, (a - (s - b_rounded)) + (b - b_rounded)


def fast_two_sum(a: Real, b: Real) -> tuple[Real, Real]:
    """`two_sum` for |a| >= |b|."""
    s = a + b
    return s, b - (s - a)


def power_of_two(n: Integer) -> Real:
    """2^n in the range of normal numbers."""
    format_ = n.context.format
    return ((n + format_.bias) << format_.mantissa).as_real()


def has_scalef(context: VectorContext) -> bool:
    """Whether `ldexp` is AVX-512's instruction, for which n may be any integer."""
    return context.precision != "widened" and context.lanes * context.format.bits == 512 and host_has_scalef()


def ldexp(p: Real, n: Integer) -> Real:
    """p 2^n with one rounding, subnormal results included; |n| may be twice the exponent range."""
    if p.context.precision == "widened":  # all float32 results are normal doubles
        return p * power_of_two(n)
    if has_scalef(p.context):
        return _scalef(p, n)
    half = n >> 1
    return p * power_of_two(half) * power_of_two(n - half)


def _scalef(p: Real, n: Integer) -> Real:
    """`ldexp` by AVX-512's `vscalef`, which replaces eight instructions."""
    context = p.context
    builder, suffix = context.builder, "ps" if context.format is SINGLE else "pd"
    mask, rounding = ir.IntType(context.lanes), ir.IntType(32)
    callee = declared(builder.module, f"llvm.x86.avx512.mask.scalef.{suffix}.512",
                      ir.FunctionType(context.type, [*[context.type] * 3, mask, rounding]))
    exponent = builder.sitofp(n.ir, context.type)
    undefined, current = ir.Constant(context.type, ir.Undefined), ir.Constant(rounding, 4)  # the current rounding mode
    return Real(context, builder.call(callee, [p.ir, exponent, undefined, ir.Constant(mask, -1), current]))


def table_lookup(table: Sequence[float], index: Integer) -> Real:
    """The element of a table of 16 that the low four bits select; requires `VectorContext.has_table_lookup`."""
    context, builder, count = index.context, index.context.builder, index.context.lanes
    sixteen, integers = ir.VectorType(ir.FloatType(), 16), ir.VectorType(ir.IntType(32), 16)
    callee = declared(builder.module, "llvm.x86.avx512.permvar.sf.512", ir.FunctionType(sixteen, [sixteen, integers]))
    values = ir.Constant(sixteen, [to_float32(each) for each in table])
    if count == 16:
        return Real(context, builder.call(callee, [values, index.ir]))
    if not count:
        undefined = ir.Constant(integers, ir.Undefined)
        first = ir.Constant(ir.IntType(32), 0)
        vector = builder.call(callee, [values, builder.insert_element(undefined, index.ir, first)])
        return Real(context, builder.extract_element(vector, first))
    parts = [builder.call(callee, [values, _shuffle(builder, index.ir, range(i, i + 16), count)])
             for i in range(0, count, 16)]
    while len(parts) > 1:
        width = parts[0].type.count
        parts = [builder.shuffle_vector(low, high, ir.Constant(ir.VectorType(ir.IntType(32), 2 * width),
                                                               list(range(2 * width))))
                 for low, high in zip(parts[::2], parts[1::2], strict=True)]
    return Real(context, parts[0] if count > 16 else _shuffle(builder, parts[0], range(count), 16))


def _shuffle(builder: Value, vector: Value, indices: Sequence[int], count: int) -> Value:
    """The elements of a vector of `count` at these indices, clamped to the last one."""
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(indices)), [min(i, count - 1) for i in indices])
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)


def floor_to_bits(x: Real, bits: int) -> Real:
    """Round x down to a multiple of 2^-bits."""
    context = x.context
    if not (context.has_table_lookup and context.lanes == 16):
        return context.call("floor", x * 2.0**bits) * 2.0**-bits
    mask, kind = ir.IntType(16), ir.IntType(32)
    callee = declared(context.builder.module, "llvm.x86.avx512.mask.rndscale.ps.512",
                      ir.FunctionType(context.type, [context.type, kind, context.type, mask, kind]))
    downwards, current = ir.Constant(kind, bits << 4 | 9), ir.Constant(kind, 4)
    undefined = ir.Constant(context.type, ir.Undefined)
    return Real(context, context.builder.call(callee, [x.ir, downwards, undefined, ir.Constant(mask, -1), current]))


def round_to_integer(x: Real) -> tuple[Real, Integer]:
    """The nearest integer, as Real and as Integer, for |x| < 2^(mantissa - 1)."""
    shifter = x.context.format.shifter
    shifted = x + shifter
    return shifted - shifter, shifted.bits() - x.context.format.bits_of(shifter)


def polynomial(x: Real, table: str, horner: bool = False) -> Real:
    """Evaluate the polynomial Σ c_k x^k.

    The last step is always x q(x) + c_0. A short q is evaluated by Horner's rule, a long one as two or four
    polynomials in x² or x⁴ (Estrin's scheme), since a chain of dependent operations is bound by latency.

    Args:
        x: the argument.
        table: the name of the coefficients.
        horner: always use Horner's rule, which rounds less and, if several polynomials are computed, keeps fewer
            values in registers.
    """
    lowest, *rest = x.context.table(table)
    ways = 1 if horner or len(rest) < 7 else 2 if len(rest) < 13 else 4
    square = x * x if ways > 1 else x
    power = square * square if ways > 2 else square
    q = [_horner(power, rest[start::ways]) for start in range(ways)]
    if ways > 1:
        q = [fma(x, odd, even) for even, odd in zip(q[0::2], q[1::2], strict=True)]
    if ways > 2:
        q = [fma(square, q[1], q[0])]
    return fma(x, q[0], lowest)


def _horner(x: Real, lowest_first: Sequence[float]) -> Real:
    total = x.context.real(lowest_first[-1])
    for c in reversed(lowest_first[:-1]):
        total = fma(total, x, c)
    return total
