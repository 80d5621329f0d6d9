"""How runs are timed: peers take turns within each round, and each turn is a median."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

#: idle threads of the library that had its turn before may look for work for so many seconds yet
SETTLE = 0.03

#: timed batches of calls in a turn, and how many seconds a batch should last at least
BATCHES, BATCH_SECONDS = 5, 0.004


def calls_in_a_batch(run: Callable[[], Any]) -> int:
    """So many calls fill a batch."""
    run()
    calls = 1
    while True:
        started = time.perf_counter()
        for _ in range(calls):
            run()
        elapsed = time.perf_counter() - started
        if elapsed >= BATCH_SECONDS / 2:
            return max(1, round(calls * BATCH_SECONDS / elapsed))
        calls *= 2


def turn(run: Callable[[], Any], calls: int) -> float:
    """Seconds of one call: the median of the batches, after one batch that is not timed."""
    time.sleep(SETTLE)
    for _ in range(calls):
        run()
    batches = []
    for _ in range(BATCHES):
        started = time.perf_counter()
        for _ in range(calls):
            run()
        batches.append((time.perf_counter() - started) / calls)
    return statistics.median(batches)


def rounds(runs: dict[str, Callable[[], Any]], number: int, before: Callable[[str], Any]) -> dict[str, list[float]]:
    """The turns' seconds by name: in each round everyone has one, and the order changes from round to round.

    Garbage is collected as usual, but what was there before is not looked through on anyone's time.

    Args:
        before: called with the name before each turn.
    """
    calls = {name: calls_in_a_batch(run) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    gc.collect()
    gc.freeze()
    names = list(runs)
    for each in range(number if names else 0):
        shift = each // 2 % len(names)
        order = names[shift:] + names[:shift]
        for name in order if each % 2 == 0 else order[::-1]:
            before(name)
            times[name].append(turn(runs[name], calls[name]))
    gc.unfreeze()
    return times
