"""IR values and the graph that interns them.

A `Value` is an array to be computed: an operation on other values. Equal operations are one value. Its elements are
dense in row-major order, except for views (`op` "view"), which read another value's elements by strides and an offset.
The operations:

    input           an array passed to the program: `attrs` is its number
    constant        `attrs` is (dtype, shape, bytes) of an array known at compile time
    view            `attrs` is (strides, offset), in elements of `args[0]`, which is not a view
    copy            the elements of `args[0]`, in row-major order
    cast, select, add, exp, ...     operations of `codegen.scalar.scalar_ir`, elementwise; arguments have the value's
                    shape or no dimensions
    reduce          `attrs` is (name, dims, shape): over dimensions of `args[0]`
    matmul          [b..., m, k] and [b..., k, n]
    convolve        `attrs` is (kind, stride, padding, dilation, groups): "forward" of image and weight, "image" (the
                    gradient of the image) of output and weight, "weight" (of the weight) of output and image
    assemble        arrays written into parts of a new one: `attrs` is (whether `args[0]` is the background, then for
                    each piece the strides and offset of its place, in elements)
    extern          an operation that is not fused: `attrs` is its kernel (`extern_kernels`)
    getitem         one output of an extern value: `attrs` is its index
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from ...codegen.scalar import scalar_ir
from ...dtypes import BFLOAT16, NARROW, to_bfloat16
from ...shapes import broadcast_shapes
from ..unsupported import Unsupported
from . import view_algebra as algebra

BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)
FLOAT32 = np.dtype(np.float32)
Number = bool | int | float


_SCALAR_TYPES = frozenset((bool, int, float))


def logical_operand(x: Any) -> Any:
    """Return an operand of a logical operation, unless it is a bool.

    A bool here is the result of `value == value`, which compares identity and not elements.

    Raises:
        Unsupported: the operand is a bool.
    """
    if x.__class__ is bool:
        raise Unsupported("two values compared by ==, which is identity: use `xp.eq` to compare elements")
    return x


class Value:
    """An array to be computed, in a graph. Arithmetic on values creates values."""

    __slots__ = ("args", "attrs", "dtype", "graph", "number", "op", "shape")

    graph: Graph
    op: str
    args: tuple[Value, ...]
    attrs: Any
    shape: tuple[int, ...]
    dtype: np.dtype
    number: int  # creation order, which is topological

    def __repr__(self) -> str:
        return f"%{self.number}"

    @property
    def text(self) -> str:
        """The operation as one line of text."""
        kind = "bfloat16" if self.dtype == BFLOAT16 else str(self.dtype)
        attrs = ""
        if self.op == "constant":
            array = self.graph.array(self)
            attrs = f" {array.item()}" if array.size == 1 else " ..."
        elif self.attrs is not None:
            attrs = f" {self.attrs}"
        operation = " ".join([self.op, *map(repr, self.args)])
        return f"%{self.number} = {operation}{attrs} : {kind}{list(self.shape)}"

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def base(self) -> Value:
        """The value that owns the elements: the viewed value of a view, else the value itself."""
        return self.args[0] if self.op == "view" else self

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements of the base."""
        return self.attrs[0] if self.op == "view" else algebra.dense_strides(self.shape)

    @property
    def offset(self) -> int:
        """Index of the first element in the base."""
        return self.attrs[1] if self.op == "view" else 0

    def __bool__(self) -> bool:
        raise Unsupported("bool() of a value: control flow that depends on elements")

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
        """Elementwise with a scalar; identity with a value, since values are dictionary keys."""
        return self.graph.apply("eq", self, other) if other.__class__ in _SCALAR_TYPES else self is other

    def __ne__(self, other: object) -> Any:
        return self.graph.apply("ne", self, other) if other.__class__ in _SCALAR_TYPES else self is not other

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


#: operations on floats only, and comparisons, whose result is bool
_FLOATING = frozenset(scalar_ir.FLOATING)
_COMPARISON = frozenset(scalar_ir.COMPARISON)
ELEMENTWISE = (_FLOATING | _COMPARISON | set(scalar_ir.ARITHMETIC) | set(scalar_ir.BITWISE)
               | {"select", "cast", "copy"})
#: elementwise operations and reductions: what kernels fuse
FUSIBLE = ELEMENTWISE | {"reduce"}
#: not implemented for integers by kernels
_NOT_ON_INTEGERS = frozenset(("div", "fmin", "fmax"))
_COMMUTATIVE = frozenset(("add", "mul", "eq", "ne", "and", "or", "xor"))
#: constant folding of scalars, with the kernels' rounding
_FOLDS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative}
_CONSTANT_IF_EMPTY = ELEMENTWISE | {"view", "matmul", "assemble"}
_CONSTANT_LIMIT = 1 << 22
#: phases of values in a graph with values that are computed twice
FORWARD, BACKWARD = 0, 1


class Graph:
    """The interned values of one computation, in creation order.

    Attributes:
        extern_outputs: of each extern value, its "getitem" values.
        counts_at_runtime: whether element counts are read by kernels at run time instead of being constants in their
            code (`element_count`); this lets one kernel serve all shapes.
        runtime_constants: the constants that kernels read from memory.
        conditions: data guards: pairs of a bool value and the outcome without which the results are invalid.
        takes_pairs: whether gathers and scatters of complex values are kernels of pairs of real ones.
        phases: in a graph with values that are computed twice (`ir.rematerialization`), the phase of values: `FORWARD`,
            or for those that are computed again a larger number than `BACKWARD`, which all others are in.
        late: values that are not computed together with others only because both read the same array.
    """

    takes_pairs = False

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._interned: dict[tuple, Value] = {}
        self._arrays: dict[Value, np.ndarray] = {}
        self.extern_outputs: dict[Value, list[Value]] = {}
        self.counts_at_runtime = False
        self.runtime_constants: set[Value] = set()
        self.conditions: list[tuple[Value, bool]] = []
        self.phases: dict[Value, int] = {}
        self.late: set[Value] = set()
        self._apart: dict[tuple, Value] = {}

    def __str__(self) -> str:
        return "\n".join(value.text for value in self.values)

    def make(self, op: str, args: tuple[Value, ...], attrs: Any, shape: tuple[int, ...], dtype: np.dtype) -> Value:
        """Return the value of this operation, creating it if the graph does not have it."""
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

    @contextmanager
    def apart(self) -> Iterator[None]:
        """A block in which values are made that are no others outside of such blocks, even if these are equal."""
        self._interned, self._apart = self._apart, self._interned
        try:
            yield
        finally:
            self._interned, self._apart = self._apart, self._interned

    def restore(self, op: str, args: Sequence[Value], attrs: Any, shape: tuple[int, ...], dtype: np.dtype) -> Value:
        """Append the next value of a serialized graph, and return it."""
        value = self.make(op, tuple(args), attrs, shape, dtype)
        if op == "constant":
            _, _, bits = attrs
            self._arrays[value] = np.frombuffer(bits, dtype).reshape(shape) if bits else np.empty(shape, dtype)
        elif op == "getitem":
            outputs = self.extern_outputs.setdefault(args[0], [])
            if value not in outputs:
                outputs.append(value)
        return value

    # ----- inputs and constants -----

    def input(self, number: int, shape: tuple[int, ...], dtype: np.dtype) -> Value:
        """The input array of this number, dense in row-major order."""
        return self.make("input", (), number, tuple(shape), dtype)

    def constant(self, value: Any, dtype: np.dtype | None = None) -> Value:
        """A constant array, or a scalar of a dtype."""
        if dtype == BFLOAT16 and not isinstance(value, (np.ndarray, np.void)):  # NumPy would read the number as bits
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
        result = self.make("constant", (), (str(array.dtype), array.shape, bits), array.shape, array.dtype)
        if result not in self._arrays:
            copy = np.frombuffer(bits, array.dtype).reshape(array.shape) if array.size else array
            self._arrays[result] = copy
        return result

    def element_count(self, number: int, dtype: np.dtype) -> Value | float:
        """A number that depends on extents, such as the count of elements that a mean divides by.

        With `counts_at_runtime` it is a constant that kernels read, not a literal in their code.
        """
        if not self.counts_at_runtime:
            return float(number)
        result = self.constant(float(number), dtype)
        self.runtime_constants.add(result)
        return result

    def array(self, constant: Value) -> np.ndarray:
        """A constant's array."""
        return self._arrays[constant]

    # ----- elementwise -----

    def operands(self, values: Sequence[Any]) -> list[Value]:
        """Operands as values of one dtype: scalars take the dtype of the values; narrow floats are widened."""
        dtypes = {value.dtype for value in values if isinstance(value, Value)}
        if not dtypes:
            raise Unsupported("no values among the operands")
        dtypes = {FLOAT32 if each in NARROW else each for each in dtypes}
        if len(dtypes) > 1:
            raise Unsupported(f"operands of {', '.join(map(str, dtypes))}")
        dtype = dtypes.pop()
        result = []
        for value in values:
            if not isinstance(value, Value):
                if isinstance(value, np.ndarray | np.generic):
                    if value.dtype != dtype and value.ndim:
                        raise Unsupported(f"an array of {value.dtype} combined with values of {dtype}")
                    value = self.constant(np.asarray(value).astype(dtype, copy=False))
                elif isinstance(value, (bool, int, float)):
                    if dtype.kind in "biu" and (isinstance(value, float) or (dtype.kind == "b") != isinstance(
                            value, bool)):
                        raise Unsupported(f"a {type(value).__name__} combined with values of {dtype}")
                    with np.errstate(all="ignore"):
                        value = self.constant(value, dtype)
                else:
                    raise Unsupported(f"a {type(value).__name__} among the operands")
            result.append(self.cast(value, dtype))
        return result

    def broadcast(self, values: Sequence[Value]) -> tuple[tuple[int, ...], list[Value]]:
        """The common shape, and the values expanded to it; values without dimensions stay as they are."""
        shape: tuple[int, ...] = ()
        for value in values:
            if value.shape != shape and value.shape:
                shape = broadcast_shapes(shape, value.shape) if shape else value.shape
        return shape, [value if value.shape == shape or not value.shape else self.expand(value, shape)
                       for value in values]

    def apply(self, op: str, *values: Any) -> Value:
        """Apply an elementwise operation of `codegen.scalar.scalar_ir`, with broadcasting and simplification."""
        args = self.operands(values)
        dtype = args[0].dtype
        if dtype.kind == "c" or (dtype.kind == "V"):
            raise Unsupported(f"{op} of {dtype}")
        if dtype.kind in "biu" and (op in _FLOATING or op in _NOT_ON_INTEGERS):
            raise Unsupported(f"{op} of {dtype}")
        if dtype.kind == "b" and op in scalar_ir.ARITHMETIC:
            raise Unsupported(f"{op} of {dtype}")
        if dtype.kind == "f" and op in scalar_ir.BITWISE:
            raise Unsupported(f"{op} of {dtype}")
        simplified = self._simplify(op, args)
        if simplified is not None:
            return simplified
        shape, args = self.broadcast(args)
        if op in _COMMUTATIVE:  # canonical order, so that both orders are one value
            args.sort(key=lambda each: (-each.size, each.number))
        return self.make(op, tuple(args), None, shape, BOOL if op in _COMPARISON else dtype)

    def _simplify(self, op: str, args: list[Value]) -> Value | None:
        constants = [_scalar_constant(arg) for arg in args]
        if op in _FOLDS and all(constant is not None for constant in constants) and args[0].dtype.kind == "f":
            with np.errstate(all="ignore"):
                folded = _FOLDS[op](*[self.array(constant) for constant in constants if constant is not None])
            return self._in_shape(self.constant(folded, args[0].dtype), args)
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
        """`x` where the condition is true, else `y`."""
        if not (isinstance(x, Value) or isinstance(y, Value)):
            raise Unsupported("select of two scalars")
        x, y = self.operands([x, y])
        if not isinstance(condition, Value) or condition.dtype != BOOL:
            raise Unsupported("a condition that is not a bool value")
        if x.dtype.kind not in "biuf":
            raise Unsupported(f"select of {x.dtype}")
        shape, args = self.broadcast([condition, x, y])
        return self.make("select", tuple(args), None, shape, x.dtype)

    def cast(self, value: Value, dtype: np.dtype) -> Value:
        """Convert to another dtype."""
        if value.dtype == dtype:
            return value
        for kind in (value.dtype, dtype):
            if kind.kind == "c" or (kind.kind == "V" and kind != BFLOAT16):
                raise Unsupported(f"a cast of {value.dtype} to {dtype}")
        constant = _scalar_constant(value)
        if constant is not None and dtype not in NARROW and value.dtype not in NARROW:
            with np.errstate(all="ignore"):
                folded = self.constant(self.array(constant).astype(dtype))
            return folded if not value.shape else self.expand(folded, value.shape)
        return self.make("cast", (value,), None, value.shape, dtype)

    def copy(self, value: Value) -> Value:
        """The value in row-major order: a copy of a view, else the value itself."""
        if value.op != "view":
            return value
        if value.dtype.kind == "c":  # kernels copy complex numbers as pairs of real ones
            return self.assemble(value.shape, None, [value], [(algebra.dense_strides(value.shape), 0)])
        return self.make("copy", (value,), None, value.shape, value.dtype)

    # ----- reductions, matmuls, convolutions -----

    def reduce(self, name: str, value: Value, dims: Sequence[int]) -> Value:
        """A reduction of `codegen.scalar.reduction_ops` over dimensions, which the result does not have."""
        from ...codegen.scalar.reduction_ops import result_dtype

        axes = tuple(sorted(d % max(value.ndim, 1) for d in dims))
        shape = tuple(n for d, n in enumerate(value.shape) if d not in axes)
        if value.dtype.kind not in "biuf" and value.dtype != BFLOAT16:
            raise Unsupported(f"{name} of {value.dtype}")
        if value.size == 0:
            raise Unsupported(f"{name} of no elements")
        dtype = result_dtype(name, scalar_ir.variable(0, FLOAT32 if value.dtype in NARROW else value.dtype))
        if value.dtype in NARROW:
            value = self.cast(value, FLOAT32)
        constant = _scalar_constant(value)
        if constant is not None and name in ("sum", "max", "min"):
            count = value.size // prod(shape) if prod(shape) else 0
            with np.errstate(all="ignore"):
                folded = self.array(constant).astype(dtype) * (count if name == "sum" else 1)
            return self.expand(self.constant(folded.astype(dtype)), shape)
        if name in ("argmax", "argmin"):
            if prod(shape) == value.size:
                return self.expand(self.constant(0, dtype), shape)
        elif value.dtype == dtype:
            axes = tuple(d for d in axes if value.shape[d] != 1)
            if not axes:
                return self.reshape(value, shape)
        return self.make("reduce", (value,), (name, axes, shape), shape, dtype)

    def matmul(self, a: Value, b: Value) -> Value:
        """Matmul over the last two dimensions; leading dimensions broadcast."""
        if a.dtype != b.dtype or a.dtype.kind != "f" or a.dtype in NARROW:
            raise Unsupported(f"a matmul of {a.dtype} and {b.dtype}")
        if a.shape[-1] != b.shape[-2]:
            raise Unsupported(f"a matmul of {a.shape} and {b.shape}")
        batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a = self.expand(a, (*batch, *a.shape[-2:]))
        b = self.expand(b, (*batch, *b.shape[-2:]))
        shape = (*batch, a.shape[-2], b.shape[-1])
        if a.base.op == "constant" and a.shape[-2] == 1 and not a.strides[-1]:
            a = self.copy(a)  # a state of zeros is multiplied like those of later steps, with weights in one layout
        a, b = self._read_before_copy(a, b)
        return self.reshape(self.make("matmul", (a, b), None, (*a.shape[:-1], b.shape[-1]), a.dtype), shape)

    def _read_before_copy(self, a: Value, b: Value) -> tuple[Value, Value]:
        """Undo a copy that merged batch dimensions: return the strided sources of the operands.

        Matmuls read strided batches, such as the heads of attention, without a copy.
        """
        sources = [_copy_source(x) for x in (a, b)]
        batches = {x.shape[:-2] for x in sources if x is not None}
        if len(batches) != 1:
            return a, b
        [batch] = batches
        result = []
        for x, source in zip((a, b), sources, strict=True):
            if source is None:
                shape = (*batch, *x.shape[-2:])
                strides = algebra.reshape_strides(x.shape, x.strides, shape)
                if strides is None:
                    return a, b
                source = self.view(x, shape, strides, x.offset)
            result.append(source)
        return result[0], result[1]

    def convolve(self, kind: str, a: Value, b: Value, shape: Sequence[int], stride: Sequence[int],
                 padding: Sequence[int], dilation: Sequence[int], groups: int) -> Value:
        """A convolution or one of its gradients (see the module); `shape` is the result's."""
        if a.dtype != b.dtype or a.dtype.kind != "f" or a.dtype in NARROW or a.ndim > 5:
            raise Unsupported(f"a convolution of {a.dtype} and {b.dtype} in {a.ndim - 2} dimensions")
        attrs = (kind, tuple(stride), tuple(padding), tuple(dilation), groups)
        return self.make("convolve", (a, b), attrs, tuple(shape), a.dtype)

    def assemble(self, shape: Sequence[int], background: Value | None, pieces: Sequence[Value],
                 locations: Sequence[tuple[tuple[int, ...], int]]) -> Value:
        """An array of this shape: pieces written over a background; None where the pieces cover all of it."""
        args = tuple(pieces) if background is None else (self.expand(background, shape), *pieces)
        return self.make("assemble", args, (background is not None, *locations), tuple(shape), pieces[0].dtype)

    def cat(self, values: Sequence[Value], dim: int) -> Value:
        """Concatenate along a dimension."""
        if len({v.dtype for v in values}) > 1:
            raise Unsupported("concatenation of several dtypes")
        shape = list(values[0].shape)
        shape[dim] = sum(v.shape[dim] for v in values)
        strides, locations, start = algebra.dense_strides(shape), [], 0
        for value in values:
            locations.append((strides, start * strides[dim]))
            start += value.shape[dim]
        return values[0] if len(values) == 1 else self.assemble(shape, None, values, locations)

    def extern(self, kernel: Any, args: Sequence[Value], outputs: Sequence[tuple[tuple[int, ...], np.dtype]]
              ) -> list[Value]:
        """The outputs of an extern kernel: dense arrays of these shapes and dtypes."""
        node = self.make("extern", tuple(args), kernel, (), BOOL)
        results = [self.make("getitem", (node,), k, tuple(shape), dtype) for k, (shape, dtype) in enumerate(outputs)]
        self.extern_outputs[node] = results
        return results

    def reinterpret(self, value: Value, dtype: np.dtype) -> Value | None:
        """All elements of memory as another dtype, flat; None in a graph without kernels for complex numbers."""
        return None

    # ----- views -----

    def view(self, value: Value, shape: Sequence[int], strides: Sequence[int], offset: int) -> Value:
        """A view of a value's base, by strides and an offset in elements of the base."""
        base, shape = value.base, tuple(shape)
        if offset == 0 and algebra.is_dense(shape, strides) and prod(shape) == base.size:
            if shape == base.shape:
                return base
            strides = algebra.dense_strides(shape)
        strides = tuple([0 if n == 1 else s for n, s in zip(shape, strides, strict=True)]
                        if not algebra.is_dense(shape, strides) else strides)
        return self.make("view", (base,), (strides, offset), shape, base.dtype)

    def expand(self, value: Value, shape: Sequence[int]) -> Value:
        """Broadcast to a shape, by strides of 0."""
        shape = tuple(shape)
        if value.shape == shape:
            return value
        missing = len(shape) - value.ndim
        strides = [0] * missing
        for n, s, extent in zip(value.shape, value.strides, shape[missing:], strict=True):
            if n not in (1, extent):
                raise Unsupported(f"{value.shape} expanded to {shape}")
            strides.append(s if n == extent and n != 1 else 0)
        return self.view(value, shape, strides, value.offset)

    def permute(self, value: Value, dims: Sequence[int]) -> Value:
        """Permute dimensions."""
        strides = value.strides
        return self.view(value, [value.shape[d] for d in dims], [strides[d] for d in dims], value.offset)

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Reshape; copies a view whose strides do not allow it."""
        shape = tuple(shape)
        if value.shape == shape:
            return value
        if prod(shape) != value.size:
            raise Unsupported(f"{value.shape} reshaped to {shape}")
        if value.op == "view":
            strides = algebra.reshape_strides(value.shape, value.strides, shape)
            if strides is None:
                return self.reshape(self.copy(value), shape)
            return self.view(value, shape, strides, value.offset)
        return self.view(value, shape, algebra.dense_strides(shape), 0)

    def slice(self, value: Value, dim: int, start: int, length: int, step: int = 1) -> Value:
        """`length` indices of a dimension, from `start`, `step` apart."""
        shape, strides = list(value.shape), list(value.strides)
        offset = value.offset + start * strides[dim]
        shape[dim] = length
        strides[dim] *= step
        return self.view(value, shape, strides, offset)

    def select_index(self, value: Value, dim: int, index: int) -> Value:
        """Index a dimension, which the result does not have."""
        shape, strides = list(value.shape), list(value.strides)
        offset = value.offset + index * strides[dim]
        del shape[dim], strides[dim]
        return self.view(value, shape, strides, offset)

    def unsqueeze(self, value: Value, dim: int) -> Value:
        """Insert a dimension of extent 1."""
        shape, strides = list(value.shape), list(value.strides)
        shape.insert(dim, 1)
        strides.insert(dim, 0)
        return self.view(value, shape, strides, value.offset)


def reachable(outputs: Sequence[Value]) -> list[Value]:
    """The outputs and every value that they depend on, in creation order."""
    seen: set[Value] = set()
    stack = list(outputs)
    while stack:
        value = stack.pop()
        if value not in seen:
            seen.add(value)
            stack.extend(value.args)
    return sorted(seen, key=lambda v: v.number)


def _copy_source(value: Value) -> Value | None:
    """The source of a copy that merged batch dimensions, if its matrices have unit stride in one dimension."""
    copy = value.base
    if copy.op != "copy" or copy.attrs is not None or value.op != "view" or value.offset or value.size != copy.size:
        return None
    source = copy.args[0]
    if source.ndim <= value.ndim or source.shape[-2:] != value.shape[-2:] or 1 not in source.strides[-2:]:
        return None
    return source if algebra.is_dense(value.shape, value.strides) else None


def _scalar_constant(value: Value) -> Value | None:
    """The zero-dimensional constant that a value is, or broadcasts."""
    base = value.base
    return base if base.op == "constant" and not base.shape else None


def _is_constant(value: Value, number: Number) -> bool:
    scalar = _scalar_constant(value)
    return scalar is not None and bool(value.graph.array(scalar) == number)


__all__ = ["BACKWARD", "BOOL", "ELEMENTWISE", "FLOAT32", "FORWARD", "FUSIBLE", "INT64", "Graph", "Unsupported", "Value",
           "logical_operand", "reachable"]
