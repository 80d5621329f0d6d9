"""Outcomes of checks, and calls whose failures are recorded instead of raised."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .bridge import Unsupported

SECONDS = 20.0  # a single call of the candidate taking longer is a failure


@dataclasses.dataclass(slots=True)
class Outcome:
    """One check of one sample: `reason` is empty where both libraries agree."""

    op: str
    check: str
    dtype: str
    sample: int | str
    reason: str = ""
    detail: str = ""

    @property
    def ok(self) -> bool:
        return not self.reason

    def replay(self) -> str:
        """The command line that runs this check of this sample alone."""
        if self.check == "present":
            return "python -m tests.parity --list --missing"
        parts = [f"python -m tests.parity {self.op} --checks {self.check}"]
        if self.dtype not in ("", "-"):
            parts.append(f"--dtype {self.dtype}")
        if isinstance(self.sample, int):
            parts.append(f"--sample {self.sample}")
        return " ".join([*parts, "-v"])

    def cause(self) -> str:
        """The reason without its particulars, so that equal mistakes read equal."""
        text = re.sub(r"^(values differ).*", r"\1", re.sub(r"^output\S*: ", "", self.reason))
        text = re.sub(r"\([\d, ]*\)|\[[\d, ]*\]|torch\.Size", "*", text)
        return re.sub(r"(?<![A-Za-z_\d])-?\d+(\.\d+)?(e[+-]?\d+)?j?", "#", text)[:110]


class TooSlow(Exception):
    """A call ran past its time."""


@dataclasses.dataclass(slots=True)
class Attempt:
    """The result of a call: a value or an error, and the warnings on the way."""

    value: Any = None
    error: Exception | None = None
    trace: str = ""
    warnings: tuple[tuple[str, str], ...] = ()


def _expire(*_: Any) -> None:
    raise TooSlow(f"no result after {SECONDS:g} s")


@contextlib.contextmanager
def _deadline() -> Iterator[None]:
    """Raise TooSlow in the main thread after SECONDS; its handler of SIGALRM stays, as setting it takes 20 us."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if not _handled:
        signal.signal(signal.SIGALRM, _expire)
        _handled.append(True)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


_handled: list[bool] = []  # whether `_expire` is the handler


def attempt(function: Callable[[], Any]) -> Attempt:
    """Call and record the result or exception; Unsupported, the harness's own, propagates."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with _deadline():
                result = Attempt(function())
        except Unsupported:
            raise
        except Exception as error:  # any exception of the candidate is an outcome
            result = Attempt(error=error, trace=traceback.format_exc(limit=-8))
    result.warnings = tuple((w.category.__name__, first_line(w.message)) for w in caught)
    return result


def first_line(value: Any) -> str:
    line = (str(value).strip().splitlines() or [""])[0]
    return re.sub(r" \(Triggered internally at .*\)$", "", line)  # PyTorch's own source position


def raised(error: BaseException) -> str:
    """'raised TypeError: ...' in one line."""
    return f"raised {type(error).__name__}: {first_line(error)[:160]}"
