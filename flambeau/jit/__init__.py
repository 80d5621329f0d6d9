"""Machine code made at run time: expressions compiled by LLVM into kernels, arrays in and arrays out.

`elementwise.kernel` and `reduction.kernel` turn expressions (`expression.Node`) into kernels, which are compiled
when they first meet a layout of arrays, kept in memory and on disk, and run by several threads. All of it needs
llvmlite, which is imported when the first kernel is compiled, and the processor it runs on; where `available()` is
false, nothing else of this package may be called.
"""

from __future__ import annotations

import functools
import os


@functools.cache
def available() -> bool:
    """Whether kernels can be compiled here: llvmlite is installed and `FLAMBEAU_JIT` is not 0.

    >>> from flambeau import jit
    >>> jit.available() in (True, False)
    True
    """
    if os.environ.get("FLAMBEAU_JIT", "1") == "0":
        return False
    from importlib.util import find_spec

    if find_spec("llvmlite") is None:
        return False
    from . import arrays

    return arrays.readable()
