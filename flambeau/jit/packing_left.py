"""Copies of a product's left operand whose columns lie together, so that a block's elements do.

A block of the result reads some elements of A for every k. Where K runs along rows of A's memory these are one row
apart from k to k + 1, each on another line and often on another page. What is packed is cut into bands of a block's
rows, each with its elements for one k after those for the k before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from . import calling
from .loops import POINTER, at, i64, loop, smaller, word
from .lowering import stored
from .matmul_plan import Left
from .microkernel import tiling

#: values of k that are copied together: with a block's rows they fill lines of memory
_TOGETHER = 4


def generate(dtype: np.dtype) -> str:
    """The code: `body` packs a chunk's rows."""
    module = ir.Module("packing left")
    kind, size, high = stored(dtype), dtype.itemsize, tiling(dtype).rows[0]
    vector = ir.VectorType(kind, high)
    function, builder = calling.begin(module, "body", calling.BODY)
    pointers, plan, chunk = function.args
    p = {field: word(builder, plan, field) for field in Left}
    source, target = (builder.load(builder.gep(pointers, [p[field]], source_etype=POINTER), typ=POINTER)
                      for field in (Left.SOURCE, Left.TARGET))
    target = at(builder, target, p[Left.OFFSET])
    first = builder.mul(chunk, p[Left.ROWS])
    end = smaller(builder, builder.add(first, p[Left.ROWS]), p[Left.M])
    whole = builder.sub(end, builder.srem(builder.sub(end, first), i64(high)))
    k_whole = builder.sub(p[Left.K], builder.srem(p[Left.K], i64(_TOGETHER)))
    by_row = builder.mul(p[Left.K], i64(size))  # a band is as far from the next as its rows' elements are many

    def bands(k: Any, together: int) -> None:
        """The elements of all bands for so many values of k."""
        with loop(builder, first, whole, high) as row:
            column = at(builder, source, builder.mul(row, i64(size)))
            band = at(builder, target, builder.mul(row, by_row))
            found = [builder.load(at(builder, column, builder.mul(builder.add(k, i64(i)), p[Left.BY_K])), typ=vector,
                                  align=size) for i in range(together)]
            for i, each in enumerate(found):
                builder.store(each, at(builder, band, builder.mul(builder.add(k, i64(i)), i64(high * size))),
                              align=size)

    with loop(builder, i64(0), k_whole, _TOGETHER) as k:
        bands(k, _TOGETHER)
    with loop(builder, k_whole, p[Left.K]) as k:
        bands(k, 1)
    with loop(builder, i64(0), p[Left.K]) as k, loop(builder, whole, end) as row:  # the last band has fewer rows
        one = builder.load(at(builder, source, builder.add(builder.mul(row, i64(size)), builder.mul(k, p[Left.BY_K]))),
                           typ=kind, align=size)
        place = builder.add(builder.mul(whole, by_row), builder.mul(k, i64(high * size)))
        builder.store(one, at(builder, target, builder.add(place, builder.mul(builder.sub(row, whole), i64(size)))),
                      align=size)
    builder.ret_void()
    return str(module)


__all__ = ["generate"]
