"""`FLAMBEAU_DEBUG`: prints the stages of compilation to stderr.

The variable is a comma-separated list of views:

    ir          the graph of each compiled function, as traced and divided into fusion groups
    recompiles  why a call of a compiled function is traced although there are programs: the failed guard
    kernels     each kernel: its outputs and inputs, the number of chunks, and where its code came from
    llvm        LLVM IR after optimization
    asm         assembly

`ir`, `kernels` and `recompiles` concern compiled functions (`flambeau.compile`), `llvm` and `asm` all generated code.
With `llvm` or `asm`, code is compiled even if the persistent cache has it, since object code has no text.
"""

from __future__ import annotations

import os
import sys

VIEWS = ("ir", "kernels", "llvm", "asm", "recompiles")


def is_enabled(*views: str) -> bool:
    """Whether one of these views is enabled.

    Raises:
        ValueError: the variable names an unknown view.

    >>> from flambeau.runtime import debug_output as debugging
    >>> debugging.is_enabled("asm") in (True, False)
    True
    """
    value = os.environ.get("FLAMBEAU_DEBUG")
    if not value:
        return False
    names = [name.strip() for name in value.split(",") if name.strip()]
    for name in names:
        if name not in VIEWS:
            raise ValueError(f"FLAMBEAU_DEBUG={value}: there is no view {name!r}, only {', '.join(VIEWS)}")
    return any(view in names for view in views)


def show(text: str) -> None:
    """Print a view's text to stderr, followed by an empty line."""
    print(text, file=sys.stderr, end="\n\n", flush=True)


__all__ = ["VIEWS", "is_enabled", "show"]
