"""An expression's nodes as LLVM values: scalars, or vectors of as many elements as the caller asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ...dtypes import BFLOAT16, HALF
from ...runtime import target
from ..scalar.paired_functions import paired
from ..scalar.scalar_ir import BOOL, COMPARISON, FLOAT64, SINGLE, TRANSCENDENTAL, Node, ordered

_FLOATS = {2: ir.HalfType(), 4: ir.FloatType(), 8: ir.DoubleType()}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint", "fma": "fma",
               "copysign": "copysign", "fmin": "minnum", "fmax": "maxnum"}


def stored(dtype: np.dtype) -> ir.Type:
    """The type of an element in memory: bool is a byte, bfloat16 two."""
    if dtype.kind == "f":
        return _FLOATS[dtype.itemsize]
    return ir.IntType(8 * dtype.itemsize)


def computed(dtype: np.dtype, lanes: int = 0) -> ir.Type:
    """The type of `lanes` elements to compute with (0: one, not in a vector): bool is a bit."""
    scalar = ir.IntType(1) if dtype == BOOL else stored(dtype)
    return ir.VectorType(scalar, lanes) if lanes else scalar


def mangled(type_: ir.Type) -> str:
    """The type as it stands in the names of LLVM's intrinsics."""
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{mangled(type_.element)}"
    if isinstance(type_, ir.IntType):
        return f"i{type_.width}"
    return {ir.HalfType: "f16", ir.FloatType: "f32", ir.DoubleType: "f64"}.get(type(type_), "p0")


def intrinsic(builder: ir.IRBuilder, name: str, result: ir.Type, args: Sequence[Any],
              over: Sequence[ir.Type] | None = None) -> Any:
    """A call of LLVM's intrinsic `name`, overloaded by the types `over` (its result's, if not said)."""
    full = ".".join(["llvm", name, *map(mangled, [result] if over is None else over)])
    function = builder.module.globals.get(full)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(result, [arg.type for arg in args]), full)
    return builder.call(function, args)


def splat(builder: ir.IRBuilder, value: Any, lanes: int) -> Any:
    """A vector whose elements all are `value`; the value itself where there are no lanes."""
    if not lanes:
        return value
    one = builder.insert_element(ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined), value,
                                 ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, ir.Constant(one.type, ir.Undefined),
                                  ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes))


def number(value: Any, type_: ir.Type) -> ir.Constant:
    """The Python number, or raw bits of a float, as a constant of a scalar or vector type."""
    scalar = type_.element if isinstance(type_, ir.VectorType) else type_
    one = _FloatBits(scalar, value) if isinstance(value, bytes) else ir.Constant(scalar, value)
    return ir.Constant(type_, one) if isinstance(type_, ir.VectorType) else one


class _FloatBits(ir.Constant):  # type: ignore[misc]
    """A float given by its bits: NaN's own, and -0."""

    def __init__(self, type_: ir.Type, bits: bytes) -> None:
        super().__init__(type_, 0.0)
        # LLVM writes every float as the bits of the double of that value
        with np.errstate(all="ignore"):
            wide = np.frombuffer(bits, np.float32 if len(bits) == 4 else np.float64).astype(np.float64)
        self.text = f"0x{wide.view(np.uint64)[0]:016X}"

    def get_reference(self) -> str:
        return self.text


def _is_number(node: Node) -> bool:
    return node.op == "constant" and node.value == node.value


def extreme(builder: ir.IRBuilder, op: str, kind: str, x: Any, y: Any, x_is_number: bool = False) -> Any:
    """minimum and maximum: of floats, NaN where either is."""
    sign = "<" if op == "minimum" else ">"
    if kind != "f":
        compare = builder.icmp_signed if kind == "i" else builder.icmp_unsigned
        return builder.select(compare(sign, x, y), x, y)
    chosen = builder.select(builder.fcmp_ordered(sign, x, y), x, y)  # y where either is NaN
    if x_is_number:
        return chosen
    return builder.select(builder.fcmp_unordered("uno", x, x), x, chosen)


def _divide(builder: ir.IRBuilder, node: Node, x: Any, y: Any) -> Any:
    """Division; of integers towards zero, and 0 where the divisor is: the processor would trap."""
    if node.dtype.kind == "f":
        return builder.fdiv(x, y)
    zero, one = number(0, x.type), number(1, x.type)
    none = builder.icmp_unsigned("==", y, zero)
    if node.dtype.kind == "u":
        return builder.select(none, zero, builder.udiv(x, builder.select(none, one, y)))
    back = builder.icmp_signed("==", y, number(-1, x.type))  # the least integer has no opposite
    safe = builder.select(builder.or_(none, back), one, y)
    return builder.select(none, zero, builder.select(back, builder.sub(zero, x), builder.sdiv(x, safe)))


def _from_float(builder: ir.IRBuilder, x: Any, to: np.dtype, lanes: int) -> Any:
    result = computed(to, lanes)
    if to == BOOL:
        return builder.fcmp_unordered("!=", x, number(0.0, x.type))
    if to.kind == "u" and to.itemsize == 8:
        return builder.fptoui(x, result)
    # through a wider integer, of which the low bits remain, as PyTorch's conversion does
    bits = 64 if to.itemsize == 8 or to == np.dtype(np.uint32) else 32
    between = ir.IntType(bits) if not lanes else ir.VectorType(ir.IntType(bits), lanes)
    whole = builder.fptosi(x, between)
    return whole if between == result else builder.trunc(whole, result)


def to_bfloat16(builder: ir.IRBuilder, x: Any, lanes: int) -> Any:
    """float32 rounded to the nearest bfloat16, ties to even, as its 16 bits."""
    wide = ir.VectorType(ir.IntType(32), lanes) if lanes else ir.IntType(32)
    bits = builder.bitcast(x, wide)
    odd = builder.and_(builder.lshr(bits, number(16, wide)), number(1, wide))
    rounded = builder.lshr(builder.add(bits, builder.add(odd, number(0x7FFF, wide))), number(16, wide))
    kept = builder.select(builder.fcmp_unordered("uno", x, x), number(0x7FC0, wide), rounded)
    return builder.trunc(kept, computed(BFLOAT16, lanes))


def _from_half(builder: ir.IRBuilder, x: Any, lanes: int) -> Any:
    """float16 as float32, where the processor has no instruction for it: its exponent moved, by a multiplication."""
    wide = ir.VectorType(ir.IntType(32), lanes) if lanes else ir.IntType(32)
    single = computed(np.dtype(np.float32), lanes)
    bits = builder.zext(builder.bitcast(x, computed(np.dtype(np.uint16), lanes)), wide)
    magnitude = builder.shl(builder.and_(bits, number(0x7FFF, wide)), number(13, wide))
    scaled = builder.bitcast(builder.fmul(builder.bitcast(magnitude, single), number(2.0**112, single)), wide)
    endless = builder.icmp_unsigned(">=", magnitude, number(0x7C00 << 13, wide))  # infinite, or NaN
    value = builder.select(endless, builder.or_(magnitude, number(0x7F800000, wide)), scaled)
    sign = builder.shl(builder.and_(bits, number(0x8000, wide)), number(16, wide))
    return builder.bitcast(builder.or_(value, sign), single)


def _to_half(builder: ir.IRBuilder, x: Any, lanes: int) -> Any:
    """float32 rounded to float16, ties to even, where the processor has no instruction for it."""
    wide = ir.VectorType(ir.IntType(32), lanes) if lanes else ir.IntType(32)
    bits = builder.bitcast(x, wide)
    magnitude = builder.and_(bits, number(0x7FFFFFFF, wide))
    odd = builder.and_(builder.lshr(magnitude, number(13, wide)), number(1, wide))
    rounded = builder.add(builder.add(magnitude, odd), number(0xFFF - 0x38000000, wide))
    normal = builder.lshr(rounded, number(13, wide))
    # a subnormal's last place is that of 0.5 in float32, where an addition rounds to it
    half = number(0.5, x.type)
    small = builder.sub(builder.bitcast(builder.fadd(builder.bitcast(magnitude, x.type), half), wide),
                        number(0x3F000000, wide))
    nan = builder.icmp_unsigned(">", magnitude, number(0x7F800000, wide))
    large = builder.select(nan, number(0x7E00, wide), number(0x7C00, wide))
    value = builder.select(builder.icmp_unsigned("<", magnitude, number(0x38800000, wide)), small, normal)
    value = builder.select(builder.icmp_unsigned(">=", magnitude, number(0x47800000, wide)), large, value)
    sign = builder.and_(builder.lshr(bits, number(16, wide)), number(0x8000, wide))
    narrow = builder.trunc(builder.or_(value, sign), computed(np.dtype(np.uint16), lanes))
    return builder.bitcast(narrow, computed(np.dtype(np.float16), lanes))


def _cast(builder: ir.IRBuilder, node: Node, x: Any, lanes: int) -> Any:
    source, to = node.args[0].dtype, node.dtype
    result = computed(to, lanes)
    if source == BFLOAT16:  # to float32
        wide = ir.VectorType(ir.IntType(32), lanes) if lanes else ir.IntType(32)
        return builder.bitcast(builder.shl(builder.zext(x, wide), number(16, wide)), result)
    if to == BFLOAT16:
        return to_bfloat16(builder, x, lanes)
    if source.kind == "f":
        if 2 in (source.itemsize, to.itemsize) and to.kind == "f" and not target.host().converts_half:
            return _from_half(builder, x, lanes) if source.itemsize == 2 else _to_half(builder, x, lanes)
        if to == HALF and node.args[0].op == "cast" and node.args[0].args[0].dtype == FLOAT64:
            # rounded twice, as PyTorch does: LLVM would make one call to a library of it, which is not there
            x = intrinsic(builder, "arithmetic.fence", x.type, [x], [x.type])
        if to.kind == "f":
            return builder.fpext(x, result) if to.itemsize > source.itemsize else builder.fptrunc(x, result)
        return _from_float(builder, x, to, lanes)
    if to.kind == "f":
        return builder.sitofp(x, result) if source.kind == "i" else builder.uitofp(x, result)
    if to == BOOL:
        return builder.icmp_unsigned("!=", x, number(0, x.type))
    width, wanted = (1 if source == BOOL else 8 * source.itemsize), 8 * to.itemsize
    if width == wanted:
        return x
    if width > wanted:
        return builder.trunc(x, result)
    return builder.sext(x, result) if source.kind == "i" else builder.zext(x, result)


def _compare(builder: ir.IRBuilder, node: Node, x: Any, y: Any) -> Any:
    kind = node.args[0].dtype.kind
    sign = _COMPARE[node.op]
    if kind == "f":
        return builder.fcmp_unordered(sign, x, y) if node.op == "ne" else builder.fcmp_ordered(sign, x, y)
    return builder.icmp_signed(sign, x, y) if kind == "i" else builder.icmp_unsigned(sign, x, y)


def _operation(builder: ir.IRBuilder, node: Node, args: list[Any], lanes: int) -> Any:
    op, floating = node.op, node.dtype.kind == "f"
    if op in TRANSCENDENTAL or op in SINGLE:
        from ..math import functions

        return functions.emit(op, builder, args, args[0].type)
    if op in _INTRINSICS and floating:
        return intrinsic(builder, _INTRINSICS[op], args[0].type, args)
    if op in COMPARISON:
        return _compare(builder, node, *args)
    if op in ("minimum", "maximum", "fmin", "fmax"):
        turned = _is_number(node.args[1])
        first = node.args[turned]
        x, y = args[::-1] if turned else args
        named = {"fmin": "minimum", "fmax": "maximum"}.get(op, op)
        return extreme(builder, named, node.dtype.kind, x, y, _is_number(first))
    if op == "div":
        return _divide(builder, node, *args)
    if op == "cast":
        return _cast(builder, node, args[0], lanes)
    x = args[0]
    if op == "neg":
        return builder.fneg(x) if floating else builder.sub(number(0, x.type), x)
    if op == "abs":
        if floating:
            return intrinsic(builder, "fabs", x.type, args)
        if node.dtype.kind == "u":
            return x
        zero = number(0, x.type)
        return builder.select(builder.icmp_signed("<", x, zero), builder.sub(zero, x), x)
    if op == "recip":
        return builder.fdiv(number(1.0, x.type), x)
    if op == "rsqrt":
        return builder.fdiv(number(1.0, x.type), intrinsic(builder, "sqrt", x.type, args))
    simple: dict[str, Callable[..., Any]] = {
        "add": builder.fadd if floating else builder.add, "sub": builder.fsub if floating else builder.sub,
        "mul": builder.fmul if floating else builder.mul, "and": builder.and_, "or": builder.or_,
        "xor": builder.xor, "not": builder.not_, "select": builder.select,
    }
    return simple[op](*args)


def lower(builder: ir.IRBuilder, outputs: Sequence[Node], inputs: dict[Node, Any], lanes: int = 0) -> list[Any]:
    """The outputs' values, computed where the builder stands from the values of the inputs.

    Args:
        builder: writes at the end of its block.
        outputs: the expressions.
        inputs: the input nodes' values.
        lanes: elements in a vector, or 0 for scalars.
    """
    values = dict(inputs)
    outputs = paired(outputs)
    for node in ordered(outputs):
        if node in values:
            continue
        if node.op == "constant":
            bits = node.const if node.dtype.kind == "f" else int(node.value)
            values[node] = number(bits, computed(node.dtype, lanes))
        else:
            values[node] = _operation(builder, node, [values[arg] for arg in node.args], lanes)
    return [values[node] for node in outputs]
