"""`torch.random`: generators and their states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._tensor.creation.generators import (
    Generator,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

#: the information that a worker of a `DataLoader` has, set by `utils.data`
worker_info: list[Callable[[], Any]] = []


def thread_safe_generator() -> Generator | None:
    """The generator of the thread of a `DataLoader` worker; None elsewhere, which means the default generator.

    >>> import flambeau as torch
    >>> torch.thread_safe_generator() is None
    True
    """
    info = worker_info[0]() if worker_info else None
    if info is not None and info.worker_method == "thread" and info.rng is not None:
        return info.rng.torch_generator
    return None


__all__ = ["Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
           "set_rng_state", "thread_safe_generator"]
