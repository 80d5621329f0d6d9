"""How runs are timed: all take turns within each round, and each turn is a median."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

#: idle threads of the library that had its turn before may look for work for so many seconds yet
SETTLE = 0.03

#: seconds for which every column runs before its first turn: what compiles or measures as it goes is done with that
WARM = 0.7

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


def warm(run: Callable[[], Any]) -> None:
    """Run for a while that is not timed."""
    ending = time.perf_counter() + WARM
    while time.perf_counter() < ending:
        run()


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


def order(names: Sequence[str], number: int) -> Iterator[str]:
    """Whose turn it is, one after the other: in each round everyone's once, and rounds differ in their order."""
    for each in range(number if names else 0):
        shift = each // 2 % len(names)
        turned = [*names[shift:], *names[:shift]]
        yield from turned if each % 2 == 0 else turned[::-1]


def put_garbage_aside() -> None:
    """Garbage is collected as usual from here on, but what was there before is not looked through on anyone's time."""
    gc.collect()
    gc.freeze()


def rounds(runs: dict[str, Callable[[], Any]], number: int, before: Callable[[str], Any]) -> dict[str, list[float]]:
    """The turns' seconds by name, of runs in this process.

    Args:
        before: called with the name before each turn.
    """
    calls = {name: calls_in_a_batch(run) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    put_garbage_aside()
    for name in order(list(runs), number):
        before(name)
        times[name].append(turn(runs[name], calls[name]))
    gc.unfreeze()
    return times
