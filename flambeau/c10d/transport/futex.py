"""Waiting for a word of shared memory to change: Linux's futex, which C libraries only offer as a system call."""

from __future__ import annotations

import ctypes
import platform
import sys

_NUMBER = 202  # of the system call on x86-64
_WAIT, _WAKE = 0, 1
_ALL = 0x7FFFFFFF


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def available() -> bool:
    """Whether this machine has futexes, and stores that other cores see in the order of the program (x86-64)."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def _system_call() -> ctypes._NamedFuncPointer | None:
    if not available():
        return None
    call = ctypes.CDLL(None).syscall
    call.argtypes = (ctypes.c_long, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
    call.restype = ctypes.c_long
    return call


_call = _system_call()


def wait(address: int, seen: int, seconds: float) -> None:
    """Return when the 32-bit word at an address is woken, or is not `seen` any more, or after some seconds.

    Other threads run meanwhile.
    """
    assert _call is not None
    whole = int(seconds)
    timeout = _Timespec(whole, int((seconds - whole) * 1e9))
    _call(_NUMBER, address, _WAIT, seen, ctypes.byref(timeout))


def wake(address: int) -> None:
    """Wake all threads, of all processes, that wait for the word at an address."""
    assert _call is not None
    _call(_NUMBER, address, _WAKE, _ALL, None)


__all__ = ["available", "wait", "wake"]
