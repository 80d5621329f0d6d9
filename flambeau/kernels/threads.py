"""The number of threads of kernels and of NumPy's BLAS, which is set through the BLAS library if it is found."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_limit: int | None = None
_assumed = threading.local()
_library: Any = ()  # () before the search; None if not found

_SETTERS = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads64_",
            "openblas_set_num_threads", "MKL_Set_Num_Threads", "BLASSetThreading")


def _setter() -> Any:
    """The BLAS function that sets its number of threads, or None."""
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
    """Paths of the BLAS libraries that are bundled with NumPy or loaded in this process."""
    import numpy as np

    paths = []
    root = os.path.dirname(np.__file__)
    for folder in (root + ".libs", os.path.join(root, ".dylibs")):
        if os.path.isdir(folder):
            paths += [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if "blas" in name]
    try:
        with open("/proc/self/maps") as maps:
            paths += sorted({line.split()[-1] for line in maps if "blas" in line or "mkl_rt" in line})
    except OSError:
        pass
    return paths


def count() -> int:
    """The number of threads of an operator: the set limit, the environment's, or the available CPUs."""
    assumed: int = getattr(_assumed, "count", 0)
    if assumed:
        return assumed
    if _limit is not None:
        return _limit
    configured = _environment_limit()
    if configured:
        return configured
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _environment_limit() -> int:
    """The limit set by environment variables, read once as by OpenMP; 0 if none is set."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value):
            return int(value)
    return 0


@contextmanager
def assumed(threads: int) -> Iterator[None]:
    """Plan for a number of threads in this thread: code that another process runs."""
    before = getattr(_assumed, "count", 0)
    _assumed.count = threads
    try:
        yield
    finally:
        _assumed.count = before


def limit(threads: int) -> None:
    """Set the number of threads of operators and of BLAS."""
    global _limit
    _limit = threads
    setter = _setter()
    if setter is not None:
        setter(threads)
