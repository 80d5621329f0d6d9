"""Process pools, whose arguments and results may be tensors in shared memory."""

from __future__ import annotations

import multiprocessing.pool
from typing import Any

__all__ = ["Pool", "clean_worker"]


def clean_worker(*args: Any, **kwargs: Any) -> None:
    """Run a pool's worker, and free what is in reference cycles before its process ends."""
    import gc

    multiprocessing.pool.worker(*args, **kwargs)  # type: ignore[attr-defined]
    gc.collect()


class Pool(multiprocessing.pool.Pool):
    """A pool of processes, as `multiprocessing.pool.Pool`.

    >>> import flambeau as torch
    >>> from flambeau.multiprocessing.pool import Pool
    >>> with Pool(1) as pool:
    ...     pool.map(torch.exp, [torch.zeros(1)])
    [tensor([1.])]
    """
