"""Timing: runs alternate within each round; each measurement (turn) is a median."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

#: seconds before each turn in which idle threads of the previous library may still spin
SETTLE = 0.03

#: seconds of warm-up of each column before its first turn: compilation and tuning at run time end in it
WARM = 0.7

#: batches of calls per turn, and the minimal seconds of a batch
BATCHES, BATCH_SECONDS = 5, 0.004


def calls_in_a_batch(run: Callable[[], Any]) -> int:
    """The number of calls in a batch."""
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
    """Run for `WARM` seconds."""
    ending = time.perf_counter() + WARM
    while time.perf_counter() < ending:
        run()


def turn(run: Callable[[], Any], calls: int) -> float:
    """Seconds of one call: the median of the batches, after one untimed batch."""
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
    """The names in the order of their turns: once per round, in an order that differs between rounds."""
    for each in range(number if names else 0):
        shift = each // 2 % len(names)
        rotated = [*names[shift:], *names[:shift]]
        yield from rotated if each % 2 == 0 else rotated[::-1]


def freeze_garbage() -> None:
    """Exclude all existing objects from later garbage collections."""
    gc.collect()
    gc.freeze()


def rounds(runs: dict[str, Callable[[], Any]], number: int, before: Callable[[str], Any]) -> dict[str, list[float]]:
    """The seconds of each turn by name, for runs in this process.

    Args:
        before: called with the name before each turn.
    """
    calls = {name: calls_in_a_batch(run) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    freeze_garbage()
    for name in order(list(runs), number):
        before(name)
        times[name].append(turn(runs[name], calls[name]))
    gc.unfreeze()
    return times
