"""Loops over strided memory, as LLVM code: counted loops, vectors loaded and stored by a run's kind of step,
and the walk over outer dimensions.

An *operand* is an array as a kernel sees it. Its *step* says how its elements follow each other along the innermost
dimension: "c" one after the other, "b" always the same one (broadcast), "s" at any distance; "t" is "s" where the
elements of the next dimension lie one after the other.
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
from .lowering import intrinsic, number, splat, stored

I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
POINTER = ir.PointerType()


def i64(value: int) -> ir.Constant:
    """An integer constant."""
    return ir.Constant(I64, value)


def after(builder: ir.IRBuilder, pointers: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Two pointers or more, known only when the values, vectors of floats, are: an instruction without effect.

    LLVM cannot read through them before it has the values. Left to itself it mixes the steps of an unrolled loop, and
    needs more registers than there are.
    """
    from ...runtime.target import host

    this = host()
    if this.triple.startswith(("aarch64", "arm64")):
        register = "w"
    elif this.triple.startswith(("x86_64", "amd64")):
        register = "v" if this.vector_bits == 512 else "x"
    else:
        return list(pointers)
    found = builder.asm(
        ir.FunctionType(ir.LiteralStructType([POINTER] * len(pointers)),
                        [*[POINTER] * len(pointers), *[each.type for each in values]]), "",
        ",".join([*["=r"] * len(pointers), *map(str, range(len(pointers))), *[register] * len(values)]),
        [*pointers, *values], True)
    return [builder.extract_value(found, i) for i in range(len(pointers))]


def past_if_possible(builder: ir.IRBuilder, written: Sequence[tuple[Any, int]], read: Sequence[Any],
                     write: Callable[[bool], None]) -> None:
    """Write results past the caches (`write(True)`) if all begin where vectors do and none is read; else as usual.

    What is read is in a cache by then.

    Args:
        written: where results begin, and the bytes of their vectors.
        read: where inputs begin.
    """
    places = [builder.ptrtoint(place, I64) for place, _ in written]
    others = [builder.ptrtoint(place, I64) for place in read]
    within = [builder.and_(place, i64(size - 1)) for place, (_, size) in zip(places, written, strict=True)]
    may = builder.icmp_signed("==", functools.reduce(builder.or_, within), i64(0))
    for place in places:
        for other in others:
            may = builder.and_(may, builder.icmp_signed("!=", place, other))
    with builder.if_else(may) as (yes, no):
        with yes:
            write(True)
        with no:
            write(False)


def store_nontemporal(builder: ir.IRBuilder, value: Any, place: Any, size: int) -> None:
    """Write a vector of so many bytes past the caches; the address is a multiple of its size."""
    made = builder.store(value, place, align=size)
    made.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(I32, 1)]))


def settle(builder: ir.IRBuilder) -> None:
    """Wait until other threads see what went past the caches, whose order is not kept otherwise."""
    from ...runtime.target import host

    if host().triple.startswith(("x86_64", "amd64")):
        builder.asm(ir.FunctionType(ir.VoidType(), []), "sfence", "~{memory}", [], True)
    else:
        builder.fence("seq_cst")


def at(builder: ir.IRBuilder, pointer: Any, offset: Any) -> Any:
    """The address `offset` bytes on."""
    return builder.gep(pointer, [i64(offset) if isinstance(offset, int) else offset], source_etype=I8)


def word(builder: ir.IRBuilder, pointer: Any, index: Any) -> Any:
    """Integer number `index` of a list of 64-bit integers."""
    return builder.load(builder.gep(pointer, [i64(index) if isinstance(index, int) else index], source_etype=I64),
                        typ=I64)


def local(builder: ir.IRBuilder, type_: ir.Type, count: int | None = None) -> Any:
    """Memory of the function's own."""
    with builder.goto_entry_block():
        return builder.alloca(type_, size=None if count is None else ir.Constant(I32, count))


def block_of(builder: ir.IRBuilder, dtype: np.dtype, count: int) -> Any:
    """Memory of the function's own for `count` elements, as a pointer of no type."""
    return untyped(builder, local(builder, stored(dtype), count))


def untyped(builder: ir.IRBuilder, memory: Any) -> Any:
    """The address of the function's own memory, as a pointer of no type."""
    pointer = local(builder, POINTER)
    builder.store(memory, pointer)
    return builder.load(pointer, typ=POINTER)


@contextmanager
def loop(builder: ir.IRBuilder, start: Any, stop: Any, step: int | Any = 1) -> Iterator[Any]:
    """The block written inside runs for start, start + step, ... below stop."""
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


def larger(builder: ir.IRBuilder, x: Any, y: Any) -> Any:
    """The larger of two integers."""
    return builder.select(builder.icmp_signed(">", x, y), x, y)


def smaller(builder: ir.IRBuilder, x: Any, y: Any) -> Any:
    """The smaller of two integers."""
    return builder.select(builder.icmp_signed("<", x, y), x, y)


def first_lanes(builder: ir.IRBuilder, count: Any, lanes: int) -> Any:
    """A mask: true for the first `count` lanes."""
    wide = splat(builder, builder.trunc(smaller(builder, count, i64(lanes)), I32), lanes)
    return builder.icmp_signed("<", number_range(lanes, I32), wide)


def number_range(lanes: int, type_: ir.Type) -> ir.Constant:
    """0, 1, 2, ... in the lanes of a vector."""
    return ir.Constant(ir.VectorType(type_, lanes), list(range(lanes)))


@dataclass(frozen=True)
class Operand:
    """An array's elements, as a kernel meets them: their dtype and their step along the innermost dimension.

    That is "c", from one to the next in memory, "n", to the one before, "b", nowhere, or "s", any other.
    """

    dtype: np.dtype
    step: str

    def load(self, builder: ir.IRBuilder, base: Any, stride: Any, index: Any, lanes: int, mask: Any = None) -> Any:
        """`lanes` elements from element `index` of the run that begins at `base`; what the mask hides is 0."""
        kind = stored(self.dtype)
        if self.step == "b":
            one = builder.load(base, typ=kind, align=1)
            return self._bits(builder, splat(builder, one, lanes), lanes)
        vector = ir.VectorType(kind, lanes)
        if self.step == "c":
            address = builder.gep(base, [index], source_etype=kind)
            if mask is None:
                value = builder.load(address, typ=vector, align=1)
            else:
                value = intrinsic(builder, "masked.load", vector,
                                  [address, ir.Constant(I32, 1), mask, number(0, vector)], [vector, POINTER])
        elif self.step == "n":
            value = self._backwards(builder, base, index, vector, mask)
        elif mask is None:
            value = ir.Constant(vector, ir.Undefined)
            address = at(builder, base, builder.mul(index, stride))
            for lane in range(lanes):
                one = builder.load(address, typ=kind, align=1)
                value = builder.insert_element(value, one, ir.Constant(I32, lane))
                address = at(builder, address, stride)
        else:
            value = self._gather(builder, self._addresses(builder, base, stride, index, lanes), vector, mask)
        return self._bits(builder, value, lanes)

    @staticmethod
    def _backwards(builder: ir.IRBuilder, base: Any, index: Any, vector: ir.VectorType, mask: Any) -> Any:
        """Elements that lie together in memory, the last one first."""
        lanes = vector.count
        order = ir.Constant(ir.VectorType(I32, lanes), list(range(lanes - 1, -1, -1)))
        address = builder.gep(base, [builder.sub(i64(1 - lanes), index)], source_etype=vector.element)
        if mask is None:
            value = builder.load(address, typ=vector, align=1)
        else:
            shown = builder.shuffle_vector(mask, mask, order)
            value = intrinsic(builder, "masked.load", vector,
                              [address, ir.Constant(I32, 1), shown, number(0, vector)], [vector, POINTER])
        return builder.shuffle_vector(value, value, order)

    def store(self, builder: ir.IRBuilder, value: Any, base: Any, stride: Any, index: Any, lanes: int,
              mask: Any = None) -> None:
        """Write `lanes` elements from element `index` on, but those that the mask hides."""
        kind = stored(self.dtype)
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
        """Write `lanes` elements that follow each other to memory, without reading what the caches lack of it.

        The address is a multiple of the vector's size.
        """
        store_nontemporal(builder, value, builder.gep(base, [index], source_etype=stored(self.dtype)),
                   lanes * self.dtype.itemsize)

    def store_one(self, builder: ir.IRBuilder, value: Any, place: Any) -> None:
        """Write an element, which is no vector."""
        builder.store(builder.zext(value, stored(self.dtype)) if self.dtype == BOOL else value, place, align=1)

    def _bits(self, builder: ir.IRBuilder, value: Any, lanes: int) -> Any:
        if self.dtype == BOOL:
            return builder.icmp_unsigned("!=", value, number(0, value.type))
        return value

    @staticmethod
    def _addresses(builder: ir.IRBuilder, base: Any, stride: Any, index: Any, lanes: int) -> Any:
        start = builder.add(builder.ptrtoint(base, I64), builder.mul(index, stride))
        offsets = builder.mul(number_range(lanes, I64), splat(builder, stride, lanes))
        return builder.inttoptr(builder.add(splat(builder, start, lanes), offsets),
                                ir.VectorType(POINTER, lanes))

    @staticmethod
    def _gather(builder: ir.IRBuilder, addresses: Any, vector: ir.VectorType, mask: Any) -> Any:
        everything = ir.Constant(ir.VectorType(I1, vector.count), [1] * vector.count)
        return intrinsic(builder, "masked.gather", vector,
                         [addresses, ir.Constant(I32, 1), everything if mask is None else mask, number(0, vector)],
                         [vector, addresses.type])


def turn(builder: ir.IRBuilder, dtype: np.dtype, base: Any, stride: Any, rows: Any, columns: Any, square: Any,
         pitch: int, lanes: int) -> None:
    """Copy a block whose columns, `stride` bytes apart, each lie together in memory, so that its rows do.

    The block has at most `lanes` rows and `pitch` columns; row q begins at element q * pitch of `square`. Vectors
    are columns on their way in and rows on their way out: as often as two halves to the number of lanes, the vectors
    of the upper half and of the lower are interleaved.
    """
    kind = stored(dtype)
    vector = ir.VectorType(kind, lanes)
    mask = first_lanes(builder, rows, lanes)
    last = builder.sub(columns, i64(1))
    with loop(builder, i64(0), columns, lanes) as first:
        vectors = []
        for j in range(lanes):
            column = smaller(builder, builder.add(first, i64(j)), last)
            address = at(builder, base, builder.mul(column, stride))
            vectors.append(intrinsic(builder, "masked.load", vector,
                                     [address, ir.Constant(I32, 1), mask, number(0, vector)], [vector, POINTER]))
        for q, row in enumerate(transposed(builder, vectors)):
            place = builder.gep(square, [builder.add(first, i64(q * pitch))], source_etype=kind)
            builder.store(row, place, align=1)


def turn_back(builder: ir.IRBuilder, dtype: np.dtype, square: Any, base: Any, stride: Any, rows: Any, columns: Any,
              lanes: int) -> None:
    """Copy a block whose rows lie together in memory, `lanes` elements each, to columns `stride` bytes apart.

    At most `lanes` rows and columns are written, though all are read.
    """
    kind = stored(dtype)
    vector = ir.VectorType(kind, lanes)
    mask = first_lanes(builder, rows, lanes)
    vectors = [builder.load(builder.gep(square, [i64(q * lanes)], source_etype=kind), typ=vector, align=1)
               for q in range(lanes)]
    for j, column in enumerate(transposed(builder, vectors)):
        shown = builder.select(builder.icmp_signed("<", i64(j), columns), mask, number(0, mask.type))
        intrinsic(builder, "masked.store", ir.VoidType(),
                  [column, at(builder, base, builder.mul(i64(j), stride)), ir.Constant(I32, 1), shown],
                  [vector, POINTER])


def transposed(builder: ir.IRBuilder, vectors: list[Any]) -> list[Any]:
    """As many vectors as they have lanes: lane i of vector j becomes lane j of vector i."""
    lanes = len(vectors)
    half = lanes // 2
    orders = [ir.Constant(ir.VectorType(I32, lanes), [each for i in range(start, start + half)
                                                      for each in (i, i + lanes)]) for start in (0, half)]
    for _ in range(lanes.bit_length() - 1):
        vectors = [builder.shuffle_vector(vectors[i], vectors[i + half], order)
                   for i in range(half) for order in orders]
    return vectors


#: dimensions of an array, at most
MAX_DIMS = 64


class Walk:
    """A place in a nest of outer dimensions, and where it is in every operand.

    The dimensions' extents, the fastest first, and their strides in bytes, operand by operand, are lists of integers
    that the plan of a call brings along.
    """

    def __init__(self, builder: ir.IRBuilder, bases: Sequence[Any], rank: Any, extents: Any, strides: Any,
                 row: Any) -> None:
        self.rank, self.extents, self.strides, self.count = rank, extents, strides, len(bases)
        self.places = [local(builder, POINTER) for _ in bases]
        self.counters = local(builder, I64, MAX_DIMS)
        for place, base in zip(self.places, bases, strict=True):
            builder.store(base, place)
        left = local(builder, I64)
        builder.store(row, left)
        with loop(builder, i64(0), rank) as d:
            rest, extent = builder.load(left, typ=I64), word(builder, extents, d)
            index = builder.srem(rest, extent)
            builder.store(builder.sdiv(rest, extent), left)
            builder.store(index, builder.gep(self.counters, [d], source_etype=I64))
            self._move(builder, d, index)

    def pointers(self, builder: ir.IRBuilder) -> list[Any]:
        """Where the operands' runs begin at this place."""
        return [builder.load(place, typ=POINTER) for place in self.places]

    def _move(self, builder: ir.IRBuilder, dim: Any, steps: Any) -> None:
        for k, place in enumerate(self.places):
            stride = word(builder, self.strides, builder.add(builder.mul(self.rank, i64(k)), dim))
            builder.store(at(builder, builder.load(place, typ=POINTER), builder.mul(stride, steps)), place)

    def advance(self, builder: ir.IRBuilder) -> None:
        """Go to the next place; after the last one comes the first."""
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


class Line:
    """A place among outer elements that lie at one distance, as `Walk` is one in a nest of dimensions.

    Args:
        distances: in bytes, operand by operand.
    """

    def __init__(self, builder: ir.IRBuilder, bases: Sequence[Any], distances: Sequence[Any], row: Any) -> None:
        self.distances = distances
        self.places = [local(builder, POINTER) for _ in bases]
        for place, base, distance in zip(self.places, bases, distances, strict=True):
            builder.store(at(builder, base, builder.mul(row, distance)), place)

    def pointers(self, builder: ir.IRBuilder) -> list[Any]:
        """Where the operands are at this place."""
        return [builder.load(place, typ=POINTER) for place in self.places]

    def advance(self, builder: ir.IRBuilder) -> None:
        """Go to the next place."""
        for place, distance in zip(self.places, self.distances, strict=True):
            builder.store(at(builder, builder.load(place, typ=POINTER), distance), place)
