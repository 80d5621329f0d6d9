"""The stack level of warnings: they point to the first frame outside the package."""

from __future__ import annotations

import sys

_PACKAGE = __name__.rpartition(".")[0]


def user_stacklevel(*also: str) -> int:
    """The `stacklevel` of a `warnings.warn` in the caller that points to the first frame outside the package.

    Args:
        also: further top-level packages whose frames are skipped, such as `pickle`.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (_PACKAGE, *also):
        level, frame = level + 1, frame.f_back
    return level
