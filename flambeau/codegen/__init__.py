"""Code generation: expressions in scalar IR compiled by LLVM to multi-threaded kernels.

Each family of kernels (elementwise, rows, matmul, convolution, pooling, indexing, scan, sorting, random) takes the
layouts of its operands and returns launches (`runtime.launch`). Code is compiled for a layout when it is first needed,
and cached in memory and on disk. llvmlite is imported when the first kernel is compiled. If `available()` is false,
nothing else of this package may be called.
"""

from __future__ import annotations

import functools
import os
import re
import warnings

#: the first supported release of llvmlite: the first with opaque pointers only
MINIMUM_VERSION = (0, 46)


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

    spec = find_spec("llvmlite")
    if spec is None or _is_too_old(spec.origin):
        return False
    from ..runtime import numpy_abi

    return numpy_abi.readable()


def _is_too_old(origin: str | None) -> bool:
    """Whether the llvmlite at this path is older than `MINIMUM_VERSION`; warns if so.

    The version is read from its source: importing llvmlite or reading package metadata dominates start-up time.
    """
    try:
        with open(os.path.join(os.path.dirname(origin or ""), "_version.py")) as file:
            source = file.read()
    except OSError:
        return False
    version = re.search(r"version_version = '((\d+)\.(\d+)[^']*)'", source)
    if version is None or (int(version[2]), int(version[3])) >= MINIMUM_VERSION:
        return False
    minimum = ".".join(map(str, MINIMUM_VERSION))
    warnings.warn(f"flambeau's kernels need llvmlite {minimum} or newer, and {version[1]} is installed: NumPy computes "
                  "everything, and nothing is compiled. `pip install --upgrade llvmlite` fixes that; FLAMBEAU_JIT=0 "
                  "silences this warning", RuntimeWarning, stacklevel=3)
    return True
