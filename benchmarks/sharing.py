"""What it costs one core to write to memory that another one has read.

Cores whose caches are one know quickly of each other; others do not. A virtual machine's processors may be of either
kind, now so and a minute later otherwise: on one with Zen 4's cores a line takes 6 ns or 27. All that two threads hand
each other waits for it, so figures of an hour are those of its kind.

    python -m benchmarks.sharing
"""

from __future__ import annotations

import os
import statistics
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np

from flambeau.runtime.nontemporal_stores import CACHE_LINE

#: bytes that are written and read; how often
SIZE, TIMES = 1 << 20, 9


def line() -> float | None:
    """Seconds to write a line of memory anew that another core has just read; None where threads cannot be placed."""
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        return None
    before = os.sched_getaffinity(0)
    here, there, *_ = sorted(before)
    array, found = np.zeros(SIZE // 4, np.float32), []
    os.sched_setaffinity(0, {here})  # of this thread alone
    try:
        with ThreadPoolExecutor(1, initializer=_place, initargs=(there,)) as other:
            for i in range(TIMES):
                array.fill(i)
                other.submit(array.sum).result()
                start = perf_counter()
                array.fill(-i)
                found.append(perf_counter() - start)
    finally:
        os.sched_setaffinity(0, before)
    return statistics.median(found) * CACHE_LINE / SIZE


def _place(processor: int) -> None:
    os.sched_setaffinity(0, {processor})


def text(seconds: list[float | None]) -> str:
    """What these measurements, one before each row and one at the end, say.

    >>> text([6e-9, 27.3e-9, None])
    'To write a line of memory anew that the other core had read took 6 and 27 ns (before each row, and at the end).'
    >>> text([None])
    ''
    """
    found = [f"{each * 1e9:.0f}" for each in seconds if each is not None]
    if not found:
        return ""
    numbers = found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"
    return ("To write a line of memory anew that the other core had read took "
            f"{numbers} ns (before each row, and at the end).")


if __name__ == "__main__":
    took = line()
    print("threads cannot be placed here" if took is None else f"{took * 1e9:.1f} ns")
