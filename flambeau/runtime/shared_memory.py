"""Memory shared between processes: files in memory, mapped into each process that opens them.

An anonymous file (`memfd_create`, or an unlinked POSIX object) is passed on as a file descriptor. A named object is
passed on by its name; its first bytes count the processes and messages that refer to it, and the last one unlinks it.
What killed processes leave is unlinked by the resource tracker of `multiprocessing`.

`create` and `open_*` return arrays of bytes. An array keeps its mapping alive: the mapping is its `base`.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import sys
import threading
import weakref
from collections.abc import Hashable
from functools import cache
from typing import Any

import numpy as np

#: the bytes before the data of a named object: the reference count, padded to a cache line
HEADER = 64

_READ_WRITE, _MAP_SHARED = 3, 1
#: maps all pages at once, for mappings of at most so many bytes: a page fault takes longer than filling its page
_MAP_POPULATE = 0x8000 if sys.platform == "linux" else 0
_POPULATED = 1 << 26
_FAILED = ctypes.c_void_p(-1).value
_lock = threading.RLock()
_count = 0

#: how tensors are passed to other processes: by descriptors of anonymous files, or by names
STRATEGIES = {"file_system"} if sys.platform in ("darwin", "win32") else {"file_descriptor", "file_system"}
_strategy = "file_system" if sys.platform in ("darwin", "win32") else "file_descriptor"

#: the arrays of this process by the identity of their file or their name
_arrays: weakref.WeakValueDictionary[Hashable, np.ndarray] = weakref.WeakValueDictionary()
_named: weakref.WeakSet[Mapping] = weakref.WeakSet()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lock._at_fork_reinit)  # type: ignore[attr-defined]


def get_strategy() -> str:
    """Return the current strategy, one of `STRATEGIES`."""
    return _strategy


def set_strategy(strategy: str) -> None:
    """Set the strategy of this process and of processes forked from it."""
    global _strategy
    _strategy = strategy
    if strategy == "file_system":
        start_tracker()


@cache
def _system() -> Any:
    system = ctypes.CDLL(None, use_errno=True)
    system.mmap.restype = ctypes.c_void_p
    system.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    system.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return system


class Mapping:
    """A shared mapping of a file; it is removed when its array is.

    Attributes:
        fd: the descriptor of the file.
        size: the bytes of data.
        name: the name of the object; None for an anonymous file.
    """

    def __init__(self, fd: int, size: int, name: str | None = None) -> None:
        self.fd, self.size, self.name = fd, size, name
        self._munmap, self._close = _system().munmap, os.close
        flags = _MAP_SHARED | _MAP_POPULATE if size <= _POPULATED else _MAP_SHARED
        self._start = _system().mmap(None, self._length, _READ_WRITE, flags, fd, 0)
        if self._start == _FAILED:
            self._start = None
            number = ctypes.get_errno()
            raise RuntimeError(f"unable to mmap {size} bytes from file <{name or 'filename not specified'}>: "
                               f"{os.strerror(number)} ({number})")
        if name is not None:
            self._process = os.getpid()
            _named.add(self)

    @property
    def _length(self) -> int:
        return self.size + HEADER if self.name is not None else max(1, self.size)  # nothing cannot be mapped

    @property
    def __array_interface__(self) -> dict[str, Any]:
        start = self._start + (HEADER if self.name is not None else 0)
        return {"shape": (self.size,), "typestr": "|u1", "data": (start, False), "version": 3}

    def add_references(self, count: int) -> None:
        """Change the reference count of a named object, and unlink it at 0."""
        import fcntl

        with _lock:
            fcntl.lockf(self.fd, fcntl.LOCK_EX)
            try:
                counter = ctypes.c_int64.from_address(self._start)
                counter.value += count
                left = counter.value
            finally:
                fcntl.lockf(self.fd, fcntl.LOCK_UN)
        if left == 0:
            _unlink(self.name or "")

    def release(self) -> None:
        """Drop this process's reference to a named object, before the process exits."""
        if self.name is not None and self._process == os.getpid():  # a forked child has inherited it uncounted
            self._process = -1
            self.add_references(-1)

    def _free(self) -> None:
        if getattr(self, "_start", None) is not None:
            self.release()
            length = self._length
            start, self._start = self._start, None
            self._munmap(start, length)
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            self._close(fd)

    def __del__(self) -> None:
        try:
            self._free()
        except KeyboardInterrupt:  # Python drops what a destructor raises: a batch that is freed would swallow Ctrl-C
            self._free()
            _thread.start_new_thread(_thread.interrupt_main, ())  # runs once the destructor has returned


# ----- creation ----------------------------------------------------------------------------


def create(size: int, named: bool = False) -> np.ndarray:
    """Return `size` zero bytes in shared memory.

    Raises:
        RuntimeError: the system refuses.
    """
    name = None
    try:
        if named:
            fd, name = _create_object()
        else:
            fd = _create_anonymous()
        os.ftruncate(fd, size + HEADER if named else max(1, size))
    except OSError as error:
        raise RuntimeError(f"unable to allocate {size} bytes of shared memory: {error.strerror} "
                           f"({error.errno})") from error
    mapping = Mapping(fd, size, name)
    if name is not None:
        mapping.add_references(1)
    return _remember(mapping)


def _create_anonymous() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("flambeau")
    fd, name = _create_object(tracked=False)
    _unlink(name, tracked=False)
    return fd


def _new_name() -> str:
    global _count
    _count += 1
    return f"/torch_{os.getpid()}_{int.from_bytes(os.urandom(4))}_{_count}"


def _create_object(tracked: bool = True) -> tuple[int, str]:
    import _posixshmem

    name = _new_name()
    fd = _posixshmem.shm_open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode=0o600)
    if tracked:
        _finalize_at_exit()
        _tracker().register(name, "shared_memory")
    return fd, name


def _unlink(name: str, tracked: bool = True) -> None:
    import _posixshmem

    try:
        _posixshmem.shm_unlink(name)
    except FileNotFoundError:
        return
    if tracked:
        _tracker().unregister(name, "shared_memory")


def _tracker() -> Any:
    from multiprocessing import resource_tracker

    return resource_tracker


def start_tracker() -> None:
    """Start the process that unlinks what killed processes leave, so that children inherit it."""
    if sys.platform != "win32":
        _tracker().ensure_running()


@cache
def _finalize_at_exit() -> None:
    """Release named objects when a process exits; `multiprocessing` ends its processes without destructors."""
    from multiprocessing import util

    def again(_: Any) -> None:
        util.Finalize(None, _release_all, exitpriority=-100)  # a forked child starts without finalizers

    util.Finalize(None, _release_all, exitpriority=-100)
    util.register_after_fork(_release_all, again)


def _release_all() -> None:
    for mapping in list(_named):
        mapping.release()


# ----- lookup ------------------------------------------------------------------------------


def identity(fd: int) -> tuple[int, int]:
    """Return what identifies the file of a descriptor: its inode and device."""
    status = os.fstat(fd)
    return status.st_ino, status.st_dev


def _remember(mapping: Mapping) -> np.ndarray:
    array = np.asarray(mapping)
    with _lock:
        _arrays[mapping.name or identity(mapping.fd)] = array
    return array


def open_descriptor(fd: int, size: int) -> np.ndarray:
    """Return the memory of an anonymous file: the same array for the same file. The descriptor is duplicated."""
    with _lock:
        array = _arrays.get(identity(fd))
        return array if array is not None else _remember(Mapping(os.dup(fd), size))


def open_in_process(pid: int, fd: int, file: tuple[int, int], size: int) -> np.ndarray:
    """Return the memory of an anonymous file that another process has open: the same array for the same file.

    Args:
        pid, fd: the process, and its descriptor, which it must keep open until this function has returned.
        file: what `identity(fd)` is there.

    Raises:
        OSError: the process has ended, or its descriptors cannot be read.
    """
    with _lock:
        array = _arrays.get(file)
        if array is not None:
            return array
        copy = os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR)
        if identity(copy) != file:
            os.close(copy)
            raise FileNotFoundError(f"process {pid} has closed its descriptor {fd}, or is another one")
        return _remember(Mapping(copy, size))


def has_readable_descriptors(pid: int) -> bool:
    """Whether this process may open another one's descriptors (`open_in_process`)."""
    try:
        return bool(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


def open_name(name: str, size: int) -> np.ndarray:
    """Return the memory of a named object: the same array for the same name.

    Raises:
        RuntimeError: there is no such object.
    """
    import _posixshmem

    with _lock:
        array = _arrays.get(name)
        if array is not None:
            return array
        try:
            fd = _posixshmem.shm_open(name, os.O_RDWR, mode=0o600)
        except OSError as error:
            raise RuntimeError(f"unable to open shared memory object <{name}> in read-write mode: {error.strerror} "
                               f"({error.errno})") from error
        mapping = Mapping(fd, size, name)
        _finalize_at_exit()
        mapping.add_references(1)
        return _remember(mapping)


def mapping_of(array: np.ndarray) -> Mapping | None:
    """Return the mapping of an array that owns its memory; None if that is not shared."""
    base = array.base
    return base if isinstance(base, Mapping) else None
