"""`torch.PyTorchFileReader`: the records of a file of `torch.save`, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._tensor.tensor import Tensor, wrap
from .archive import ArchiveReader


class PyTorchFileReader:
    """The records of a file that `torch.save` wrote.

    Args:
        file: a path or a file opened for reading bytes.

    >>> import io
    >>> import flambeau as torch
    >>> file = io.BytesIO()
    >>> torch.save([1, 2], file)
    >>> torch.PyTorchFileReader(file).has_record("data.pkl")
    True
    """

    def __init__(self, file: Any) -> None:
        self._opened = open(file, "rb") if not hasattr(file, "read") else None  # noqa: SIM115  # until the reader dies
        self._archive = ArchiveReader(file if self._opened is None else self._opened)

    def has_record(self, name: str) -> bool:
        """Whether there is a record of a name."""
        return self._archive.has(name)

    def get_record(self, name: str) -> bytes:
        """The bytes of a record.

        Raises:
            RuntimeError: there is none of that name.
        """
        return self._archive.record(name)

    def get_record_offset(self, name: str) -> int:
        """The position of a record's bytes in the file."""
        return self._archive.offset(name)

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Tensor:
        """A record as a vector of a dtype.

        Args:
            numel: the number of bytes, or of elements of `dtype`.
        """
        data = np.frombuffer(self._archive.record(name), np.uint8).copy()
        return wrap(data.view(dtype.numpy))

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return self._archive.names()

    def __del__(self) -> None:
        if self._opened is not None:
            self._opened.close()


__all__ = ["PyTorchFileReader"]
