"""Collectives of small byte strings through a store, for programs that need no process group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta

from ..errors import DistStoreError
from .store import Store

_PATIENCE = timedelta(seconds=300)


class _ControlCollectives(ABC):
    """Collectives by key: all processes name one key, which is used once."""

    @abstractmethod
    def barrier(self, key: str, timeout: timedelta = _PATIENCE, block: bool = True) -> None:
        """Wait until all processes have come; only say that this one has, if not `block`."""

    @abstractmethod
    def broadcast_send(self, key: str, data: str, timeout: timedelta = _PATIENCE) -> None:
        """Send data to all others."""

    @abstractmethod
    def broadcast_recv(self, key: str, timeout: timedelta = _PATIENCE) -> bytes:
        """Return what one process sends to all."""

    @abstractmethod
    def gather_send(self, key: str, data: str, timeout: timedelta = _PATIENCE) -> None:
        """Send data to the process that gathers."""

    @abstractmethod
    def gather_recv(self, key: str, data: str, timeout: timedelta = _PATIENCE) -> list[bytes]:
        """Return what all processes send, by rank, among them this one's data."""

    @abstractmethod
    def scatter_send(self, key: str, data: Sequence[str], timeout: timedelta = _PATIENCE) -> bytes:
        """Send each process its data; this one's."""

    @abstractmethod
    def scatter_recv(self, key: str, timeout: timedelta = _PATIENCE) -> bytes:
        """Return what one process sends to this one."""

    @abstractmethod
    def all_gather(self, key: str, data: str, timeout: timedelta = _PATIENCE) -> list[bytes]:
        """Return what all processes send, by rank."""

    @abstractmethod
    def all_sum(self, key: str, data: int, timeout: timedelta = _PATIENCE) -> int:
        """Return the sum of the numbers of all processes."""


class _StoreCollectives(_ControlCollectives):
    """Collectives through a store.

    Args:
        store: the store.
        rank, world_size: this process's number, and how many there are.

    >>> import flambeau as torch
    >>> dist = torch.distributed
    >>> dist._StoreCollectives(dist.HashStore(), 0, 1).all_sum("steps", 3)
    3
    """

    def __init__(self, store: Store, rank: int, world_size: int) -> None:
        self._store, self._rank, self._size = store, rank, world_size
        self._used: set[str] = set()

    def _use(self, key: str) -> None:
        if key in self._used:
            raise DistStoreError(f"Key {key} has already been used.")
        self._used.add(key)

    def _wait_for_all(self, what: str, keys: list[str], timeout: timedelta) -> None:
        """Wait for the keys of all ranks; the error names the missing ones."""
        try:
            self._store.wait(keys, timeout)
        except DistStoreError as error:
            missing = ", ".join(str(rank) for rank, key in enumerate(keys) if not self._store.check([key]))
            raise DistStoreError(f"{what} failed -- missing ranks: {missing}: {error}") from None

    def _keys(self, key: str) -> list[str]:
        return [f"{key}/{rank}" for rank in range(self._size)]

    def barrier(self, key: str, timeout: timedelta = _PATIENCE, block: bool = True) -> None:
        self._use(key)
        keys = self._keys(key)
        self._store.set(keys[self._rank], "1")
        if block:
            self._wait_for_all("barrier", keys, timeout)

    def broadcast_send(self, key: str, data: str, timeout: timedelta = _PATIENCE) -> None:
        self._use(key)
        self._store.set(key, data)

    def broadcast_recv(self, key: str, timeout: timedelta = _PATIENCE) -> bytes:
        self._use(key)
        self._store.wait([key], timeout)
        return self._store.get(key)

    def gather_send(self, key: str, data: str, timeout: timedelta = _PATIENCE) -> None:
        self._use(key)
        self._store.set(f"{key}/{self._rank}", data)

    def gather_recv(self, key: str, data: str, timeout: timedelta = _PATIENCE) -> list[bytes]:
        self.gather_send(key, data)
        return self._collected("gather", key, timeout)

    def _collected(self, what: str, key: str, timeout: timedelta) -> list[bytes]:
        keys = self._keys(key)
        self._wait_for_all(what, keys, timeout)
        return [self._store.get(each) for each in keys]

    def scatter_send(self, key: str, data: Sequence[str], timeout: timedelta = _PATIENCE) -> bytes:
        self._use(key)
        if len(data) != self._size:
            raise ValueError(f"scatter_send takes data of {self._size} processes, got {len(data)}")
        for each, own in zip(self._keys(key), data, strict=True):
            self._store.set(each, own)
        own = data[self._rank]
        return own if isinstance(own, bytes) else own.encode()

    def scatter_recv(self, key: str, timeout: timedelta = _PATIENCE) -> bytes:
        self._use(key)
        own = f"{key}/{self._rank}"
        self._store.wait([own], timeout)
        return self._store.get(own)

    def all_gather(self, key: str, data: str, timeout: timedelta = _PATIENCE) -> list[bytes]:
        self.gather_send(key, data)
        return self._collected("all_gather", key, timeout)

    def all_sum(self, key: str, data: int, timeout: timedelta = _PATIENCE) -> int:
        self._use(key)
        self._store.add(f"{key}/sum", data)
        self.barrier(f"{key}/barrier", timeout)
        return self._store.add(f"{key}/sum", 0)


__all__ = ["_ControlCollectives", "_StoreCollectives"]
