"""Object code kept on disk, so that the next process compiles nothing.

Entries are files of one folder (`FLAMBEAU_CACHE_DIR`, else the user's folder for caches), named by the hash of
everything the code depends on. An entry is written under another name and then renamed: readers see whole entries,
and processes that write the same one do no harm. It begins with a hash of what follows, so that a damaged one
is known, thrown away, and made again. A folder that cannot be written costs the next process some time, no more.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path

_MAGIC = b"flambeau object code 1\n"
_DIGEST = hashlib.sha256().digest_size

#: the folder's size is brought back to half of this many bytes when it exceeds it
LIMIT = 256 << 20
#: seconds after which it is looked at again, by whichever process writes then: some 10,000 entries take 0.1 s
EVERY = 3600

_pruned = False


def folder() -> Path:
    """Where entries are kept.

    >>> from flambeau.runtime import object_cache as cache
    >>> cache.folder().name
    'jit'
    """
    asked = os.environ.get("FLAMBEAU_CACHE_DIR")
    if asked:
        return Path(asked) / "jit"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "flambeau" / "jit"


def key(*parts: str) -> str:
    """The name of the entry for code that depends on these."""
    total = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        total.update(len(encoded).to_bytes(8, "little"))
        total.update(encoded)
    return total.hexdigest()[:40]


def read(name: str) -> bytes | None:
    """The entry of this name, or None where there is none that is whole."""
    path = folder() / name
    try:
        content = path.read_bytes()
    except OSError:
        return None
    start = len(_MAGIC) + _DIGEST
    payload = content[start:]
    if content[:len(_MAGIC)] == _MAGIC and content[len(_MAGIC):start] == hashlib.sha256(payload).digest():
        return payload
    discard(name)
    return None


def discard(name: str) -> None:
    """Take an entry away."""
    try:
        (folder() / name).unlink()
    except OSError:
        pass


def write(name: str, payload: bytes) -> None:
    """Keep an entry, if the folder lets us."""
    import tempfile

    where = folder()
    temporary = None
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        _prune(where)
        handle, temporary = tempfile.mkstemp(dir=where, prefix=".", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
        os.replace(temporary, where / name)
    except OSError:
        if temporary is not None:
            try:
                os.unlink(temporary)
            except OSError:
                pass


def _prune(where: Path) -> None:
    """Now and then: if the folder has grown past LIMIT, its oldest entries go."""
    global _pruned
    if _pruned:
        return
    _pruned = True
    stamp = where.with_name(f"{where.name}.pruned")  # its age says when that was last done
    try:
        if 0 <= time.time() - stamp.stat().st_mtime < EVERY:
            return
    except OSError:
        pass
    stamp.touch(mode=0o600)
    entries = []
    with os.scandir(where) as found:
        for entry in found:
            try:
                status = entry.stat()
            except OSError:  # another process took it away
                continue
            entries.append((status.st_mtime, status.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    if total <= LIMIT:
        return
    for _, size, path in sorted(entries):
        if total <= LIMIT // 2:
            break
        try:
            os.unlink(path)
        except OSError:
            continue
        total -= size
