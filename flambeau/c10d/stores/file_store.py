"""`FileStore`: a store in a file that processes of one machine, or of one shared file system, append to."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from .store import Store, as_bytes, checked_text, milliseconds

_LENGTHS = struct.Struct("<qq")  # of a key and its value; a value of length -1 deletes the key
_POLL = 0.01  # seconds between two looks at the file
_REFERENCES = "refcount/"  # the key that counts the stores of this file that are open


class FileStore(Store):
    """A store in a file; the last process that leaves it deletes the file.

    Args:
        file_name: the file, which is made if it does not exist.
        world_size: the number of processes; -1 if it is not known, then the file remains.

    >>> import os, tempfile, flambeau as torch
    >>> store = torch.distributed.FileStore(os.path.join(tempfile.mkdtemp(), "store"), 1)
    >>> store.set("key", "value"); store.get("key")
    b'value'
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self._path, self._world_size = os.fspath(file_name), world_size
        self._values: dict[str, bytes] = {}
        self._read_up_to = 0
        self._owner = os.getpid()
        self._open = True
        self.add(_REFERENCES, 1)

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Any]:
        """Open the file, alone, after what other processes appended was read."""
        with open(self._path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(self._read_up_to)
            data = file.read()
            position = 0
            while position < len(data):
                name, size = _LENGTHS.unpack_from(data, position)
                position += _LENGTHS.size
                key = data[position:position + name].decode()
                position += name
                if size < 0:
                    self._values.pop(key, None)
                else:
                    self._values[key] = data[position:position + size]
                    position += size
            self._read_up_to += position
            yield file

    def _append_record(self, file: Any, key: str, value: bytes | None) -> None:
        name = key.encode()
        record = _LENGTHS.pack(len(name), -1 if value is None else len(value)) + name + (value or b"")
        file.write(record)
        file.flush()
        self._read_up_to += len(record)
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value

    def _look(self, ready: Callable[[], bool], timeout: timedelta, message: Callable[[], str]) -> None:
        end = time.monotonic() + timeout.total_seconds()
        while True:
            with self._locked():
                if ready():
                    return
            if time.monotonic() >= end:
                raise RuntimeError(message())
            time.sleep(_POLL)

    def set(self, key: str, value: str | bytes) -> None:
        checked_text(self, "set", key, value)
        with self._locked() as file:
            self._append_record(file, key, as_bytes(value))

    def get(self, key: str) -> bytes:
        checked_text(self, "get", key)
        self._look(lambda: key in self._values, self._timeout,
                   lambda: f"Timeout waiting for key: {key} after {milliseconds(self._timeout)} ms")
        return self._values[key]

    def add(self, key: str, amount: int) -> int:
        with self._locked() as file:
            try:
                total = int(self._values.get(key, b"0")) + amount
            except ValueError:
                raise ValueError("stoll") from None
            self._append_record(file, key, str(total).encode())
            return total

    def check(self, keys: Sequence[str]) -> bool:
        with self._locked():
            return all(key in self._values for key in keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self._look(lambda: all(key in self._values for key in keys), self._timeout if timeout is None else timeout,
                   lambda: "Wait timeout")

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        with self._locked() as file:
            present, expected = self._values.get(key), as_bytes(expected_value)
            if present is None and expected:
                return expected
            if present is None or present == expected:
                self._append_record(file, key, as_bytes(desired_value))
            return self._values[key]

    def delete_key(self, key: str) -> bool:
        with self._locked() as file:
            present = key in self._values
            self._append_record(file, key, None)
            return present

    def num_keys(self) -> int:
        with self._locked():
            return len(self._values)

    def list_keys(self) -> list[str]:
        with self._locked():
            return list(self._values)

    def has_extended_api(self) -> bool:
        return True

    def append(self, key: str, value: str | bytes) -> None:
        with self._locked() as file:
            self._append_record(file, key, self._values.get(key, b"") + as_bytes(value))

    def clone(self) -> Store:
        other = FileStore(self._path, -1)
        other.set_timeout(self._timeout)
        return other

    def __del__(self) -> None:
        if not getattr(self, "_open", False) or os.getpid() != self._owner:
            return
        self._open = False
        with contextlib.suppress(Exception):  # `open` is gone at the interpreter's end
            if not os.path.exists(self._path):
                return
            left = self.add(_REFERENCES, -1)
            ended = self.add("cleanup/", 1) if self._world_size > 0 else 0
            if left == 0 and ended >= self._world_size > 0:
                os.unlink(self._path)


__all__ = ["FileStore"]
