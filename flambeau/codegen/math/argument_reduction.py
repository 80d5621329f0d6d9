"""Angles less their multiples of π or π/2: by π in three pieces near 0, by the bits of 1/π (Payne and Hanek) far away.

Up to 2^17 in float32 and 2^30 in double the multiple is a small integer, and its products with the pieces of π
are taken off by fma without loss. Beyond, where some lane needs it, a function called out of line multiplies that
lane's 53 bits with the 192 bits of 1/π that matter for its exponent, in integers; so every finite
argument is reduced to all its bits, and programs that stay near 0 pay for one test.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import Any

from llvmlite import ir

from ..llvm.vectors import (
    DOUBLE,
    SINGLE,
    Lanes,
    Real,
    Whole,
    declared,
    fast_two_sum,
    fma,
    two_product,
    two_sum,
    where,
)

Value = Any

# π in pieces of the format's own width: their sum has its leading 72 or 159 bits
PI = {
    SINGLE.name: ("0x1.921fb6p+1", "-0x1.777a5cp-24", "-0x1.ee59dap-49"),
    DOUBLE.name: ("0x1.921fb54442d18p+1", "0x1.1a62633145c07p-53", "-0x1.f1976b7ed8fbcp-109"),
}
NEAR = {SINGLE.name: 2.0**17, DOUBLE.name: 2.0**30}
I1, I32, I64, I128, F64 = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.IntType(128), ir.DoubleType()


def modulo_pi(x: Real, shift: float = 0.0) -> tuple[Real, Real, Whole]:
    """(r, low, k): x = (k + shift) π + r + low, |r| about π/2 at most, shift 0 or ½; only k's parity is meant."""
    return _modulo(x, shift, 1.0)


def modulo_half_pi(x: Real) -> tuple[Real, Real, Whole]:
    """(r, low, k): x = k π/2 + r + low, |r| about π/4 at most; only k's parity is meant."""
    return _modulo(x, 0.0, 0.5)


def _modulo(x: Real, shift: float, unit: float) -> tuple[Real, Real, Whole]:
    """The reduction by unit · π, emitted once into the module as a function that is inlined where it is called."""
    lanes = x.lanes
    name = f"flambeau.angle.{'half' if unit < 1 else 'shifted' if shift else 'whole'}.{_mangled(lanes)}"
    result = ir.LiteralStructType([lanes.type, lanes.type, lanes.whole_type])
    function = lanes.builder.module.globals.get(name)
    if function is None:
        function = ir.Function(lanes.builder.module, ir.FunctionType(result, [lanes.type]), name)
        function.linkage = "internal"
        function.attributes.add("alwaysinline")
        _define(function, lanes, shift, unit)
    pair = lanes.builder.call(function, [x.ir])
    out = [lanes.builder.extract_value(pair, i) for i in range(3)]
    return Real(lanes, out[0]), Real(lanes, out[1]), Whole(lanes, out[2])


def _mangled(lanes: Lanes) -> str:
    return f"v{lanes.count}f{lanes.format.bits}" + ("" if lanes.fused else ".unfused")


def _define(function: Value, outer: Lanes, shift: float, unit: float) -> None:
    builder = ir.IRBuilder(function.append_basic_block("near"))
    lanes = Lanes(builder, outer.type, outer.fused, outer.precision)
    x = Real(lanes, function.args[0])
    near: tuple[Any, ...] = _near(x, shift, unit)
    far = ~(abs(x) < NEAR[lanes.format.name])
    entry, slow, done = builder.block, function.append_basic_block("far"), function.append_basic_block("done")
    # weights: the far side is rare
    builder.cbranch(far.any(), slow, done).set_weights([1, 10000])
    builder.position_at_end(slow)
    distant = builder.call(_far(builder.module, lanes, shift, unit), [x.ir, far.ir, *(v.ir for v in near)])
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


def _near(x: Real, shift: float, unit: float) -> tuple[Real, Real, Whole]:
    lanes = x.lanes
    if lanes.format is SINGLE and not lanes.fused:  # products with float32 pieces would be rounded
        wide = lanes.over(F64, "widened")
        r, _, multiple = _near(x.to(wide), shift, unit)
        short = r.to(lanes)
        kept = lanes.builder.trunc(multiple.ir, lanes.whole_type)
        return short, (r - short.to(wide)).to(lanes), Whole(lanes, kept)
    shifter = lanes.format.shifter
    shifted = fma(x, 1 / math.pi / unit, shifter - shift) if not shift else (x * (1 / math.pi) - shift) + shifter
    k = shifted - shifter
    whole = shifted.bits() - lanes.format.pattern(shifter)
    if shift:
        k = k + shift
    first, second, third = (float.fromhex(piece) * unit for piece in PI[lanes.format.name])
    if lanes.fused:
        r = fma(-k, first, x)  # exact: a multiple of the last bit of the first piece, and small
    else:
        # the first piece in two, so short that their products with k < 2^31 are exact
        top = _cut(first, 22)
        p, p_low = two_product(k, first - top)
        r, r_low = two_sum((x - k * top) - p, -p_low)
        q, q_low = two_product(k, second)
        total, rest = two_sum(r, -q)
        low = rest + r_low - q_low - k * third
        total, low = fast_two_sum(total, low)
        return total, low, whole
    if lanes.format is SINGLE and unit == 1.0:
        # cancellation leaves no error; the sine, flat where r is large, forgives that of the last step
        r = fma(-k, second, r)
        return fma(-k, third, r), lanes.real(0.0), whole
    p, p_low = two_product(k, second)
    r, low = two_sum(r, -p)
    r, low = fast_two_sum(r, low - p_low - k * third)
    return r, low, whole


def _cut(x: float, bits: int) -> float:
    mantissa, exponent = math.frexp(x)
    return math.ldexp(math.floor(mantissa * 2**bits), exponent - bits)


def _far(module: Value, lanes: Lanes, shift: float, unit: float) -> Value:
    """The function (x, mask, r, low, k) -> (r, low, k) that reduces anew the lanes where the mask holds."""
    name = f"flambeau.angle.far.{'half' if unit < 1 else 'shifted' if shift else 'whole'}.{_mangled(lanes)}"
    types = [lanes.type, lanes.mask_type, lanes.type, lanes.type, lanes.whole_type]
    result = ir.LiteralStructType(types[2:])
    function = declared(module, name, ir.FunctionType(result, types))
    if function.blocks:
        return function
    function.linkage = "internal"
    function.attributes.add("noinline")
    function.attributes.add("cold")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    one = _payne_hanek(module, lanes.fused)
    element = lanes.type.element if lanes.count else lanes.type
    kind = ir.Constant(I32, 2 if unit < 1 else 1 if shift else 0)

    def reduce(x: Value) -> tuple[Value, Value, Value]:
        wide = x if element == F64 else builder.fpext(x, F64)
        got = builder.call(one, [wide, kind])
        high, low, k = (builder.extract_value(got, i) for i in range(3))
        if element == F64:
            return high, low, k
        short = builder.fptrunc(high, element)
        rest = builder.fadd(builder.fsub(high, builder.fpext(short, F64)), low)
        return short, builder.fptrunc(rest, element), builder.trunc(k, ir.IntType(32))

    if not lanes.count:
        values = list(reduce(function.args[0]))
    else:
        entry = builder.block
        head, work, step, end = (function.append_basic_block(n) for n in ("lane", "work", "step", "end"))
        builder.branch(head)
        builder.position_at_end(head)
        lane = builder.phi(I32)
        lane.add_incoming(ir.Constant(I32, 0), entry)
        kept = [builder.phi(t) for t in types[2:]]
        for phi, arg in zip(kept, function.args[2:], strict=True):
            phi.add_incoming(arg, entry)
        builder.cbranch(builder.extract_element(function.args[1], lane), work, step)
        builder.position_at_end(work)
        new = reduce(builder.extract_element(function.args[0], lane))
        worked = [builder.insert_element(phi, v, lane) for phi, v in zip(kept, new, strict=True)]
        work_end = builder.block
        builder.branch(step)
        builder.position_at_end(step)
        values = []
        for phi, v in zip(kept, worked, strict=True):
            merged = builder.phi(phi.type)
            merged.add_incoming(phi, head)
            merged.add_incoming(v, work_end)
            values.append(merged)
        following = builder.add(lane, ir.Constant(I32, 1))
        lane.add_incoming(following, step)
        for phi, v in zip(kept, values, strict=True):
            phi.add_incoming(v, step)
        builder.cbranch(builder.icmp_unsigned("<", following, ir.Constant(I32, lanes.count)), head, end)
        builder.position_at_end(end)
    out: Value = ir.Constant(result, ir.Undefined)
    for i, v in enumerate(values):
        out = builder.insert_value(out, v, i)
    builder.ret(out)
    return function


@cache
def bits_of_inverse_pi(count: int) -> int:
    """⌊2^count / π⌋, by Machin's formula in integers."""
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


def _payne_hanek(module: Value, fused: bool) -> Value:
    """(x, kind) -> (r, low, k): one finite double with |x| >= 2^17, modulo π (0), shifted by π/2 (1), or π/2 (2)."""
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
    # |x| = mantissa 2^(exponent - 1075). The window's first bit has the weight that makes it 1 in |x|/π, or, in units
    # of π/2, 2: what lies to the left only adds even multiples. The table has 128 zero bits in front.
    start = builder.add(exponent, c64(128 - 1075))
    start = builder.sub(start, builder.select(builder.icmp_signed("==", kind, ir.Constant(I32, 2)), c64(0), c64(1)))
    # exponents of inf and NaN reach no further than the table: it is padded
    word, offset = builder.lshr(start, c64(6)), builder.and_(start, c64(63))
    loaded = []
    for i in range(4):
        address = builder.gep(table, [c64(0), builder.add(word, c64(i))], inbounds=True, source_etype=_table_type())
        loaded.append(builder.load(address, typ=I64))
    window = []
    for high, low in pairwise(loaded):
        both = builder.or_(builder.shl(wide(high), c128(64)), wide(low))
        window.append(builder.trunc(builder.lshr(builder.shl(both, wide(offset)), c128(64)), I64))
    lowest = builder.mul(wide(mantissa), wide(window[2]))
    middle = builder.add(builder.mul(wide(mantissa), wide(window[1])), builder.lshr(lowest, c128(64)))
    top = builder.add(builder.mul(mantissa, window[0]), builder.trunc(builder.lshr(middle, c128(64)), I64))
    # fraction: units of 2^-127 of the modulus, its first bit the parity of the multiple
    fraction = builder.or_(builder.shl(wide(top), c128(64)), wide(builder.trunc(middle, I64)))
    shifted = builder.icmp_signed("==", kind, ir.Constant(I32, 1))
    fraction = builder.sub(fraction, builder.select(shifted, c128(1 << 126), c128(0)))
    k = builder.lshr(builder.add(fraction, c128(1 << 126)), c128(127))
    rest = builder.sub(fraction, builder.shl(k, c128(127)))
    below = builder.icmp_signed("<", rest, c128(0))
    size = builder.select(below, builder.neg(rest), rest)
    count_zeros = declared(module, "llvm.ctlz.i128", ir.FunctionType(I128, [I128, I1]))
    zeros = builder.call(count_zeros, [builder.or_(size, c128(1)), ir.Constant(I1, 0)])
    normal = builder.shl(size, zeros)
    first = builder.uitofp(builder.trunc(builder.lshr(normal, c128(75)), I64), F64)
    second = builder.uitofp(builder.and_(builder.trunc(builder.lshr(normal, c128(22)), I64), c64((1 << 53) - 1)), F64)
    power = builder.sub(c64(1023 + 75 - 127), builder.trunc(zeros, I64))
    scalar = Lanes(builder, F64, fused)
    unit = Whole(scalar, builder.shl(power, c64(52))).pattern()
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


TABLE_WORDS = 22  # 128 zeros, then the bits that the largest exponent reaches, inf and NaN included


def _table_type() -> Value:
    return ir.ArrayType(I64, TABLE_WORDS)


def _inverse_pi_table(module: Value) -> Value:
    name = "flambeau.angle.inverse_pi"
    found = module.globals.get(name)
    if found is not None:
        return found
    count = 64 * (TABLE_WORDS - 2)
    digits = bits_of_inverse_pi(count)
    words = [0, 0, *((digits >> (count - 64 * (i + 1))) & (2**64 - 1) for i in range(TABLE_WORDS - 2))]
    table = ir.GlobalVariable(module, _table_type(), name)
    table.linkage = "internal"
    table.global_constant = True
    table.initializer = ir.Constant(_table_type(), words)
    return table
