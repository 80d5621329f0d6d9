"""The output of a block, also of C functions and other processes, goes to a file."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

__all__ = ["redirect", "redirect_stderr", "redirect_stdout"]


def _flush(std: str) -> None:
    """Write out what Python and C have kept back."""
    getattr(sys, std).flush()
    if os.name == "posix":
        ctypes.CDLL(None).fflush(None)


@contextmanager
def redirect(std: str, to_file: str) -> Iterator[None]:
    """Write a stream to a file in a block.

    Args:
        std: "stdout" or "stderr".
        to_file: the file; it is made anew.

    Raises:
        ValueError: another stream (PyTorch's text).
    """
    if std not in ("stdout", "stderr"):
        raise ValueError(f"unknown standard stream <{std}>, must be one of {{'stderr', 'stdout'}}")
    descriptor = getattr(sys, std).fileno()
    with open(to_file, "w+b") as file:
        kept = os.dup(descriptor)
        try:
            _flush(std)
            os.dup2(file.fileno(), descriptor)
            try:
                yield
            finally:
                _flush(std)
                os.dup2(kept, descriptor)
        finally:
            os.close(kept)


def redirect_stdout(to_file: str) -> AbstractContextManager[None]:
    """Write the standard output to a file in a block.

    Args:
        to_file: the file.
    """
    return redirect("stdout", to_file)


def redirect_stderr(to_file: str) -> AbstractContextManager[None]:
    """Write the standard errors to a file in a block.

    Args:
        to_file: the file.
    """
    return redirect("stderr", to_file)
