"""Rows with borders: each row of the result is a row of the input between elements of that row.

Reflecting and replicating padding read the input once and write the result once: the border along the dimensions before
the last one is made of whole rows.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.codegen.indexing import padded_rows; from flambeau.runtime import launch
>>> x, out = np.float32([[1, 2], [3, 4]]), np.zeros((3, 4), np.float32)
>>> if codegen.available():
...     launch.run(padded_rows.launches(4, 1, 2, 2, rows=[0, 1, 0], before=[1], after=[0]), [out, x])
>>> print(out)
[[2. 1. 2. 1.]
 [4. 3. 4. 3.]
 [2. 1. 2. 1.]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...runtime import compilation, target
from ...runtime.launch import Launch

#: bytes that one thread copies in about 10 us
GRAIN = 1 << 17
#: fields of the plan; then the sources of a plane's rows, of the elements before a row, and of those after it
UNITS, ROWS, HEIGHT, WIDTH, BEFORE, AFTER, SHARE, TABLES = range(8)
#: vectors of the unrolled loop
_UNROLL = 4


def launches(itemsize: int, planes: int, height: int, width: int, *, rows: Sequence[int], before: Sequence[int],
             after: Sequence[int]) -> list[Launch]:
    """The launch over the pointers of row-major (planes, rows, before + width + after) and (planes, height, width).

    Args:
        itemsize: the bytes of an element, which are copied.
        rows: of each row of a plane of the result, the number of the input's row.
        before, after: of each element before and after a row, its place in the row.
    """
    row_bytes = (len(before) + width + len(after)) * itemsize
    units = planes * len(rows)
    share = max(1, GRAIN // row_bytes)
    chunks = max(1, -(-units // share))
    share = -(-units // chunks)
    words = (units, len(rows), height, width, len(before), len(after), share, *rows, *before, *after)
    lanes = max(4, target.host().vector_bits // 8 // itemsize)
    library = compilation.load(f"padded rows {itemsize} {lanes}", ("body",), lambda: _generate(itemsize, lanes), "few")
    return [Launch(library, library.symbol("body"), -(-units // share), words)]


def _generate(itemsize: int, lanes: int) -> str:
    from llvmlite import ir

    from ..llvm import kernel_entry
    from ..llvm.loop_nests import POINTER, i64, loop, smaller, word

    module = ir.Module("padded_rows")
    body, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, chunk = body.args
    out, x = (b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER) for i in range(2))
    rows, height, width, before, after, share = (word(b, plan, i) for i in range(ROWS, TABLES))
    element = ir.IntType(8 * itemsize)
    vector = ir.VectorType(element, lanes)
    first = b.mul(chunk, share)
    last = smaller(b, b.add(first, share), word(b, plan, UNITS))
    whole = b.add(b.add(before, width), after)

    def place(base: Any, index: Any) -> Any:
        return b.gep(base, [index], source_etype=element)

    def move(target: Any, source: Any, kind: Any) -> None:
        b.store(b.load(source, typ=kind, align=1), target, align=1)

    def border(table: Any, count: Any, target: Any, source: Any) -> None:
        with loop(b, i64(0), count) as i:
            move(place(target, i), place(source, word(b, plan, b.add(table, i))), element)

    with loop(b, first, last) as unit:
        row = word(b, plan, b.add(i64(TABLES), b.srem(unit, rows)))
        source = place(x, b.mul(b.add(b.mul(b.sdiv(unit, rows), height), row), width))
        target = place(out, b.mul(unit, whole))
        border(b.add(i64(TABLES), rows), before, target, source)
        inside = place(target, before)
        with b.if_else(b.icmp_signed(">=", width, i64(lanes))) as (wide, narrow):
            with wide:
                unrolled = b.sub(width, b.srem(width, i64(_UNROLL * lanes)))
                with loop(b, i64(0), unrolled, _UNROLL * lanes) as j:
                    places = [b.add(j, i64(u * lanes)) for u in range(_UNROLL)]
                    values = [b.load(place(source, each), typ=vector, align=1) for each in places]
                    for each, value in zip(places, values, strict=True):
                        b.store(value, place(inside, each), align=1)
                end = b.sub(width, i64(lanes))
                with loop(b, unrolled, width, lanes) as j:  # the last vector may overlap the one before
                    at_most = smaller(b, j, end)
                    move(place(inside, at_most), place(source, at_most), vector)
            with narrow, loop(b, i64(0), width) as j:
                move(place(inside, j), place(source, j), element)
        border(b.add(b.add(i64(TABLES), rows), before), after, place(inside, width), source)
    b.ret_void()
    return str(module)


__all__ = ["launches"]
