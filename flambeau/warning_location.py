"""Where a warning points to: the first line outside the package, however deep the call was made."""

from __future__ import annotations

import sys

_HERE = __name__.rpartition(".")[0]


def outside(*also: str) -> int:
    """The `stacklevel` for a `warnings.warn` made by the caller of this function.

    Args:
        also: modules that count as the package's own here, such as one that it is called back by.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (_HERE, *also):
        level, frame = level + 1, frame.f_back
    return level
