"""Data of all launchers, and barriers between them, through a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from ....c10d.errors import DistStoreError

__all__ = ["barrier", "get_all", "store_timeout", "synchronize"]

_IGNORED = "<val_ignored>"
_MOST_MISSING = 16


@contextmanager
def store_timeout(store: Any, timeout: float) -> Iterator[None]:
    """A store's timeout in a block.

    Args:
        store: the store.
        timeout: seconds.

    >>> import flambeau as torch
    >>> from flambeau.distributed.elastic.utils.store import store_timeout
    >>> store = torch.distributed.HashStore()
    >>> with store_timeout(store, 2):
    ...     store.timeout.total_seconds()
    2.0
    """
    before = store.timeout
    store.set_timeout(timedelta(seconds=timeout))
    try:
        yield
    finally:
        store.set_timeout(before)


def _arrive(store: Any, world_size: int, key_prefix: str) -> str:
    """Count this one in; returns the key that the last one sets."""
    last = f"{key_prefix}/last_member"
    if store.add(f"{key_prefix}/num_members", 1) == world_size:
        store.set(last, _IGNORED)
    return last


def get_all(store: Any, rank: int, prefix: str, world_size: int) -> list[bytes]:
    """What all have written below `prefix` + number.

    The first one, which serves the store, waits until all have read.

    Args:
        store: the store.
        rank: the number of this one.
        prefix: of the keys.
        world_size: how many there are.

    >>> import flambeau as torch
    >>> from flambeau.distributed.elastic.utils.store import get_all
    >>> store = torch.distributed.HashStore()
    >>> store.set("data0", "a")
    >>> get_all(store, 0, "data", 1)
    [b'a']
    """
    data: list[bytes] = store.multi_get([f"{prefix}{number}" for number in range(world_size)])
    last = _arrive(store, world_size, f"{prefix}/finished")
    if rank == 0:
        store.wait([last])
    return data


def synchronize(store: Any, data: bytes, rank: int, world_size: int, key_prefix: str,
                timeout: float = 300) -> list[bytes]:
    """Exchange data; a prefix is good for one exchange.

    Args:
        store: the store.
        data: of this one.
        rank: its number.
        world_size: how many there are.
        key_prefix: of the keys.
        timeout: seconds.

    >>> import flambeau as torch
    >>> from flambeau.distributed.elastic.utils.store import synchronize
    >>> synchronize(torch.distributed.HashStore(), b"a", 0, 1, "key")
    [b'a']
    """
    with store_timeout(store, timeout):
        store.set(f"{key_prefix}{rank}", data)
        return get_all(store, rank, key_prefix, world_size)


def _missing(store: Any, world_size: int, key_prefix: str, rank: int, named: Callable[[int], str],
             timeout: float) -> list[str] | None:
    """Who has not come to a barrier; None if the first one did not, who finds out."""
    store.set(f"{key_prefix}{rank}/TRACE", _IGNORED)
    if rank != 0:
        try:
            store.wait([f"{key_prefix}/TRACING_GATE"])
        except DistStoreError:
            return None
        return [f"[<check rank 0 ({named(0)}) for missing rank info>]"]
    missing: list[str] = []
    for number in range(1, world_size):
        if len(missing) == _MOST_MISSING:
            break
        # after the first one that is missing, the others have had their time
        patience = timedelta(milliseconds=1) if missing else timedelta(seconds=timeout)
        try:
            store.wait([f"{key_prefix}{number}/TRACE"], patience)
        except DistStoreError:
            missing.append(named(number))
    store.set(f"{key_prefix}/TRACING_GATE", _IGNORED)
    return missing


def barrier(store: Any, world_size: int, key_prefix: str, barrier_timeout: float = 300, rank: int | None = None,
            rank_tracing_decoder: Callable[[int], str] | None = None, trace_timeout: float = 10) -> None:
    """Wait until all have come; a prefix is good for one barrier.

    Args:
        store: the store.
        world_size: how many there are.
        key_prefix: of the keys.
        barrier_timeout: seconds.
        rank: the number of this one, with which those that are missing are found.
        rank_tracing_decoder: their names in the error.
        trace_timeout: seconds of the search.

    Raises:
        DistStoreError: not all have come in time.

    >>> import flambeau as torch
    >>> from flambeau.distributed.elastic.utils.store import barrier
    >>> barrier(torch.distributed.HashStore(), 1, "key")
    """
    if rank is None and rank_tracing_decoder is not None:
        raise AssertionError("Tracing requires rank information")
    with store_timeout(store, barrier_timeout):
        last = _arrive(store, world_size, key_prefix)
        try:
            store.wait([last])
        except DistStoreError:
            if rank is None:
                raise
            missing = _missing(store, world_size, key_prefix, rank, rank_tracing_decoder or str, trace_timeout)
            if missing is None:
                raise
            raise DistStoreError(
                f"Timed out waiting on barrier on rank {rank}, for key prefix: {key_prefix} (world_size={world_size}, "
                f"missing_ranks=[{', '.join(missing)}], timeout={barrier_timeout})") from None
