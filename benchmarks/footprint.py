"""Peak memory of a workload's steps, above the memory before the first step.

    python -m benchmarks.footprint gpt "PyTorch eager"      bytes, in this process
"""

from __future__ import annotations

import gc
import statistics
from pathlib import Path

from . import markdown, peers
from .child_process import child_main, log, run_child
from .workloads import WORKLOADS

NAMES = ("gpt", "chain")
PEERS = ("PyTorch eager", peers.EAGER, peers.COMPILED)

#: steps per measurement of the peak: the first ones, and those that follow
STEPS = 5

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def memory(field: str) -> int:
    """The resident set size of this process (VmRSS) or its peak (VmHWM), in bytes."""
    line = next(line for line in _STATUS.read_text(encoding="ascii").splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


def peaks(name: str, peer: str) -> tuple[int, int]:
    """Peak bytes above those before the first step: during the first steps, and during those that follow."""
    workload = WORKLOADS[name]
    runner = next(iter(peers.variants(peer, workload, workload.data(workload.sizes), workload.sizes).values()))()
    gc.collect()
    before, results = memory("VmRSS"), []
    for _ in range(2):
        _CLEAR.write_text("5")  # resets VmHWM
        for _ in range(STEPS):
            runner.run()
        results.append(memory("VmHWM") - before)
    return results[0], results[1]


def section(rounds: int) -> str:
    """The section as Markdown: medians over `rounds` new processes, at most three."""
    heading = "## Peak memory\n\n"
    if not _CLEAR.exists():
        return heading + "Memory is read from /proc, which this system does not have."
    rows = []
    for name in NAMES:
        for peer in PEERS:
            repeats = min(rounds, 3) if peers.available(peer) else 0
            results = [run_child("footprint", name, peer) for _ in range(repeats)]
            columns = list(zip(*(pair for pair in results if pair is not None), strict=True))
            peaks_of = [f"{statistics.median(column) / 1e6:.1f} MB" for column in columns] or ["-", "-"]
            rows.append([WORKLOADS[name].title, peer, *peaks_of])
            log(f"peak memory, {name}, {peer}: {rows[-1][2]}, then {rows[-1][3]}")
    return (heading + "The peak of resident memory during steps, above that before the first, with the model built, in "
            f"new\nprocesses: during the first {STEPS} steps, compilation included, and during the next "
            f"{STEPS}.\n\n" + markdown.table(["", "", "first steps", "later steps"], rows))


if __name__ == "__main__":
    child_main((__doc__ or "").splitlines()[0], WORKLOADS, PEERS, peaks)
