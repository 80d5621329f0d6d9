"""One column of one row: a process of its own, that has its turn when it is asked.

Libraries that share a process slow each other down: threads of one look for work while another is timed, what one has
made is looked through by the other's garbage collections, and `torch.compile` hooks itself into every Python call.
So each column has a process; they take turns.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from . import limits, timing
from .fresh import ROOT
from .peers import PEERS, Runner, ways
from .reference import STEPS, Reference
from .workloads import ROWS
from .workloads.workload import Workload

#: rounds in which a peer's ways compete
TRIALS = 3


# ----- the process's side -----

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


def take_turns(peer: str, workload: Workload, expected: Reference, answers: Any) -> None:
    """Says which way it goes, and then, for each line that comes in, how many seconds a call took."""
    def say_back(what: Any) -> None:
        print(json.dumps(what), file=answers, flush=True)

    runner, way, notes = quickest(peer, workload, expected)
    calls = 0
    if runner is not None:  # while nobody else is timed: the first turn is not until all have answered
        timing.warm(runner.run)
        calls = timing.calls_in_a_batch(runner.run)
        timing.put_garbage_aside()
    say_back({"way": way, "notes": notes, "runs": runner is not None})
    if runner is None:
        return
    for _ in sys.stdin:
        runner.reset()
        say_back(timing.turn(runner.run, calls))


# ----- the asking side -----

class Player:
    """A peer at a workload, in its process.

    Args:
        row: name of the workload.
        peer: the column.
        reference: file with the pickled Reference.
        command: what starts the process; None for `python -m benchmarks.turns` of this checkout.
        environment: its environment variables; None for those of this process.

    Attributes:
        runs: whether it can be timed.
        way: name of the way it runs the workload in.
        notes: sentences on the ways that failed.
    """

    def __init__(self, row: str, peer: str, reference: Path, command: Sequence[str] | None = None,
                 environment: Mapping[str, str] | None = None) -> None:
        self.peer = peer
        self._process = subprocess.Popen(
            command or [sys.executable, "-m", "benchmarks.turns", row, peer, str(reference)], cwd=ROOT, text=True,
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        said = self._answer()
        self.runs, self.way, self.notes = (said["runs"], said["way"], said["notes"]) if said else (
            False, "", [f"{peer}'s process crashed"])

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None

    def turn(self) -> float:
        """Seconds of one call.

        Raises:
            RuntimeError: the process has ended.
        """
        assert self._process.stdin is not None
        try:
            print("turn", file=self._process.stdin, flush=True)
            seconds = self._answer()
        except BrokenPipeError:
            seconds = None
        if seconds is None:
            raise RuntimeError(f"the process of {self.peer} has ended before its turn was over")
        return float(seconds)

    def __enter__(self) -> Player:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # a process that has ended leaves what it was to read
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("row", choices=ROWS)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("reference", type=Path, help="file with the pickled reference")
    options = parser.parse_args(arguments)
    limits.apply()
    warnings.simplefilter("ignore")  # the peers' warnings are theirs to heed
    logging.disable(logging.WARNING)
    expected = pickle.loads(options.reference.read_bytes())
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    take_turns(options.peer, ROWS[options.row], expected, answers)


if __name__ == "__main__":
    main()
