"""The cost of cache coherence: writing a cache line that another core has read.

It depends on whether the cores share a cache. The processors of a virtual machine may or may not, and that changes
within minutes: on a machine with Zen 4 cores a line takes 6 ns or 27 ns. All data passed between threads pays for it:
timings are comparable only between runs with similar values.

    python -m benchmarks.sharing
"""

from __future__ import annotations

import os
import statistics
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np

from flambeau.runtime.nontemporal_stores import CACHE_LINE

#: bytes that are written and read; repetitions
SIZE, TIMES = 1 << 20, 9


def line() -> float | None:
    """Seconds per cache line to write one that another core has just read; None if threads cannot be pinned."""
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        return None
    before = os.sched_getaffinity(0)
    first, second, *_ = sorted(before)
    array, times = np.zeros(SIZE // 4, np.float32), []
    os.sched_setaffinity(0, {first})  # of this thread alone
    try:
        with ThreadPoolExecutor(1, initializer=_pin, initargs=(second,)) as other:
            for i in range(TIMES):
                array.fill(i)
                other.submit(array.sum).result()
                start = perf_counter()
                array.fill(-i)
                times.append(perf_counter() - start)
    finally:
        os.sched_setaffinity(0, before)
    return statistics.median(times) * CACHE_LINE / SIZE


def _pin(processor: int) -> None:
    os.sched_setaffinity(0, {processor})


def text(seconds: list[float | None]) -> str:
    """A sentence with measurements taken before each row and at the end.

    >>> text([6e-9, 27.3e-9, None])
    'Writing a cache line that the other core had read took 6 and 27 ns (before each row, and at the end).'
    >>> text([None])
    ''
    """
    values = [f"{each * 1e9:.0f}" for each in seconds if each is not None]
    if not values:
        return ""
    joined = values[0] if len(values) == 1 else f"{', '.join(values[:-1])} and {values[-1]}"
    return ("Writing a cache line that the other core had read took "
            f"{joined} ns (before each row, and at the end).")


if __name__ == "__main__":
    took = line()
    print("threads cannot be pinned on this system" if took is None else f"{took * 1e9:.1f} ns")
