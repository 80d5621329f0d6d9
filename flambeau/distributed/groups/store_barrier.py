"""A barrier through a store, for processes that have no group yet."""

from __future__ import annotations

from datetime import timedelta

from ...c10d.errors import DistStoreError
from ...c10d.stores import Store

STORE_BASED_BARRIER_PREFIX = "store_based_barrier_key"


def _store_based_barrier(rank: int, store: Store, group_name: str, rendezvous_count: int, timeout: timedelta,
                         logging_interval: timedelta = timedelta(seconds=10)) -> None:
    """Wait until all processes of a group that is being made have called this.

    Args:
        rank: this process's number.
        store: a store of these processes.
        group_name: the name of the group.
        rendezvous_count: the number of the processes.
        timeout: how long to wait.
        logging_interval: without effect.

    Raises:
        DistStoreError: a process is missing (PyTorch's text).
    """
    key = f"{STORE_BASED_BARRIER_PREFIX}:{group_name}"
    if store.add(key, 1) == rendezvous_count:
        store.set(f"{key}:last_worker", "1")
    try:
        store.wait([f"{key}:last_worker"], timeout)
    except RuntimeError as error:
        raise DistStoreError(
            f"Timed out initializing process group in store based barrier on rank {rank}, for key: {key} (world_size="
            f"{rendezvous_count}, num_workers_joined={store.add(key, 0)}, timeout={timeout} error={error})") from None


__all__ = ["STORE_BASED_BARRIER_PREFIX"]
