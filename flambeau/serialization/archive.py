"""Zip archives of checkpoints: the writer and the reader of uncompressed records that are aligned to 64 bytes.

The writer only appends, so that any object with `write` is sufficient, and produces the byte layout of PyTorch's
writer: the offset of each storage follows from the sizes. The reader accepts any zip file with all records in one
folder.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import Any

import numpy as np

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")  # header of a record, before its name
_CENTRAL_ENTRY = struct.Struct("<4s6H3I5H2I")  # its entry in the central directory
_ZIP64_END = struct.Struct("<4sQ2H2I4Q")
_ZIP64_LOCATOR = struct.Struct("<4sIQI")
_END = struct.Struct("<4s4H2IH")
_MAX32, _MAX16 = 0xFFFFFFFF, 0xFFFF
_DATA_DESCRIPTOR, _UTF8 = 0x0008, 0x0800

_CORRUPT = (" This is an internal miniz error. If you are seeing this error, there is a high likelihood that your "
            "checkpoint file is corrupted. This can happen if the checkpoint was not saved properly, was transferred "
            "incorrectly, or the file was modified after saving.")
_VERSION = b"3\n"
_MIN_VERSION, _MAX_VERSION = 1, 10


class ArchiveWriter:
    """Appends records to a file.

    Args:
        file: file object to write to, at its current position.
        folder: folder of all records in the archive.
        alignment: alignment of each record's data, in bytes.
        checksums: whether to compute CRC-32 checksums.
    """

    def __init__(self, file: Any, folder: str, alignment: int = 64, checksums: bool = True) -> None:
        self._file, self._folder, self._alignment, self._checksums = file, folder, alignment, checksums
        self._position = 0
        self._entries: list[tuple[bytes, int, int, int]] = []  # name, checksum, size, offset of the header
        self._id_hash = hashlib.blake2b(digest_size=16)

    def record(self, name: str, data: Any) -> None:
        """Append a record."""
        self._begin(name, len(data))
        self._write(data)
        self._end(name, len(data), zlib.crc32(data) if self._checksums else 0)

    def reserve(self, name: str, size: int) -> None:
        """Append a record of `size` zero bytes, to be filled by the caller later."""
        self._begin(name, size)
        zeros = bytes(min(size, 1 << 20))
        for start in range(0, size, len(zeros) or 1):
            self._write(zeros[:size - start])
        self._end(name, size, 0)

    def close(self) -> None:
        """Append the version, the serialization id and the central directory."""
        self.record("version", _VERSION)
        digest = self._id_hash.digest()
        self.record(".data/serialization_id", b"".join(b"%020d" % int.from_bytes(digest[i:i + 8], "little")
                                                       for i in (0, 8)))
        start = self._position
        for name, checksum, size, header in self._entries:
            extra = _zip64(size, header)
            size32 = min(size, _MAX32)
            self._write(_CENTRAL_ENTRY.pack(b"PK\1\2", 0, 0, _flags(size), 0, 0, 0, checksum, size32, size32, len(name),
                                            len(extra), 0, 0, 0, 0, min(header, _MAX32)) + name + extra)
        count, length, end = len(self._entries), self._position - start, self._position
        self._write(_ZIP64_END.pack(b"PK\6\6", 44, 0x031E, 45, 0, 0, count, count, length, start))
        self._write(_ZIP64_LOCATOR.pack(b"PK\6\7", 0, end, 1))
        self._write(_END.pack(b"PK\5\6", 0, 0, min(count, _MAX16), min(count, _MAX16), min(length, _MAX32),
                              min(start, _MAX32), 0))

    def _begin(self, name: str, size: int) -> None:
        path = f"{self._folder}/{name}".encode()
        extra = _zip64(size, self._position)
        before = self._position + _LOCAL_HEADER.size + len(path) + len(extra) + 4
        padding = -before % self._alignment
        extra += b"FB" + struct.pack("<H", padding) + b"Z" * padding
        self._entries.append((path, 0, size, self._position))
        header = _LOCAL_HEADER.pack(b"PK\3\4", 0, _flags(size), 0, 0, 0, 0, 0, 0, len(path), len(extra))
        self._write(header + path + extra)

    def _end(self, name: str, size: int, checksum: int) -> None:
        path, _, _, header = self._entries[-1]
        self._entries[-1] = path, checksum, size, header
        self._id_hash.update(b"%s %d\n" % (name.encode(), checksum))
        if size:
            fields = "<4sIQQ" if _zip64(size, header) else "<4sIII"
            self._write(struct.pack(fields, b"PK\7\x08", checksum, size, size))

    def _write(self, data: Any) -> None:
        self._file.write(data)
        self._position += len(data)


def _flags(size: int) -> int:
    return _UTF8 | _DATA_DESCRIPTOR if size else _UTF8


def _zip64(size: int, header: int) -> bytes:
    """The zip64 extra field, with the size and the offset that exceed 32 bits; empty if none does."""
    fields = [*([size, size] if size >= _MAX32 else []), *([header] if header >= _MAX32 else [])]
    return struct.pack(f"<HH{len(fields)}Q", 1, 8 * len(fields), *fields) if fields else b""


class ArchiveReader:
    """Reads records from a file.

    Raises:
        RuntimeError: the file is not a complete archive of a supported version (PyTorch's messages).
    """

    def __init__(self, file: Any) -> None:
        from zipfile import BadZipFile, ZipFile

        self._file = file
        try:
            self._zip = ZipFile(file)
        except BadZipFile:
            reason = "not a ZIP archive" if file.seek(0, 2) < _END.size else "failed finding central directory"
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: {reason}.{_CORRUPT}") from None
        self._entries = {entry.filename: entry for entry in self._zip.infolist()}
        if not self._entries:
            raise RuntimeError("[enforce fail at inline_container.cc:174] . archive does not contain any files")
        first = next(iter(self._entries))
        self._folder, slash, _ = first.partition("/")
        if not slash:
            raise RuntimeError("[enforce fail at inline_container.cc:180] . file in archive is not in a "
                               f"subdirectory: {first}")
        self._check_version()

    def _check_version(self) -> None:
        name = next((name for name in (".data/version", "version") if self.has(name)), None)
        if name is None:
            raise RuntimeError('Expected hasRecord("version") to be true, but got false.  (Could this error message '
                               "be improved?  If so, please report an enhancement request to PyTorch.)")
        version = int(self.record(name))
        if version < _MIN_VERSION:
            raise RuntimeError("[enforce fail at inline_container.cc:222] . Attempted to read a PyTorch file with "
                               f"version {version}, but the minimum supported version for reading is {_MIN_VERSION}. "
                               "Your PyTorch script module file is too old. Please regenerate it with latest version "
                               "of PyTorch to mitigate this issue.")
        if version > _MAX_VERSION:
            raise RuntimeError("[enforce fail at inline_container.cc:230] . Attempted to read a PyTorch file with "
                               f"version {version}, but the maximum supported version for reading is {_MAX_VERSION}. "
                               "The version of your PyTorch installation may be too old, please upgrade PyTorch to "
                               "latest version to mitigate this issue.")

    def has(self, name: str) -> bool:
        """Whether a record exists."""
        return f"{self._folder}/{name}" in self._entries

    def names(self) -> list[str]:
        """The names of all records."""
        return [name.partition("/")[2] for name in self._entries]

    def record(self, name: str) -> bytes:
        """The bytes of a record."""
        return self.read(name, np.empty(self._entry(name).file_size, np.uint8)).tobytes()

    def size(self, name: str) -> int:
        """The size of a record in bytes."""
        return self._entry(name).file_size

    def offset(self, name: str) -> int:
        """The offset of a record's data in the file.

        Raises:
            RuntimeError: the record is compressed, or its header is truncated.
        """
        entry = self._entry(name)
        if entry.compress_type:
            raise RuntimeError(f"the record {name} is compressed: it can be read, but not mapped")
        self._file.seek(entry.header_offset)
        header = self._file.read(_LOCAL_HEADER.size)
        if len(header) < _LOCAL_HEADER.size:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: file read failed.{_CORRUPT}")
        *_, name_length, extra_length = _LOCAL_HEADER.unpack(header)
        return entry.header_offset + _LOCAL_HEADER.size + name_length + extra_length

    def read(self, name: str, out: np.ndarray) -> np.ndarray:
        """Read a record into a contiguous array of the same number of bytes; return the array."""
        entry = self._entry(name)
        if not out.nbytes:
            return out
        buffer = out.view(np.uint8).data
        if entry.compress_type:
            buffer[:] = self._zip.read(entry)
            return out
        self._file.seek(self.offset(name))
        if read_fully(self._file, buffer) < len(buffer):
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: file read failed.{_CORRUPT}")
        return out

    def _entry(self, name: str) -> Any:
        entry = self._entries.get(f"{self._folder}/{name}")
        if entry is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found.{_CORRUPT}")
        return entry


def read_fully(file: Any, buffer: memoryview) -> int:
    """Read until `buffer` is full or the file ends; return the number of bytes read."""
    done = 0
    read_into = getattr(file, "readinto", None)
    while done < len(buffer):
        if read_into is not None:
            count = read_into(buffer[done:])
        else:
            chunk = file.read(len(buffer) - done)
            count = len(chunk)
            buffer[done:done + count] = chunk
        if not count:
            break
        done += count
    return done
