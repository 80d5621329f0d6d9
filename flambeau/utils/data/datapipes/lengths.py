"""Lengths of pipelines, which are known where those of their sources are."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, NoReturn


def raise_no_length(pipe: Any) -> NoReturn:
    """Raise the error of a pipeline without a length."""
    raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")


def length_of(source: Any, pipe: Any) -> int:
    """The length of a source of `pipe`.

    Raises:
        TypeError: it has none.
    """
    if not isinstance(source, Sized):
        raise_no_length(pipe)
    return len(source)


def batch_count(length: int, batch_size: int, drop_last: bool) -> int:
    """The number of batches."""
    return length // batch_size if drop_last else -(-length // batch_size)
