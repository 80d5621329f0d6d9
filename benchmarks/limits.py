"""Two threads for every library, whatever the machine has."""

from __future__ import annotations

import os

THREADS = 2


def apply() -> None:
    """Limit this process and those that it starts; best before a library is imported."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(THREADS)
    os.environ["JAX_PLATFORMS"] = "cpu"
    # XLA makes as many threads as there are processors that it may use, and has no switch for it
    if hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) > THREADS:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
