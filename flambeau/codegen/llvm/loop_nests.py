"""Loop nests over strided memory in LLVM IR: loops, vector loads and stores, transposed tiles, outer dimensions.

An *operand* is an array of a kernel. Its *step* is the access pattern along the innermost dimension:

    c    contiguous
    n    contiguous in reverse order (negative stride)
    b    broadcast (stride 0)
    s    strided
    t    strided, and contiguous along the next dimension: tiles are transposed into a buffer and read from there

A *run* is a sequence of elements along the innermost dimension.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir

from ..scalar.scalar_ir import BOOL
from .lowering import constant, intrinsic, memory_type, splat

I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
POINTER = ir.PointerType()


def i64(value: int) -> ir.Constant:
    """An integer constant."""
    return ir.Constant(I64, value)


def order_after(builder: ir.IRBuilder, pointers: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Return two or more pointers with an artificial dependence on vectors of floats, by an empty inline assembly.

    LLVM cannot move loads from these pointers before the values are computed. Otherwise it interleaves the iterations
    of an unrolled loop and spills registers.
    """
    from ...runtime.target import host

    this = host()
    if this.triple.startswith(("aarch64", "arm64")):
        register = "w"
    elif this.triple.startswith(("x86_64", "amd64")):
        register = "v" if this.vector_bits == 512 else "x"
    else:
        return list(pointers)
    ordered = builder.asm(
        ir.FunctionType(ir.LiteralStructType([POINTER] * len(pointers)),
                        [*[POINTER] * len(pointers), *[each.type for each in values]]), "",
        ",".join([*["=r"] * len(pointers), *map(str, range(len(pointers))), *[register] * len(values)]),
        [*pointers, *values], True)
    return [builder.extract_value(ordered, i) for i in range(len(pointers))]


def nontemporal_if_possible(builder: ir.IRBuilder, written: Sequence[tuple[Any, int]], read: Sequence[Any],
                     write: Callable[[bool], None]) -> None:
    """Emit `write(True)` (non-temporal stores) for aligned outputs that are no inputs, and `write(False)` for others.

    Inputs are cached when they are written, so non-temporal stores save nothing.

    Args:
        builder: of the function.
        written: the outputs' addresses and vector sizes in bytes.
        read: the inputs' addresses.
        write: emits the loop.
    """
    outputs = [builder.ptrtoint(address, I64) for address, _ in written]
    inputs = [builder.ptrtoint(address, I64) for address in read]
    misaligned = [builder.and_(address, i64(size - 1)) for address, (_, size) in zip(outputs, written, strict=True)]
    possible = builder.icmp_signed("==", functools.reduce(builder.or_, misaligned), i64(0))
    for output in outputs:
        for each in inputs:
            possible = builder.and_(possible, builder.icmp_signed("!=", output, each))
    with builder.if_else(possible) as (yes, no):
        with yes:
            write(True)
        with no:
            write(False)


def store_nontemporal(builder: ir.IRBuilder, value: Any, place: Any, size: int) -> None:
    """Emit a non-temporal store of a vector of `size` bytes; the address must be a multiple of it."""
    store = builder.store(value, place, align=size)
    store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(I32, 1)]))


def store_fence(builder: ir.IRBuilder) -> None:
    """Emit a fence after non-temporal stores, which are weakly ordered."""
    from ...runtime.target import host

    if host().triple.startswith(("x86_64", "amd64")):
        nothing = ir.FunctionType(ir.VoidType(), [])
        builder.call(builder.module.declare_intrinsic("llvm.x86.sse.sfence", (), nothing), [])
    else:
        builder.fence("seq_cst")


def at(builder: ir.IRBuilder, pointer: Any, offset: Any) -> Any:
    """The pointer plus `offset` bytes."""
    return builder.gep(pointer, [i64(offset) if isinstance(offset, int) else offset], source_etype=I8)


def inside_array(builder: ir.IRBuilder, pointer: Any, offset: int) -> Any:
    """The pointer plus a constant number of bytes, within the same array: the offset may be part of an instruction.

    WebAssembly's loads add an offset that cannot wrap around, which LLVM must know.
    """
    return builder.gep(pointer, [i64(offset)], inbounds=True, source_etype=I8)


def opaque(builder: ir.IRBuilder, value: Any) -> Any:
    """Return the same integer or pointer with its origin hidden from LLVM."""
    return builder.asm(ir.FunctionType(value.type, [value.type]), "", "=r,0", [value], False)


def shared_base(builder: ir.IRBuilder, address: Any) -> Any:
    """Return an address from which several elements are loaded, each at a constant offset that its load adds.

    In WebAssembly LLVM would compute each address in the loop, with additions that may wrap around.
    """
    from ...runtime.target import host

    return opaque(builder, address) if host().is_wasm else address


def word(builder: ir.IRBuilder, pointer: Any, index: Any) -> Any:
    """Load element `index` of an array of 64-bit integers."""
    return builder.load(builder.gep(pointer, [i64(index) if isinstance(index, int) else index], source_etype=I64),
                        typ=I64)


def local(builder: ir.IRBuilder, type_: ir.Type, count: int | None = None) -> Any:
    """Stack memory for a value, or for `count` of them, allocated in the entry block."""
    with builder.goto_entry_block():
        return builder.alloca(type_, size=None if count is None else ir.Constant(I32, count))


def stack_block(builder: ir.IRBuilder, dtype: np.dtype, count: int) -> Any:
    """Stack memory for `count` elements, as an opaque pointer."""
    return as_opaque_pointer(builder, local(builder, memory_type(dtype), count))


def as_opaque_pointer(builder: ir.IRBuilder, memory: Any) -> Any:
    """The address of stack memory as an opaque pointer: llvmlite's allocas have typed ones."""
    pointer = local(builder, POINTER)
    builder.store(memory, pointer)
    return builder.load(pointer, typ=POINTER)


@contextmanager
def loop(builder: ir.IRBuilder, start: Any, stop: Any, step: int | Any = 1) -> Iterator[Any]:
    """Emit a loop over start, start + step, ... below stop: yields the index."""
    before = builder.block
    head, body, after = (builder.append_basic_block(name) for name in ("loop", "body", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(I64)
    index.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", index, stop), body, after)
    builder.position_at_end(body)
    yield index
    index.add_incoming(builder.add(index, i64(step) if isinstance(step, int) else step), builder.block)
    builder.branch(head)
    builder.position_at_end(after)


@contextmanager
def while_loop(builder: ir.IRBuilder, condition: Callable[[], Any]) -> Iterator[None]:
    """Emit a loop that goes on while the value that `condition` emits is true."""
    head, body, after = (builder.append_basic_block(name) for name in ("while", "body", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    builder.cbranch(condition(), body, after)
    builder.position_at_end(body)
    yield
    builder.branch(head)
    builder.position_at_end(after)


def larger(builder: ir.IRBuilder, x: Any, y: Any) -> Any:
    """The larger of two integers."""
    return builder.select(builder.icmp_signed(">", x, y), x, y)


def smaller(builder: ir.IRBuilder, x: Any, y: Any) -> Any:
    """The smaller of two integers."""
    return builder.select(builder.icmp_signed("<", x, y), x, y)


def first_lanes(builder: ir.IRBuilder, count: Any, lanes: int) -> Any:
    """A mask that is true in the first `count` lanes."""
    wide = splat(builder, builder.trunc(smaller(builder, count, i64(lanes)), I32), lanes)
    return builder.icmp_signed("<", lane_indices(lanes, I32), wide)


def lane_indices(lanes: int, type_: ir.Type) -> ir.Constant:
    """The vector 0, 1, 2, ..."""
    return ir.Constant(ir.VectorType(type_, lanes), list(range(lanes)))


@dataclass(frozen=True)
class Operand:
    """An array of a kernel.

    Attributes:
        dtype: of the elements.
        step: the access pattern along the innermost dimension: "c", "n", "b" or "s".
    """

    dtype: np.dtype
    step: str

    def load(self, builder: ir.IRBuilder, base: Any, stride: Any, index: Any, lanes: int, mask: Any = None) -> Any:
        """Load `lanes` elements from element `index` of the run at `base`; lanes outside the mask are 0."""
        kind = memory_type(self.dtype)
        if self.step == "b":
            one = builder.load(base, typ=kind, align=1)
            return self._as_bits(builder, splat(builder, one, lanes))
        vector = ir.VectorType(kind, lanes)
        if self.step == "c":
            address = builder.gep(base, [index], source_etype=kind)
            if mask is None:
                value = builder.load(address, typ=vector, align=1)
            else:
                value = intrinsic(builder, "masked.load", vector,
                                  [address, ir.Constant(I32, 1), mask, constant(0, vector)], [vector, POINTER])
        elif self.step == "n":
            value = self._load_reversed(builder, base, index, vector, mask)
        elif mask is None:
            value = ir.Constant(vector, ir.Undefined)
            address = at(builder, base, builder.mul(index, stride))
            for lane in range(lanes):
                one = builder.load(address, typ=kind, align=1)
                value = builder.insert_element(value, one, ir.Constant(I32, lane))
                address = at(builder, address, stride)
        else:
            value = self._gather(builder, self._addresses(builder, base, stride, index, lanes), vector, mask)
        return self._as_bits(builder, value)

    @staticmethod
    def _load_reversed(builder: ir.IRBuilder, base: Any, index: Any, vector: ir.VectorType, mask: Any) -> Any:
        """Load contiguous elements in reverse order."""
        lanes = vector.count
        order = ir.Constant(ir.VectorType(I32, lanes), list(range(lanes - 1, -1, -1)))
        address = builder.gep(base, [builder.sub(i64(1 - lanes), index)], source_etype=vector.element)
        if mask is None:
            value = builder.load(address, typ=vector, align=1)
        else:
            reversed_mask = builder.shuffle_vector(mask, mask, order)
            value = intrinsic(builder, "masked.load", vector,
                              [address, ir.Constant(I32, 1), reversed_mask, constant(0, vector)],
                              [vector, POINTER])
        return builder.shuffle_vector(value, value, order)

    def store(self, builder: ir.IRBuilder, value: Any, base: Any, stride: Any, index: Any, lanes: int,
              mask: Any = None) -> None:
        """Store `lanes` elements from element `index` of the run at `base`; only the lanes of the mask."""
        kind = memory_type(self.dtype)
        vector = ir.VectorType(kind, lanes)
        if self.dtype == BOOL:
            value = builder.zext(value, vector)
        one = ir.Constant(I32, 1)
        if self.step == "c":
            address = builder.gep(base, [index], source_etype=kind)
            if mask is None:
                builder.store(value, address, align=1)
            else:
                intrinsic(builder, "masked.store", ir.VoidType(), [value, address, one, mask], [vector, POINTER])
            return
        if mask is None:
            address = at(builder, base, builder.mul(index, stride))
            for lane in range(lanes):
                builder.store(builder.extract_element(value, ir.Constant(I32, lane)), address, align=1)
                address = at(builder, address, stride)
            return
        addresses = self._addresses(builder, base, stride, index, lanes)
        intrinsic(builder, "masked.scatter", ir.VoidType(), [value, addresses, one, mask], [vector, addresses.type])

    def store_nontemporal(self, builder: ir.IRBuilder, value: Any, base: Any, index: Any, lanes: int) -> None:
        """Store `lanes` contiguous elements non-temporally; the address must be a multiple of the vector's size."""
        store_nontemporal(builder, value, builder.gep(base, [index], source_etype=memory_type(self.dtype)),
                          lanes * self.dtype.itemsize)

    def store_one(self, builder: ir.IRBuilder, value: Any, place: Any) -> None:
        """Store a scalar."""
        builder.store(builder.zext(value, memory_type(self.dtype)) if self.dtype == BOOL else value, place, align=1)

    def _as_bits(self, builder: ir.IRBuilder, value: Any) -> Any:
        if self.dtype == BOOL:
            return builder.icmp_unsigned("!=", value, constant(0, value.type))
        return value

    @staticmethod
    def _addresses(builder: ir.IRBuilder, base: Any, stride: Any, index: Any, lanes: int) -> Any:
        start = builder.add(builder.ptrtoint(base, I64), builder.mul(index, stride))
        offsets = builder.mul(lane_indices(lanes, I64), splat(builder, stride, lanes))
        return builder.inttoptr(builder.add(splat(builder, start, lanes), offsets),
                                ir.VectorType(POINTER, lanes))

    @staticmethod
    def _gather(builder: ir.IRBuilder, addresses: Any, vector: ir.VectorType, mask: Any) -> Any:
        everything = ir.Constant(ir.VectorType(I1, vector.count), [1] * vector.count)
        return intrinsic(builder, "masked.gather", vector,
                         [addresses, ir.Constant(I32, 1), everything if mask is None else mask, constant(0, vector)],
                         [vector, addresses.type])


def load_transposed(builder: ir.IRBuilder, dtype: np.dtype, base: Any, stride: Any, rows: Any, columns: Any, tile: Any,
                    pitch: int, lanes: int) -> None:
    """Copy a column-major block to a row-major tile.

    Args:
        builder: of the function.
        dtype: of the elements.
        base: the address of the block, whose columns are contiguous.
        stride: bytes from column to column.
        rows: at most `lanes`.
        columns: at most `pitch`.
        tile: the address of the tile; row q begins at element q * pitch.
        pitch: elements per row of the tile.
        lanes: elements per vector.
    """
    kind = memory_type(dtype)
    vector = ir.VectorType(kind, lanes)
    mask = first_lanes(builder, rows, lanes)
    last = builder.sub(columns, i64(1))
    with loop(builder, i64(0), columns, lanes) as first:
        vectors = []
        for j in range(lanes):
            column = smaller(builder, builder.add(first, i64(j)), last)
            address = at(builder, base, builder.mul(column, stride))
            vectors.append(intrinsic(builder, "masked.load", vector,
                                     [address, ir.Constant(I32, 1), mask, constant(0, vector)], [vector, POINTER]))
        for q, row in enumerate(transpose_vectors(builder, vectors)):
            target = builder.gep(tile, [builder.add(first, i64(q * pitch))], source_etype=kind)
            builder.store(row, target, align=1)


def store_transposed(builder: ir.IRBuilder, dtype: np.dtype, tile: Any, base: Any, stride: Any, rows: Any, columns: Any,
                     lanes: int) -> None:
    """Copy a row-major tile of `lanes` x `lanes` elements to a column-major block.

    The entire tile is read; `rows` and `columns` limit what is written. The columns of the block at `base` are
    contiguous, and `stride` bytes apart.
    """
    kind = memory_type(dtype)
    vector = ir.VectorType(kind, lanes)
    mask = first_lanes(builder, rows, lanes)
    vectors = [builder.load(builder.gep(tile, [i64(q * lanes)], source_etype=kind), typ=vector, align=1)
               for q in range(lanes)]
    for j, column in enumerate(transpose_vectors(builder, vectors)):
        written = builder.select(builder.icmp_signed("<", i64(j), columns), mask, constant(0, mask.type))
        intrinsic(builder, "masked.store", ir.VoidType(),
                  [column, at(builder, base, builder.mul(i64(j), stride)), ir.Constant(I32, 1), written],
                  [vector, POINTER])


def transpose_vectors(builder: ir.IRBuilder, vectors: list[Any]) -> list[Any]:
    """Transpose a square block in registers by log2(lanes) interleavings: lane i of vector j to lane j of vector i."""
    lanes = len(vectors)
    half = lanes // 2
    orders = [ir.Constant(ir.VectorType(I32, lanes), [each for i in range(start, start + half)
                                                      for each in (i, i + lanes)]) for start in (0, half)]
    for _ in range(lanes.bit_length() - 1):
        vectors = [builder.shuffle_vector(vectors[i], vectors[i + half], order)
                   for i in range(half) for order in orders]
    return vectors


#: the most dimensions of an array
MAX_DIMS = 64


class NdIterator:
    """An iterator over outer dimensions: the current index, and the operands' addresses there.

    Args:
        builder: of the function.
        bases: the operands' addresses.
        rank: the number of outer dimensions.
        extents: the address of their extents in the plan, the fastest dimension first.
        strides: the address of their strides in bytes, operand by operand.
        row: the linear index at which to start.
    """

    def __init__(self, builder: ir.IRBuilder, bases: Sequence[Any], rank: Any, extents: Any, strides: Any,
                 row: Any) -> None:
        self.rank, self.extents, self.strides = rank, extents, strides
        self.addresses = [local(builder, POINTER) for _ in bases]
        self.counters = local(builder, I64, MAX_DIMS)
        for address, base in zip(self.addresses, bases, strict=True):
            builder.store(base, address)
        left = local(builder, I64)
        builder.store(row, left)
        with loop(builder, i64(0), rank) as d:
            rest, extent = builder.load(left, typ=I64), word(builder, extents, d)
            index = builder.srem(rest, extent)
            builder.store(builder.sdiv(rest, extent), left)
            builder.store(index, builder.gep(self.counters, [d], source_etype=I64))
            self._move(builder, d, index)

    def pointers(self, builder: ir.IRBuilder) -> list[Any]:
        """The operands' addresses at the current index."""
        return [builder.load(address, typ=POINTER) for address in self.addresses]

    def _move(self, builder: ir.IRBuilder, dim: Any, steps: Any) -> None:
        for k, address in enumerate(self.addresses):
            stride = word(builder, self.strides, builder.add(builder.mul(self.rank, i64(k)), dim))
            builder.store(at(builder, builder.load(address, typ=POINTER), builder.mul(stride, steps)), address)

    def advance(self, builder: ir.IRBuilder) -> None:
        """Advance to the next index; the last is followed by the first."""
        dim = local(builder, I64)
        builder.store(i64(0), dim)
        head, body, carry, after = (builder.append_basic_block(name) for name in ("walk", "step", "carry", "walked"))
        builder.branch(head)
        builder.position_at_end(head)
        d = builder.load(dim, typ=I64)
        builder.cbranch(builder.icmp_signed("<", d, self.rank), body, after)
        builder.position_at_end(body)
        counter = builder.gep(self.counters, [d], source_etype=I64)
        index = builder.add(builder.load(counter, typ=I64), i64(1))
        builder.store(index, counter)
        self._move(builder, d, i64(1))
        extent = word(builder, self.extents, d)
        builder.cbranch(builder.icmp_signed("<", index, extent), after, carry)
        builder.position_at_end(carry)
        builder.store(i64(0), counter)
        self._move(builder, d, builder.neg(extent))
        builder.store(builder.add(d, i64(1)), dim)
        builder.branch(head)
        builder.position_at_end(after)


class LinearIterator:
    """An iterator over a single outer dimension, with the interface of `NdIterator`.

    Args:
        builder: of the function.
        bases: the operands' addresses.
        strides: bytes from row to row, operand by operand.
        row: the row at which to start.
    """

    def __init__(self, builder: ir.IRBuilder, bases: Sequence[Any], strides: Sequence[Any], row: Any) -> None:
        self.strides = strides
        self.addresses = [local(builder, POINTER) for _ in bases]
        for address, base, stride in zip(self.addresses, bases, strides, strict=True):
            builder.store(at(builder, base, builder.mul(row, stride)), address)

    def pointers(self, builder: ir.IRBuilder) -> list[Any]:
        """The operands' addresses at the current row."""
        return [builder.load(address, typ=POINTER) for address in self.addresses]

    def advance(self, builder: ir.IRBuilder) -> None:
        """Advance to the next row."""
        for address, stride in zip(self.addresses, self.strides, strict=True):
            builder.store(at(builder, builder.load(address, typ=POINTER), stride), address)
