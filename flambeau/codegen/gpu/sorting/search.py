"""Binary searches: for each value the place in sorted boundaries where it would be inserted."""

from __future__ import annotations

from math import prod

from ....runtime.launch import Spec
from ...scalar.scalar_ir import cast, constant, select
from ..coordinates import INT32, INT64, count_blocks
from ..kernel_ir import KernelBuilder
from ..launches import DeviceLaunch, launch

THREADS = 256


def launches(out: Spec, boundaries: Spec, values: Spec, sorter: Spec | None, right: bool) -> list[DeviceLaunch]:
    """The launch of a search. NaN is inserted at the end.

    Args:
        out: of the shape of `values`, int64 or int32, dense.
        boundaries: (n,), or (..., n) with the leading dimensions of `values`, dense, of one dtype with `values`.
        values: dense.
        sorter: the places of the boundaries in their order, of their shape, int64, dense; None: they are in order.
        right: after equal boundaries instead of before them.
    """
    size, n = prod(values.shape), boundaries.shape[-1]
    if not size:
        return []
    b = KernelBuilder("search", THREADS)
    stored, edges, wanted = (b.buffer(each.dtype) for each in (out, boundaries, values))
    places = None if sorter is None else b.buffer(sorter.dtype)
    index = INT32 if max(size, prod(boundaries.shape)) < 1 << 30 else INT64
    linear = cast(b.block, index) * THREADS + cast(b.thread, index)
    with b.when(linear < size):
        value = b.load(wanted, linear)
        first = constant(0, index) if len(boundaries.shape) == 1 else linear / values.shape[-1] * n
        low, high = b.local(constant(0, index)), b.local(constant(n, index))
        with b.loop(0, n.bit_length()):
            begin, end = b.get(low), b.get(high)
            searching = begin < end
            middle = begin + (end - begin) / 2
            at = first + middle
            if places is not None:
                at = first + cast(b.load(places, at, searching), index)
            edge = b.load(edges, at, searching)
            beyond = ~(edge > value) if right else ~(edge >= value)
            b.set(low, select(searching & beyond, middle + 1, begin))
            b.set(high, select(searching & ~beyond, middle, end))
        b.store(stored, linear, b.get(low))
    return [launch(b.kernel(), count_blocks(size, THREADS))]


__all__ = ["launches"]
