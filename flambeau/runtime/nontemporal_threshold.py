"""The number of bytes from which on non-temporal stores are faster, measured once for a machine.

How much of the last-level cache a process gets depends on other processes, and the cost of reading a line before it is
written depends on the memory. On one machine non-temporal stores win from three quarters of the last-level cache on, on
another from 1.25 times its size. The measurement adds two arrays into a third, with ordinary and with non-temporal
stores, where all three together are as large as some multiples of the cache. It takes some hundredths of a second; the
persistent cache holds the result.
"""

from __future__ import annotations

import json
import threading
from time import perf_counter

import numpy as np

from ..kernels import threads as limits
from . import compilation, launch, target
from .cache_store import MEASUREMENTS
from .launch import Launch

#: bytes of the three arrays, as multiples of the last-level cache. The largest represents all larger ones; none is
#: below 1, since data that fits into the cache may stay there once other processes use less of it.
MULTIPLES = (1.0, 1.25, 1.5, 2.0)
#: nothing larger than this is measured, since the arrays must be allocated
MAX_BYTES = 256 << 20
#: the part of the ordinary stores' time that non-temporal stores may take, since a wrong choice of them costs more than
#: a right one gains; and how often each is timed
MARGIN, ROUNDS = 0.9, 4
#: bytes that an iteration of the generated loop reads from each array
_STEP = 256
_FORMAT = "stores 3"

_IR = """
define void @body(ptr %pointers, ptr %plan, i64 %chunk) {
entry:
  %out = load ptr, ptr %pointers
  %x.at = getelementptr ptr, ptr %pointers, i64 1
  %x = load ptr, ptr %x.at
  %y.at = getelementptr ptr, ptr %pointers, i64 2
  %y = load ptr, ptr %y.at
  %bytes = load i64, ptr %plan
  %flag.at = getelementptr i64, ptr %plan, i64 1
  %flag = load i64, ptr %flag.at
  %begin = mul i64 %bytes, %chunk
  %end = add i64 %begin, %bytes
  %nontemporal = icmp ne i64 %flag, 0
  br i1 %nontemporal, label %nontemporal.loop, label %ordinary.loop
LOOPS
done:
  ret void
}
!0 = !{i32 1}
"""


def _loop(name: str, mark: str) -> str:
    """The loop that adds the arrays from `%begin` to `%end`; `mark`: the metadata of its stores."""
    lines = [f"{name}.loop:", f"  %{name}.i = phi i64 [ %begin, %entry ], [ %{name}.next, %{name}.loop ]"]
    for at in range(0, _STEP, 64):
        p = f"{name}.{at}"
        lines.append(f"  %{p}.i = add i64 %{name}.i, {at}")
        for array in ("x", "y"):
            lines += [f"  %{p}.{array}.at = getelementptr i8, ptr %{array}, i64 %{p}.i",
                      f"  %{p}.{array} = load <16 x float>, ptr %{p}.{array}.at, align 64"]
        lines += [f"  %{p}.sum = fadd <16 x float> %{p}.x, %{p}.y",
                  f"  %{p}.out.at = getelementptr i8, ptr %out, i64 %{p}.i",
                  f"  store <16 x float> %{p}.sum, ptr %{p}.out.at, align 64{mark}"]
    return "\n".join([*lines, f"  %{name}.next = add i64 %{name}.i, {_STEP}",
                      f"  %{name}.more = icmp slt i64 %{name}.next, %end",
                      f"  br i1 %{name}.more, label %{name}.loop, label %done"])


def threshold(last: int) -> int:
    """The bytes that a kernel must touch for non-temporal stores to be faster.

    Args:
        last: bytes of the last-level cache.
    """
    key = limits.count(), last
    size = _known.get(key)
    if size is None:
        with _measuring:
            size = _known.get(key)
            if size is None:
                size = _known[key] = _load_or_measure(last)
    return size


_known: dict[tuple[int, int], int] = {}
_measuring = threading.RLock()


def _load_or_measure(last: int) -> int:
    if MULTIPLES[-1] * last > MAX_BYTES:
        return int(MULTIPLES[0] * last)
    name = MEASUREMENTS.key(_FORMAT, *map(str, target.host()), str(limits.count()), str(last))
    payload = MEASUREMENTS.read(name)
    if payload is not None:
        try:
            return int(json.loads(payload))
        except (ValueError, TypeError):
            MEASUREMENTS.discard(name)
    size = measure(last)
    MEASUREMENTS.write(name, json.dumps(size).encode())
    return size


def library() -> compilation.Library:
    """The timed code, `body(pointers, plan, chunk)`: the plan is a chunk's bytes and the kind of stores (0 or 1)."""
    return compilation.load(_FORMAT, ("body",), lambda: _IR.replace(
        "LOOPS", _loop("ordinary", "") + "\n" + _loop("nontemporal", ", !nontemporal !0")), passes=False)


def measure(last: int) -> int:
    """Measure `threshold`: the least multiple from which on non-temporal stores win at all larger ones."""
    code = library()
    body = code.address("body")
    chunks = 8 * limits.count()
    max_blocks = int(MULTIPLES[-1] * last) // 3 // (chunks * _STEP)
    memory, address = launch.allocate_aligned(3 * max_blocks * chunks * _STEP)
    memory[:] = 1  # not zeros, which processors write faster
    offset = address - memory.ctypes.data
    arrays = [memory[offset + i * max_blocks * chunks * _STEP:][:max_blocks * chunks * _STEP] for i in range(3)]
    threshold_bytes = 2 * int(MULTIPLES[-1] * last)
    for multiple in reversed(MULTIPLES):
        size = int(multiple * last) // 3 // (chunks * _STEP) * _STEP
        ordinary, nontemporal = _shortest_times([[Launch(code, body, chunks, (size, flag))] for flag in (0, 1)],
                                                arrays)
        if nontemporal > MARGIN * ordinary:
            break
        threshold_bytes = int(multiple * last)
    return threshold_bytes


def _shortest_times(candidates: list[list[Launch]], arrays: list[np.ndarray]) -> list[float]:
    """The shortest time of each in seconds; they are timed in turn, so that other load affects all of them."""
    best = [float("inf")] * len(candidates)
    for _ in range(ROUNDS):
        for i, launches in enumerate(candidates):
            launch.run(launches, arrays)  # brings the caches into the state that such a run leaves
            start = perf_counter()
            launch.run(launches, arrays)
            best[i] = min(best[i], perf_counter() - start)
    return best


__all__ = ["library", "measure", "threshold"]
