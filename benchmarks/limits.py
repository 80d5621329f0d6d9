"""The limit of threads for each library: two unless a benchmark says otherwise."""

from __future__ import annotations

import os

THREADS = 2


def apply(threads: int = THREADS) -> None:
    """Limit this process and its children. Call it before libraries are imported."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)
    os.environ["JAX_PLATFORMS"] = "cpu"
    # XLA starts one thread per processor of its affinity mask, and has no option for it
    if hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) > THREADS:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
