"""`Timer`: times a statement with a fixed number of threads."""

from __future__ import annotations

import enum
import timeit
from collections.abc import Callable
from time import perf_counter
from typing import Any

from ...switches import get_num_threads, set_num_threads
from .measurement import Measurement, TaskSpec


class Language(enum.Enum):
    """The language of a statement.

    >>> from flambeau.utils.benchmark import Language, Timer
    >>> Timer("1 + 1", language=Language.PYTHON).timeit(3).number_per_run
    3
    """

    PYTHON = 0
    CPP = 1


class Timer:
    """Times a statement. Unlike `timeit.Timer`, it sets the number of threads and returns a `Measurement`.

    Args:
        stmt: the statement.
        setup: run once, before the timing.
        timer: the clock.
        globals: the names that the statement uses.
        label, sub_label, description, env: how the measurement is labelled; `Compare` makes rows and columns of them.
        num_threads: the number of threads of operators.

    >>> import flambeau as torch
    >>> from flambeau.utils.benchmark import Timer
    >>> Timer("x + x", globals={"x": torch.ones(3)}).timeit(10).number_per_run
    10
    """

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
                 timer: Callable[[], float] = perf_counter, globals: dict[str, Any] | None = None,
                 label: str | None = None, sub_label: str | None = None, description: str | None = None,
                 env: str | None = None, num_threads: int = 1, language: str | Language = "python") -> None:
        if str(language).lower() not in ("python", "py", "language.python"):
            raise NotImplementedError("Timer: statements in C++ need PyTorch's C++ interface")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be "
                             "moved to `setup`.")
        import sys

        names = dict(globals or {})
        names.setdefault("torch", sys.modules[__name__.partition(".")[0]])
        self._timer = timeit.Timer(stmt=_dedented(stmt), setup=_dedented(setup), timer=timer, globals=names)
        self._task_spec = TaskSpec(stmt=_dedented(stmt), setup=_dedented(setup), label=label, sub_label=sub_label,
                                   description=description, env=env, num_threads=num_threads)

    def _with_threads(self, run: Callable[[], Any]) -> Any:
        before = get_num_threads()
        set_num_threads(self._task_spec.num_threads)
        try:
            return run()
        finally:
            set_num_threads(before)

    def _time(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def _measurement(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number_per_run=number, raw_times=times, task_spec=self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Time `number` runs, after a warmup."""
        def run() -> Measurement:
            self._time(max(number // 100, 2))
            return self._measurement(number, [self._time(number)])

        return self._with_threads(run)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Not supported: see `timeit`, `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> None:
        """Not supported: see `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """A number of runs whose time is long compared to the clock's overhead."""
        overhead = sorted(self._time(0) for _ in range(5))[2]
        number = 1
        while True:
            taken = self._time(number)
            if (overhead / taken <= 1e-4 and taken >= min_run_time / 1000) or taken > min_run_time:
                return number
            number *= 10

    def blocked_autorange(self, callback: Callable[[int, float], Any] | None = None,
                          min_run_time: float = 0.2) -> Measurement:
        """Time blocks of runs until `min_run_time` seconds have passed."""
        def run() -> Measurement:
            number = self._block_size(min_run_time)
            times: list[float] = []
            while sum(times) < min_run_time:
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
            return self._measurement(number, times)

        return self._with_threads(run)

    def adaptive_autorange(self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
                           callback: Callable[[int, float], Any] | None = None) -> Measurement:
        """Time blocks of runs until the spread of their times is below `threshold` times the median."""
        def run() -> Measurement:
            number = self._block_size(0.05)
            times: list[float] = []
            while True:
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
                total = sum(times)
                if total > max_run_time or (total > min_run_time and len(times) > 3 and (
                        self._measurement(number, times).meets_confidence(threshold))):
                    return self._measurement(number, times)

        return self._with_threads(run)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> Any:
        """Count instructions with Valgrind, which is not supported."""
        raise NotImplementedError("Timer.collect_callgrind: counts of instructions need a build of PyTorch in C++")


def _dedented(text: str) -> str:
    import textwrap

    return textwrap.dedent(text).strip() if "\n" in text else text


__all__ = ["Timer"]
