"""Lowering of scalar IR to LLVM IR, on scalars or vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ...dtypes import BFLOAT16, HALF
from ...runtime import target
from ..scalar.erf_rewrite import reuse_exponentials
from ..scalar.scalar_ir import BOOL, COMPARISON, FLOAT32_ONLY, FLOAT64, TRANSCENDENTAL, Node, topological_order

_FLOATS = {2: ir.HalfType(), 4: ir.FloatType(), 8: ir.DoubleType()}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint", "fma": "fma",
               "copysign": "copysign", "fmin": "minnum", "fmax": "maxnum"}


def memory_type(dtype: np.dtype) -> ir.Type:
    """The type of an element in memory: bool is i8, bfloat16 i16."""
    if dtype.kind == "f":
        return _FLOATS[dtype.itemsize]
    return ir.IntType(8 * dtype.itemsize)


def value_type(dtype: np.dtype, lanes: int = 0) -> ir.Type:
    """The type of a value in registers, a vector of `lanes` elements or (0) a scalar: bool is i1."""
    scalar = ir.IntType(1) if dtype == BOOL else memory_type(dtype)
    return ir.VectorType(scalar, lanes) if lanes else scalar


def type_suffix(type_: ir.Type) -> str:
    """The suffix for this type in the names of overloaded LLVM intrinsics."""
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{type_suffix(type_.element)}"
    if isinstance(type_, ir.IntType):
        return f"i{type_.width}"
    return {ir.HalfType: "f16", ir.FloatType: "f32", ir.DoubleType: "f64"}.get(type(type_), "p0")


def intrinsic(builder: ir.IRBuilder, name: str, result: ir.Type, args: Sequence[Any],
              over: Sequence[ir.Type] | None = None) -> Any:
    """Call LLVM's intrinsic `name`, overloaded on the types `over`; by default on the result's."""
    full = ".".join(["llvm", name, *map(type_suffix, [result] if over is None else over)])
    function = builder.module.globals.get(full)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(result, [arg.type for arg in args]), full)
    return builder.call(function, args)


def splat(builder: ir.IRBuilder, value: Any, lanes: int) -> Any:
    """Broadcast a scalar to a vector; with 0 lanes, return the scalar."""
    if not lanes:
        return value
    one = builder.insert_element(ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined), value,
                                 ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, ir.Constant(one.type, ir.Undefined),
                                  ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes))


def constant(value: Any, type_: ir.Type) -> ir.Constant:
    """A Python number, or the bytes of a float, as a constant of a scalar or vector type."""
    scalar = type_.element if isinstance(type_, ir.VectorType) else type_
    one = _FloatBits(scalar, value) if isinstance(value, bytes) else ir.Constant(scalar, value)
    return ir.Constant(type_, one) if isinstance(type_, ir.VectorType) else one


class _FloatBits(ir.Constant):  # type: ignore[misc]
    """A float constant given by its bits, which keeps the payload of NaN and the sign of zero."""

    def __init__(self, type_: ir.Type, bits: bytes) -> None:
        super().__init__(type_, 0.0)
        # LLVM IR spells a float as the bits of the equal double
        with np.errstate(all="ignore"):
            wide = np.frombuffer(bits, np.float32 if len(bits) == 4 else np.float64).astype(np.float64)
        self.text = f"0x{wide.view(np.uint64)[0]:016X}"

    def get_reference(self) -> str:
        return self.text


def _is_not_nan(node: Node) -> bool:
    return node.op == "constant" and node.value == node.value


def min_or_max(builder: ir.IRBuilder, op: str, kind: str, x: Any, y: Any, x_is_not_nan: bool = False) -> Any:
    """Minimum or maximum; of floats NaN if either is, unless x is known not to be."""
    sign = "<" if op == "minimum" else ">"
    if kind != "f":
        compare = builder.icmp_signed if kind == "i" else builder.icmp_unsigned
        return builder.select(compare(sign, x, y), x, y)
    chosen = builder.select(builder.fcmp_ordered(sign, x, y), x, y)  # y where either is NaN
    if x_is_not_nan:
        return chosen
    return builder.select(builder.fcmp_unordered("uno", x, x), x, chosen)


def _divide(builder: ir.IRBuilder, node: Node, x: Any, y: Any) -> Any:
    """Division; of integers truncated, and 0 for a divisor of 0, on which the processor would trap."""
    if node.dtype.kind == "f":
        return builder.fdiv(x, y)
    zero, one = constant(0, x.type), constant(1, x.type)
    by_zero = builder.icmp_unsigned("==", y, zero)
    if node.dtype.kind == "u":
        return builder.select(by_zero, zero, builder.udiv(x, builder.select(by_zero, one, y)))
    by_minus_one = builder.icmp_signed("==", y, constant(-1, x.type))  # INT_MIN / -1 traps
    safe = builder.select(builder.or_(by_zero, by_minus_one), one, y)
    return builder.select(by_zero, zero, builder.select(by_minus_one, builder.sub(zero, x), builder.sdiv(x, safe)))


def _from_float(builder: ir.IRBuilder, x: Any, to: np.dtype, lanes: int) -> Any:
    result = value_type(to, lanes)
    if to == BOOL:
        return builder.fcmp_unordered("!=", x, constant(0.0, x.type))
    if to.kind == "u" and to.itemsize == 8:
        return builder.fptoui(x, result)
    # converted to a wider integer and truncated, as PyTorch does
    bits = 64 if to.itemsize == 8 or to == np.dtype(np.uint32) else 32
    between = ir.IntType(bits) if not lanes else ir.VectorType(ir.IntType(bits), lanes)
    integer = builder.fptosi(x, between)
    return integer if between == result else builder.trunc(integer, result)


class BFloatType(ir.Type):  # type: ignore[misc]
    """LLVM's bfloat, which llvmlite lacks."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloatType)

    def __hash__(self) -> int:
        return hash(BFloatType)


def to_bfloat16(builder: ir.IRBuilder, x: Any, lanes: int) -> Any:
    """Round float32 to bfloat16 (i16), ties to even."""
    wide = ir.VectorType(ir.IntType(32), lanes) if lanes else ir.IntType(32)
    bits = builder.bitcast(x, wide)
    odd = builder.and_(builder.lshr(bits, constant(16, wide)), constant(1, wide))
    rounded = builder.lshr(builder.add(bits, builder.add(odd, constant(0x7FFF, wide))), constant(16, wide))
    bits = builder.select(builder.fcmp_unordered("uno", x, x), constant(0x7FC0, wide), rounded)
    return builder.trunc(bits, value_type(BFLOAT16, lanes))


#: operations whose result is a number of bfloat16 where all operands are
_KEEP_BFLOAT16 = frozenset(("neg", "abs", "minimum", "maximum", "fmin", "fmax", "floor", "ceil", "trunc", "round"))


def is_bfloat16(x: Node, depth: int = 8) -> bool:
    """Whether a float32 expression, no deeper than `depth`, has values of bfloat16 only, which need no rounding.

    >>> from flambeau.codegen.scalar.scalar_ir import cast, maximum, variable
    >>> x = cast(variable(0, BFLOAT16), "float32")
    >>> is_bfloat16(maximum(-x, 0.5)), is_bfloat16(x * x)
    (True, False)
    """
    if x.op == "cast":
        return x.args[0].dtype == BFLOAT16
    if x.op == "constant":
        return x.const[:2] == bytes(2)
    operands = x.args[1:] if x.op == "select" else x.args if x.op in _KEEP_BFLOAT16 else ()
    return bool(operands) and depth > 0 and all(is_bfloat16(each, depth - 1) for each in operands)


def _from_half(builder: ir.IRBuilder, x: Any, lanes: int) -> Any:
    """Convert float16 to float32 without a conversion instruction: a multiplication by 2^112 adjusts the exponent."""
    wide = ir.VectorType(ir.IntType(32), lanes) if lanes else ir.IntType(32)
    single = value_type(np.dtype(np.float32), lanes)
    bits = builder.zext(builder.bitcast(x, value_type(np.dtype(np.uint16), lanes)), wide)
    magnitude = builder.shl(builder.and_(bits, constant(0x7FFF, wide)), constant(13, wide))
    scaled = builder.bitcast(builder.fmul(builder.bitcast(magnitude, single), constant(2.0**112, single)), wide)
    not_finite = builder.icmp_unsigned(">=", magnitude, constant(0x7C00 << 13, wide))
    value = builder.select(not_finite, builder.or_(magnitude, constant(0x7F800000, wide)), scaled)
    sign = builder.shl(builder.and_(bits, constant(0x8000, wide)), constant(16, wide))
    return builder.bitcast(builder.or_(value, sign), single)


def _to_half(builder: ir.IRBuilder, x: Any, lanes: int) -> Any:
    """Round float32 to float16, ties to even, without a conversion instruction."""
    wide = ir.VectorType(ir.IntType(32), lanes) if lanes else ir.IntType(32)
    bits = builder.bitcast(x, wide)
    magnitude = builder.and_(bits, constant(0x7FFFFFFF, wide))
    odd = builder.and_(builder.lshr(magnitude, constant(13, wide)), constant(1, wide))
    rounded = builder.add(builder.add(magnitude, odd), constant(0xFFF - 0x38000000, wide))
    normal = builder.lshr(rounded, constant(13, wide))
    # adding 0.5 rounds to the ulp of float16 subnormals, which is that of 0.5 in float32
    half = constant(0.5, x.type)
    small = builder.sub(builder.bitcast(builder.fadd(builder.bitcast(magnitude, x.type), half), wide),
                        constant(0x3F000000, wide))
    nan = builder.icmp_unsigned(">", magnitude, constant(0x7F800000, wide))
    large = builder.select(nan, constant(0x7E00, wide), constant(0x7C00, wide))
    value = builder.select(builder.icmp_unsigned("<", magnitude, constant(0x38800000, wide)), small, normal)
    value = builder.select(builder.icmp_unsigned(">=", magnitude, constant(0x47800000, wide)), large, value)
    sign = builder.and_(builder.lshr(bits, constant(16, wide)), constant(0x8000, wide))
    narrow = builder.trunc(builder.or_(value, sign), value_type(np.dtype(np.uint16), lanes))
    return builder.bitcast(narrow, value_type(np.dtype(np.float16), lanes))


def _cast(builder: ir.IRBuilder, node: Node, x: Any, lanes: int) -> Any:
    source, to = node.args[0].dtype, node.dtype
    result = value_type(to, lanes)
    if source == BFLOAT16:  # to float32
        wide = ir.VectorType(ir.IntType(32), lanes) if lanes else ir.IntType(32)
        return builder.bitcast(builder.shl(builder.zext(x, wide), constant(16, wide)), result)
    if to == BFLOAT16:
        if is_bfloat16(node.args[0]):
            wide = ir.VectorType(ir.IntType(32), lanes) if lanes else ir.IntType(32)
            return builder.trunc(builder.lshr(builder.bitcast(x, wide), constant(16, wide)), result)
        return to_bfloat16(builder, x, lanes)
    if source.kind == "f":
        if 2 in (source.itemsize, to.itemsize) and to.kind == "f" and not target.code_target().converts_half:
            return _from_half(builder, x, lanes) if source.itemsize == 2 else _to_half(builder, x, lanes)
        if to == HALF and node.args[0].op == "cast" and node.args[0].args[0].dtype == FLOAT64:
            # rounded twice, as in PyTorch: LLVM would merge the casts into a call of compiler-rt, which is not linked
            x = intrinsic(builder, "arithmetic.fence", x.type, [x], [x.type])
        if to.kind == "f":
            return builder.fpext(x, result) if to.itemsize > source.itemsize else builder.fptrunc(x, result)
        return _from_float(builder, x, to, lanes)
    if to.kind == "f":
        return builder.sitofp(x, result) if source.kind == "i" else builder.uitofp(x, result)
    if to == BOOL:
        return builder.icmp_unsigned("!=", x, constant(0, x.type))
    source_bits, target_bits = (1 if source == BOOL else 8 * source.itemsize), 8 * to.itemsize
    if source_bits == target_bits:
        return x
    if source_bits > target_bits:
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
    if op in TRANSCENDENTAL or op in FLOAT32_ONLY:
        from ..math import functions

        return functions.emit(op, builder, args, args[0].type)
    if op in ("floor", "ceil", "trunc", "round") and node.args[0].op == "cast" and node.args[0].args[0].dtype == HALF:
        # LLVM would round float16, which processors without its arithmetic do element by element
        args = [intrinsic(builder, "arithmetic.fence", args[0].type, args, [args[0].type])]
    if op in _INTRINSICS and floating:
        return intrinsic(builder, _INTRINSICS[op], args[0].type, args)
    if op in COMPARISON:
        return _compare(builder, node, *args)
    if op in ("minimum", "maximum", "fmin", "fmax"):
        swapped = _is_not_nan(node.args[1])
        first = node.args[swapped]
        x, y = args[::-1] if swapped else args
        integer_op = {"fmin": "minimum", "fmax": "maximum"}.get(op, op)
        return min_or_max(builder, integer_op, node.dtype.kind, x, y, _is_not_nan(first))
    if op == "div":
        return _divide(builder, node, *args)
    if op == "cast":
        return _cast(builder, node, args[0], lanes)
    if op == "bitcast":
        return builder.bitcast(args[0], value_type(node.dtype, lanes))
    x = args[0]
    if op == "neg":
        return builder.fneg(x) if floating else builder.sub(constant(0, x.type), x)
    if op == "abs":
        if floating:
            return intrinsic(builder, "fabs", x.type, args)
        if node.dtype.kind == "u":
            return x
        zero = constant(0, x.type)
        return builder.select(builder.icmp_signed("<", x, zero), builder.sub(zero, x), x)
    if op == "recip":
        return builder.fdiv(constant(1.0, x.type), x)
    if op == "rsqrt":
        return builder.fdiv(constant(1.0, x.type), intrinsic(builder, "sqrt", x.type, args))
    simple: dict[str, Callable[..., Any]] = {
        "add": builder.fadd if floating else builder.add, "sub": builder.fsub if floating else builder.sub,
        "mul": builder.fmul if floating else builder.mul, "and": builder.and_, "or": builder.or_,
        "xor": builder.xor, "not": builder.not_, "select": builder.select,
    }
    return simple[op](*args)


def lower_node(builder: ir.IRBuilder, node: Node, args: list[Any], lanes: int = 0) -> Any:
    """Lower one node, no input, whose arguments are lowered."""
    if node.op == "constant":
        bits = node.const if node.dtype.kind == "f" else int(node.value)
        return constant(bits, value_type(node.dtype, lanes))
    return _operation(builder, node, args, lanes)


def lower(builder: ir.IRBuilder, outputs: Sequence[Node], inputs: dict[Node, Any], lanes: int = 0) -> list[Any]:
    """Lower expressions to LLVM values.

    Args:
        builder: positioned at the end of a block.
        outputs: the expressions.
        inputs: the values of input nodes, and of any other nodes that are already lowered.
        lanes: elements per vector; 0 for scalars.
    """
    values = dict(inputs)
    outputs = reuse_exponentials(outputs)
    for node in topological_order(outputs):
        if node not in values:
            values[node] = lower_node(builder, node, [values[arg] for arg in node.args], lanes)
    return [values[node] for node in outputs]
