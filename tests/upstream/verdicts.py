"""Execution of the tests of a loaded file, each with a time limit, and their outcomes."""

from __future__ import annotations

import contextlib
import fnmatch
import io
import os
import re
import signal
import sys
import threading
import traceback
import unittest
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from .placeholder import Internal

#: how a test can end, in the order of the summary
ENDINGS = ("pass", "fail", "internal", "skipped", "not applicable")


class TimedOut(BaseException):
    """A test timed out; not an Exception, so that the test cannot catch it."""


@dataclass
class Verdict:
    """The outcome of one test, and the reason."""

    name: str  # Class::test
    ending: str
    why: str = ""
    trace: str = ""


class _Result(unittest.TestResult):
    """Stores exception objects, which unittest converts to text."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: tuple[str, str, str] = ("pass", "", "")

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self.ended = ("fail", _one_line(err[1]), "".join(traceback.format_exception(*err)))

    addFailure = addError

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        if err is not None:
            self.addError(test, err)

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self.ended = ("fail", "succeeded, and should have failed", "")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.ended = ("internal" if isinstance(sys.exc_info()[1], Internal) else "skipped", reason, "")


def _one_line(error: BaseException) -> str:
    text = str(error)
    if "Traceback (most recent call last)" in text:  # of a process or thread of the test
        text = text.partition("Traceback (most recent call last):")[2]
        raised = re.search(r"^[A-Za-z_][\w.]*(: .*|$)", text, re.M | re.S)
        text = raised.group() if raised else text
    text = " ".join(text.split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class Ledger:
    """Excluded tests: lines `file::Class::test - reason`, where `*` matches anything."""

    def __init__(self, path: str) -> None:
        self.lines: list[tuple[str, str]] = []
        self.met: set[str] = set()
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    if (line := line.strip()) and not line.startswith("#"):
                        pattern, _, reason = line.partition(" - ")
                        self.lines.append((pattern.strip(), reason.strip()))

    def reason(self, name: str) -> str | None:
        """The reason why a test is excluded; None if it is not."""
        for pattern, reason in self.lines:
            if fnmatch.fnmatchcase(name, pattern):
                self.met.add(pattern)
                return reason
        return None


def tests_of(module: ModuleType, pattern: str | None) -> list[unittest.TestCase]:
    """The tests of a module, in the order of their classes; `pattern` is a substring or glob of `Class::test`."""
    tests = []
    for value in list(vars(module).values()):
        if isinstance(value, type) and issubclass(value, unittest.TestCase):
            for name in unittest.defaultTestLoader.getTestCaseNames(value):
                full = f"{value.__name__}::{name}"
                if pattern is None or pattern in full or fnmatch.fnmatchcase(full, pattern):
                    tests.append(_made(value, name))
    return tests


def _made(case: type[unittest.TestCase], name: str) -> unittest.TestCase:
    """A test of a class; one that fails if the class cannot be instantiated."""
    try:
        return case(name)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"

        def fail(self: unittest.TestCase) -> None:
            self.fail(message)

        made: type[unittest.TestCase] = type(case.__name__, (unittest.TestCase,), {name: fail})
        return made(name)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("default")
        warnings.showwarning = lambda *args, **kwargs: None
        yield


@contextlib.contextmanager
def _within(seconds: int) -> Iterator[None]:
    """Limit the block's processor time, so that a busy machine changes no verdict, and loosely its wall time."""
    def ring(number: int, frame: Any) -> None:
        raise TimedOut(f"more than {seconds} s")

    before = [signal.signal(number, ring) for number in (signal.SIGALRM, signal.SIGPROF)]
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(5 * seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for number, handler in zip((signal.SIGALRM, signal.SIGPROF), before, strict=True):
            signal.signal(number, handler)


def run(test: unittest.TestCase, seconds: int) -> Verdict:
    """Run one test."""
    result = _Result()
    at_once: list[Any] = []
    hook, threading.excepthook = threading.excepthook, at_once.append
    try:
        with _quietly(), _within(seconds):
            test.run(result)
    except TimedOut as error:  # rang between the test and its end
        result.ended = ("fail", _one_line(error), "")
    except ImportError as error:  # of what the machinery ends a suite with that has lost its device
        if result.ended[0] == "pass":
            result.ended = ("fail", _one_line(error), "")
    finally:
        threading.excepthook = hook
    name = f"{type(test).__name__}::{test._testMethodName}"
    if result.ended[0] == "pass" and at_once and hasattr(test, "_spawn_threads"):  # a rank that ended before the test
        error = at_once[0].exc_value
        result.ended = ("fail", _one_line(error), "".join(traceback.format_exception(error)))
    ending, why, trace = result.ended
    if ending == "fail" and _asks_for_internals(why):
        ending = "internal"
    return Verdict(name, ending, why, trace)


def _asks_for_internals(why: str) -> bool:
    return re.match(r"(AttributeError: module 'torch[.\w]*' has no attribute '_[a-z])", why) is not None
