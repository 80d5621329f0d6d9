"""Execution of a test in a process of its own, which is forked from the one that has loaded the file.

What a test leaves behind, such as a process group, its threads and the processes that it started, ends with it.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import unittest
from collections.abc import Callable

from .verdicts import Verdict, run

_GRACE = 10  # seconds that a test has to end after its time


def run_forked(test: unittest.TestCase, seconds: int, prepare: Callable[[], None] = lambda: None) -> Verdict:
    """Run one test in a forked process; `prepare` is called there first."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.close(reader)
        try:
            prepare()
            verdict = run(test, seconds)
        except BaseException as error:
            name = f"{type(test).__name__}::{test._testMethodName}"
            verdict = Verdict(name, "fail", f"{type(error).__name__}: {error}")
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(verdict, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        ended = select.select([pipe], [], [], 5 * seconds + _GRACE)[0]
        text = pipe.read() if ended else b""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    _, status = os.waitpid(child, 0)
    if text:
        verdict = pickle.loads(text)
        assert isinstance(verdict, Verdict)
        return verdict
    why = f"ended with status {status}" if ended else f"TimedOut: more than {5 * seconds + _GRACE} s"
    return Verdict(f"{type(test).__name__}::{test._testMethodName}", "fail", why)


__all__ = ["run_forked"]
