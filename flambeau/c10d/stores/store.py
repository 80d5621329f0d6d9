"""`Store`, the interface of all stores, which programs may implement themselves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ... import config

DEFAULT_TIMEOUT = timedelta(seconds=300)


def as_bytes(value: str | bytes) -> bytes:
    """A value as a store keeps it: text is encoded as UTF-8."""
    return value if isinstance(value, bytes) else value.encode()


def milliseconds(timeout: timedelta) -> int:
    """A duration in whole milliseconds."""
    return timeout // timedelta(milliseconds=1)


def checked_text(store: Any, method: str, *values: Any) -> None:
    """Refuse keys and values that are neither text nor bytes.

    Raises:
        TypeError: PyTorch's text.
    """
    if not all(isinstance(value, (str, bytes)) for value in values):
        raise TypeError(
            f"{method}(): incompatible function arguments. The following argument types are supported:\n"
            f"    1. (self: {config.module_name}._C._distributed_c10d.Store, "
            f"{', '.join(f'arg{i}: str' for i in range(len(values)))}) -> None\n\n"
            f"Invoked with: {store!r}, {', '.join(map(repr, values))}")


class Store:
    """A map of byte strings that several processes share.

    Subclasses implement `set`, `get`, `add`, `wait`, `check`, `delete_key`, `num_keys` and `compare_set`.

    >>> import flambeau as torch
    >>> store = torch.distributed.HashStore()
    >>> store.set("key", "value"); store.get("key")
    b'value'
    """

    _timeout = DEFAULT_TIMEOUT

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait for a key."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` wait for a key.

        Args:
            timeout: the duration.
        """
        self._timeout = timeout

    def _missing(self, name: str) -> Any:
        raise RuntimeError(f'Not implemented. Tried to call pure virtual function "::c10d::Store::{name}"')

    def set(self, key: str, value: str | bytes) -> None:
        """Set the value of a key."""
        self._missing("set")

    def get(self, key: str) -> bytes:
        """Return the value of a key; wait until there is one."""
        return self._missing("get")

    def add(self, key: str, amount: int) -> int:
        """Add to a counter, which starts at 0; its new value."""
        return self._missing("add")

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys have values."""
        return self._missing("check")

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys have values."""
        self._missing("wait")

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Replace a value if it is the expected one; the value after.

        A key without a value gets one if the expected one is empty.
        """
        return self._missing("compareSet")

    def delete_key(self, key: str) -> bool:
        """Delete a key; whether it had a value."""
        return self._missing("deleteKey")

    def num_keys(self) -> int:
        """Return the number of keys."""
        return self._missing("getNumKeys")

    def list_keys(self) -> list[str]:
        """Return all keys."""
        raise NotImplementedError("listKeys support is not implemented.")

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` take one step each."""
        return False

    def append(self, key: str, value: str | bytes) -> None:
        """Append to a value; a key without one gets it."""
        old = self.compare_set(key, b"", value)
        while True:  # another process may append between the two steps
            if old == as_bytes(value) and self.compare_set(key, b"", value) == old:
                return
            new = old + as_bytes(value)
            now = self.compare_set(key, old, new)
            if now == new:
                return
            old = now

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return the values of several keys; wait until all have one."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set the values of several keys."""
        for key, value in zip(keys, values, strict=False):
            self.set(key, value)

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Append a value to a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a queue; wait for one if `block`."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_len(self, key: str) -> int:
        """Return the number of values in a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until `world_size` processes have called this.

        Args:
            key: the barrier's name.
            world_size: the number of processes.
            timeout: how long to wait.
        """
        if self.add(key, 1) == world_size:
            self.set(f"{key}/last_member", "1")
        self.wait([f"{key}/last_member"], timeout or self._timeout)

    def clone(self) -> Store:
        """Return another client of the same store, which threads use independently."""
        return self


__all__ = ["DEFAULT_TIMEOUT", "Store", "as_bytes", "checked_text", "milliseconds"]
