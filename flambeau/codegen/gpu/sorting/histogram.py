"""Histograms: each block counts in shared memory, and adds its counts to those of the others."""

from __future__ import annotations

from ....runtime.launch import Spec
from ...scalar.scalar_ir import cast, constant
from ..coordinates import INT32, INT64, count_blocks
from ..indexing import clear, on_operand
from ..kernel_ir import KernelBuilder
from ..launches import DeviceLaunch, launch

THREADS, MOST_BLOCKS = 256, 1024
#: bins that shared memory has a counter of
MOST_BINS = 8192


def launches(out: Spec, places: Spec) -> list[DeviceLaunch]:
    """Launches that count how often each place occurs.

    Args:
        out: for each of at most `MOST_BINS` places its count, int64, dense.
        places: int64, a dense vector; those that are not in range are not counted.

    Raises:
        ValueError: more bins.
    """
    [bins], [size] = out.shape, places.shape
    if bins > MOST_BINS:
        raise ValueError(f"a histogram of {bins} bins")
    work = [on_operand(clear(out), 0)]
    if not size:
        return work
    blocks = min(count_blocks(size, 4 * THREADS), MOST_BLOCKS)
    b = KernelBuilder("histogram", THREADS)
    stored, given = b.buffer(out.dtype), b.buffer(places.dtype)
    counts = b.shared("int32", bins)
    rounds = count_blocks(bins, THREADS)
    for i in range(rounds):
        at = b.thread + i * THREADS
        b.store(counts, at, constant(0, INT32), at < bins)
    b.barrier()
    index = INT32 if size < 1 << 30 else INT64
    first = cast(b.block, index) * THREADS + cast(b.thread, index)
    with b.loop(first, constant(size, index), constant(blocks * THREADS, index)) as element:
        place = b.load(given, element)
        b.atomic("add", counts, cast(place, INT32), constant(1, INT32), (place >= 0) & (place < bins))
    b.barrier()
    for i in range(rounds):
        at = b.thread + i * THREADS
        count = b.load(counts, at, at < bins)
        b.atomic("add", stored, at, cast(count, INT64), (at < bins) & (count > 0))
    return [*work, launch(b.kernel(), blocks)]


__all__ = ["MOST_BINS", "launches"]
