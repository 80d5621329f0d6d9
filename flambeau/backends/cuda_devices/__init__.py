"""The backend of CUDA devices: which runtime there is, and what it is asked for.

A runtime (`runtime.Runtime`) owns devices: their memory, streams, events and launches. `cupy_runtime` has the GPUs of
the machine, where CuPy is installed; `fake` has the host's memory, for tests. The rest of the package knows this module
only, and asks it with names of devices; `docs/internals/backends.md` has the rules.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any

from ... import devices

_UNKNOWN: Any = object()
#: [the runtime; None: there is none; _UNKNOWN: nobody has asked yet]
_runtime: list[Any] = [_UNKNOWN]
#: called with the new runtime, or None, whenever it changes
_observers: list[Callable[[Any], None]] = []


def current_runtime() -> Any:
    """The runtime of the CUDA devices; None where there is none."""
    found = _runtime[0]
    if found is _UNKNOWN:
        found = _runtime[0] = _detect()
        if found is not None:
            _notify(found)
    return found


def _detect() -> Any:
    """The runtime of the GPUs of this machine; None where there is no driver, no GPU or no CuPy.

    CuPy takes long to be imported, so the driver's library is looked for first.
    """
    if os.environ.get("FLAMBEAU_CUDA") == "0" or not _has_driver():
        return None
    try:
        import cupy
    except ImportError:
        return None
    if not cupy.cuda.is_available():
        return None
    from .cupy_runtime import CupyRuntime

    return CupyRuntime(cupy)


def _has_driver() -> bool:
    """Whether NVIDIA's driver can be loaded, which says nothing of GPUs."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def observe(function: Callable[[Any], None]) -> None:
    """Call a function with the runtime, now if it is known and there is one, and whenever it changes."""
    _observers.append(function)
    if _runtime[0] is not _UNKNOWN and _runtime[0] is not None:
        function(_runtime[0])


def install(new: Any) -> Any:
    """Make another runtime the one that CUDA devices belong to; the former one.

    Args:
        new: the runtime; None: the one that the machine has, if any.
    """
    before = _runtime[0]
    _runtime[0] = _detect() if new is None else new
    _notify(_runtime[0])
    return None if before is _UNKNOWN else before


def _notify(runtime: Any) -> None:
    for function in _observers:
        function(runtime)


def resolve(device: devices.device) -> devices.device | None:
    """A CUDA device with its index: the current device's where none is given; None without a runtime.

    Raises:
        AcceleratorError: there is no device of that index (PyTorch's text).
    """
    found = current_runtime()
    if found is None:
        return None
    index = found.current_device() if device.index is None else device.index
    found.check_index(index)
    return devices.cuda(index)


__all__ = ["current_runtime", "install", "observe", "resolve"]
