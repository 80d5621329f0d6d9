"""The archive: a zip file of uncompressed records, each beginning at a multiple of 64 bytes.

The writer only ever appends, so that anything with a `write` will do, and lays records out byte for
byte as PyTorch's does: who knows the sizes can compute where each storage lies. The reader takes any
zip file that keeps its records in one folder.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import Any

import numpy as np

_LOCAL = struct.Struct("<4s5H3I2H")  # a record's header, before its name
_CENTRAL = struct.Struct("<4s6H3I5H2I")  # its entry in the directory at the end
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR64 = struct.Struct("<4sIQI")
_END = struct.Struct("<4s4H2IH")
_MAX32, _MAX16 = 0xFFFFFFFF, 0xFFFF
_SIZES_FOLLOW, _UTF8 = 0x0008, 0x0800

_DAMAGED = (" This is an internal miniz error. If you are seeing this error, there is a high likelihood that your "
            "checkpoint file is corrupted. This can happen if the checkpoint was not saved properly, was transferred "
            "incorrectly, or the file was modified after saving.")
_VERSION = b"3\n"
_OLDEST, _NEWEST = 1, 10


class ArchiveWriter:
    """Appends records to a file.

    Args:
        file: what the archive is written to, from where it stands.
        folder: the folder that all records lie in.
        alignment: what a record's first byte is a multiple of.
        checksums: whether to compute them.
    """

    def __init__(self, file: Any, folder: str, alignment: int = 64, checksums: bool = True) -> None:
        self._file, self._folder, self._alignment, self._checksums = file, folder, alignment, checksums
        self._position = 0
        self._entries: list[tuple[bytes, int, int, int]] = []  # name, checksum, size, where its header lies
        self._identity = hashlib.blake2b(digest_size=16)

    def record(self, name: str, data: Any) -> None:
        """Append a record of these bytes."""
        self._begin(name, len(data))
        self._write(data)
        self._end(name, len(data), zlib.crc32(data) if self._checksums else 0)

    def hole(self, name: str, size: int) -> None:
        """Append a record of `size` bytes that somebody else will fill."""
        self._begin(name, size)
        zeros = bytes(min(size, 1 << 20))
        for start in range(0, size, len(zeros) or 1):
            self._write(zeros[:size - start])
        self._end(name, size, 0)

    def close(self) -> None:
        """Append what every archive ends with: its version, its identity and the directory."""
        self.record("version", _VERSION)
        digest = self._identity.digest()
        self.record(".data/serialization_id", b"".join(b"%020d" % int.from_bytes(digest[i:i + 8], "little")
                                                       for i in (0, 8)))
        start = self._position
        for name, checksum, size, header in self._entries:
            extra = _zip64(size, header)
            shown = min(size, _MAX32)
            self._write(_CENTRAL.pack(b"PK\1\2", 0, 0, _flags(size), 0, 0, 0, checksum, shown, shown, len(name),
                                      len(extra), 0, 0, 0, 0, min(header, _MAX32)) + name + extra)
        count, length, end = len(self._entries), self._position - start, self._position
        self._write(_END64.pack(b"PK\6\6", 44, 0x031E, 45, 0, 0, count, count, length, start))
        self._write(_LOCATOR64.pack(b"PK\6\7", 0, end, 1))
        self._write(_END.pack(b"PK\5\6", 0, 0, min(count, _MAX16), min(count, _MAX16), min(length, _MAX32),
                              min(start, _MAX32), 0))

    def _begin(self, name: str, size: int) -> None:
        path = f"{self._folder}/{name}".encode()
        extra = _zip64(size, self._position)
        before = self._position + _LOCAL.size + len(path) + len(extra) + 4
        padding = -before % self._alignment
        extra += b"FB" + struct.pack("<H", padding) + b"Z" * padding
        self._entries.append((path, 0, size, self._position))
        self._write(_LOCAL.pack(b"PK\3\4", 0, _flags(size), 0, 0, 0, 0, 0, 0, len(path), len(extra)) + path + extra)

    def _end(self, name: str, size: int, checksum: int) -> None:
        path, _, _, header = self._entries[-1]
        self._entries[-1] = path, checksum, size, header
        self._identity.update(b"%s %d\n" % (name.encode(), checksum))
        if size:
            numbers = "<4sIQQ" if _zip64(size, header) else "<4sIII"
            self._write(struct.pack(numbers, b"PK\7\x08", checksum, size, size))

    def _write(self, data: Any) -> None:
        self._file.write(data)
        self._position += len(data)


def _flags(size: int) -> int:
    return _UTF8 | _SIZES_FOLLOW if size else _UTF8


def _zip64(size: int, header: int) -> bytes:
    """The extra field for numbers that 32 bits cannot hold."""
    numbers = [*([size, size] if size >= _MAX32 else []), *([header] if header >= _MAX32 else [])]
    return struct.pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *numbers) if numbers else b""


class ArchiveReader:
    """Reads records from a file.

    Raises:
        RuntimeError: it is no whole archive of a version that can be read (PyTorch's texts).
    """

    def __init__(self, file: Any) -> None:
        from zipfile import BadZipFile, ZipFile

        self._file = file
        try:
            self._zip = ZipFile(file)
        except BadZipFile:
            what = "not a ZIP archive" if file.seek(0, 2) < _END.size else "failed finding central directory"
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: {what}.{_DAMAGED}") from None
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
        if version < _OLDEST:
            raise RuntimeError("[enforce fail at inline_container.cc:222] . Attempted to read a PyTorch file with "
                               f"version {version}, but the minimum supported version for reading is {_OLDEST}. Your "
                               "PyTorch script module file is too old. Please regenerate it with latest version of "
                               "PyTorch to mitigate this issue.")
        if version > _NEWEST:
            raise RuntimeError("[enforce fail at inline_container.cc:230] . Attempted to read a PyTorch file with "
                               f"version {version}, but the maximum supported version for reading is {_NEWEST}. The "
                               "version of your PyTorch installation may be too old, please upgrade PyTorch to latest "
                               "version to mitigate this issue.")

    def has(self, name: str) -> bool:
        """Whether there is a record of this name."""
        return f"{self._folder}/{name}" in self._entries

    def record(self, name: str) -> bytes:
        """A record's bytes."""
        return self.read(name, np.empty(self._entry(name).file_size, np.uint8)).tobytes()

    def size(self, name: str) -> int:
        """A record's length in bytes."""
        return self._entry(name).file_size

    def offset(self, name: str) -> int:
        """Where in the file a record's bytes begin.

        Raises:
            RuntimeError: they are compressed.
        """
        entry = self._entry(name)
        if entry.compress_type:
            raise RuntimeError(f"the record {name} is compressed: it can be read, but not mapped")
        self._file.seek(entry.header_offset)
        header = self._file.read(_LOCAL.size)
        if len(header) < _LOCAL.size:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: file read failed.{_DAMAGED}")
        *_, name_length, extra_length = _LOCAL.unpack(header)
        return entry.header_offset + _LOCAL.size + name_length + extra_length

    def read(self, name: str, into: np.ndarray) -> np.ndarray:
        """A record's bytes, read into an array of its size (which need not be of bytes) and returned."""
        entry = self._entry(name)
        if not into.nbytes:
            return into
        room = into.view(np.uint8).data
        if entry.compress_type:
            room[:] = self._zip.read(entry)
            return into
        self._file.seek(self.offset(name))
        if fill(self._file, room) < len(room):
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: file read failed.{_DAMAGED}")
        return into

    def _entry(self, name: str) -> Any:
        found = self._entries.get(f"{self._folder}/{name}")
        if found is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found.{_DAMAGED}")
        return found


def fill(file: Any, room: memoryview) -> int:
    """Read from a file until `room` is full or the file at its end; gives how many bytes were read."""
    done = 0
    read_into = getattr(file, "readinto", None)
    while done < len(room):
        if read_into is not None:
            count = read_into(room[done:])
        else:
            piece = file.read(len(room) - done)
            count = len(piece)
            room[done:done + count] = piece
        if not count:
            break
        done += count
    return done
