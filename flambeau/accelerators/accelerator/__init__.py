"""`torch.accelerator` where there is none."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ...devices import device as _device
from ..absent import refusing
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
    """Whether an accelerator is available: False."""
    return False


def device_count() -> int:
    """The number of accelerators: 0."""
    return 0


def current_accelerator(check_available: bool = False) -> _device | None:
    """The device of the accelerator: None."""
    return None


current_device_index = current_device_idx = current_stream = set_device_index = set_device_idx = set_stream = refusing(
    RuntimeError, _NONE)
synchronize = get_device_capability = refusing(RuntimeError, _NONE)


class device_index:
    """Select an accelerator by its index for a block; None selects nothing.

    Raises:
        RuntimeError: an index, on entry.
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            raise RuntimeError(_NONE)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        return None


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
