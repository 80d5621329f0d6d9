"""How many threads compute: NumPy's BLAS is told through its own library, if it can be found in this process."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

_asked: int | None = None
_library: Any = ()  # () until looked for; None where there is none

_SETTERS = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads64_",
            "openblas_set_num_threads", "MKL_Set_Num_Threads", "BLASSetThreading")


def _setter() -> Any:
    """BLAS's own function that sets its number of threads, or None."""
    global _library
    if _library == ():
        _library = None
        import ctypes

        for path in _loaded_libraries():
            try:
                library = ctypes.CDLL(path)
            except OSError:
                continue
            for name in _SETTERS:
                if hasattr(library, name):
                    _library = getattr(library, name)
                    return _library
    return _library


def _loaded_libraries() -> list[str]:
    """The linear algebra libraries that NumPy brings along, or that are loaded."""
    import numpy as np

    found = []
    root = os.path.dirname(np.__file__)
    for folder in (root + ".libs", os.path.join(root, ".dylibs")):
        if os.path.isdir(folder):
            found += [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if "blas" in name]
    try:
        with open("/proc/self/maps") as maps:
            found += sorted({line.split()[-1] for line in maps if "blas" in line or "mkl_rt" in line})
    except OSError:
        pass
    return found


def count() -> int:
    """How many threads an operator may use."""
    if _asked is not None:
        return _asked
    said = _of_environment()
    if said:
        return said
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _of_environment() -> int:
    """What the environment says when it is first asked, as OpenMP asks it once; 0 where it says nothing."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value):
            return int(value)
    return 0


def limit(threads: int) -> None:
    """Let operators use so many threads."""
    global _asked
    _asked = threads
    setter = _setter()
    if setter is not None:
        setter(threads)
