"""From how much work on compiled kernels multiply matrices: measured against NumPy's BLAS, once for a machine.

Products are of a *kind*: of two matrices, of one and another's transpose, with a narrow side, with a vector, or
batches. Each kind of each dtype has a limit, the number of multiplications above which the kernel is quicker. It begins
as a guess. When so much of a kind has been multiplied that some hundredths of a second do not matter, its limit is
measured, and kept on disk beside the kernels for the processes to come.

`FLAMBEAU_KERNELS_FROM` sets all limits to one number.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ...kernels import threads
from ...runtime import target
from ...runtime.cache_store import MEASUREMENTS

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)

#: sides below which a product is narrow
NARROW = 16
#: the limits before they are measured
GUESS = 1 << 17
#: no limit is higher: beyond, NumPy's BLAS asks its threads for help, which then look for work for a tenth of a second
#: and take the processor from the kernels' own; and no limit of products with a vector
MOST, MOST_OF_VECTORS = 1 << 18, 9215
#: multiplications of a kind after which its limit is measured: they took a quarter of a second or so
EARNED = 1 << 34
#: a credit that is never used up
FOREVER = 1 << 100
#: how much quicker a kernel must be; and for how many seconds a kind is measured, at most
MARGIN, PATIENCE = 0.95, 0.08

MATRICES, TURNED, THIN, VECTORS, BATCHES = KINDS = ("matrices", "turned", "thin", "vectors", "batches")
#: the work at which kinds are measured, the largest first
STEPS = tuple(1 << power for power in range(18, 11, -1))


def most_of(kind: str) -> int:
    """The highest limit of a kind."""
    return MOST_OF_VECTORS if kind == VECTORS else MOST


def kind_of(shape: tuple[int, ...], depth: int, turned: bool) -> str:
    """The kind of a product of this shape that sums over `depth` products."""
    if len(shape) > 2:
        return BATCHES
    if min(shape) == 1:
        return VECTORS
    return THIN if min(*shape, depth) < NARROW else TURNED if turned else MATRICES


class Limits:
    """Above how many multiplications a kernel multiplies, by dtype and kind.

    Args:
        ours: multiplies by a kernel whatever the size.
        theirs: multiplies by NumPy.

    Attributes:
        found: the limits.
        credit: by dtype and kind, in a list of one number, the multiplications until the limit is to be measured.
    """

    def __init__(self, ours: Callable[[Any, Any], Any], theirs: Callable[[Any, Any], Any]) -> None:
        self.ours, self.theirs = ours, theirs
        asked = os.environ.get("FLAMBEAU_KERNELS_FROM", "")
        keys = [(dtype, kind) for dtype in (F32, F64) for kind in KINDS]
        self.found = {key: int(asked) - 1 if asked else min(GUESS, most_of(key[1])) for key in keys}
        self.credit = {key: [FOREVER if asked else EARNED] for key in keys}
        self._kept: set[tuple[np.dtype, str]] = set()
        self._measuring = threading.Lock()
        if not asked:
            self._read()

    def settle(self, dtype: np.dtype, kind: str) -> None:
        """Measure a limit and keep it, unless another thread is at it."""
        key = dtype, kind
        if not self._measuring.acquire(blocking=False):
            return
        try:
            if self.credit[key][0] < 0:
                self.credit[key][0] = FOREVER
                self._read()  # what other processes have found meanwhile
                limit = self._measured(dtype, kind)
                if limit is None:
                    return
                self.found[key] = limit
                self._kept.add(key)
                named = {f"{dtype} {kind}": self.found[dtype, kind] for dtype, kind in self._kept}
                MEASUREMENTS.write(self._entry(), json.dumps(named).encode())
        finally:
            self._measuring.release()

    @staticmethod
    def _entry() -> str:
        return MEASUREMENTS.key("products 2", np.__version__, str(threads.count()), *map(str, target.host()))

    def _read(self) -> None:
        """Take the limits from disk that are there."""
        for name, limit in json.loads(MEASUREMENTS.read(self._entry()) or b"{}").items():
            dtype, kind = name.split()
            key = np.dtype(dtype), kind
            self.found[key], self.credit[key][0] = limit, FOREVER
            self._kept.add(key)

    def _measured(self, dtype: np.dtype, kind: str) -> int | None:
        """The limit of a kind: the least work from which on the kernel is quicker; None on too busy a machine."""
        until = time.perf_counter() + PATIENCE
        limit = most_of(kind)
        steps = [work for work in STEPS if work <= limit]
        examples = [_example(dtype, kind, work) for work in steps]
        times: list[list[float]] = []
        # one after the other: the waiting threads of each are in the other's way
        for function in (self.ours, self.theirs):
            times.append([])
            for example in examples:
                times[-1].append(_quickest(function, *example))
                if time.perf_counter() > until:
                    return None
        for work, mine, other in zip(steps, *times, strict=True):
            if mine > MARGIN * other:
                break
            limit = work - 1
        return limit


def _quickest(function: Callable[[Any, Any], Any], x: Any, y: Any) -> float:
    function(x, y)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        function(x, y)
        best = min(best, time.perf_counter() - start)
    return best


def _example(dtype: np.dtype, kind: str, work: int) -> tuple[np.ndarray, np.ndarray]:
    """Two operands of this kind whose product takes about so many multiplications."""
    if kind == THIN:
        side = round((work / 8) ** 0.5)
        return np.ones((8, side), dtype), np.ones((side, side), dtype)
    if kind == VECTORS:
        side = round(work ** 0.5)
        return np.ones((1, side), dtype), np.ones((side, side), dtype)
    if kind == BATCHES:
        return np.ones((max(2, work >> 14), 32, 16), dtype), np.ones((max(2, work >> 14), 16, 32), dtype)
    side = round(work ** (1 / 3))
    x, y = np.ones((side, side), dtype), np.ones((side, side), dtype)
    return (x, y.T) if kind == TURNED else (x, y)
