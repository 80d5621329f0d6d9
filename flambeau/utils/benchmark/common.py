"""Helpers of measurements: units, rounding, order, threads."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from typing import Any

from ...switches import get_num_threads, set_num_threads
from .measurement import Measurement, TaskSpec, select_unit

__all__ = ["Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads", "trim_sigfig",
           "unit_to_english"]

_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}


def unit_to_english(u: str) -> str:
    """A unit in words.

    >>> from flambeau.utils.benchmark import unit_to_english
    >>> unit_to_english("us")
    'microsecond'
    """
    return _ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """A number rounded to `n` significant digits.

    >>> from flambeau.utils.benchmark import trim_sigfig
    >>> trim_sigfig(1234.5, 3)
    1230.0
    """
    magnitude = math.ceil(math.log10(abs(x)))
    scale = 10.0 ** (magnitude - n)
    return round(x / scale) * scale


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The elements without repetitions, in the order of their first occurrence.

    >>> from flambeau.utils.benchmark import ordered_unique
    >>> ordered_unique([3, 1, 3])
    [3, 1]
    """
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Use `n` threads in a block.

    >>> import flambeau as torch
    >>> from flambeau.utils.benchmark import set_torch_threads
    >>> with set_torch_threads(1):
    ...     torch.get_num_threads()
    1
    """
    before = get_num_threads()
    try:
        set_num_threads(n)
        yield
    finally:
        set_num_threads(before)
