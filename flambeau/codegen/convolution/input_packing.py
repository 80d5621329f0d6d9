"""Copies of a part of a batch of images, channels last and with a margin of zeros, as convolutions read them.

`fill(destination, source, about, n, d, depth, h, height, w, width)` copies `n` images' positions from (d, h, w) on,
which may lie outside: there is zero. `about` lists what is the same for every part (`ABOUT`).
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
from ..llvm.lowering import intrinsic, stored
from .plan_fields import Callee
from .transpose import columns

VOID = ir.VoidType()
FILL = ir.FunctionType(VOID, [POINTER] * 3 + [I64] * 7)

#: the source's spatial sizes; its strides in bytes and the copy's, (n, d, h, w); its stride by channel; how many
#: channels there are
ABOUT = ("extent.d", "extent.h", "extent.w", "from.n", "from.d", "from.h", "from.w", "to.n", "to.d", "to.h", "to.w",
         "from.c", "channels")

#: fewer channels than this are copied one by one where they do not lie together
FEW = 5


def about(extents: Sequence[int], strides: Sequence[int], channel_stride: int, channels: int,
          pitches: Sequence[int]) -> tuple[int, ...]:
    """The list that `fill` is handed."""
    return (*extents, *strides, *pitches, channel_stride, channels)


def kind(channels: int, channel_stride: int, column_stride: int, itemsize: int) -> str:
    """How a position's channels are copied.

    "together" where they lie together in memory, "turned" where instead neighbouring positions do, else "scattered".
    """
    if channel_stride == itemsize or channels == 1:
        return "together"
    return "turned" if column_stride == itemsize and channels >= FEW else "scattered"


#: of a copying launch's plan: pointers' numbers, bytes before the copy in scratch memory, the address of `fill`;
#: first places and counts by d, h and w; images
_COPY = ("source", "scratch", "before", "fill", "d", "depth", "h", "height", "w", "width")


def copying(fill: compilation.Library, source: int, scratch: int, before: int, first: Sequence[int],
            counts: Sequence[int], images: int, table: Sequence[int]) -> Launch:
    """The launch that copies all images, one a chunk, with the table that `about` makes."""
    found = compilation.load("convolution copy", ("body",), _generate_copying, "few")
    places = [each for pair in zip(first, counts, strict=True) for each in pair]
    return Launch(found, found.symbol("body"), images,
                  (source, scratch, before, fill.symbol("fill"), *places, *table))


def _generate_copying() -> str:
    module = ir.Module("copy")
    function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, image = function.args
    read = {name: word(b, plan, i) for i, name in enumerate(_COPY)}
    table = b.gep(plan, [i64(len(_COPY))], source_etype=I64)
    source, scratch = (b.load(b.gep(pointers, [read[name]], source_etype=POINTER), typ=POINTER)
                       for name in ("source", "scratch"))
    to = at(b, at(b, scratch, read["before"]), b.mul(image, word(b, table, ABOUT.index("to.n"))))
    place = at(b, source, b.mul(image, word(b, table, ABOUT.index("from.n"))))
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
    read = {name: word(builder, table, i) for i, name in enumerate(ABOUT)}
    copy = {"together": _together, "turned": _turned, "scattered": _scattered}[kind]
    # columns before the source's first, in it, and behind its last
    left, middle, right = _inside(builder, w, width, read["extent.w"])
    above, rows, _ = _inside(builder, h, height, read["extent.h"])
    before, planes, _ = _inside(builder, d, depth, read["extent.d"])
    first = builder.mul(builder.add(w, left), read["from.w"])
    with loop(builder, i64(0), images) as i, loop(builder, i64(0), depth) as j:
        plane = _place(builder, destination, read, "to", (i, j))
        there = builder.icmp_unsigned("<", builder.sub(j, before), planes)
        some_rows = builder.select(there, rows, i64(0))
        with loop(builder, i64(0), height) as k:
            row = at(builder, plane, builder.mul(k, read["to.h"]))
            inside = builder.icmp_unsigned("<", builder.sub(k, above), some_rows)
            with builder.if_else(inside) as (some, none):
                with some:
                    _clear(builder, row, builder.mul(left, read["to.w"]))
                    _clear(builder, at(builder, row, builder.mul(builder.add(left, middle), read["to.w"])),
                           builder.mul(right, read["to.w"]))
                with none:
                    _clear(builder, row, builder.mul(width, read["to.w"]))
        with builder.if_then(builder.icmp_signed(">", builder.mul(some_rows, middle), i64(0))):
            place = _place(builder, source, read, "from", (i, builder.add(d, j), builder.add(h, above)))
            to = at(builder, at(builder, plane, builder.mul(above, read["to.h"])), builder.mul(left, read["to.w"]))
            copy(builder, dtype, read, to, at(builder, place, first), rows, middle)
    builder.ret_void()
    return str(module)


def _inside(builder: ir.IRBuilder, first: Any, count: Any, extent: Any) -> tuple[Any, Any, Any]:
    """Of `count` places from `first` on, how many lie before 0, below `extent`, and behind."""
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


def _together(builder: ir.IRBuilder, dtype: np.dtype, read: dict[str, Any], to: Any, place: Any, rows: Any,
              columns: Any) -> None:
    channels = builder.mul(read["channels"], i64(dtype.itemsize))
    whole = builder.and_(builder.icmp_signed("==", read["from.w"], channels),
                         builder.icmp_signed("==", read["to.w"], channels))
    with loop(builder, i64(0), rows) as r:
        row = at(builder, to, builder.mul(r, read["to.h"]))
        source = at(builder, place, builder.mul(r, read["from.h"]))
        with builder.if_else(whole) as (one, each):
            with one:
                _copy(builder, row, source, builder.mul(columns, channels))
            with each, loop(builder, i64(0), columns) as c:
                _copy(builder, at(builder, row, builder.mul(c, read["to.w"])),
                      at(builder, source, builder.mul(c, read["from.w"])), channels)


def _scattered(builder: ir.IRBuilder, dtype: np.dtype, read: dict[str, Any], to: Any, place: Any, rows: Any,
               columns: Any) -> None:
    kind, size = stored(dtype), dtype.itemsize
    with loop(builder, i64(0), rows) as r, loop(builder, i64(0), read["channels"]) as c:
        row = at(builder, to, builder.add(builder.mul(r, read["to.h"]), builder.mul(c, i64(size))))
        source = at(builder, place, builder.add(builder.mul(r, read["from.h"]), builder.mul(c, read["from.c"])))
        with loop(builder, i64(0), columns) as q:
            value = builder.load(at(builder, source, builder.mul(q, read["from.w"])), typ=kind, align=size)
            builder.store(value, at(builder, row, builder.mul(q, read["to.w"])), align=size)


def _turned(builder: ir.IRBuilder, dtype: np.dtype, read: dict[str, Any], to: Any, place: Any, rows: Any,
            columns: Any) -> None:
    """Rows that follow each other in memory are one run of positions."""
    flat = builder.icmp_signed("==", read["from.h"], builder.mul(columns, read["from.w"]))
    runs = builder.select(flat, i64(1), rows)
    length = builder.select(flat, builder.mul(rows, columns), columns)
    with loop(builder, i64(0), runs) as r:
        row = at(builder, to, builder.mul(r, read["to.h"]))
        source = at(builder, place, builder.mul(r, read["from.h"]))
        _Run(builder, dtype, read, row, source, length, columns)


class _Run:
    """Copies positions that follow each other in memory, to rows of `columns` positions: blocks of as many positions
    and channels as a vector has lanes, whose rows are channels on their way in and positions on their way out.
    """

    def __init__(self, builder: ir.IRBuilder, dtype: np.dtype, read: dict[str, Any], to: Any, source: Any, length: Any,
                 columns: Any) -> None:
        self.builder, self.dtype, self.read, self.columns = builder, dtype, read, columns
        self.size = size = dtype.itemsize
        self.lanes = lanes = target.host().vector_bits // 8 // size
        self.skip = builder.sub(read["to.h"], builder.mul(columns, read["to.w"]))
        self.here, self.column = local(builder, POINTER), local(builder, I64)
        last = builder.sub(read["channels"], i64(1))
        whole = builder.icmp_signed(">=", length, i64(lanes))
        with loop(builder, i64(0), read["channels"], lanes) as c:
            channels = smaller(builder, builder.sub(read["channels"], c), i64(lanes))
            # the last channel stands in for those that are missing, which are not stored
            places = [at(builder, source, builder.mul(smaller(builder, builder.add(c, i64(i)), last),
                                                      read["from.c"])) for i in range(lanes)]
            begin = at(builder, to, builder.mul(c, i64(size)))
            with builder.if_else(whole) as (blocks, few):
                with blocks:
                    self._blocks(begin, places, length, channels)
                with few:
                    self._few(begin, at(builder, source, builder.mul(c, read["from.c"])), length, channels)

    def _begin(self, to: Any, position: Any) -> None:
        """Stand at a position of the run."""
        b = self.builder
        row, column = (b.zext(each(b.trunc(position, I32), b.trunc(self.columns, I32)), I64)
                       for each in (b.udiv, b.urem))
        b.store(at(b, at(b, to, b.mul(row, self.read["to.h"])), b.mul(column, self.read["to.w"])), self.here)
        b.store(column, self.column)

    def _next(self) -> Any:
        """Where the position stood at lies; then go to the next."""
        b = self.builder
        here, column = b.load(self.here, typ=POINTER), b.add(b.load(self.column, typ=I64), i64(1))
        over = b.icmp_signed("==", column, self.columns)
        b.store(b.select(over, i64(0), column), self.column)
        b.store(at(b, here, b.add(self.read["to.w"], b.select(over, self.skip, i64(0)))), self.here)
        return here

    def _blocks(self, to: Any, places: Sequence[Any], length: Any, channels: Any) -> None:
        """The last block begins so early that it ends with the run."""
        b = self.builder
        all_ = b.icmp_signed("==", channels, i64(self.lanes))
        kept = first_lanes(b, channels, self.lanes)
        last = b.sub(length, i64(self.lanes))
        with loop(b, i64(0), length, self.lanes) as q:
            first = smaller(b, q, last)
            offset = b.mul(first, i64(self.size))
            vectors = columns(b, self.dtype, [at(b, place, offset) for place in places])
            self._begin(to, first)
            if target.host().vector_bits == 512:  # masks cost nothing
                self._write(vectors, kept)
            else:
                with b.if_else(all_) as (whole, part):
                    with whole:
                        self._write(vectors)
                    with part:
                        self._write(vectors, kept)

    def _write(self, vectors: Sequence[Any], kept: Any = None) -> None:
        """Vectors of channels to the positions from the one stood at on."""
        b, align = self.builder, ir.Constant(I32, self.size)
        for vector in vectors:
            here = self._next()
            if kept is None:
                b.store(vector, here, align=self.size)
            else:
                intrinsic(b, "masked.store", VOID, [vector, here, align, kept], [vector.type, POINTER])

    def _few(self, to: Any, source: Any, length: Any, channels: Any) -> None:
        """Fewer positions than a vector has lanes, one by one."""
        b, kind = self.builder, stored(self.dtype)
        with loop(b, i64(0), channels) as c:
            self._begin(at(b, to, b.mul(c, i64(self.size))), i64(0))
            row = at(b, source, b.mul(c, self.read["from.c"]))
            with loop(b, i64(0), length) as q:
                value = b.load(b.gep(row, [q], source_etype=kind), typ=kind, align=self.size)
                b.store(value, self._next(), align=self.size)
