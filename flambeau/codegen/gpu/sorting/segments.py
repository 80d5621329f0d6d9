"""Reductions of the sources of each place, in their order: a thread for each place, over sorted sources."""

from __future__ import annotations

from math import prod

from ....runtime.launch import Spec
from ...scalar import scalar_ir
from ...scalar.scalar_ir import Node, cast, constant, select
from ..coordinates import INT32, INT64, count_blocks
from ..kernel_ir import KernelBuilder
from ..launches import DeviceLaunch, launch
from ..statements import Buffer

THREADS = 256


def _first_above(b: KernelBuilder, keys: Buffer, count: int, place: Node, or_equal: bool) -> Node:
    """The first of sorted keys that is above a place, or equal to it."""
    low, high = b.local(constant(0, INT32)), b.local(constant(count, INT32))
    with b.loop(0, count.bit_length()):
        begin, end = b.get(low), b.get(high)
        searching = begin < end
        middle = begin + (end - begin) / 2
        key = b.load(keys, middle, searching)
        beyond = key < place if or_equal else ~(key > place)
        b.set(low, select(searching & beyond, middle + 1, begin))
        b.set(high, select(searching & ~beyond, middle, end))
    return b.get(low)


def launches(out: Spec, initial: Spec, keys: Spec, order: Spec, values: Spec, op: str, include: bool
             ) -> list[DeviceLaunch]:
    """The launch that reduces the values of each place.

    Args:
        out: the results.
        initial: an element for each place, of the dtype of `out`.
        keys: the places of the sorted values, int64; negative ones are left out.
        order: which value each of them is, int64.
        values: of the dtype of `out`. All operands are dense vectors.
        op: "mul", "minimum" or "maximum", of scalar IR.
        include: whether the initial element takes part where there are values.
    """
    places, count = prod(out.shape), prod(keys.shape)
    if not places:
        return []
    b = KernelBuilder("segments", THREADS)
    stored, begun, sorted_keys, sources, given = (b.buffer(each.dtype) for each in (out, initial, keys, order, values))
    index = INT32 if places < 1 << 30 else INT64
    place = cast(b.block, index) * THREADS + cast(b.thread, index)
    with b.when(place < places):
        wanted = cast(place, INT64)
        first = _first_above(b, sorted_keys, count, wanted, True)
        end = _first_above(b, sorted_keys, count, wanted, False)
        total = b.local(scalar_ir.to_opmath(b.load(begun, place)))
        if not include:
            with b.when(first < end):
                b.set(total, scalar_ir.to_opmath(b.load(given, b.load(sources, first))))
            first = first + 1
        with b.loop(first, end) as i:
            value = scalar_ir.to_opmath(b.load(given, b.load(sources, i)))
            b.set(total, scalar_ir.apply(op, b.get(total), value))
        b.store(stored, place, b.get(total))
    return [launch(b.kernel(), count_blocks(places, THREADS))]


__all__ = ["launches"]
