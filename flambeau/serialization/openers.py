"""Files and archives of `torch.save`, opened record by record: names of PyTorch that programs use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .archive import ArchiveWriter
from .file_reader import PyTorchFileReader
from .loading import _is_zip as _is_zipfile


class PyTorchFileWriter:
    """Writes the records of a file that `torch.load` reads.

    Args:
        file: a file opened for writing bytes.
        folder: the folder of all records in the archive.
    """

    def __init__(self, file: Any, folder: str = "archive") -> None:
        self._archive, self._folder = ArchiveWriter(file, folder), folder

    def archive_name(self) -> str:
        """The folder of all records."""
        return self._folder

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Write the first `size` bytes of bytes, of a text, or of a storage."""
        if isinstance(data, str):
            data = data.encode()
        elif not isinstance(data, (bytes, bytearray, memoryview)):  # a storage
            data = bytes(data)
        self._archive.record(name, memoryview(data)[:size])

    def write_record_metadata(self, name: str, size: int) -> None:
        """Write a record of `size` zero bytes, which the caller fills later."""
        self._archive.reserve(name, size)

    def write_end_of_file(self) -> None:
        """Write the table of the records."""
        self._archive.close()


@contextmanager
def _open_file_like(name_or_buffer: Any, mode: str) -> Iterator[Any]:
    """A file opened by its path, or one that is open: that one is flushed after writing, not closed.

    Raises:
        RuntimeError: the mode neither reads nor writes, for an open file.
    """
    if isinstance(name_or_buffer, (str, os.PathLike)):
        with open(name_or_buffer, mode) as file:
            yield file
        return
    if "w" not in mode and "r" not in mode:
        raise RuntimeError(f"Expected 'r' or 'w' in mode but got {mode}")
    yield name_or_buffer
    if "w" in mode:
        name_or_buffer.flush()


@contextmanager
def _open_zipfile_reader(name_or_buffer: Any) -> Iterator[PyTorchFileReader]:
    """The records of a file."""
    with _open_file_like(name_or_buffer, "rb") as file:
        yield PyTorchFileReader(file)


@contextmanager
def _open_zipfile_writer(name_or_buffer: Any) -> Iterator[PyTorchFileWriter]:
    """A new file of records, complete after the block."""
    by_path = isinstance(name_or_buffer, (str, os.PathLike))
    folder = os.path.splitext(os.path.basename(name_or_buffer))[0] if by_path else "archive"
    with _open_file_like(name_or_buffer, "wb") as file:
        writer = PyTorchFileWriter(file, folder)
        yield writer
        writer.write_end_of_file()


__all__ = ["PyTorchFileWriter", "_is_zipfile", "_open_file_like", "_open_zipfile_reader", "_open_zipfile_writer"]
