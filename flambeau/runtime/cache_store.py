"""The persistent cache: one folder on disk in which a process leaves what later processes need not compute again.

The folder (`FLAMBEAU_CACHE_DIR`, else `flambeau` in the user's cache folder) has one subfolder for each `Cache`:

    code          object code of generated functions (`runtime.compilation`)
    plans         execution plans of graphs (`ir.schedule.plan_cache`)
    programs      compiled programs with their guards (`compiler.cache.program_cache`)
    traces        what runs of traced functions had in common (`compiler.cache.trace_cache`)
    measurements  thresholds and peak rates measured on this machine, and the processor as LLVM describes it

An entry is a file named by a hash (`Cache.key`) of everything that its content depends on, so nothing is ever stale: an
entry whose inputs have changed is not found again, and is evicted in time. Every key covers the store's format, the
cache's format, the package's version, and the sources on which the content depends. Callers add the versions of NumPy,
Python and LLVM, the processor's features and the number of threads where the content depends on them.

A file begins with a magic number and the SHA-256 digest of the payload. It is written under a temporary name and then
renamed, so readers see complete entries while several processes write. A truncated or damaged file is deleted and
counts as missing. A folder that cannot be read or written costs time and breaks nothing.

The folder's size is limited (`FLAMBEAU_CACHE_LIMIT`, 2 GiB by default). The first write of a process checks the size if
no process did in the past hour, and evicts the least recently used entries beyond the limit. Reading an entry renews
its modification time, which is its time of last use.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..version import __version__

_MAGIC = b"flambeau cache 1\n"
_HEADER = len(_MAGIC) + hashlib.sha256().digest_size
_PACKAGE = Path(__file__).parents[1]

#: bytes that all entries together may take, where `FLAMBEAU_CACHE_LIMIT` does not say otherwise
DEFAULT_LIMIT = 2 << 30
#: the part of the limit that eviction leaves
LOW_WATER = 0.75
#: seconds between two checks of the size, by any process: listing 10,000 entries takes about 0.1 s
CHECK_INTERVAL = 3600.0
#: seconds for which an entry's time of last use is not renewed
USE_RESOLUTION = 3600.0
#: its modification time says when the size was last checked
_CHECK_STAMP = ".checked"
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

_size_checked = False
_size_check = threading.Lock()


class Cache:
    """The entries of one kind.

    Args:
        name: the subfolder.
        format: the version of what payloads look like and mean.
        sources: the subpackages whose source text entries depend on; None: all of the package, by sizes and times
            of its files.
    """

    def __init__(self, name: str, format: int, sources: tuple[str, ...] | None = ()) -> None:
        self.name, self.format, self.sources = name, format, sources
        self._seed: Any = None

    def __repr__(self) -> str:
        return f"Cache({self.name!r}, {self.format})"

    def folder(self) -> str:
        """The folder of the entries, which need not exist."""
        return os.path.join(root(), self.name)

    def key(self, *parts: str) -> str:
        """The name of the entry whose content depends on these texts, the versions and the sources."""
        seed = self._seed
        if seed is None:
            hashes = [package_stamp()] if self.sources is None else map(source_hash, self.sources)
            seed = self._seed = _hash_of(_MAGIC.decode(), self.name, str(self.format), __version__, *hashes)
        return _hash_of(*parts, start=seed).hexdigest()[:40]

    def read(self, name: str) -> bytes | None:
        """The payload of an entry; None if there is none or it is damaged."""
        path = os.path.join(self.folder(), name)
        try:
            with open(path, "rb") as file:
                content = file.read()
                last_use = os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        payload = content[_HEADER:]
        if content[:_HEADER] != _MAGIC + hashlib.sha256(payload).digest():
            self.discard(name)
            return None
        if abs(time.time() - last_use) > USE_RESOLUTION:
            try:
                os.utime(path)
            except OSError:
                pass
        return payload

    def write(self, name: str, payload: bytes) -> None:
        """Write an entry, or replace it; do nothing where the folder cannot be written or the limit is 0."""
        import tempfile

        if not limit():
            return
        folder = self.folder()
        temporary = None
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            _check_size()
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=".", suffix=".part")
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, os.path.join(folder, name))
        except OSError:
            if temporary is not None:
                _unlink(temporary)

    def discard(self, name: str) -> None:
        """Delete an entry, if it is there."""
        _unlink(os.path.join(self.folder(), name))

    def entries(self) -> Iterator[Entry]:
        """The files of the cache, temporary ones included, in no order."""
        try:
            with os.scandir(self.folder()) as files:
                for file in files:
                    try:
                        status = file.stat(follow_symlinks=False)
                    except OSError:  # another process deleted it
                        continue
                    yield Entry(status.st_mtime, status.st_size, file.path)
        except OSError:
            return

    def clear(self) -> int:
        """Delete all entries; the number of files deleted."""
        count = sum(_unlink(entry.path) for entry in self.entries())
        try:
            os.rmdir(self.folder())
        except OSError:
            pass
        return count


class Entry(NamedTuple):
    """A file of the store.

    Attributes:
        last_use: seconds since the epoch, of the last use or the writing; exact to `USE_RESOLUTION`.
        size: bytes.
        path: where it is.
    """

    last_use: float
    size: int
    path: str


CODE = Cache("code", 1, ("runtime", "codegen"))
PLANS = Cache("plans", 1, ("runtime", "codegen", "ir"))
PROGRAMS = Cache("programs", 4, None)
TRACES = Cache("traces", 1)
MEASUREMENTS = Cache("measurements", 1)
#: all caches, by their names
CACHES = {each.name: each for each in (CODE, PLANS, PROGRAMS, TRACES, MEASUREMENTS)}


# ----- where it is, how large it may be ------------------------------------------------------


def root() -> str:
    """The folder of the store, which need not exist.

    >>> from pathlib import Path
    >>> from flambeau.runtime import cache_store
    >>> Path(cache_store.CODE.folder()).parent == Path(cache_store.root())
    True
    """
    return os.environ.get("FLAMBEAU_CACHE_DIR") or _default_root()


def _default_root() -> str:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "flambeau")


def limit() -> int:
    """The bytes that all entries together may take; 0: nothing is written."""
    return _parse_limit(os.environ.get("FLAMBEAU_CACHE_LIMIT", ""))


@cache
def _parse_limit(text: str) -> int:
    """A number of bytes: "1500000", "500M", "2G"; the default if the text is empty or no such number.

    >>> _parse_limit("500M") == 500 << 20
    True
    """
    number = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = _UNITS.get(number[-1:], 1)
    try:
        return max(0, int(float(number if unit == 1 else number[:-1]) * unit)) if number else DEFAULT_LIMIT
    except (ValueError, OverflowError):
        warnings.warn(f"FLAMBEAU_CACHE_LIMIT={text} is no number of bytes such as 500M or 2G: the limit is "
                      f"{DEFAULT_LIMIT >> 30}G", RuntimeWarning, stacklevel=2)
        return DEFAULT_LIMIT


# ----- versions ------------------------------------------------------------------------------


def _hash_of(*parts: str, start: Any = None) -> Any:
    """A hash object of texts, each after its length; `start`: a hash object of what comes before them."""
    total = hashlib.sha256() if start is None else start.copy()
    for part in parts:
        encoded = part.encode()
        total.update(len(encoded).to_bytes(8, "little"))
        total.update(encoded)
    return total


def digest(*parts: str) -> str:
    """A hash of texts."""
    name: str = _hash_of(*parts).hexdigest()[:40]
    return name


@cache
def source_hash(subpackage: str) -> str:
    """A hash of the source text of a subpackage."""
    total = hashlib.sha256()
    for path in sorted((_PACKAGE / subpackage).rglob("*.py")):
        content = path.read_bytes()
        total.update(f"{path.relative_to(_PACKAGE)} {len(content)} ".encode())
        total.update(content)
    return total.hexdigest()


@cache
def package_stamp() -> str:
    """A hash of the names, sizes and modification times of the package's source files: faster than their text."""
    stamps = []
    stack = [str(_PACKAGE)]
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    stack.append(entry.path)
                elif entry.name.endswith(".py"):
                    status = entry.stat()
                    stamps.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
    return digest(*sorted(stamps))


# ----- eviction ------------------------------------------------------------------------------


def _check_size() -> None:
    """Once in a process, and once in `CHECK_INTERVAL` in all of them: evict what exceeds the limit."""
    global _size_checked
    if _size_checked:
        return
    with _size_check:
        if _size_checked:
            return
        _size_checked = True
    stamp = Path(root(), _CHECK_STAMP)
    try:
        if 0 <= time.time() - stamp.stat().st_mtime < CHECK_INTERVAL:
            return
    except OSError:
        pass
    stamp.touch(mode=0o600)
    evict()


def evict() -> int:
    """Delete the least recently used entries, if all together exceed the limit; the bytes deleted.

    Temporary files that a process left when it was killed are deleted, too.
    """
    entries = []
    deleted = 0
    now = time.time()
    for each in CACHES.values():
        for entry in each.entries():
            if os.path.basename(entry.path).startswith(".") and now - entry.last_use > CHECK_INTERVAL:
                deleted += entry.size * _unlink(entry.path)
            else:
                entries.append(entry)
    total = sum(entry.size for entry in entries)
    if total > limit():
        for entry in sorted(entries):
            if total <= limit() * LOW_WATER:
                break
            if _unlink(entry.path):
                total -= entry.size
                deleted += entry.size
    return deleted


def _unlink(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


# ----- inspection ----------------------------------------------------------------------------


class Summary(NamedTuple):
    """What a cache holds.

    Attributes:
        name: the cache.
        entries: how many there are.
        size: bytes of all.
        oldest, newest: the times of last use, in seconds since the epoch; None without entries.
    """

    name: str
    entries: int
    size: int
    oldest: float | None
    newest: float | None


def summaries() -> list[Summary]:
    """What each cache holds."""
    result = []
    for name, each in CACHES.items():
        entries = [entry for entry in each.entries() if not os.path.basename(entry.path).startswith(".")]
        times = [entry.last_use for entry in entries]
        result.append(Summary(name, len(entries), sum(entry.size for entry in entries), min(times, default=None),
                             max(times, default=None)))
    return result


def clear(name: str | None = None) -> int:
    """Delete the entries of a cache, or of all; the number of files deleted.

    Raises:
        KeyError: there is no such cache.
    """
    if name is not None:
        return CACHES[name].clear()
    count = sum(each.clear() for each in CACHES.values())
    _unlink(os.path.join(root(), _CHECK_STAMP))
    return count


__all__ = ["CACHES", "CODE", "MEASUREMENTS", "PLANS", "PROGRAMS", "TRACES", "Cache", "Entry", "Summary", "clear",
           "digest", "evict", "limit", "package_stamp", "root", "source_hash", "summaries"]
