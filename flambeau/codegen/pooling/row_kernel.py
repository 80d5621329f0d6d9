"""Pooling of planes whose rows are contiguous: vectors are over the windows of a row, and nothing is transposed.

Windows of one row start one or two elements apart; those inside the plane all have the same number of elements. For
every element of such a window, a vector of windows loads contiguous memory, of which it keeps all or every second one.
The last vector of a row ends with the last inner window, so it may compute some windows again. Windows at the borders
are computed one by one. Elements are taken in the order of `code`: the results are the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from ...runtime import compilation, target
from ...runtime.launch import Launch
from ...runtime.symbolic_integers import typical
from ..convolution.blocking import balanced_size
from ..convolution.correlation import Images
from ..convolution.plan import PlanLayout
from ..convolution.plan_fields import Plan
from ..llvm import kernel_entry
from ..llvm.loop_nests import I32, POINTER, at, i64, local, loop, smaller
from ..llvm.lowering import constant, memory_type, splat
from .plan import AnyWindows

#: fewest and most elements of a row in a window, bytes of the narrowest vector, and the most rows of a window for which
#: code is unrolled
FEWEST, MOST, NARROWEST, UNROLLED = 2, 8, 16, 3
#: most elements of a row in windows that start one element apart
LONGEST_OVERLAPPING = 3
#: most vectors that are computed together, and how many times as many windows may be computed for their sake
MOST_VECTORS, REPEATED = 4, 1.15

#: planes and channels; a chunk's planes and rows, and the chunks that share planes; windows; the inner windows of a
#: row; strides in bytes; starts of the lists of windows
ROWS = PlanLayout("""
    planes channels planes.chunk rows.chunk rows.chunks grid.dhw inner.first inner.end inner.start
    source.ndhw source.c target.ndhw target.c step.dhw
    starts.dhw counts.dhw divisors.dhw override
""")


class Inner(NamedTuple):
    """The windows of a row that lie inside it.

    Attributes:
        first, end: of the windows.
        stride: elements between two windows.
        length: elements of a window.
    """

    first: int
    end: int
    stride: int
    length: int


def inner_windows(windows: AnyWindows) -> Inner | None:
    """The longest run of windows with the same number of elements, divisor and distance; None where there is none.

    >>> from .plan import regular
    >>> inner_windows(regular(9, 5, 3, 2, 1))
    Inner(first=1, end=4, stride=2, length=3)
    """
    found = windows.uniform
    if found is None:
        return None
    first, end = found
    return Inner(first, end, windows.starts[first + 1] - windows.starts[first], windows.longest)


def fits(windows: AnyWindows, source: Images, output: Images, lanes: int) -> Inner | None:
    """The inner windows of a row, if pooling by rows is possible and pays."""
    size = source.dtype.itemsize
    if source.w != size or output.w != size:
        return None
    inner = inner_windows(windows)
    if inner is None or inner.stride not in (1, 2) or not FEWEST <= inner.length <= MOST:
        return None
    # with overlapping windows each element is loaded once for every window: the other kernel copies it once
    if inner.stride == 1 and (inner.length > LONGEST_OVERLAPPING or inner.end - inner.first < lanes):
        return None
    return inner if inner.end - inner.first >= min(NARROWEST // size, lanes) else None


def launches(mean: bool, source: Images, output: Images, windows: tuple[AnyWindows, ...], inner: Inner, batch: int,
             channels: int, divisor: int, grain: int, most_chunks: int) -> list[Launch]:
    """The launch over the pointers of the output and the source.

    Args:
        mean: whether windows are averaged; else their maximum is taken.
        source, output: the layouts.
        windows: along d, h and w.
        inner: of a row's windows.
        batch, channels: of the images.
        divisor: of all means; 0: that of each window.
        grain, most_chunks: window elements that are worth a chunk, and the number of chunks aimed at.
    """
    grid = [each.number for each in windows]
    planes, rows = batch * channels, grid[1]
    work = planes * prod(grid) * prod(each.longest for each in windows)
    wanted = max(1, min(most_chunks, -(-typical(work) // grain)))
    planes_chunk = balanced_size(typical(planes), -(-typical(planes) // wanted))
    shared = min(rows, -(-wanted // -(-typical(planes) // planes_chunk))) if planes_chunk == 1 else 1
    rows_chunk = balanced_size(rows, -(-rows // shared))
    shared = -(-rows // rows_chunk)
    lanes = target.host().vector_bits // 8 // source.dtype.itemsize
    count = inner.end - inner.first
    while lanes > count:
        lanes //= 2
    vectors = _vectors_for(typical(count), lanes)
    while vectors * lanes > count:  # of symbolic sizes
        vectors -= 1
    lists: list[int] = []
    values: dict[str, compilation.Word] = {
        "planes": planes, "channels": channels, "planes.chunk": planes_chunk, "rows.chunk": rows_chunk,
        "rows.chunks": shared, "inner.first": inner.first, "inner.end": inner.end,
        "inner.start": windows[2].starts[inner.first], "source.c": source.c,
        "target.c": output.c, "override": divisor}
    for i, axis in enumerate("ndhw"):
        values |= {f"source.{axis}": source.outer[i], f"target.{axis}": output.outer[i]}
    for axis, each, count in zip("dhw", windows, grid, strict=True):
        values |= {f"grid.{axis}": count, f"step.{axis}": each.step}
        for name, entries in (("starts", each.starts), ("counts", each.counts), ("divisors", each.divisors)):
            values[f"{name}.{axis}"] = ROWS.end + len(lists)
            lists += entries
    tall = windows[1].longest
    flat = windows[0].number == 1 and windows[0].longest == 1
    rows_unrolled = tall if flat and tall <= UNROLLED else 0
    code = library(mean, source.dtype, lanes, vectors, inner.stride, inner.length, rows_unrolled)
    return [Launch(code, code.symbol("body"), -(-planes // planes_chunk) * shared, ROWS.plan(values, *lists))]


def _vectors_for(count: int, lanes: int) -> int:
    """The most vectors to compute together such that few of `count` windows are computed twice.

    >>> _vectors_for(28, 16), _vectors_for(56, 16)
    (1, 2)
    """
    computed = {vectors: -(-count // (vectors * lanes)) * vectors for vectors in range(1, MOST_VECTORS + 1)
                if vectors * lanes <= count}
    return max(vectors for vectors, total in computed.items() if total <= REPEATED * min(computed.values()))


def library(mean: bool, dtype: np.dtype, lanes: int, vectors: int, stride: int, length: int, rows: int
            ) -> compilation.Library:
    """The compiled `body`.

    Args:
        mean: whether windows are averaged; else their maximum is taken.
        dtype: of the elements.
        lanes, vectors: of a vector, and vectors that are computed together.
        stride, length: of the inner windows.
        rows: of windows whose loop is unrolled, where d has one window of one element; 0: none.
    """
    what = "mean" if mean else "max"
    return compilation.load(f"pooling rows {what} {dtype} {lanes} {vectors} {stride} {length} {rows}", ("body",),
                            lambda: _Body(mean, dtype, lanes, vectors, stride, length, rows).text, "few")


class _Body:
    """Generates `body`."""

    def __init__(self, mean: bool, dtype: np.dtype, lanes: int, vectors: int, stride: int, length: int,
                 rows: int) -> None:
        self.mean, self.dtype, self.size = mean, dtype, dtype.itemsize
        self.lanes, self.vectors, self.stride, self.length = lanes, vectors, stride, length
        module = ir.Module("pooling rows")
        function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        self.builder = b
        pointers, words, chunk = function.args
        self.plan = plan = Plan(b, words, ROWS)
        output, source = (b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER) for i in range(2))
        self.read = {name: plan[name] for name in ("source.d", "source.h", "step.d", "step.h", "step.w", "override",
                                                   "inner.first", "inner.end", "inner.start", "grid.w")}
        row_part, plane_part = b.urem(chunk, plan["rows.chunks"]), b.udiv(chunk, plan["rows.chunks"])
        first_plane, first_row = b.mul(plane_part, plan["planes.chunk"]), b.mul(row_part, plan["rows.chunk"])
        end_plane = smaller(b, b.add(first_plane, plan["planes.chunk"]), plan["planes"])
        end_row = smaller(b, b.add(first_row, plan["rows.chunk"]), plan["grid.h"])
        with ExitStack() as nest:
            plane = nest.enter_context(loop(b, first_plane, end_plane))
            n, c = b.udiv(plane, plan["channels"]), b.urem(plane, plan["channels"])
            from_, to = (at(b, at(b, base, b.mul(n, plan[f"{name}.n"])), b.mul(c, plan[f"{name}.c"]))
                         for base, name in ((source, "source"), (output, "target")))
            windows = []
            for axis, begin, end in (("d", i64(0), plan["grid.d"]), ("h", first_row, end_row)):
                window = nest.enter_context(loop(b, begin, end))
                start = plan.at(f"starts.{axis}", window)
                from_ = at(b, from_, b.mul(start, self.read[f"source.{axis}"]))
                to = at(b, to, b.mul(window, plan[f"target.{axis}"]))
                windows.append((window, plan.at(f"counts.{axis}", window)))
            if not rows:
                self._row(from_, to, windows, 0)
            else:
                with b.if_else(b.icmp_signed("==", windows[1][1], i64(rows))) as (full, partial):
                    with full:
                        self._row(from_, to, windows, rows)
                    with partial:
                        self._row(from_, to, windows, 0)
        b.ret_void()
        self.text = str(module)

    def _row(self, source: Any, to: Any, windows: list[Any], rows: int) -> None:
        """Compute a row of windows: the inner ones by vectors, those before and behind them one by one.

        Args:
            source, to: addresses of the windows' first row of elements, and of the row of results.
            windows: along d and h, the window and its number of elements.
            rows: the elements along h, if the loop over them is unrolled, or 0.
        """
        b, read, size = self.builder, self.read, i64(self.size)
        wide = self.vectors * self.lanes
        with loop(b, read["inner.first"], read["inner.end"], wide) as i:
            window = smaller(b, i, b.sub(read["inner.end"], i64(wide)))
            start = b.add(b.mul(b.sub(window, read["inner.first"]), i64(self.stride)), read["inner.start"])
            place, results = at(b, source, b.mul(start, size)), at(b, to, b.mul(window, size))
            self._vectors(place, results, windows, window, rows)
        for begin, end in ((i64(0), read["inner.first"]), (read["inner.end"], read["grid.w"])):
            with loop(b, begin, end) as window:
                start = self.plan.at("starts.w", window)
                self._single(at(b, source, b.mul(start, size)), at(b, to, b.mul(window, size)), windows, window)

    def _vectors(self, source: Any, to: Any, windows: list[Any], window: Any, rows: int) -> None:
        """Compute vectors of inner windows, the first of which is `window`."""
        b = self.builder
        vector = ir.VectorType(memory_type(self.dtype), self.lanes)
        mask = ir.VectorType(ir.IntType(1), self.lanes)
        values = [local(b, vector) for _ in range(self.vectors)]
        unordered = local(b, mask)

        def compute(take: Callable[[Any, list[Any]], Any]) -> None:
            for each in values:
                b.store(constant(0.0 if self.mean else -np.inf, vector), each)
            for elements in self._rows(source, windows, rows):
                for v, value in enumerate(values):
                    b.store(take(b.load(value, typ=vector), elements(v)), value)
            for v, value in enumerate(values):
                result = b.load(value, typ=vector)
                if self.mean:
                    result = b.fdiv(result, splat(b, self._divisor(windows, window), self.lanes))
                b.store(result, at(b, to, v * self.lanes * self.size), align=self.size)

        def added(total: Any, elements: list[Any]) -> Any:
            for each in elements:
                total = b.fadd(total, each)
            return total

        def largest(best: Any, elements: list[Any]) -> Any:
            """The maximum of numbers; notes whether there are others."""
            found = b.load(unordered, typ=mask)
            for each, other in zip(elements[::2], [*elements[1::2], elements[-1]], strict=False):
                found = b.or_(found, b.fcmp_unordered("uno", each, other))
            b.store(found, unordered)
            for each in elements:
                best = b.select(b.fcmp_ordered(">", each, best), each, best)
            return best

        def largest_or_nan(best: Any, elements: list[Any]) -> Any:
            for each in elements:
                best = self._larger(best, each)
            return best

        if self.mean:
            compute(added)
            return
        b.store(ir.Constant(mask, None), unordered)
        compute(largest)
        bits = b.bitcast(b.load(unordered, typ=mask), ir.IntType(self.lanes))
        with b.if_then(b.icmp_signed("!=", bits, ir.Constant(bits.type, 0)), likely=False):
            compute(largest_or_nan)

    def _larger(self, best: Any, each: Any) -> Any:
        b = self.builder
        return b.select(b.or_(b.fcmp_ordered(">", each, best), b.fcmp_unordered("uno", each, each)), each, best)

    def _rows(self, source: Any, windows: list[Any], rows: int) -> Iterator[Callable[[int], list[Any]]]:
        """For each row of a window what loads the elements of vector v; emits loops unless `rows` are unrolled."""
        b, read = self.builder, self.read
        pitch = b.mul(read["step.h"], read["source.h"])
        if rows:
            for row in range(rows):
                yield partial(self._elements, at(b, source, b.mul(pitch, i64(row))))
            return
        with ExitStack() as nest:
            d, h = (nest.enter_context(loop(b, i64(0), count)) for _, count in windows)
            source = at(b, source, b.mul(b.mul(d, read["step.d"]), read["source.d"]))
            yield partial(self._elements, at(b, source, b.mul(h, pitch)))

    def _elements(self, source: Any, number: int) -> list[Any]:
        """The elements of vector `number` of windows in one row, by their place in the window."""
        b, lanes, size = self.builder, self.lanes, self.size
        source = at(b, source, number * lanes * self.stride * size)
        vector = ir.VectorType(memory_type(self.dtype), lanes)
        if self.stride == 1:
            return [b.load(at(b, source, i * size), typ=vector, align=size) for i in range(self.length)]
        wide = ir.VectorType(memory_type(self.dtype), 2 * lanes)
        # what follows the last element that is needed is not read: it may lie outside the array
        loaded = [b.load(at(b, source, i * size), typ=wide, align=size) for i in range(self.length - 1)]

        def every_second(of: Any, first: int) -> Any:
            order = ir.Constant(ir.VectorType(I32, lanes), list(range(first, 2 * lanes, 2)))
            return b.shuffle_vector(of, ir.Constant(wide, ir.Undefined), order)

        return [every_second(loaded[0], 0), *(every_second(each, 1) for each in loaded)]

    def _single(self, source: Any, to: Any, windows: list[Any], window: Any) -> None:
        """Compute a window at a border."""
        b, read = self.builder, self.read
        element = memory_type(self.dtype)
        value = local(b, element)
        b.store(constant(0.0 if self.mean else -np.inf, element), value)
        counts = [*(count for _, count in windows), self.plan.at("counts.w", window)]
        strides = [read["source.d"], read["source.h"], i64(self.size)]
        with ExitStack() as nest:
            for axis, count, stride in zip("dhw", counts, strides, strict=True):
                index = nest.enter_context(loop(b, i64(0), count))
                source = at(b, source, b.mul(b.mul(index, read[f"step.{axis}"]), stride))
            each, total = b.load(source, typ=element, align=self.size), b.load(value, typ=element)
            b.store(b.fadd(total, each) if self.mean else self._larger(total, each), value)
        result = b.load(value, typ=element)
        b.store(b.fdiv(result, self._divisor(windows, window)) if self.mean else result, to, align=self.size)

    def _divisor(self, windows: list[Any], window: Any) -> Any:
        """The divisor of a window's mean."""
        b, total = self.builder, i64(1)
        for axis, index in zip("dhw", (*(index for index, _ in windows), window), strict=True):
            total = b.mul(total, self.plan.at(f"divisors.{axis}", index))
        override = self.read["override"]
        return b.sitofp(b.select(b.icmp_signed("==", override, i64(0)), total, override), memory_type(self.dtype))


__all__ = ["ROWS", "Inner", "fits", "inner_windows", "launches", "library"]
