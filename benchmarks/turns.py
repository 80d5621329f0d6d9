"""The process of one column of one row, which measures a turn on request.

Libraries in one process slow each other down: idle threads of one spin while another is timed, garbage collections
traverse the objects of both, and `torch.compile` hooks into each Python call. So each column has a process.
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
from .child_process import ROOT
from .peers import PEERS, Runner, variants
from .reference import STEPS, Reference
from .workloads import WORKLOADS
from .workloads.workload import Workload

#: rounds for the choice of the fastest variant
TRIALS = 3


# ----- in the child process -----

def checked_runner(make: Any, expected: Reference) -> tuple[Runner | None, str]:
    """A runner whose first steps were correct, or None and a description of the failure."""
    try:
        runner = make()
        for _ in range(STEPS):
            output = runner.run()
        mismatches = expected.mismatches(runner.results(output), runner.gives_gradients)
    except Exception as error:  # any failure of a peer is reported; the others continue
        first, *_ = str(error).strip().splitlines() or [""]
        return None, f"failed: {type(error).__name__}: {first[:300]}"
    if mismatches:
        return None, "wrong: " + "; ".join(mismatches[:3]) + (" ..." if len(mismatches) > 3 else "")
    return runner, ""


def fastest_variant(peer: str, workload: Workload, expected: Reference) -> tuple[Runner | None, str, list[str]]:
    """The fastest correct runner of the peer, its variant, and notes on the variants that failed."""
    notes, runners = [], {}
    sizes = workload.checked or workload.sizes
    for variant, make in variants(peer, workload, workload.data(sizes), sizes).items():
        runner, failure = checked_runner(make, expected)
        if runner is None:
            notes.append(f"{peer}{f' ({variant})' if variant else ''} {failure}")
        else:
            runners[variant] = runner
    if workload.checked and runners:
        runners.clear()
        for variant, make in variants(peer, workload, workload.data(workload.sizes), workload.sizes).items():
            runners[variant] = make()
    if not runners:
        return None, "", notes
    best = next(iter(runners))
    if len(runners) > 1:
        times = timing.rounds({variant: runner.run for variant, runner in runners.items()}, TRIALS,
                              lambda variant: runners[variant].reset())
        best = min(runners, key=lambda variant: min(times[variant]))
    return runners[best], best, notes


def serve(peer: str, workload: Workload, expected: Reference, replies: Any) -> None:
    """Print the variant, and then the seconds of one call for each line read from stdin."""
    def reply(what: Any) -> None:
        print(json.dumps(what), file=replies, flush=True)

    runner, variant, notes = fastest_variant(peer, workload, expected)
    calls = 0
    if runner is not None:  # before any turn: turns begin when all processes have replied
        timing.warm(runner.run)
        calls = timing.calls_in_a_batch(runner.run)
        timing.freeze_garbage()
    reply({"variant": variant, "notes": notes, "runs": runner is not None})
    if runner is None:
        return
    for _ in sys.stdin:
        runner.reset()
        reply(timing.turn(runner.run, calls))


# ----- in the parent process -----

class PeerProcess:
    """The process of a peer and a workload, seen from the parent.

    Args:
        row: name of the workload.
        peer: the column.
        reference: file with the pickled Reference.
        command: the command line; None for `python -m benchmarks.turns` of this checkout.
        environment: its environment variables; None for those of this process.

    Attributes:
        runs: whether it can be timed.
        variant: the name of its variant.
        notes: descriptions of failed variants.
    """

    def __init__(self, row: str, peer: str, reference: Path, command: Sequence[str] | None = None,
                 environment: Mapping[str, str] | None = None) -> None:
        self.peer = peer
        self._process = subprocess.Popen(
            command or [sys.executable, "-m", "benchmarks.turns", row, peer, str(reference)], cwd=ROOT, text=True,
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        reply = self._reply()
        self.runs, self.variant, self.notes = (reply["runs"], reply["variant"], reply["notes"]) if reply else (
            False, "", [f"{peer}'s process crashed"])

    def _reply(self) -> Any:
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
            seconds = self._reply()
        except BrokenPipeError:
            seconds = None
        if seconds is None:
            raise RuntimeError(f"the process of {self.peer} ended before its turn was over")
        return float(seconds)

    def __enter__(self) -> PeerProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # the process has ended
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("row", choices=WORKLOADS)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("reference", type=Path, help="file with the pickled reference")
    options = parser.parse_args(arguments)
    limits.apply()
    warnings.simplefilter("ignore")  # warnings of the peers
    logging.disable(logging.WARNING)
    expected = pickle.loads(options.reference.read_bytes())
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries is no reply
    serve(options.peer, WORKLOADS[options.row], expected, replies)


if __name__ == "__main__":
    main()
