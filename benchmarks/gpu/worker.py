"""A process of one column: it makes cases ready, and measures one when it is told to.

Cases are made ready in several processes at once; while one measures, the others wait, so that it has the GPU alone.
Requests are lines of JSON on stdin, replies lines on stdout:

    {"ready": case, "limit": seconds}      -> {"case": case, "memory": bytes, ...} or {"case": case, "failed": reason}
    {"turn": case, "seconds": seconds}     -> {"case": case, "seconds": of a call, "host": of a call}
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import logging
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .cases import COLUMNS, Libraries, Running, costs, programs, reasons

#: seconds of calls before a turn, in which the GPU's clocks rise
SETTLE = 0.02
#: calls that compile, capture and tune
FIRST_CALLS = 5


def reason_of(error: BaseException) -> str:
    """One line for an error: its type, its text, and where in this project it was raised."""
    text = " ".join(str(error).split())[:300]
    frames = [f"{frame.filename.rpartition('flambeau/')[2]}:{frame.lineno}"
              for frame in traceback.extract_tb(error.__traceback__) if "flambeau/" in frame.filename]
    return f"{type(error).__name__}: {text}" + (f" ({' < '.join(frames[:-4:-1])})" if frames else "")


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in a block that takes longer."""
    def ring(number: int, frame: Any) -> None:
        raise TimeoutError(f"not ready after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Worker:
    """The cases of a column that this process has made.

    Args:
        libraries: the column's library.
        make: case -> what runs it.
    """

    def __init__(self, libraries: Libraries, make: Callable[[Any], Running]) -> None:
        self.libraries, self.make = libraries, make
        self.made: dict[Any, tuple[Running, float]] = {}  # with the seconds of a call

    def ready(self, case: Any, limit: float) -> dict[str, Any]:
        """Make a case, and run it until it is compiled."""
        libraries, column = self.libraries, self.libraries.column
        before, earlier, known = libraries.memory()[0], {id(each) for each in programs(column)}, set(reasons(column))
        started = time.perf_counter()
        with within(limit):
            running = self.make(case)
            observed = running.observed(running.run())
            for _ in range(FIRST_CALLS - 1):
                running.run()
            running.wait()
            libraries.memory(reset=True)
            begun = time.perf_counter()
            running.run()
            running.wait()
            seconds = time.perf_counter() - begun
        peak = libraries.memory()[1]
        made = [each for each in programs(column) if id(each) not in earlier]
        found: dict[str, Any] = {"made in": time.perf_counter() - started, "memory": peak - before,
                                 "observed": observed, "estimate": seconds}
        if made:
            found["bytes"], found["operations"] = (running.repeats * each for each in costs(made))
        if new := [each for each in reasons(column) if each not in known]:
            found["eager because"] = new
        self.made[case] = running, seconds
        del made
        gc.collect()
        gc.freeze()
        return found | {"reserved": libraries.reserved(), "process": os.getpid()}

    def turn(self, case: Any, seconds: float) -> dict[str, Any]:
        """The mean over calls that take about so many seconds together, and the host's part of it."""
        running, estimate = self.made[case]
        begun = time.perf_counter()
        while time.perf_counter() < begun + SETTLE:
            running.run()
            running.wait()
        calls = max(1, round(seconds / estimate))
        begun = time.perf_counter()
        for _ in range(calls):
            running.run()
        host = time.perf_counter() - begun
        running.wait()
        elapsed = time.perf_counter() - begun
        self.made[case] = running, elapsed / calls
        return {"seconds": elapsed / calls, "host": host / calls, "calls": calls}


def serve(worker: Worker, replies: Any) -> None:
    """Answer requests until stdin ends, or the device is lost."""
    def reply(what: dict[str, Any]) -> None:
        print(json.dumps(what), file=replies, flush=True)

    reply({"started": worker.libraries.device_name()})
    for line in sys.stdin:
        request = json.loads(line)
        case = tuple(request.get("ready") or request["turn"])
        try:
            found = (worker.ready(case, request["limit"]) if "ready" in request else
                     worker.turn(case, request["seconds"]))
            reply({"case": case, **found})
        except BaseException as error:
            reply({"case": case, "failed": reason_of(error)})
            if not isinstance(error, Exception):
                raise
            del error
            gc.collect()
            worker.libraries.wait()  # a lost device ends the process here
            worker.libraries.reserved()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("column", choices=COLUMNS)
    parser.add_argument("cases", help="module and function: Libraries -> function that makes a case")
    parser.add_argument("--fake", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries is no reply
    module, _, function = options.cases.partition(":")
    libraries = Libraries(options.column, options.fake)
    with libraries.in_use():
        serve(Worker(libraries, getattr(importlib.import_module(module), function)(libraries)), replies)
        replies.flush()
        os._exit(0)  # libraries' threads must not delay the end


if __name__ == "__main__":
    main()
