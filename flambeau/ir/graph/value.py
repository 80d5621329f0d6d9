"""Values: arrays that are yet to be computed, each as an operation on others, and made once.

A value's elements lie in row-major order, except for views (`op` "view"), which show another value's elements by
strides and an offset. The operations:

    leaf            an array that is given: `attrs` is its number
    constant        `attrs` is (dtype, shape, bytes) of an array known beforehand
    view            `attrs` is (strides, offset), in elements of `args[0]`, which is no view
    copy            the elements of `args[0]`, in row-major order
    cast, select, add, exp, ...     what `codegen.scalar.scalar_ir` names: elementwise on values of one shape, or of
    none
    reduce          `attrs` is (name, dims): over dimensions of `args[0]`
    matmul          [b..., m, k] and [b..., k, n]
    convolve        `args` and `attrs` are (kind, stride, padding, dilation, groups): "forward" of image and weight,
                    "image" of output and weight (the transpose), "weight" of output and image
    assemble        arrays written into parts of a new one: `attrs` is (whether `args[0]` is the background, then of
                    each piece the strides and offset of its place, in elements)
    whole           an operator computed as a whole, by `attrs` (see `whole.Whole`)
    part            one of the arrays that a whole gives: `attrs` is its number
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...codegen.scalar import scalar_ir
from ...dtypes import BFLOAT16, NARROW, to_bfloat16
from ...shapes import broadcast_shapes
from . import view_algebra as algebra

BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)
FLOAT32 = np.dtype(np.float32)
Number = bool | int | float


class Unsupported(Exception):
    """Something that values cannot say: it is computed as a whole instead, by the operator's own kernel."""


_NUMBERS = frozenset((bool, int, float))


def logical_operand(x: Any) -> Any:
    """An operand of a logical operation: True and False come of comparing two values by `==`, not of their elements.

    Raises:
        Unsupported: it is one of them.
    """
    if x.__class__ is bool:
        raise Unsupported("two values compared by ==: `xp.eq` compares their elements")
    return x


class Value:
    """An array that is yet to be computed. Arithmetic on values makes values."""

    __slots__ = ("args", "attrs", "dtype", "graph", "number", "op", "shape")

    graph: Graph
    op: str
    args: tuple[Value, ...]
    attrs: Any
    shape: tuple[int, ...]
    dtype: np.dtype
    number: int  # in the order of making: arguments come first

    def __repr__(self) -> str:
        return f"%{self.number}"

    @property
    def text(self) -> str:
        """The operation, as one line."""
        kind = "bfloat16" if self.dtype == BFLOAT16 else str(self.dtype)
        said = ""
        if self.op == "constant":
            array = self.graph.array(self)
            said = f" {array.item()}" if array.size == 1 else " ..."
        elif self.attrs is not None:
            said = f" {self.attrs}"
        words = " ".join([self.op, *map(repr, self.args)])
        return f"%{self.number} = {words}{said} : {kind}{list(self.shape)}"

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return prod(self.shape)

    @property
    def base(self) -> Value:
        """The value whose elements it shows: itself, unless it is a view."""
        return self.args[0] if self.op == "view" else self

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements of the base."""
        return self.attrs[0] if self.op == "view" else algebra.dense_strides(self.shape)

    @property
    def offset(self) -> int:
        """The first element's place in the base."""
        return self.attrs[1] if self.op == "view" else 0

    def __bool__(self) -> bool:
        raise Unsupported("the logical_operand of a value")

    def __len__(self) -> int:
        return self.shape[0]

    def __add__(self, other: Any) -> Value:
        return self.graph.apply("add", self, other)

    def __radd__(self, other: Any) -> Value:
        return self.graph.apply("add", other, self)

    def __sub__(self, other: Any) -> Value:
        return self.graph.apply("sub", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self.graph.apply("sub", other, self)

    def __mul__(self, other: Any) -> Value:
        return self.graph.apply("mul", self, other)

    def __rmul__(self, other: Any) -> Value:
        return self.graph.apply("mul", other, self)

    def __truediv__(self, other: Any) -> Value:
        return self.graph.apply("div", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return self.graph.apply("div", other, self)

    def __pow__(self, other: Any) -> Value:
        return self.graph.apply("pow", self, other)

    def __rpow__(self, other: Any) -> Value:
        return self.graph.apply("pow", other, self)

    def __neg__(self) -> Value:
        return self.graph.apply("neg", self)

    def __abs__(self) -> Value:
        return self.graph.apply("abs", self)

    def __lt__(self, other: Any) -> Value:
        return self.graph.apply("lt", self, other)

    def __le__(self, other: Any) -> Value:
        return self.graph.apply("le", self, other)

    def __gt__(self, other: Any) -> Value:
        return self.graph.apply("gt", self, other)

    def __ge__(self, other: Any) -> Value:
        return self.graph.apply("ge", self, other)

    def __eq__(self, other: object) -> Any:
        """With a number, element by element; values are the same or not, since dictionaries hold them."""
        return self.graph.apply("eq", self, other) if other.__class__ in _NUMBERS else self is other

    def __ne__(self, other: object) -> Any:
        return self.graph.apply("ne", self, other) if other.__class__ in _NUMBERS else self is not other

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Value:
        return self.graph.apply("and", self, logical_operand(other))

    def __or__(self, other: Any) -> Value:
        return self.graph.apply("or", self, logical_operand(other))

    def __xor__(self, other: Any) -> Value:
        return self.graph.apply("xor", self, logical_operand(other))

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Value:
        return self.graph.apply("not", self)


#: operations on floats alone, on numbers alone, on integers and logical_operand values alone
_FLOATING = frozenset(scalar_ir.FLOATING)
_COMPARISON = frozenset(scalar_ir.COMPARISON)
ELEMENTWISE = (_FLOATING | _COMPARISON | set(scalar_ir.ARITHMETIC) | set(scalar_ir.BITWISE)
               | {"select", "cast", "copy"})
#: elementwise operations and reductions: what kernels fuse
FUSIBLE = ELEMENTWISE | {"reduce"}
#: an integer is divided as Python divides, which kernels do not
_NOT_ON_INTEGERS = frozenset(("div", "fmin", "fmax"))
_COMMUTATIVE = frozenset(("add", "mul", "eq", "ne", "and", "or", "xor"))
#: what numbers are computed of beforehand, as kernels would
_FOLDS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative}
_CONSTANT_IF_EMPTY = ELEMENTWISE | {"view", "matmul", "assemble"}
_CONSTANT_LIMIT = 1 << 22


class Graph:
    """The values of one computation, in the order they were made."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._interned: dict[tuple, Value] = {}
        self._arrays: dict[Value, np.ndarray] = {}
        self.extern_outputs: dict[Value, list[Value]] = {}  # of what is computed as a whole
        self.counts_at_runtime = False  # whether `count` gives what kernels read
        self.runtime_constants: set[Value] = set()  # constants that kernels read, instead of having them in their code
        self.conditions: list[tuple[Value, bool]] = []  # truths without which nothing of it is right

    def __str__(self) -> str:
        return "\n".join(value.text for value in self.values)

    def make(self, op: str, args: tuple[Value, ...], attrs: Any, shape: tuple[int, ...], dtype: np.dtype) -> Value:
        """The one value of this operation."""
        if 0 in shape and op in _CONSTANT_IF_EMPTY:
            return self.constant(np.empty(shape, dtype))
        key = (op, args, attrs, shape, dtype)
        value = self._interned.get(key)
        if value is None:
            value = object.__new__(Value)
            value.graph, value.op, value.args, value.attrs, value.shape, value.dtype = (
                self, op, args, attrs, shape, dtype)
            value.number = len(self.values)
            self.values.append(value)
            self._interned[key] = value
        return value

    def restore(self, op: str, args: Sequence[Value], attrs: Any, shape: tuple[int, ...], dtype: np.dtype) -> None:
        """Add the next value of a graph that was written down."""
        made = self.make(op, tuple(args), attrs, shape, dtype)
        if op == "constant":
            _, _, bits = attrs
            self._arrays[made] = np.frombuffer(bits, dtype).reshape(shape) if bits else np.empty(shape, dtype)
        elif op == "getitem":
            self.extern_outputs.setdefault(args[0], []).append(made)

    # ----- what is given -----

    def input(self, number: int, shape: tuple[int, ...], dtype: np.dtype) -> Value:
        """The array of this number, dense in row-major order."""
        return self.make("input", (), number, tuple(shape), dtype)

    def constant(self, value: Any, dtype: np.dtype | None = None) -> Value:
        """An array, or a number of a dtype."""
        if dtype == BFLOAT16 and not isinstance(value, (np.ndarray, np.void)):  # NumPy would take a number as its bits
            value = to_bfloat16(np.asarray(value, np.float32))
        array = np.asarray(value, dtype)
        if array.ndim and array.size > 1 and all(
                n == 1 or s == 0 for n, s in zip(array.shape, array.strides, strict=True)):
            return self.expand(self.constant(array.reshape(-1)[0], array.dtype), array.shape)
        if array.nbytes > _CONSTANT_LIMIT:
            raise Unsupported(f"a constant of {array.nbytes} bytes")
        bits = array.tobytes()
        if array.size > 1 and bits == bytes(array.itemsize) * array.size:
            return self.expand(self.constant(array.reshape(-1)[0], array.dtype), array.shape)
        made = self.make("constant", (), (str(array.dtype), array.shape, bits), array.shape, array.dtype)
        if made not in self._arrays:
            kept = np.frombuffer(bits, array.dtype).reshape(array.shape) if array.size else array
            self._arrays[made] = kept
        return made

    def element_count(self, number: int, dtype: np.dtype) -> Value | float:
        """How many elements there are, or so: a number that other extents change.

        With `counting` it is no part of the code, but one of what that reads.
        """
        if not self.counts_at_runtime:
            return float(number)
        made = self.constant(float(number), dtype)
        self.runtime_constants.add(made)
        return made

    def array(self, constant: Value) -> np.ndarray:
        """A constant's array."""
        return self._arrays[constant]

    # ----- elementwise -----

    def operands(self, values: Sequence[Any]) -> list[Value]:
        """Values of one dtype: numbers take that of the values beside them; narrow floats are widened."""
        kinds = {value.dtype for value in values if isinstance(value, Value)}
        if not kinds:
            raise Unsupported("no values among the operands")
        kinds = {FLOAT32 if kind in NARROW else kind for kind in kinds}
        if len(kinds) > 1:
            raise Unsupported(f"operands of {', '.join(map(str, kinds))}")
        dtype = kinds.pop()
        found = []
        for value in values:
            if not isinstance(value, Value):
                if isinstance(value, np.ndarray | np.generic):
                    if value.dtype != dtype and value.ndim:
                        raise Unsupported(f"an array of {value.dtype} beside values of {dtype}")
                    value = self.constant(np.asarray(value).astype(dtype, copy=False))
                elif isinstance(value, (bool, int, float)):
                    if dtype.kind in "biu" and (isinstance(value, float) or (dtype.kind == "b") != isinstance(
                            value, bool)):
                        raise Unsupported(f"a {type(value).__name__} beside values of {dtype}")
                    with np.errstate(all="ignore"):
                        value = self.constant(value, dtype)
                else:
                    raise Unsupported(f"a {type(value).__name__} among the operands")
            found.append(self.cast(value, dtype))
        return found

    def broadcast(self, values: Sequence[Value]) -> tuple[tuple[int, ...], list[Value]]:
        """The shape that values broadcast to, and the values in it; those without dimensions stay so."""
        shape: tuple[int, ...] = ()
        for value in values:
            if value.shape != shape and value.shape:
                shape = broadcast_shapes(shape, value.shape) if shape else value.shape
        return shape, [value if value.shape == shape or not value.shape else self.expand(value, shape)
                       for value in values]

    def apply(self, op: str, *values: Any) -> Value:
        """The elementwise operation of this name."""
        found = self.operands(values)
        dtype = found[0].dtype
        if dtype.kind == "c" or (dtype.kind == "V"):
            raise Unsupported(f"{op} of {dtype}")
        if dtype.kind in "biu" and (op in _FLOATING or op in _NOT_ON_INTEGERS):
            raise Unsupported(f"{op} of {dtype}")
        if dtype.kind == "b" and op in scalar_ir.ARITHMETIC:
            raise Unsupported(f"{op} of {dtype}")
        if dtype.kind == "f" and op in scalar_ir.BITWISE:
            raise Unsupported(f"{op} of {dtype}")
        simple = self._simplify(op, found)
        if simple is not None:
            return simple
        shape, found = self.broadcast(found)
        if op in _COMMUTATIVE:  # alike wherever it is written: what is larger first, then what was made first
            found.sort(key=lambda each: (-each.size, each.number))
        return self.make(op, tuple(found), None, shape, BOOL if op in _COMPARISON else dtype)

    def _simplify(self, op: str, args: list[Value]) -> Value | None:
        numbers = [_scalar_constant(arg) for arg in args]
        if op in _FOLDS and all(n is not None for n in numbers) and args[0].dtype.kind == "f":
            with np.errstate(all="ignore"):
                found = _FOLDS[op](*[self.array(n) for n in numbers if n is not None])
            return self._in_shape(self.constant(found, args[0].dtype), args)
        if op in ("mul", "div") and len(args) == 2 and _is_constant(args[1], 1):
            return self._in_shape(args[0], args)
        if op == "mul" and _is_constant(args[0], 1):
            return self._in_shape(args[1], args)
        if op == "sub" and _is_constant(args[1], 0) and not np.signbit(self.array(args[1].base)):
            return self._in_shape(args[0], args)
        if op == "neg" and args[0].op == "neg":
            return args[0].args[0]
        return None

    def _in_shape(self, value: Value, args: Sequence[Value]) -> Value:
        shape, _ = self.broadcast(args)
        return value if value.shape == shape else self.expand(value, shape)

    def select(self, condition: Value, x: Any, y: Any) -> Value:
        """`x` where the condition holds, else `y`."""
        if not (isinstance(x, Value) or isinstance(y, Value)):
            raise Unsupported("a choice between two numbers")
        x, y = self.operands([x, y])
        if not isinstance(condition, Value) or condition.dtype != BOOL:
            raise Unsupported("a condition that is no logical_operand value")
        if x.dtype.kind not in "biuf":
            raise Unsupported(f"a choice between values of {x.dtype}")
        shape, found = self.broadcast([condition, x, y])
        return self.make("select", tuple(found), None, shape, x.dtype)

    def cast(self, value: Value, dtype: np.dtype) -> Value:
        """The same numbers in another dtype."""
        if value.dtype == dtype:
            return value
        for kind in (value.dtype, dtype):
            if kind.kind == "c" or (kind.kind == "V" and kind != BFLOAT16):
                raise Unsupported(f"a conversion of {value.dtype} to {dtype}")
        scalar = _scalar_constant(value)
        if scalar is not None and dtype not in NARROW and value.dtype not in NARROW:
            with np.errstate(all="ignore"):
                made = self.constant(self.array(scalar).astype(dtype))
            return made if not value.shape else self.expand(made, value.shape)
        return self.make("cast", (value,), None, value.shape, dtype)

    def copy(self, value: Value) -> Value:
        """The value in row-major order: itself unless it is a view."""
        if value.op != "view":
            return value
        if value.dtype.kind == "c":  # nothing is computed of complex numbers: they are only put elsewhere
            return self.assemble(value.shape, None, [value], [(algebra.dense_strides(value.shape), 0)])
        return self.make("copy", (value,), None, value.shape, value.dtype)

    # ----- reductions and products -----

    def reduce(self, name: str, value: Value, dims: Sequence[int]) -> Value:
        """A reduction of `codegen.llvm.reducers` over dimensions, which are dropped."""
        from ...codegen.llvm.reducers import result_dtype

        axes = tuple(sorted(d % max(value.ndim, 1) for d in dims))
        shape = tuple(n for d, n in enumerate(value.shape) if d not in axes)
        if value.dtype.kind not in "biuf" and value.dtype != BFLOAT16:
            raise Unsupported(f"{name} of {value.dtype}")
        if value.size == 0:
            raise Unsupported(f"{name} of no elements")
        kind = result_dtype(name, scalar_ir.variable(0, FLOAT32 if value.dtype in NARROW else value.dtype))
        if value.dtype in NARROW:
            value = self.cast(value, FLOAT32)
        scalar = _scalar_constant(value)
        if scalar is not None and name in ("sum", "max", "min"):
            count = value.size // prod(shape) if prod(shape) else 0
            with np.errstate(all="ignore"):
                folded = self.array(scalar).astype(kind) * (count if name == "sum" else 1)
            return self.expand(self.constant(folded.astype(kind)), shape)
        if name in ("argmax", "argmin"):
            if prod(shape) == value.size:
                return self.expand(self.constant(0, kind), shape)
        elif value.dtype == kind:
            axes = tuple(d for d in axes if value.shape[d] != 1)
            if not axes:
                return self.reshape(value, shape)
        return self.make("reduce", (value,), (name, axes, shape), shape, kind)

    def matmul(self, a: Value, b: Value) -> Value:
        """The product of matrices in the last two dimensions; those before broadcast."""
        if a.dtype != b.dtype or a.dtype.kind != "f" or a.dtype in NARROW:
            raise Unsupported(f"a product of {a.dtype} and {b.dtype}")
        if a.shape[-1] != b.shape[-2]:
            raise Unsupported(f"a product of {a.shape} and {b.shape}")
        front = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a = self.expand(a, (*front, *a.shape[-2:]))
        b = self.expand(b, (*front, *b.shape[-2:]))
        shape = (*front, a.shape[-2], b.shape[-1])
        a, b = self._read_before_copy(a, b)
        return self.reshape(self.make("matmul", (a, b), None, (*a.shape[:-1], b.shape[-1]), a.dtype), shape)

    def _read_before_copy(self, a: Value, b: Value) -> tuple[Value, Value]:
        """Batches of matrices before they were copied to make one dimension of several, where that was done.

        Products read matrices wherever they lie; attention's heads, for one, lie side by side.
        """
        sources = [_copy_source(x) for x in (a, b)]
        fronts = {x.shape[:-2] for x in sources if x is not None}
        if len(fronts) != 1:
            return a, b
        [front] = fronts
        found = []
        for x, source in zip((a, b), sources, strict=True):
            if source is None:
                shape = (*front, *x.shape[-2:])
                strides = algebra.reshape_strides(x.shape, x.strides, shape)
                if strides is None:
                    return a, b
                source = self.view(x, shape, strides, x.offset)
            found.append(source)
        return found[0], found[1]

    def convolve(self, kind: str, a: Value, b: Value, shape: Sequence[int], stride: Sequence[int],
                 padding: Sequence[int], dilation: Sequence[int], groups: int) -> Value:
        """One of the three forms of a convolution; `shape` is the result's."""
        if a.dtype != b.dtype or a.dtype.kind != "f" or a.dtype in NARROW or a.ndim > 5:
            raise Unsupported(f"a convolution of {a.dtype} and {b.dtype} in {a.ndim - 2} dimensions")
        attrs = (kind, tuple(stride), tuple(padding), tuple(dilation), groups)
        return self.make("convolve", (a, b), attrs, tuple(shape), a.dtype)

    def assemble(self, shape: Sequence[int], background: Value | None, pieces: Sequence[Value],
                 places: Sequence[tuple[tuple[int, ...], int]]) -> Value:
        """An array of this shape with pieces written over a background, if they leave anything of it."""
        args = tuple(pieces) if background is None else (self.expand(background, shape), *pieces)
        return self.make("assemble", args, (background is not None, *places), tuple(shape), pieces[0].dtype)

    def cat(self, values: Sequence[Value], dim: int) -> Value:
        """The values one after another along a dimension."""
        if len({v.dtype for v in values}) > 1:
            raise Unsupported("arrays of several dtypes joined")
        shape = list(values[0].shape)
        shape[dim] = sum(v.shape[dim] for v in values)
        rows, places, start = algebra.dense_strides(shape), [], 0
        for value in values:
            places.append((rows, start * rows[dim]))
            start += value.shape[dim]
        return values[0] if len(values) == 1 else self.assemble(shape, None, values, places)

    def extern(self, kernel: Any, args: Sequence[Value], outputs: Sequence[tuple[tuple[int, ...], np.dtype]]
              ) -> list[Value]:
        """What a kernel computes as a whole: dense arrays of these shapes and dtypes."""
        node = self.make("extern", tuple(args), kernel, (), BOOL)
        parts = [self.make("getitem", (node,), k, tuple(shape), dtype) for k, (shape, dtype) in enumerate(outputs)]
        self.extern_outputs[node] = parts
        return parts

    # ----- views -----

    def view(self, value: Value, shape: Sequence[int], strides: Sequence[int], offset: int) -> Value:
        """Elements of a value's base, by strides and an offset in it."""
        base, shape = value.base, tuple(shape)
        if offset == 0 and algebra.is_dense(shape, strides) and prod(shape) == base.size:
            if shape == base.shape:
                return base
            strides = algebra.dense_strides(shape)
        strides = tuple([0 if n == 1 else s for n, s in zip(shape, strides, strict=True)]
                        if not algebra.is_dense(shape, strides) else strides)
        return self.make("view", (base,), (strides, offset), shape, base.dtype)

    def expand(self, value: Value, shape: Sequence[int]) -> Value:
        """The value repeated along new dimensions and those of one element."""
        shape = tuple(shape)
        if value.shape == shape:
            return value
        missing = len(shape) - value.ndim
        found = [0] * missing
        for n, s, wanted in zip(value.shape, value.strides, shape[missing:], strict=True):
            if n not in (1, wanted):
                raise Unsupported(f"{value.shape} expanded to {shape}")
            found.append(s if n == wanted and n != 1 else 0)
        return self.view(value, shape, found, value.offset)

    def permute(self, value: Value, dims: Sequence[int]) -> Value:
        """The dimensions in another order."""
        strides = value.strides
        return self.view(value, [value.shape[d] for d in dims], [strides[d] for d in dims], value.offset)

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """The elements in row-major order, in another shape."""
        shape = tuple(shape)
        if value.shape == shape:
            return value
        if prod(shape) != value.size:
            raise Unsupported(f"{value.shape} reshaped to {shape}")
        if value.op == "view":
            found = algebra.reshape_strides(value.shape, value.strides, shape)
            if found is None:
                return self.reshape(self.copy(value), shape)
            return self.view(value, shape, found, value.offset)
        return self.view(value, shape, algebra.dense_strides(shape), 0)

    def slice(self, value: Value, dim: int, start: int, length: int, step: int = 1) -> Value:
        """`length` places of a dimension, from `start`, `step` apart."""
        shape, strides = list(value.shape), list(value.strides)
        offset = value.offset + start * strides[dim]
        shape[dim] = length
        strides[dim] *= step
        return self.view(value, shape, strides, offset)

    def select_index(self, value: Value, dim: int, index: int) -> Value:
        """One place of a dimension, which is dropped."""
        shape, strides = list(value.shape), list(value.strides)
        offset = value.offset + index * strides[dim]
        del shape[dim], strides[dim]
        return self.view(value, shape, strides, offset)

    def unsqueeze(self, value: Value, dim: int) -> Value:
        """A new dimension of one element."""
        shape, strides = list(value.shape), list(value.strides)
        shape.insert(dim, 1)
        strides.insert(dim, 0)
        return self.view(value, shape, strides, value.offset)


def reachable(wanted: Sequence[Value]) -> list[Value]:
    """All that some values are computed from, and they themselves, in the order of their making."""
    seen: set[Value] = set()
    stack = list(wanted)
    while stack:
        value = stack.pop()
        if value not in seen:
            seen.add(value)
            stack.extend(value.args)
    return sorted(seen, key=lambda v: v.number)


def _copy_source(value: Value) -> Value | None:
    """What matrices were copied from, if their copy has fewer dimensions and elements of theirs lie side by side."""
    copy = value.base
    if copy.op != "copy" or copy.attrs is not None or value.op != "view" or value.offset or value.size != copy.size:
        return None
    source = copy.args[0]
    if source.ndim <= value.ndim or source.shape[-2:] != value.shape[-2:] or 1 not in source.strides[-2:]:
        return None
    return source if algebra.is_dense(value.shape, value.strides) else None


def _scalar_constant(value: Value) -> Value | None:
    """The constant of no dimensions that a value is, or repeats."""
    base = value.base
    return base if base.op == "constant" and not base.shape else None


def _is_constant(value: Value, number: Number) -> bool:
    scalar = _scalar_constant(value)
    return scalar is not None and bool(value.graph.array(scalar) == number)


__all__ = ["BOOL", "ELEMENTWISE", "FLOAT32", "FUSIBLE", "INT64", "Graph", "Unsupported", "Value", "logical_operand",
           "reachable"]
