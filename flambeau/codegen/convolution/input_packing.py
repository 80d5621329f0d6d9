"""Input packing (im2col's first half): channels-last copies of a region of images with zero padding.

`fill(destination, source, fields, n, d, depth, h, height, w, width)` copies a region of `n` images from (d, h, w) on.
Positions outside the images are zero. `fields` holds what all regions share (`FILL_FIELDS`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import compilation, target
from ...runtime.launch import Launch
from ..llvm import kernel_entry
from ..llvm.loop_nests import I1, I32, I64, POINTER, at, first_lanes, i64, local, loop, smaller, word
from ..llvm.lowering import intrinsic, memory_type
from .plan_fields import Callee
from .transpose import columns

VOID = ir.VoidType()
FILL = ir.FunctionType(VOID, [POINTER] * 3 + [I64] * 7)

#: the source's spatial sizes; strides in bytes of the source and of the copy; the source's channel stride; the number
#: of channels
FILL_FIELDS = ("extent.d", "extent.h", "extent.w", "from.n", "from.d", "from.h", "from.w", "to.n", "to.d", "to.h",
               "to.w",
         "from.c", "channels")

#: below this number, non-contiguous channels are copied element by element
MIN_TRANSPOSED_CHANNELS = 5


def fill_fields(extents: Sequence[int], strides: Sequence[int], channel_stride: int, channels: int,
          pitches: Sequence[int]) -> tuple[int, ...]:
    """The values of `FILL_FIELDS`."""
    return (*extents, *strides, *pitches, channel_stride, channels)


def kind(channels: int, channel_stride: int, column_stride: int, itemsize: int) -> str:
    """How channels are copied: "contiguous", "transposed" where positions are contiguous instead, or "scattered"."""
    if channel_stride == itemsize or channels == 1:
        return "contiguous"
    return "transposed" if column_stride == itemsize and channels >= MIN_TRANSPOSED_CHANNELS else "scattered"


#: plan fields of a copy launch: pointer indices, the copy's offset in scratch memory, the address of `fill`; first
#: index and count along d, h and w
_COPY = ("source", "scratch", "before", "fill", "d", "depth", "h", "height", "w", "width")


def copying(fill: compilation.Library, source: int, scratch: int, before: int, first: Sequence[int],
            counts: Sequence[int], images: int, table: Sequence[int]) -> Launch:
    """The launch that copies all images, one per chunk; `table` holds the values of `FILL_FIELDS`."""
    compiled = compilation.load("convolution copy", ("body",), _generate_copying, "few")
    region = [each for pair in zip(first, counts, strict=True) for each in pair]
    return Launch(compiled, compiled.symbol("body"), images,
                  (source, scratch, before, fill.symbol("fill"), *region, *table))


def _generate_copying() -> str:
    module = ir.Module("copy")
    function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, image = function.args
    read = {name: word(b, plan, i) for i, name in enumerate(_COPY)}
    table = b.gep(plan, [i64(len(_COPY))], source_etype=I64)
    source, scratch = (b.load(b.gep(pointers, [read[name]], source_etype=POINTER), typ=POINTER)
                       for name in ("source", "scratch"))
    to = at(b, at(b, scratch, read["before"]), b.mul(image, word(b, table, FILL_FIELDS.index("to.n"))))
    place = at(b, source, b.mul(image, word(b, table, FILL_FIELDS.index("from.n"))))
    b.call(Callee(b, read["fill"], FILL), [to, place, table, i64(1), *(read[name] for name in _COPY[4:])])
    b.ret_void()
    return str(module)


def library(dtype: np.dtype, kind: str) -> compilation.Library:
    """The compiled `fill`."""
    return compilation.load(f"convolution source {dtype} {kind}", ("fill",), lambda: _generate(dtype, kind), "few")


def _generate(dtype: np.dtype, kind: str) -> str:
    module = ir.Module("source")
    function, builder = kernel_entry.begin(module, "fill", FILL)
    destination, source, table, images, d, depth, h, height, w, width = function.args
    read = {name: word(builder, table, i) for i, name in enumerate(FILL_FIELDS)}
    copy = {"contiguous": _contiguous, "transposed": _transposed, "scattered": _scattered}[kind]
    # columns before, within and after the source
    left, middle, right = _inside(builder, w, width, read["extent.w"])
    above, rows, _ = _inside(builder, h, height, read["extent.h"])
    before, planes, _ = _inside(builder, d, depth, read["extent.d"])
    first = builder.mul(builder.add(w, left), read["from.w"])
    with loop(builder, i64(0), images) as i, loop(builder, i64(0), depth) as j:
        plane = _place(builder, destination, read, "to", (i, j))
        within = builder.icmp_unsigned("<", builder.sub(j, before), planes)
        valid_rows = builder.select(within, rows, i64(0))
        with loop(builder, i64(0), height) as k:
            row = at(builder, plane, builder.mul(k, read["to.h"]))
            inside = builder.icmp_unsigned("<", builder.sub(k, above), valid_rows)
            with builder.if_else(inside) as (valid, padding):
                with valid:
                    _clear(builder, row, builder.mul(left, read["to.w"]))
                    _clear(builder, at(builder, row, builder.mul(builder.add(left, middle), read["to.w"])),
                           builder.mul(right, read["to.w"]))
                with padding:
                    _clear(builder, row, builder.mul(width, read["to.w"]))
        with builder.if_then(builder.icmp_signed(">", builder.mul(valid_rows, middle), i64(0))):
            place = _place(builder, source, read, "from", (i, builder.add(d, j), builder.add(h, above)))
            to = at(builder, at(builder, plane, builder.mul(above, read["to.h"])), builder.mul(left, read["to.w"]))
            copy(builder, dtype, read, to, at(builder, place, first), rows, middle)
    builder.ret_void()
    return str(module)


def _inside(builder: ir.IRBuilder, first: Any, count: Any, extent: Any) -> tuple[Any, Any, Any]:
    """How many of the `count` indices from `first` on are negative, below `extent`, and beyond."""
    before = smaller(builder, _not_negative(builder, builder.neg(first)), count)
    end = smaller(builder, builder.sub(extent, first), count)
    within = _not_negative(builder, builder.sub(end, before))
    return before, within, builder.sub(count, builder.add(before, within))


def _not_negative(builder: ir.IRBuilder, value: Any) -> Any:
    return builder.select(builder.icmp_signed("<", value, i64(0)), i64(0), value)


def _place(builder: ir.IRBuilder, base: Any, read: dict[str, Any], which: str, indices: Sequence[Any]) -> Any:
    for axis, index in zip("ndh", indices, strict=False):
        base = at(builder, base, builder.mul(index, read[f"{which}.{axis}"]))
    return base


def _clear(builder: ir.IRBuilder, place: Any, count: Any) -> None:
    with builder.if_then(builder.icmp_signed(">", count, i64(0))):
        intrinsic(builder, "memset", VOID, [place, ir.Constant(ir.IntType(8), 0), count, ir.Constant(I1, 0)],
                  [POINTER, I64])


def _copy(builder: ir.IRBuilder, destination: Any, source: Any, count: Any) -> None:
    intrinsic(builder, "memcpy", VOID, [destination, source, count, ir.Constant(I1, 0)], [POINTER, POINTER, I64])


def _contiguous(builder: ir.IRBuilder, dtype: np.dtype, read: dict[str, Any], to: Any, place: Any, rows: Any,
              columns: Any) -> None:
    channels = builder.mul(read["channels"], i64(dtype.itemsize))
    dense = builder.and_(builder.icmp_signed("==", read["from.w"], channels),
                         builder.icmp_signed("==", read["to.w"], channels))
    with loop(builder, i64(0), rows) as r:
        row = at(builder, to, builder.mul(r, read["to.h"]))
        source = at(builder, place, builder.mul(r, read["from.h"]))
        with builder.if_else(dense) as (one, each):
            with one:
                _copy(builder, row, source, builder.mul(columns, channels))
            with each, loop(builder, i64(0), columns) as c:
                _copy(builder, at(builder, row, builder.mul(c, read["to.w"])),
                      at(builder, source, builder.mul(c, read["from.w"])), channels)


def _scattered(builder: ir.IRBuilder, dtype: np.dtype, read: dict[str, Any], to: Any, place: Any, rows: Any,
               columns: Any) -> None:
    kind, size = memory_type(dtype), dtype.itemsize
    with loop(builder, i64(0), rows) as r, loop(builder, i64(0), read["channels"]) as c:
        row = at(builder, to, builder.add(builder.mul(r, read["to.h"]), builder.mul(c, i64(size))))
        source = at(builder, place, builder.add(builder.mul(r, read["from.h"]), builder.mul(c, read["from.c"])))
        with loop(builder, i64(0), columns) as q:
            value = builder.load(at(builder, source, builder.mul(q, read["from.w"])), typ=kind, align=size)
            builder.store(value, at(builder, row, builder.mul(q, read["to.w"])), align=size)


def _transposed(builder: ir.IRBuilder, dtype: np.dtype, read: dict[str, Any], to: Any, place: Any, rows: Any,
            columns: Any) -> None:
    """Transpose row by row, or in one run where rows are contiguous."""
    flat = builder.icmp_signed("==", read["from.h"], builder.mul(columns, read["from.w"]))
    runs = builder.select(flat, i64(1), rows)
    length = builder.select(flat, builder.mul(rows, columns), columns)
    with loop(builder, i64(0), runs) as r:
        row = at(builder, to, builder.mul(r, read["to.h"]))
        source = at(builder, place, builder.mul(r, read["from.h"]))
        _Run(builder, dtype, read, row, source, length, columns)


class _Run:
    """Copies a contiguous run of positions to rows of `columns` positions, in transposed lanes × lanes blocks.

    A block's rows are channels when loaded and positions when stored.
    """

    def __init__(self, builder: ir.IRBuilder, dtype: np.dtype, read: dict[str, Any], to: Any, source: Any, length: Any,
                 columns: Any) -> None:
        self.builder, self.dtype, self.read, self.columns = builder, dtype, read, columns
        self.size = size = dtype.itemsize
        self.lanes = lanes = target.host().vector_bits // 8 // size
        self.skip = builder.sub(read["to.h"], builder.mul(columns, read["to.w"]))
        self.here, self.column = local(builder, POINTER), local(builder, I64)
        last = builder.sub(read["channels"], i64(1))
        has_block = builder.icmp_signed(">=", length, i64(lanes))
        with loop(builder, i64(0), read["channels"], lanes) as c:
            channels = smaller(builder, builder.sub(read["channels"], c), i64(lanes))
            # missing channels repeat the last one; they are not stored
            places = [at(builder, source, builder.mul(smaller(builder, builder.add(c, i64(i)), last),
                                                      read["from.c"])) for i in range(lanes)]
            begin = at(builder, to, builder.mul(c, i64(size)))
            with builder.if_else(has_block) as (blocks, few):
                with blocks:
                    self._blocks(begin, places, length, channels)
                with few:
                    self._few(begin, at(builder, source, builder.mul(c, read["from.c"])), length, channels)

    def _seek(self, to: Any, position: Any) -> None:
        """Set the current position."""
        b = self.builder
        row, column = (b.zext(each(b.trunc(position, I32), b.trunc(self.columns, I32)), I64)
                       for each in (b.udiv, b.urem))
        b.store(at(b, at(b, to, b.mul(row, self.read["to.h"])), b.mul(column, self.read["to.w"])), self.here)
        b.store(column, self.column)

    def _next(self) -> Any:
        """The address of the current position, before advancing to the next."""
        b = self.builder
        here, column = b.load(self.here, typ=POINTER), b.add(b.load(self.column, typ=I64), i64(1))
        over = b.icmp_signed("==", column, self.columns)
        b.store(b.select(over, i64(0), column), self.column)
        b.store(at(b, here, b.add(self.read["to.w"], b.select(over, self.skip, i64(0)))), self.here)
        return here

    def _blocks(self, to: Any, places: Sequence[Any], length: Any, channels: Any) -> None:
        """The last block overlaps the one before it, so that it ends with the run."""
        b = self.builder
        full = b.icmp_signed("==", channels, i64(self.lanes))
        mask = first_lanes(b, channels, self.lanes)
        last = b.sub(length, i64(self.lanes))
        with loop(b, i64(0), length, self.lanes) as q:
            first = smaller(b, q, last)
            offset = b.mul(first, i64(self.size))
            vectors = columns(b, self.dtype, [at(b, place, offset) for place in places])
            self._seek(to, first)
            if target.host().vector_bits == 512:  # masks are free
                self._write(vectors, mask)
            else:
                with b.if_else(full) as (unmasked, masked):
                    with unmasked:
                        self._write(vectors)
                    with masked:
                        self._write(vectors, mask)

    def _write(self, vectors: Sequence[Any], mask: Any = None) -> None:
        """Store vectors of channels to the current position and the following ones."""
        b, align = self.builder, ir.Constant(I32, self.size)
        for vector in vectors:
            here = self._next()
            if mask is None:
                b.store(vector, here, align=self.size)
            else:
                intrinsic(b, "masked.store", VOID, [vector, here, align, mask], [vector.type, POINTER])

    def _few(self, to: Any, source: Any, length: Any, channels: Any) -> None:
        """Copy fewer positions than a vector has lanes, element by element."""
        b, kind = self.builder, memory_type(self.dtype)
        with loop(b, i64(0), channels) as c:
            self._seek(at(b, to, b.mul(c, i64(self.size))), i64(0))
            row = at(b, source, b.mul(c, self.read["from.c"]))
            with loop(b, i64(0), length) as q:
                value = b.load(b.gep(row, [q], source_etype=kind), typ=kind, align=self.size)
                b.store(value, self._next(), align=self.size)
