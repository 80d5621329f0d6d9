"""From how many bytes on results are better written past the caches: measured, once for a machine.

How much of the last cache a process has depends on who shares it, and what a line costs that is read before it is
written depends on the memory. On one machine stores past the caches win from three quarters of the last cache on, on
another from 1.25 times its size. So two arrays are added up into a third, both ways, where all three together are as
large as some multiples of the cache; that takes some hundredths of a second, and is kept on disk for the processes to
come.
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

#: bytes of the three arrays, in last caches; beyond, the largest stands for all, and where less is touched than a cache
#: holds, another hour's neighbours may leave it there
MULTIPLES = (1.0, 1.25, 1.5, 2.0)
#: nothing larger than this is measured: the arrays must be there
MOST = 256 << 20
#: how much quicker stores past the caches must be, since they cost more where they are wrong than they gain where they
#: are right; and how often each way is tried
MARGIN, ROUNDS = 0.9, 4
#: bytes that a turn of the code's loop reads from each array
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
  %past.at = getelementptr i64, ptr %plan, i64 1
  %past = load i64, ptr %past.at
  %begin = mul i64 %bytes, %chunk
  %end = add i64 %begin, %bytes
  %goes = icmp ne i64 %past, 0
  br i1 %goes, label %past.loop, label %near.loop
LOOPS
done:
  ret void
}
!0 = !{i32 1}
"""


def _loop(name: str, mark: str) -> str:
    """The loop that adds up from `%begin` to `%end`; `mark`: what its stores are marked with."""
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


def pays_from(last: int) -> int:
    """The bytes that a kernel must touch for its results to be better written past a last cache of this size.

    Args:
        last: bytes of the last cache.
    """
    key = limits.count(), last
    found = _known.get(key)
    if found is None:
        with _measuring:
            found = _known.get(key)
            if found is None:
                found = _known[key] = _kept_or_measured(last)
    return found


_known: dict[tuple[int, int], int] = {}
_measuring = threading.RLock()


def _kept_or_measured(last: int) -> int:
    if MULTIPLES[-1] * last > MOST:
        return int(MULTIPLES[0] * last)
    name = MEASUREMENTS.key(_FORMAT, *map(str, target.host()), str(limits.count()), str(last))
    payload = MEASUREMENTS.read(name)
    if payload is not None:
        try:
            return int(json.loads(payload))
        except (ValueError, TypeError):
            MEASUREMENTS.discard(name)
    found = measured(last)
    MEASUREMENTS.write(name, json.dumps(found).encode())
    return found


def code() -> compilation.Library:
    """The code that is timed: `body(pointers, plan, chunk)`; the plan is a chunk's bytes and whether to go past."""
    return compilation.load(_FORMAT, ("body",), lambda: _IR.replace(
        "LOOPS", _loop("near", "") + "\n" + _loop("past", ", !nontemporal !0")), passes=False)


def measured(last: int) -> int:
    """`pays_from`, measured now: the least multiple from which on stores past the caches win at all larger ones."""
    library = code()
    body = library.address("body")
    chunks = 8 * limits.count()
    most = int(MULTIPLES[-1] * last) // 3 // (chunks * _STEP)
    kept, address = launch.aligned(3 * most * chunks * _STEP)
    kept[:] = 1  # not zeros: processors write these more quickly
    offset = address - kept.ctypes.data
    arrays = [kept[offset + i * most * chunks * _STEP:][:most * chunks * _STEP] for i in range(3)]
    found = 2 * int(MULTIPLES[-1] * last)
    for multiple in reversed(MULTIPLES):
        size = int(multiple * last) // 3 // (chunks * _STEP) * _STEP
        near, past = _least([[Launch(library, body, chunks, (size, goes))] for goes in (0, 1)], arrays)
        if past > MARGIN * near:
            break
        found = int(multiple * last)
    return found


def _least(ways: list[list[Launch]], arrays: list[np.ndarray]) -> list[float]:
    """The shortest time of each, in seconds, by turns: who disturbs one disturbs the other, too."""
    best = [float("inf")] * len(ways)
    for _ in range(ROUNDS):
        for i, work in enumerate(ways):
            launch.run(work, arrays)  # leaves behind in the caches what such a run does
            start = perf_counter()
            launch.run(work, arrays)
            best[i] = min(best[i], perf_counter() - start)
    return best


__all__ = ["code", "measured", "pays_from"]
