"""Times one row of the table in this process and prints what was found as one line of JSON.

    python -m benchmarks.row gpt --rounds 9 --peers torch jax
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import warnings
from collections.abc import Collection
from typing import Any

from . import limits, timing
from .fresh import say
from .peers import COMPILED, EAGER, PEERS, Runner, available, library, ways
from .reference import STEPS, Reference
from .workloads import ROWS
from .workloads.workload import Workload

#: what `--peers` may name, and the columns that it stands for; flambeau's are always there
GROUPS = {"torch": ("PyTorch eager", "PyTorch tuned"), "compile": ("torch.compile",), "jax": ("jax.jit",)}

#: rounds in which a peer's ways compete
TRIALS = 3


def chosen(groups: Collection[str]) -> list[str]:
    """The columns that are to be filled and can be."""
    wanted = {column for group in groups for column in GROUPS[group]} | {EAGER, COMPILED}
    return [peer for peer in PEERS if peer in wanted and available(peer)]


def reference(workload: Workload) -> Reference:
    torch = library("torch" if available("PyTorch eager") else "flambeau")
    return Reference(torch, workload, next(iter(workload.forms)), workload.sizes)


def checked(make: Any, expected: Reference) -> tuple[Runner | None, str]:
    """A runner whose first steps gave the right results, or what is wrong with it."""
    try:
        runner = make()
        for _ in range(STEPS):
            output = runner.run()
        complaints = expected.complaints(runner.results(output), runner.gives_gradients)
    except Exception as error:  # a peer may fail in any way, and the others go on
        first, *_ = str(error).strip().splitlines() or [""]
        return None, f"failed: {type(error).__name__}: {first[:300]}"
    if complaints:
        return None, "wrong: " + "; ".join(complaints[:3]) + (" ..." if len(complaints) > 3 else "")
    return runner, ""


def quickest(peer: str, workload: Workload, expected: Reference) -> tuple[Runner | None, str, list[str]]:
    """The peer's quickest runner that is right, its way's name, and what is to be said of the others."""
    notes, runners = [], {}
    arrays = workload.data(workload.sizes)
    for way, make in ways(peer, workload, arrays, workload.sizes).items():
        runner, complaint = checked(make, expected)
        if runner is None:
            notes.append(f"{peer}{f' ({way})' if way else ''} {complaint}")
            say(f"    {notes[-1]}")
        else:
            runners[way] = runner
    if not runners:
        return None, "", notes
    best = next(iter(runners))
    if len(runners) > 1:
        times = timing.rounds({way: runner.run for way, runner in runners.items()}, TRIALS,
                              lambda way: runners[way].reset())
        best = min(runners, key=lambda way: min(times[way]))
    return runners[best], best, notes


def measure(workload: Workload, groups: Collection[str], number: int) -> dict[str, Any]:
    """Seconds of every peer in every round, in which way it ran, and who failed.

    Returns:
        {"times": {peer: [seconds]}, "ways": {peer: name}, "notes": [sentence]}
    """
    expected = reference(workload)
    runners, names, notes = {}, {}, []
    for peer in chosen(groups):
        runner, way, said = quickest(peer, workload, expected)
        notes += said
        if runner is not None:
            runners[peer], names[peer] = runner, way
    times = timing.rounds({peer: runner.run for peer, runner in runners.items()}, number,
                          lambda peer: runners[peer].reset())
    return {"times": times, "ways": names, "notes": notes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("row", choices=ROWS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peers", nargs="*", choices=GROUPS, default=list(GROUPS))
    options = parser.parse_args()
    limits.apply()
    warnings.simplefilter("ignore")  # the peers' warnings are theirs to heed
    logging.disable(logging.WARNING)
    found = measure(ROWS[options.row], options.peers, options.rounds)
    say("    " + ", ".join(f"{peer} {statistics.median(times) * 1e6:,.0f} µs" + (f" ({found['ways'][peer]})"
                           if found["ways"][peer] else "") for peer, times in found["times"].items()))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
