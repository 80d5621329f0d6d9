"""The most memory that a workload's steps hold, above what is held before the first.

    python -m benchmarks.footprint gpt "PyTorch eager"      bytes, in this process
"""

from __future__ import annotations

import gc
import statistics
from pathlib import Path

from . import markdown, peers
from .fresh import answer, found_by, say
from .workloads import ROWS

NAMES = ("gpt", "chain")
HOLDERS = ("PyTorch eager", peers.EAGER, peers.COMPILED)

#: steps before memory is asked for: of the first ones, and of those that follow
STEPS = 5

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def memory(field: str) -> int:
    """Bytes of main memory that this process holds (VmRSS), or held at most (VmHWM)."""
    line = next(line for line in _STATUS.read_text(encoding="ascii").splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


def peaks(name: str, peer: str) -> tuple[int, int]:
    """Bytes above those before the first step: the most during the first steps, and during those that follow."""
    workload = ROWS[name]
    runner = next(iter(peers.ways(peer, workload, workload.data(workload.sizes), workload.sizes).values()))()
    gc.collect()
    before, found = memory("VmRSS"), []
    for _ in range(2):
        _CLEAR.write_text("5")  # the most so far is forgotten
        for _ in range(STEPS):
            runner.run()
        found.append(memory("VmHWM") - before)
    return found[0], found[1]


def section(rounds: int) -> str:
    """Medians over as many fresh processes, at most three, as Markdown."""
    heading = "## Peak memory\n\n"
    if not _CLEAR.exists():
        return heading + "Memory is read from /proc, which this system does not have."
    rows = []
    for name in NAMES:
        for peer in HOLDERS:
            found = [found_by("footprint", name, peer) for _ in range(min(rounds, 3) if peers.available(peer) else 0)]
            sums = list(zip(*(pair for pair in found if pair is not None), strict=True))
            rows.append([ROWS[name].title, peer, *([f"{statistics.median(column) / 1e6:.1f} MB" for column in sums]
                                                   or ["-", "-"])])
            say(f"peak memory, {name}, {peer}: {rows[-1][2]}, then {rows[-1][3]}")
    return (heading + "The most main memory held during steps, above what was held before the first, the model being "
            f"built, in fresh\nprocesses: during the first {STEPS} steps, compiling included, and during the next "
            f"{STEPS}.\n\n" + markdown.table(["", "", "first steps", "later steps"], rows))


if __name__ == "__main__":
    answer((__doc__ or "").splitlines()[0], ROWS, HOLDERS, peaks)
