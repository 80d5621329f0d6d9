"""`ExportError`: a program that has no ahead-of-time compiled form."""

from __future__ import annotations


class ExportError(RuntimeError):
    """A function or program cannot be compiled ahead of time; the message names the reason and the user's line.

    >>> from flambeau.export import aot
    >>> issubclass(aot.ExportError, RuntimeError)
    True
    """


__all__ = ["ExportError"]
