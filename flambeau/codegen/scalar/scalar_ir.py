"""Scalar IR: hash-consed expression graphs that compute one element of a result from one element of each input.

Python operators and the functions of this module build nodes. Equal expressions are the same object. The IR has no
shapes, arrays or machine details; `llvm.lowering` lowers it.

>>> from flambeau.codegen.scalar.scalar_ir import variable, exp
>>> x = variable(0, "float32")
>>> x * x + 1 is x * x + 1
True
>>> print(exp(-x) + 1)
add(exp(neg(x0)), 1.0)
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from ...dtypes import BFLOAT16, NARROW

BOOL = np.dtype(np.bool_)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)

#: floating-point operations that `math.functions` expands, and their numbers of operands
TRANSCENDENTAL = {
    "exp": 1, "exp2": 1, "expm1": 1, "log": 1, "log2": 1, "log10": 1, "log1p": 1, "sin": 1, "cos": 1, "tan": 1,
    "asin": 1, "acos": 1, "atan": 1, "atan2": 2, "sinh": 1, "cosh": 1, "tanh": 1, "asinh": 1, "acosh": 1,
    "atanh": 1, "sigmoid": 1, "erf": 1, "erfc": 1, "pow": 2,
    "fmod": 2, "remainder": 2, "softplus": 1, "log_sigmoid": 1, "erfinv": 1, "lgamma": 1,
    "digamma": 1,
}
#: the same, for float32 only: the Box-Muller transform (`math.box_muller`), erf from an exponential (`erf_from_exp`)
FLOAT32_ONLY = {"normal_radius": 1, "normal_sine": 1, "normal_cosine": 1, "erf_from_exp": 2}
#: approximations in one instruction of NVIDIA's GPUs, and a product and sum rounded down; no other processor has them
DEVICE_ONLY = {"exp2_approx": 1, "log2_approx": 1, "sin_approx": 1, "cos_approx": 1, "recip_approx": 1,
               "rsqrt_approx": 1, "div_approx": 2, "fma_down": 3}
FLOATING = {"sqrt": 1, "rsqrt": 1, "recip": 1, "floor": 1, "ceil": 1, "trunc": 1, "round": 1, "fma": 3,
            "copysign": 2} | TRANSCENDENTAL | FLOAT32_ONLY
ARITHMETIC = {"add": 2, "sub": 2, "mul": 2, "div": 2, "neg": 1, "abs": 1, "minimum": 2, "maximum": 2, "fmin": 2,
              "fmax": 2}
COMPARISON = ("eq", "ne", "lt", "le", "gt", "ge")
BITWISE = {"and": 2, "or": 2, "xor": 2, "not": 1}

Number = bool | int | float
Operand: TypeAlias = "Node | Number"

_made: WeakValueDictionary[tuple, Node] = WeakValueDictionary()
_making = threading.Lock()


class Node:
    """An operation.

    Attributes:
        op: the name; "input" and "constant" have no operands.
        args: the operands.
        dtype: of the result. float16 and bfloat16 occur only as inputs and casts; arithmetic is on float32.
        const: an input's index, or the bytes of a constant.
    """

    __slots__ = ("__weakref__", "args", "const", "dtype", "op")

    op: str
    args: tuple[Node, ...]
    dtype: np.dtype
    const: Any

    def __repr__(self) -> str:
        if self.op == "input":
            return f"x{self.const}"
        if self.op == "constant":
            return repr(self.value)
        name = f"{self.op}[{self.dtype}]" if self.op in ("cast", "bitcast") else self.op
        return f"{name}({', '.join(map(repr, self.args))})"

    def __reduce__(self) -> tuple:
        return make, (self.op, self.args, self.dtype, self.const)

    @property
    def value(self) -> Number:
        """The value of a constant."""
        return np.frombuffer(self.const, self.dtype)[0].item()

    def __add__(self, other: Operand) -> Node:
        return binary("add", self, other)

    def __radd__(self, other: Operand) -> Node:
        return binary("add", other, self)

    def __sub__(self, other: Operand) -> Node:
        return binary("sub", self, other)

    def __rsub__(self, other: Operand) -> Node:
        return binary("sub", other, self)

    def __mul__(self, other: Operand) -> Node:
        return binary("mul", self, other)

    def __rmul__(self, other: Operand) -> Node:
        return binary("mul", other, self)

    def __truediv__(self, other: Operand) -> Node:
        return binary("div", self, other)

    def __rtruediv__(self, other: Operand) -> Node:
        return binary("div", other, self)

    def __pow__(self, other: Operand) -> Node:
        return binary("pow", self, other)

    def __rpow__(self, other: Operand) -> Node:
        return binary("pow", other, self)

    def __neg__(self) -> Node:
        return unary("neg", self)

    def __pos__(self) -> Node:
        return self

    def __abs__(self) -> Node:
        return unary("abs", self)

    def __lt__(self, other: Operand) -> Node:
        return compare("lt", self, other)

    def __le__(self, other: Operand) -> Node:
        return compare("le", self, other)

    def __gt__(self, other: Operand) -> Node:
        return compare("gt", self, other)

    def __ge__(self, other: Operand) -> Node:
        return compare("ge", self, other)

    def __and__(self, other: Operand) -> Node:
        return binary("and", self, other)

    def __rand__(self, other: Operand) -> Node:
        return binary("and", other, self)

    def __or__(self, other: Operand) -> Node:
        return binary("or", self, other)

    def __ror__(self, other: Operand) -> Node:
        return binary("or", other, self)

    def __xor__(self, other: Operand) -> Node:
        return binary("xor", self, other)

    def __rxor__(self, other: Operand) -> Node:
        return binary("xor", other, self)

    def __invert__(self) -> Node:
        return unary("not", self)

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value: write select(condition, a, b)")


def make(op: str, args: tuple[Node, ...], dtype: np.dtype, const: Any = None) -> Node:
    """The node of this operation, which is created once."""
    key = (op, args, dtype, const)
    with _making:
        node = _made.get(key)
        if node is None:
            node = object.__new__(Node)
            node.op, node.args, node.dtype, node.const = op, args, dtype, const
            _made[key] = node
    return node


def variable(index: int, dtype: np.dtype | str | type) -> Node:
    """An element of input `index`, an array of `dtype`.

    Raises:
        TypeError: kernels do not support the dtype, such as a complex one.
    """
    kind = np.dtype(dtype)
    if kind != BFLOAT16 and (kind.kind not in "biuf" or kind.itemsize > 8 or not kind.isnative):
        raise TypeError(f"no kernels for arrays of {kind}")
    return make("input", (), kind, index)


def constant(value: Number, dtype: np.dtype | str | type) -> Node:
    """A constant, rounded to `dtype`."""
    kind = np.dtype(dtype)
    if kind in NARROW:
        raise TypeError("a constant is at least float32: cast it")
    if kind.kind in "biu" and isinstance(value, float):
        raise TypeError(f"the float {value} in an expression of {kind}: cast the expression first")
    if kind.kind == "f" and isinstance(value, float):
        bits = struct.pack("<d", value) if kind == FLOAT64 else _float32_bits(value)
    else:
        bits = np.array(value, dtype=kind).tobytes()
    return make("constant", (), kind, bits)


def _float32_bits(value: float) -> bytes:
    with np.errstate(all="ignore"):
        return np.float32(value).tobytes()


def cast(x: Node, dtype: np.dtype | str | type) -> Node:
    """`x` converted as PyTorch's `.to(dtype)` converts."""
    kind = np.dtype(dtype)
    if kind == x.dtype:
        return x
    if FLOAT32 not in (x.dtype, kind) and (x.dtype in NARROW or kind in NARROW):  # through float32
        x = make("cast", (x,), FLOAT32)
    return make("cast", (x,), kind)


def bitcast(x: Node, dtype: np.dtype | str | type) -> Node:
    """The bits of `x` as another dtype of the same size.

    Raises:
        TypeError: the sizes differ.
    """
    kind = np.dtype(dtype)
    if kind.itemsize != x.dtype.itemsize or BOOL in (kind, x.dtype):
        raise TypeError(f"the bits of {x.dtype} as {kind}")
    return x if kind == x.dtype else make("bitcast", (x,), kind)


def to_opmath(x: Node) -> Node:
    """`x`, cast to float32 if it is float16 or bfloat16."""
    return cast(x, FLOAT32) if x.dtype in NARROW else x


def operands(*values: Operand) -> tuple[Node, ...]:
    """Convert operands to nodes of one dtype: narrow floats to float32, Python numbers to the dtype of the nodes."""
    nodes = [to_opmath(value) for value in values if isinstance(value, Node)]
    if not nodes:
        raise TypeError("an expression needs at least one node among its operands")
    dtype = nodes[0].dtype
    for node in nodes:
        if node.dtype != dtype:
            raise TypeError(f"operands of {dtype} and {node.dtype}: cast one of them")
    return tuple(to_opmath(value) if isinstance(value, Node) else constant(value, dtype) for value in values)


def unary(op: str, x: Node) -> Node:
    """An operation of one operand."""
    return apply(op, x)


def binary(op: str, x: Operand, y: Operand) -> Node:
    """An operation of two operands of one dtype."""
    return apply(op, x, y)


def apply(op: str, *values: Operand) -> Node:
    """The operation `op` of operands of one dtype.

    Raises:
        TypeError: the operation is unknown, the number of operands is wrong, their dtypes differ, or the operation is
            not defined for the dtype.
    """
    if op in COMPARISON:
        return compare(op, *values)
    arity = ARITHMETIC.get(op) or FLOATING.get(op) or BITWISE.get(op) or DEVICE_ONLY.get(op)
    if arity is None:
        raise TypeError(f"unknown operation {op!r}")
    if arity != len(values):
        raise TypeError(f"{op} takes {arity} operands, not {len(values)}")
    nodes = operands(*values)
    kind = nodes[0].dtype.kind
    is_floating = op in FLOATING or op in DEVICE_ONLY
    if (is_floating and kind != "f") or (op in BITWISE and kind == "f") or (op in ARITHMETIC and kind == "b"):
        raise TypeError(f"{op} of {nodes[0].dtype}")
    return make(op, nodes, nodes[0].dtype)


def compare(op: str, x: Operand, y: Operand) -> Node:
    """A comparison: eq, ne, lt, le, gt or ge; NaN is not equal to anything."""
    return make(op, operands(x, y), BOOL)


def select(condition: Node, x: Operand, y: Operand) -> Node:
    """`x` if the condition is true, else `y`."""
    if condition.dtype != BOOL:
        raise TypeError(f"a condition is bool, not {condition.dtype}")
    nodes = operands(x, y)
    return make("select", (condition, *nodes), nodes[0].dtype)


def _define(op: str, arity: int, text: str) -> Callable[..., Node]:
    def operation(*values: Operand) -> Node:
        return apply(op, *values)

    operation.__name__ = operation.__qualname__ = op
    operation.__doc__ = f"{text} ({arity} operand{'s' * (arity > 1)})."
    return operation


exp = _define("exp", 1, "eˣ")
exp2 = _define("exp2", 1, "2ˣ")
expm1 = _define("expm1", 1, "eˣ − 1")
log = _define("log", 1, "the natural logarithm")
log2 = _define("log2", 1, "the logarithm to base 2")
log10 = _define("log10", 1, "the logarithm to base 10")
log1p = _define("log1p", 1, "log(1 + x)")
sin = _define("sin", 1, "sine")
cos = _define("cos", 1, "cosine")
tan = _define("tan", 1, "tangent")
asin = _define("asin", 1, "inverse sine")
acos = _define("acos", 1, "inverse cosine")
atan = _define("atan", 1, "inverse tangent")
atan2 = _define("atan2", 2, "the angle of (x, y), y first")
sinh = _define("sinh", 1, "hyperbolic sine")
cosh = _define("cosh", 1, "hyperbolic cosine")
tanh = _define("tanh", 1, "hyperbolic tangent")
asinh = _define("asinh", 1, "inverse hyperbolic sine")
acosh = _define("acosh", 1, "inverse hyperbolic cosine")
atanh = _define("atanh", 1, "inverse hyperbolic tangent")
sigmoid = _define("sigmoid", 1, "1 / (1 + e⁻ˣ)")
erf = _define("erf", 1, "the error function")
erfc = _define("erfc", 1, "1 − erf x")
erfinv = _define("erfinv", 1, "the inverse of the error function")
lgamma = _define("lgamma", 1, "the logarithm of the gamma function's absolute value")
digamma = _define("digamma", 1, "the derivative of lgamma")
softplus = _define("softplus", 1, "log(1 + eˣ)")
log_sigmoid = _define("log_sigmoid", 1, "log sigmoid x")
fmod = _define("fmod", 2, "the remainder of x / y, with the sign of x")
remainder = _define("remainder", 2, "the remainder of x / y, with the sign of y")
power = _define("pow", 2, "xʸ")
sqrt = _define("sqrt", 1, "√x")
rsqrt = _define("rsqrt", 1, "1 / √x")
recip = _define("recip", 1, "1 / x")
floor = _define("floor", 1, "the integer below")
ceil = _define("ceil", 1, "the integer above")
trunc = _define("trunc", 1, "the integer towards zero")
round_ = _define("round", 1, "the nearest integer, ties to even")
fma = _define("fma", 3, "x·y + z, rounded once")
copysign = _define("copysign", 2, "|x| with the sign of y")
minimum = _define("minimum", 2, "the smaller; NaN if one is")
maximum = _define("maximum", 2, "the larger; NaN if one is")
fmin = _define("fmin", 2, "the smaller; the other if one is NaN")
fmax = _define("fmax", 2, "the larger; the other if one is NaN")
eq = _define("eq", 2, "whether equal")
ne = _define("ne", 2, "whether unequal")


def topological_order(outputs: Sequence[Node]) -> list[Node]:
    """All nodes of the expressions, operands before their users."""
    seen: set[Node] = set()
    nodes: list[Node] = []
    stack: list[tuple[Node, bool]] = [(node, False) for node in reversed(outputs)]
    while stack:
        node, entered = stack.pop()
        if entered:
            nodes.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((arg, False) for arg in reversed(node.args) if arg not in seen)
    return nodes


def _dtype_name(dtype: np.dtype) -> str:
    return "bfloat16" if dtype == BFLOAT16 else dtype.name


def canonical_text(outputs: Sequence[Node]) -> str:
    """The expressions as text, one line per node: the same in every process, for cache keys."""
    nodes = topological_order(outputs)
    number = {node: i for i, node in enumerate(nodes)}
    lines = []
    for i, node in enumerate(nodes):
        const = node.const.hex() if isinstance(node.const, bytes) else "" if node.const is None else str(node.const)
        arguments = " ".join(f"%{number[arg]}" for arg in node.args)
        lines.append(f"%{i} = {node.op}.{_dtype_name(node.dtype)} {arguments}{const}")
    return "\n".join([*lines, "out " + " ".join(f"%{number[node]}" for node in outputs)])


#: cost of operations relative to an addition, if it is not 1
_COST = {"input": 0, "constant": 0, "div": 4, "sqrt": 4, "rsqrt": 8, "recip": 4} | dict.fromkeys(TRANSCENDENTAL, 20)


def op_cost(op: str) -> int:
    """The cost of an operation relative to an addition.

    >>> op_cost("mul"), op_cost("exp")
    (1, 20)
    """
    return _COST.get(op, 1)


def cost(outputs: Sequence[Node]) -> int:
    """The cost of an element relative to an addition."""
    return sum(op_cost(node.op) for node in topological_order(outputs))
