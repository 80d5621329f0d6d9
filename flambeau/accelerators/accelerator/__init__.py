"""`torch.accelerator`: the CUDA devices, if there are any."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ... import dtypes
from ...backends.cuda_devices import current_runtime
from ...devices import device as _device
from . import graphs, memory
from .absence import NONE as _NONE
from .graphs import Graph
from .memory import (
    empty_cache,
    empty_host_cache,
    get_memory_info,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)


def is_available() -> bool:
    """Whether an accelerator, a CUDA device, is available.

    >>> import flambeau as torch
    >>> torch.accelerator.is_available()
    False
    """
    return current_runtime() is not None


def device_count() -> int:
    """The number of accelerators."""
    return 0 if current_runtime() is None else int(current_runtime().count)


def current_accelerator(check_available: bool = False) -> _device | None:
    """The device of the accelerator, without an index; None where there is none."""
    return None if current_runtime() is None else _device("cuda")


def _runtime() -> Any:
    """The runtime of the accelerator.

    Raises:
        RuntimeError: there is none (PyTorch's text).
    """
    found = current_runtime()
    if found is None:
        raise RuntimeError(_NONE)
    return found


def _index(device: Any) -> int:
    runtime = _runtime()
    if isinstance(device, (str, _device)):
        device = _device(device).index
    return int(runtime.current_device() if device is None else device)


def current_device_index() -> int:
    """The index of the current accelerator.

    Raises:
        RuntimeError: there is none.
    """
    return int(_runtime().current_device())


def set_device_index(device: Any, /) -> None:
    """Make an accelerator the current one.

    Raises:
        RuntimeError: there is none.
    """
    _runtime().set_device(_index(device))


def _cuda() -> Any:
    """`torch.cuda`."""
    import importlib

    _runtime()
    return importlib.import_module(f"{__name__.split('.')[0]}.cuda")


def current_stream(device: Any = None, /) -> Any:
    """The current stream of an accelerator.

    Raises:
        RuntimeError: there is none.
    """
    return _cuda().current_stream(_index(device))


def set_stream(stream: Any) -> None:
    """Make a stream the current one.

    Raises:
        RuntimeError: there is no accelerator.
    """
    _cuda().set_stream(stream)


def synchronize(device: Any = None, /) -> None:
    """Wait for all work of an accelerator.

    Raises:
        RuntimeError: there is none, or a launch has failed.
    """
    _runtime().synchronize(_index(device), None)


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """What an accelerator can compute with: its dtypes.

    Raises:
        RuntimeError: there is none.
    """
    _runtime()
    return {"supported_dtypes": {each for each in dtypes.ALL if each.itemsize and "uint1" not in each.name}}


current_device_idx, set_device_idx = current_device_index, set_device_index


class device_index:
    """Select an accelerator by its index for a block; None selects nothing.

    Raises:
        RuntimeError: an index, on entry, where there is no accelerator.
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            self._before = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if self.idx is not None:
            set_device_index(self._before)


def device_module(device: Any = None) -> Any:
    """The module of a device's type, `torch.cuda` of "cuda:0"; of no device, the CPU's.

    Raises:
        RuntimeError: an unknown type, or one without a module.

    >>> import flambeau as torch
    >>> torch.get_device_module("cpu").is_available()
    True
    """
    import importlib

    kind = "cpu" if device is None else _device(device).type
    package = __name__.split(".")[0]
    name = f"{package}.cuda" if kind == "cuda" else f"{package}.accelerators.{kind}"
    if kind not in ("cpu", "cuda", "xpu", "mps", "mtia"):
        raise RuntimeError(f"Invalid device module '{kind}', torch.{kind} is not a valid device module.")
    return importlib.import_module(name)


get_device_module = device_module

__all__ = ["Graph", "current_accelerator", "current_device_idx", "current_device_index", "current_stream",
           "device_count", "device_index", "device_module", "empty_cache", "empty_host_cache", "get_device_capability",
           "get_device_module", "get_memory_info", "graphs", "is_available", "max_memory_allocated",
           "max_memory_reserved", "memory", "memory_allocated", "memory_reserved", "memory_stats",
           "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx", "set_device_index",
           "set_stream", "synchronize"]
