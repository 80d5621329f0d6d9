"""Argument reduction of angles modulo π or π/2: Cody-Waite for small arguments, Payne-Hanek for large ones.

Up to 2^17 in float32 and 2^30 in double the multiple of π is a small integer, and its products with the parts of π are
subtracted exactly by fma. If some lane is larger, a function that is not inlined multiplies the lane's 53 bits by the
192 bits of 1/π that matter for its exponent, in integers. So every finite argument is reduced exactly, and small
arguments cost one comparison.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import Any

from llvmlite import ir

from ..llvm.vectors import DOUBLE, SINGLE, Integer, Real, VectorContext, declared, where
from .building_blocks import fast_two_sum, fma, two_product, two_sum

Value = Any

# π as a sum of three numbers of the format: 72 or 159 bits
PI = {
    SINGLE.name: ("0x1.921fb6p+1", "-0x1.777a5cp-24", "-0x1.ee59dap-49"),
    DOUBLE.name: ("0x1.921fb54442d18p+1", "0x1.1a62633145c07p-53", "-0x1.f1976b7ed8fbcp-109"),
}
#: the bound below which Cody-Waite reduction is exact
CODY_WAITE_LIMIT = {SINGLE.name: 2.0**17, DOUBLE.name: 2.0**30}
I1, I32, I64, I128, F64 = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.IntType(128), ir.DoubleType()


def modulo_pi(x: Real, shift: float = 0.0) -> tuple[Real, Real, Integer]:
    """(r, low, k) with x = (k + shift) π + r + low, |r| ≲ π/2, shift 0 or ½; only the parity of k is valid."""
    return _modulo(x, shift, 1.0)


def modulo_half_pi(x: Real) -> tuple[Real, Real, Integer]:
    """(r, low, k) with x = k π/2 + r + low, |r| ≲ π/4; only the parity of k is valid."""
    return _modulo(x, 0.0, 0.5)


def _modulo(x: Real, shift: float, unit: float) -> tuple[Real, Real, Integer]:
    """The reduction modulo unit · π: a function that is emitted once per module and always inlined."""
    context = x.context
    name = f"flambeau.angle.{'half' if unit < 1 else 'shifted' if shift else 'whole'}.{_mangled(context)}"
    result = ir.LiteralStructType([context.type, context.type, context.integer_type])
    function = context.builder.module.globals.get(name)
    if function is None:
        function = ir.Function(context.builder.module, ir.FunctionType(result, [context.type]), name)
        function.linkage = "internal"
        function.attributes.add("alwaysinline")
        _define(function, context, shift, unit)
    pair = context.builder.call(function, [x.ir])
    out = [context.builder.extract_value(pair, i) for i in range(3)]
    return Real(context, out[0]), Real(context, out[1]), Integer(context, out[2])


def _mangled(context: VectorContext) -> str:
    return f"v{context.lanes}f{context.format.bits}" + ("" if context.fused else ".unfused")


def _define(function: Value, outer: VectorContext, shift: float, unit: float) -> None:
    builder = ir.IRBuilder(function.append_basic_block("near"))
    context = VectorContext(builder, outer.type, outer.fused, outer.precision)
    x = Real(context, function.args[0])
    near: tuple[Any, ...] = _near(x, shift, unit)
    far = ~(abs(x) < CODY_WAITE_LIMIT[context.format.name])
    entry, slow, done = builder.block, function.append_basic_block("far"), function.append_basic_block("done")
    # branch weights: large arguments are rare
    builder.cbranch(far.any(), slow, done).set_weights([1, 10000])
    builder.position_at_end(slow)
    distant = builder.call(_far(builder.module, context, shift, unit), [x.ir, far.ir, *(v.ir for v in near)])
    distant = [builder.extract_value(distant, i) for i in range(3)]
    builder.branch(done)
    builder.position_at_end(done)
    merged = [builder.phi(a.ir.type) for a in near]
    result: Value = ir.Constant(function.ftype.return_type, ir.Undefined)
    for i, (phi, a, b) in enumerate(zip(merged, near, distant, strict=True)):
        phi.add_incoming(a.ir, entry)
        phi.add_incoming(b, slow)
        result = builder.insert_value(result, phi, i)
    builder.ret(result)


def _near(x: Real, shift: float, unit: float) -> tuple[Real, Real, Integer]:
    context = x.context
    if context.format is SINGLE and not context.fused:  # products with parts in float32 would be rounded
        wide = context.with_element(F64, "widened")
        r, _, multiple = _near(x.to(wide), shift, unit)
        high = r.to(context)
        narrow = context.builder.trunc(multiple.ir, context.integer_type)
        return high, (r - high.to(wide)).to(context), Integer(context, narrow)
    shifter = context.format.shifter
    shifted = fma(x, 1 / math.pi / unit, shifter - shift) if not shift else (x * (1 / math.pi) - shift) + shifter
    k = shifted - shifter
    integer = shifted.bits() - context.format.bits_of(shifter)
    if shift:
        k = k + shift
    first, second, third = (float.fromhex(piece) * unit for piece in PI[context.format.name])
    if context.fused:
        r = fma(-k, first, x)  # exact: a small multiple of the ulp of `first`
    else:
        # the first part split in two, with so few bits that products with k < 2^31 are exact
        top = _truncate(first, 22)
        p, p_low = two_product(k, first - top)
        r, r_low = two_sum((x - k * top) - p, -p_low)
        q, q_low = two_product(k, second)
        total, rest = two_sum(r, -q)
        low = rest + r_low - q_low - k * third
        total, low = fast_two_sum(total, low)
        return total, low, integer
    if context.format is SINGLE and unit == 1.0:
        # cancellation is exact; the rounding error of the last step matters little, as sine is flat for large r
        r = fma(-k, second, r)
        return fma(-k, third, r), context.real(0.0), integer
    p, p_low = two_product(k, second)
    r, low = two_sum(r, -p)
    r, low = fast_two_sum(r, low - p_low - k * third)
    return r, low, integer


def _truncate(x: float, bits: int) -> float:
    mantissa, exponent = math.frexp(x)
    return math.ldexp(math.floor(mantissa * 2**bits), exponent - bits)


def _far(module: Value, context: VectorContext, shift: float, unit: float) -> Value:
    """The function (x, mask, r, low, k) -> (r, low, k) that reduces the lanes of the mask by Payne-Hanek."""
    name = f"flambeau.angle.far.{'half' if unit < 1 else 'shifted' if shift else 'whole'}.{_mangled(context)}"
    types = [context.type, context.mask_type, context.type, context.type, context.integer_type]
    result = ir.LiteralStructType(types[2:])
    function = declared(module, name, ir.FunctionType(result, types))
    if function.blocks:
        return function
    function.linkage = "internal"
    function.attributes.add("noinline")
    function.attributes.add("cold")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    one = _payne_hanek(module, context.fused)
    element = context.type.element if context.lanes else context.type
    kind = ir.Constant(I32, 2 if unit < 1 else 1 if shift else 0)

    def reduce(x: Value) -> tuple[Value, Value, Value]:
        wide = x if element == F64 else builder.fpext(x, F64)
        reduced = builder.call(one, [wide, kind])
        high, low, k = (builder.extract_value(reduced, i) for i in range(3))
        if element == F64:
            return high, low, k
        narrow = builder.fptrunc(high, element)
        rest = builder.fadd(builder.fsub(high, builder.fpext(narrow, F64)), low)
        return narrow, builder.fptrunc(rest, element), builder.trunc(k, ir.IntType(32))

    if not context.lanes:
        values = list(reduce(function.args[0]))
    else:
        entry = builder.block
        head, work, step, end = (function.append_basic_block(n) for n in ("lane", "work", "step", "end"))
        builder.branch(head)
        builder.position_at_end(head)
        lane = builder.phi(I32)
        lane.add_incoming(ir.Constant(I32, 0), entry)
        current = [builder.phi(t) for t in types[2:]]
        for phi, arg in zip(current, function.args[2:], strict=True):
            phi.add_incoming(arg, entry)
        builder.cbranch(builder.extract_element(function.args[1], lane), work, step)
        builder.position_at_end(work)
        new = reduce(builder.extract_element(function.args[0], lane))
        worked = [builder.insert_element(phi, v, lane) for phi, v in zip(current, new, strict=True)]
        work_end = builder.block
        builder.branch(step)
        builder.position_at_end(step)
        values = []
        for phi, v in zip(current, worked, strict=True):
            merged = builder.phi(phi.type)
            merged.add_incoming(phi, head)
            merged.add_incoming(v, work_end)
            values.append(merged)
        following = builder.add(lane, ir.Constant(I32, 1))
        lane.add_incoming(following, step)
        for phi, v in zip(current, values, strict=True):
            phi.add_incoming(v, step)
        builder.cbranch(builder.icmp_unsigned("<", following, ir.Constant(I32, context.lanes)), head, end)
        builder.position_at_end(end)
    out: Value = ir.Constant(result, ir.Undefined)
    for i, v in enumerate(values):
        out = builder.insert_value(out, v, i)
    builder.ret(out)
    return function


@cache
def bits_of_inverse_pi(count: int) -> int:
    """⌊2^count / π⌋, by Machin's formula in integer arithmetic."""
    guard = count + 64

    def arc_tangent_of_inverse(n: int) -> int:
        total, power, k = 0, (1 << guard) // n, 1
        while power:
            total += power // k if k % 4 == 1 else -(power // k)
            power //= n * n
            k += 2
        return total

    pi = 4 * (4 * arc_tangent_of_inverse(5) - arc_tangent_of_inverse(239))
    return (1 << (guard + count)) // pi


def _product(builder: Value, x: Value, y: Value) -> tuple[Value, Value]:
    """The upper and the lower 64 bits of a product, from halves: WebAssembly has no wider one, and no library."""
    half, low_bits = ir.Constant(I64, 32), ir.Constant(I64, (1 << 32) - 1)
    (a, b), (c, d) = ((builder.lshr(v, half), builder.and_(v, low_bits)) for v in (x, y))
    low = builder.mul(b, d)
    first = builder.add(builder.mul(a, d), builder.lshr(low, half))
    second = builder.add(builder.mul(b, c), builder.and_(first, low_bits))
    upper = builder.add(builder.mul(a, c), builder.add(builder.lshr(first, half), builder.lshr(second, half)))
    return upper, builder.or_(builder.shl(second, half), builder.and_(low, low_bits))


def _payne_hanek(module: Value, fused: bool) -> Value:
    """The function (x, kind) -> (r, low, k) for finite |x| >= 2^17: modulo π (0), π shifted by π/2 (1), or π/2 (2)."""
    name = "flambeau.angle.payne_hanek" + ("" if fused else ".unfused")
    result = ir.LiteralStructType([F64, F64, I64])
    function = declared(module, name, ir.FunctionType(result, [F64, I32]))
    if function.blocks:
        return function
    function.linkage = "internal"
    function.attributes.add("noinline")
    table = _inverse_pi_table(module)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    x, kind = function.args

    def wide(v: Value) -> Value:
        return builder.zext(v, I128)

    def c64(v: int) -> Value:
        return ir.Constant(I64, v & (2**64 - 1))

    def c128(v: int) -> Value:
        return ir.Constant(I128, v & (2**128 - 1))

    bits = builder.bitcast(x, I64)
    mantissa = builder.or_(builder.and_(bits, c64((1 << 52) - 1)), c64(1 << 52))
    exponent = builder.and_(builder.lshr(bits, c64(52)), c64(0x7FF))
    # |x| = mantissa 2^(exponent - 1075). The first bit of the window contributes 1 to |x|/π, or 2 to |x|/(π/2): bits
    # to its left contribute even multiples only. The table begins with 128 zero bits.
    start = builder.add(exponent, c64(128 - 1075))
    start = builder.sub(start, builder.select(builder.icmp_signed("==", kind, ir.Constant(I32, 2)), c64(0), c64(1)))
    # the table is padded for the exponents of inf and NaN
    word, offset = builder.lshr(start, c64(6)), builder.and_(start, c64(63))
    loaded = []
    for i in range(4):
        address = builder.gep(table, [c64(0), builder.add(word, c64(i))], inbounds=True, source_etype=_table_type())
        loaded.append(builder.load(address, typ=I64))
    shift_pair = declared(module, "llvm.fshl.i64", ir.FunctionType(I64, [I64, I64, I64]))
    window = [builder.call(shift_pair, [high, low, offset]) for high, low in pairwise(loaded)]
    lowest, _ = _product(builder, mantissa, window[2])
    high_part, low_part = _product(builder, mantissa, window[1])
    middle = builder.add(low_part, lowest)
    carry = builder.zext(builder.icmp_unsigned("<", middle, lowest), I64)
    top = builder.add(builder.mul(mantissa, window[0]), builder.add(high_part, carry))
    # fraction, in units of 2^-127 of the modulus; its first bit is the parity of the multiple
    fraction = builder.or_(builder.shl(wide(top), c128(64)), wide(middle))
    shifted = builder.icmp_signed("==", kind, ir.Constant(I32, 1))
    fraction = builder.sub(fraction, builder.select(shifted, c128(1 << 126), c128(0)))
    k = builder.lshr(builder.add(fraction, c128(1 << 126)), c128(127))
    rest = builder.sub(fraction, builder.shl(k, c128(127)))
    below = builder.icmp_signed("<", rest, c128(0))
    size = builder.select(below, builder.neg(rest), rest)
    count_zeros = declared(module, "llvm.ctlz.i128", ir.FunctionType(I128, [I128, I1]))
    zeros = builder.call(count_zeros, [builder.or_(size, c128(1)), ir.Constant(I1, 0)])
    count = builder.trunc(zeros, I64)
    upper, lower = builder.trunc(builder.lshr(size, c128(64)), I64), builder.trunc(size, I64)
    is_far = builder.icmp_unsigned(">=", count, c64(64))
    upper, lower = builder.select(is_far, lower, upper), builder.select(is_far, c64(0), lower)
    upper, lower = (builder.call(shift_pair, [x, y, count]) for x, y in ((upper, lower), (lower, c64(0))))
    first = builder.uitofp(builder.lshr(upper, c64(11)), F64)
    second = builder.or_(builder.shl(upper, c64(42)), builder.lshr(lower, c64(22)))
    second = builder.uitofp(builder.and_(second, c64((1 << 53) - 1)), F64)
    power = builder.sub(c64(1023 + 75 - 127), count)
    scalar = VectorContext(builder, F64, fused)
    unit = Integer(scalar, builder.shl(power, c64(52))).as_real()
    high = Real(scalar, first) * unit
    low = Real(scalar, second) * (unit * 2.0**-53)
    half = builder.icmp_signed("==", kind, ir.Constant(I32, 2))
    pi = [float.fromhex(piece) for piece in PI["double"][:2]]
    pi_high = Real(scalar, builder.select(half, ir.Constant(F64, pi[0] / 2), ir.Constant(F64, pi[0])))
    pi_low = Real(scalar, builder.select(half, ir.Constant(F64, pi[1] / 2), ir.Constant(F64, pi[1])))
    r, r_low = two_product(high, pi_high)
    r_low = r_low + high * pi_low + low * pi_high
    r, r_low = fast_two_sum(r, r_low)
    negative = builder.icmp_signed("<", bits, c64(0))
    # -x = -k modulus - r; with the shift, x = (k + ½) π + r mirrors to (-k - 1 + ½) π - r: the other parity
    flip = builder.xor(below, negative)
    r = Real(scalar, builder.select(flip, (-r).ir, r.ir))
    r_low = Real(scalar, builder.select(flip, (-r_low).ir, r_low.ir))
    k = builder.trunc(k, I64)
    k = builder.xor(k, builder.zext(builder.and_(negative, shifted), I64))
    r = where(abs(Real(scalar, x)) < math.inf, r, math.nan)
    out: Value = ir.Constant(result, ir.Undefined)
    for i, v in enumerate((r.ir, r_low.ir, k)):
        out = builder.insert_value(out, v, i)
    builder.ret(out)
    return function


TABLE_WORDS = 22  # 128 zero bits, then the bits that the largest exponent (of inf and NaN) selects


def _table_type() -> Value:
    return ir.ArrayType(I64, TABLE_WORDS)


def _inverse_pi_table(module: Value) -> Value:
    name = "flambeau.angle.inverse_pi"
    table = module.globals.get(name)
    if table is not None:
        return table
    count = 64 * (TABLE_WORDS - 2)
    digits = bits_of_inverse_pi(count)
    words = [0, 0, *((digits >> (count - 64 * (i + 1))) & (2**64 - 1) for i in range(TABLE_WORDS - 2))]
    table = ir.GlobalVariable(module, _table_type(), name)
    table.linkage = "internal"
    table.global_constant = True
    table.initializer = ir.Constant(_table_type(), words)
    return table
