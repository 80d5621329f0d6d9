"""`PrefixStore`: a part of another store, whose keys begin with a prefix."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from .store import Store, as_bytes, checked_text


class PrefixStore(Store):
    """A part of another store, whose keys begin with a prefix.

    Args:
        prefix: the prefix.
        store: the other store.

    >>> import flambeau as torch
    >>> whole = torch.distributed.HashStore()
    >>> part = torch.distributed.PrefixStore("part", whole)
    >>> part.set("key", "value"); whole.get("part/key")
    b'value'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        self._prefix, self._store = prefix, store

    @property
    def underlying_store(self) -> Store:
        """The other store."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self._store
        while isinstance(store, PrefixStore):
            store = store._store
        return store

    @property
    def timeout(self) -> timedelta:
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._store.set_timeout(timeout)

    def _key(self, key: str) -> str:
        return f"{self._prefix}/{key}"

    def _keys(self, keys: Sequence[str]) -> list[str]:
        return [self._key(key) for key in keys]

    def set(self, key: str, value: str | bytes) -> None:
        checked_text(self, "set", key, value)
        self._store.set(self._key(key), as_bytes(value))

    def get(self, key: str) -> bytes:
        checked_text(self, "get", key)
        return self._store.get(self._key(key))

    def add(self, key: str, amount: int) -> int:
        return self._store.add(self._key(key), amount)

    def check(self, keys: Sequence[str]) -> bool:
        return self._store.check(self._keys(keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        if timeout is None:
            self._store.wait(self._keys(keys))
        else:
            self._store.wait(self._keys(keys), timeout)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        return self._store.compare_set(self._key(key), as_bytes(expected_value), as_bytes(desired_value))

    def delete_key(self, key: str) -> bool:
        return self._store.delete_key(self._key(key))

    def num_keys(self) -> int:
        return self._store.num_keys()

    def list_keys(self) -> list[str]:
        start = f"{self._prefix}/"
        return [key[len(start):] for key in self._store.list_keys() if key.startswith(start)]

    def has_extended_api(self) -> bool:
        return self._store.has_extended_api()

    def append(self, key: str, value: str | bytes) -> None:
        self._store.append(self._key(key), as_bytes(value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self._store.multi_get(self._keys(keys))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        self._store.multi_set(self._keys(keys), list(map(as_bytes, values)))

    def queue_push(self, key: str, value: str | bytes) -> None:
        self._store.queue_push(self._key(key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._store.queue_pop(self._key(key), block)

    def queue_len(self, key: str) -> int:
        return self._store.queue_len(self._key(key))

    def clone(self) -> Store:
        return PrefixStore(self._prefix, self._store.clone())


__all__ = ["PrefixStore"]
