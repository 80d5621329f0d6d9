"""`FLAMBEAU_DEBUG`: what compiled code is made of, printed to stderr while it is made.

The variable names views, with commas between them:

    ir          the graph of values of each compiled function, as captured and grouped into kernels
    kernels     each kernel: what it computes from what, in how many chunks, where its code came from
    llvm        the intermediate code of everything that is compiled, as LLVM leaves it
    asm         the machine's instructions

The first two are of compiled functions (`flambeau.compile`), the last two of any machine code. Code that is to be
shown is compiled anew: the disk's copy, which has lost its text, is not asked for.
"""

from __future__ import annotations

import os
import sys

VIEWS = ("ir", "kernels", "llvm", "asm")


def wanted(*views: str) -> bool:
    """Whether one of these views is asked for.

    Raises:
        ValueError: the variable names a view that there is not.

    >>> from flambeau.runtime import debug_output as debugging
    >>> debugging.wanted("asm") in (True, False)
    True
    """
    asked = os.environ.get("FLAMBEAU_DEBUG")
    if not asked:
        return False
    names = [name.strip() for name in asked.split(",") if name.strip()]
    for name in names:
        if name not in VIEWS:
            raise ValueError(f"FLAMBEAU_DEBUG={asked}: there is no view {name!r}, only {', '.join(VIEWS)}")
    return any(view in names for view in views)


def show(text: str) -> None:
    """Print one view's text, and an empty line after it."""
    print(text, file=sys.stderr, end="\n\n", flush=True)


__all__ = ["VIEWS", "show", "wanted"]
