"""The parent of the columns' processes: it makes cases ready side by side, and measures them one after the other."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..child_process import ROOT, log

Case = tuple[Any, ...]
#: seconds after the limit that a process gets which has other cases ready
_GRACE = 15
#: how often a column's processes may end unexpectedly
_LOSSES = 4


class Process:
    """A process of a column, seen from the parent.

    Attributes:
        ready: cases that it can measure.
        case: the one that it makes ready now.
    """

    def __init__(self, column: str, cases: str, fake: bool, replies: queue.Queue[tuple[Process, Any]]) -> None:
        self.column, self.ready = column, list[Case]()
        self.case: Case | None = None
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by `end`)
        environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TORCHINDUCTOR_COMPILE_THREADS": "1",
                       "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2",
                       "TF_CPP_MIN_LOG_LEVEL": "3"}
        if fake:
            environment["JAX_PLATFORMS"] = "cpu"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.gpu.worker", column, cases, *["--fake"] * fake], cwd=ROOT, text=True,
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said)
        self._reader = threading.Thread(target=self._read, args=(replies,), daemon=True)
        self._reader.start()

    def _read(self, replies: queue.Queue[tuple[Process, Any]]) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            replies.put((self, json.loads(line)))
        replies.put((self, None))

    def ask(self, **request: Any) -> None:
        """Send a request; nothing where the process has ended."""
        assert self._process.stdin is not None
        with suppress(OSError):  # its end is a reply
            print(json.dumps(request), file=self._process.stdin, flush=True)

    def last_words(self) -> str:
        """The last line that it printed."""
        self._said.seek(0)
        lines = self._said.read().strip().splitlines()
        return lines[-1][:300] if lines else f"ended with status {self._process.poll()}"

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._said.close()


class Session:
    """The processes of some columns, and what they have measured.

    Args:
        columns: column -> its share of the processes.
        cases: column -> its cases, those that take longest first.
        make: module and function of the cases, for `worker`.
        processes: about how many.
        fake: without a GPU, at tiny sizes.
        record: called with each result as it comes.
    """

    def __init__(self, columns: Mapping[str, int], cases: Mapping[str, Sequence[Case]], make: str, processes: int,
                 fake: bool, record: Callable[[dict[str, Any]], None]) -> None:
        self._make, self._fake, self._record = make, fake, record
        self._waiting = {column: list(cases[column]) for column in columns}
        self._replies: queue.Queue[tuple[Process, Any]] = queue.Queue()
        self._losses = dict.fromkeys(columns, 0)
        self.owners: dict[tuple[str, Case], Process] = {}
        self._all: list[Process] = []
        total = sum(columns.values())
        for column, share in columns.items():
            for _ in range(min(max(1, round(processes * share / total)), len(cases[column]))):
                self._all.append(Process(column, make, fake, self._replies))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        for each in self._all:
            each.end()

    def make_ready(self, seconds: float) -> None:
        """Make all cases ready, as far as the time allows; the others are recorded as failed."""
        ending, busy = time.monotonic() + seconds, set(self._all)
        while busy:
            # one that has other cases gets longer: compilers cannot be interrupted
            grace = _GRACE if any(each.ready for each in busy) else 3
            try:
                process, reply = self._replies.get(timeout=max(0.0, ending - time.monotonic() + grace))
            except queue.Empty:
                for late in busy:
                    self._lose(late, f"not ready after {seconds:.0f} s", False)
                break
            if reply is None:
                busy.discard(process)
                again = self._lose(process, process.last_words(), ending - time.monotonic() > 5)
                if again is not None:
                    busy.add(again)
                continue
            if "started" in reply:
                self._record({"column": process.column, "device": reply["started"]})
            else:
                self._note_ready(process, reply)
            waiting, left = self._waiting[process.column], ending - time.monotonic()
            if waiting and left > 1:
                process.case = waiting.pop(0)
                process.ask(ready=process.case, limit=left)
            else:
                busy.discard(process)
        for column, cases in self._waiting.items():
            for case in cases:
                self._record({"case": case, "column": column, "failed": f"not begun after {seconds:.0f} s"})

    def _note_ready(self, process: Process, reply: dict[str, Any]) -> None:
        case = tuple(reply["case"])
        process.case = None
        if "failed" not in reply:
            process.ready.append(case)
            self.owners[process.column, case] = process
        self._record({"column": process.column, "kind": "ready", **reply})

    def _lose(self, process: Process, why: str, replace: bool) -> Process | None:
        """Note that a process has ended; one in its place that makes its cases ready again, if there may be one."""
        process.end()
        self._all.remove(process)
        column = process.column
        if process.case is not None:
            self._record({"case": process.case, "column": column, "failed": why})
        for case in process.ready:
            self.owners.pop((column, case), None)
        self._losses[column] += 1
        if not (replace and self._losses[column] <= _LOSSES and (process.ready or self._waiting[column])):
            for case in process.ready:
                self._record({"case": case, "column": column, "failed": f"its process was lost: {why}"})
            return None
        self._waiting[column] += process.ready
        self._all.append(Process(column, self._make, self._fake, self._replies))
        return self._all[-1]

    def measure(self, cases: Sequence[Case], rounds: int, seconds: float, deadline: float) -> None:
        """Measure turns, the columns of a case one after the other, until the rounds or the time are over.

        Args:
            seconds: of a turn.
            deadline: by the monotonic clock.
        """
        for number in range(rounds):
            for case in cases:
                owners = [process for (_, each), process in self.owners.items() if each == case]
                for process in owners[::-1] if number % 2 else owners:
                    if time.monotonic() > deadline:
                        log(f"the time was over in round {number + 1} of {rounds}")
                        return
                    if (process.column, case) in self.owners:
                        self._turn(process, case, number, seconds)

    def _turn(self, process: Process, case: Case, number: int, seconds: float) -> None:
        process.ask(turn=case, seconds=seconds)
        try:
            while True:
                replier, reply = self._replies.get(timeout=30 + 20 * seconds)
                if replier is process:
                    break
                if reply is None:
                    self._forget(replier, "its process ended between turns")
        except queue.Empty:
            reply = None
        if reply is None:
            self._forget(process, process.last_words())
            return
        self._record({"column": process.column, "round": number, **reply})

    def _forget(self, process: Process, why: str) -> None:
        process.end()
        for case in process.ready:
            if self.owners.pop((process.column, case), None) is not None:
                self._record({"case": case, "column": process.column, "failed": why})


__all__ = ["Session"]
