"""`torch.utils.data.backward_compatibility`: a deprecated function."""

from __future__ import annotations

import warnings


def worker_init_fn(worker_id: int) -> None:
    """Deprecated, without effect: a `DataLoader` divides data among its workers itself."""
    warnings.warn("Usage of `backward_compatibility.worker_init_fn` is deprecated as `DataLoader` automatically "
                  "applies sharding in every worker", FutureWarning, stacklevel=2)


__all__ = ["worker_init_fn"]
