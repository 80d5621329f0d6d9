"""Machine code made at run time: expressions compiled by LLVM into kernels, arrays in and arrays out.

`elementwise.kernel` and `reduction.kernel` turn expressions (`expression.Node`) into kernels, which are compiled
when they first meet a layout of arrays, kept in memory and on disk, and run by several threads. All of it needs
llvmlite, which is imported when the first kernel is compiled, and the processor it runs on; where `available()` is
false, nothing else of this package may be called.
"""

from __future__ import annotations

import functools
import os
import re
import warnings
from pathlib import Path

#: the first release of llvmlite whose pointers are all of one type
OLDEST = (0, 46)


@functools.cache
def available() -> bool:
    """Whether kernels can be compiled here: llvmlite is installed, 0.46 or newer, and `FLAMBEAU_JIT` is not 0.

    Warns:
        RuntimeWarning: llvmlite is installed, but older.

    >>> from flambeau import codegen
    >>> codegen.available() in (True, False)
    True
    """
    if os.environ.get("FLAMBEAU_JIT", "1") == "0":
        return False
    from importlib.util import find_spec

    found = find_spec("llvmlite")
    if found is None or _is_old(found.origin):
        return False
    from ..runtime import numpy_abi

    return numpy_abi.readable()


def _is_old(origin: str | None) -> bool:
    """Whether the llvmlite at this place is older than what flambeau's code is written for; a warning if so.

    It is not imported for that, nor are the installer's records read: both take longer than all else at the start.
    """
    try:
        said = Path(origin or "").with_name("_version.py").read_text()
    except OSError:
        return False
    version = re.search(r"version_version = '((\d+)\.(\d+)[^']*)'", said)
    if version is None or (int(version[2]), int(version[3])) >= OLDEST:
        return False
    warnings.warn(f"flambeau's kernels need llvmlite {OLDEST[0]}.{OLDEST[1]} or newer, and {version[1]} is installed: "
                  "NumPy computes everything, and nothing is compiled. `pip install --upgrade llvmlite` mends that; "
                  "FLAMBEAU_JIT=0 silences this warning", RuntimeWarning, stacklevel=3)
    return True
