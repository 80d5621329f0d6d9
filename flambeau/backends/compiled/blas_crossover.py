"""Crossover between compiled matmul kernels and NumPy's BLAS, measured once per machine.

Matmuls are classified by kind: two matrices, a transposed second matrix, a narrow side, a vector, or batches. Each kind
of each dtype has a limit, the number of multiplications above which the kernel is faster. It starts with a default.
After enough work of a kind that some hundredths of a second do not matter, its limit is measured and stored in the
persistent cache.

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

#: sides below this are narrow
NARROW_SIDE = 16
#: the limit before it is measured
DEFAULT_LIMIT = 1 << 17
#: the largest limits, of matmuls and of matrix-vector products: above them, the threads of NumPy's BLAS take part,
#: which then spin for 0.1 s and slow the kernels' threads down three times
MAX_LIMIT, MAX_VECTOR_LIMIT = 1 << 18, 9215
#: multiplications of a kind before its limit is measured: about 0.25 s of work
MEASURE_AFTER = 1 << 34
#: a budget that is never used up
NEVER = 1 << 100
#: the ratio of times below which the kernel wins; and the most seconds that one measurement takes
MARGIN, MAX_SECONDS = 0.95, 0.08

MATRIX, TRANSPOSED, NARROW, VECTOR, BATCHED = KINDS = ("matrix", "transposed", "narrow", "vector", "batched")
#: numbers of multiplications that are measured, the largest first
SAMPLE_SIZES = tuple(1 << power for power in range(18, 11, -1))


def max_limit(kind: str) -> int:
    """The largest limit of a kind."""
    return MAX_VECTOR_LIMIT if kind == VECTOR else MAX_LIMIT


def matmul_kind(shape: tuple[int, ...], depth: int, transposed: bool) -> str:
    """The kind of a matmul with a result of this shape and inner extent `depth`."""
    if len(shape) > 2:
        return BATCHED
    if min(shape) == 1:
        return VECTOR
    return NARROW if min(*shape, depth) < NARROW_SIDE else TRANSPOSED if transposed else MATRIX


class Crossovers:
    """The limits by dtype and kind.

    Args:
        compiled: multiplies by a kernel, at any size.
        blas: multiplies by NumPy.

    Attributes:
        limits: the number of multiplications above which a kernel is used.
        budget: the number of multiplications until the limit is measured, in a list of one number.
    """

    def __init__(self, compiled: Callable[[Any, Any], Any], blas: Callable[[Any, Any], Any]) -> None:
        self.compiled, self.blas = compiled, blas
        override = os.environ.get("FLAMBEAU_KERNELS_FROM", "")
        keys = [(dtype, kind) for dtype in (F32, F64) for kind in KINDS]
        self.limits = {key: int(override) - 1 if override else min(DEFAULT_LIMIT, max_limit(key[1])) for key in keys}
        self.budget = {key: [NEVER if override else MEASURE_AFTER] for key in keys}
        self._known: set[tuple[np.dtype, str]] = set()
        self._measurement = threading.Lock()
        if not override:
            self._read()

    def measure(self, dtype: np.dtype, kind: str) -> None:
        """Measure a limit and store it, unless another thread is measuring."""
        key = dtype, kind
        if not self._measurement.acquire(blocking=False):
            return
        try:
            if self.budget[key][0] < 0:
                self.budget[key][0] = NEVER
                self._read()  # other processes may have measured
                limit = self._measured(dtype, kind)
                if limit is None:
                    return
                self.limits[key] = limit
                self._known.add(key)
                known = {f"{dtype} {kind}": self.limits[dtype, kind] for dtype, kind in self._known}
                MEASUREMENTS.write(self._entry(), json.dumps(known).encode())
        finally:
            self._measurement.release()

    @staticmethod
    def _entry() -> str:
        return MEASUREMENTS.key("matmul crossover", np.__version__, str(threads.count()), *map(str, target.host()))

    def _read(self) -> None:
        """Read the stored limits."""
        for name, limit in json.loads(MEASUREMENTS.read(self._entry()) or b"{}").items():
            dtype, kind = name.split()
            key = np.dtype(dtype), kind
            self.limits[key], self.budget[key][0] = limit, NEVER
            self._known.add(key)

    def _measured(self, dtype: np.dtype, kind: str) -> int | None:
        """The measured limit of a kind; None where the machine is too busy."""
        deadline = time.perf_counter() + MAX_SECONDS
        limit = max_limit(kind)
        sizes = [work for work in SAMPLE_SIZES if work <= limit]
        operands = [_sample_operands(dtype, kind, work) for work in sizes]
        times: list[list[float]] = []
        # one after the other, since the spinning threads of each slow the other down
        for function in (self.compiled, self.blas):
            times.append([])
            for pair in operands:
                times[-1].append(_best_time(function, *pair))
                if time.perf_counter() > deadline:
                    return None
        for work, kernel_time, blas_time in zip(sizes, *times, strict=True):
            if kernel_time > MARGIN * blas_time:
                break
            limit = work - 1
        return limit


def _best_time(function: Callable[[Any, Any], Any], x: Any, y: Any) -> float:
    function(x, y)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        function(x, y)
        best = min(best, time.perf_counter() - start)
    return best


def _sample_operands(dtype: np.dtype, kind: str, work: int) -> tuple[np.ndarray, np.ndarray]:
    """Two operands of a kind whose matmul takes about `work` multiplications."""
    if kind == NARROW:
        side = round((work / 8) ** 0.5)
        return np.ones((8, side), dtype), np.ones((side, side), dtype)
    if kind == VECTOR:
        side = round(work ** 0.5)
        return np.ones((1, side), dtype), np.ones((side, side), dtype)
    if kind == BATCHED:
        return np.ones((max(2, work >> 14), 32, 16), dtype), np.ones((max(2, work >> 14), 16, 32), dtype)
    side = round(work ** (1 / 3))
    x, y = np.ones((side, side), dtype), np.ones((side, side), dtype)
    return (x, y.T) if kind == TRANSPOSED else (x, y)
