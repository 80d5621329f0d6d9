"""`torch.cpu`: the CPU as a device, with PyTorch's interface of streams, which have nothing to wait for."""

from __future__ import annotations

import importlib
import platform
from types import MappingProxyType
from typing import Any

from ...runtime.target import host


class Stream:
    """A queue of work: empty, as every call returns when its work is done.

    >>> import flambeau as torch
    >>> stream = torch.cpu.Stream()
    >>> stream.wait_stream(stream)
    """

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    def record_event(self) -> None:
        """Nothing to record."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""


class Event:
    """A mark in a queue: always reached.

    >>> import flambeau as torch
    >>> event = torch.cpu.Event()
    >>> event.record()
    >>> event.query()
    True
    """

    def query(self) -> bool:
        """Whether the work is done: True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Nothing to record."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""


_default_cpu_stream = Stream()
_current = [_default_cpu_stream]


class StreamContext:
    """Select a stream for a block; None selects nothing.

    >>> import flambeau as torch
    >>> with torch.cpu.StreamContext(torch.cpu.Stream()):
    ...     print(torch.ones(1))
    tensor([1.])
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.previous, _current[0] = _current[0], self.stream

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        if self.stream is not None:
            _current[0] = self.previous


def stream(stream: Any) -> StreamContext:
    """A context manager that selects a stream; None selects nothing.

    >>> import flambeau as torch
    >>> with torch.cpu.stream(torch.cpu.Stream()):
    ...     print(torch.ones(1))
    tensor([1.])
    """
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The selected stream.

    >>> import flambeau as torch
    >>> type(torch.cpu.current_stream()).__name__
    'Stream'
    """
    return _current[0]


def is_available() -> bool:
    """Whether the CPU is available: True.

    >>> import flambeau as torch
    >>> torch.cpu.is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """Whether the CPU is initialized: True.

    >>> import flambeau as torch
    >>> torch.cpu.is_initialized()
    True
    """
    return True


def device_count() -> int:
    """The number of CPUs, as devices: 1.

    >>> import flambeau as torch
    >>> torch.cpu.device_count()
    1
    """
    return 1


def current_device() -> str:
    """The current device: "cpu".

    >>> import flambeau as torch
    >>> torch.cpu.current_device()
    'cpu'
    """
    return "cpu"


def set_device(device: Any) -> None:
    """No effect: there is one CPU.

    >>> import flambeau as torch
    >>> torch.cpu.set_device(0)
    """


def synchronize(device: Any = None) -> None:
    """Nothing to wait for.

    >>> import flambeau as torch
    >>> torch.cpu.synchronize()
    """


def get_capabilities() -> MappingProxyType[str, Any]:
    """The processor's instruction sets, read-only: name -> whether it has it.

    >>> import flambeau as torch
    >>> all(isinstance(value, (bool, str, int)) for value in torch.cpu.get_capabilities().values())
    True
    """
    return MappingProxyType({"architecture": platform.machine(), **{
        name[1:]: name[0] == "+" for name in host().features.split(",") if name}})


def _has(name: str) -> bool:
    return f"+{name}" in host().features.split(",")


def _is_avx2_supported() -> bool:
    return _has("avx2")


def _is_avx512_supported() -> bool:
    return _has("avx512f")


def _is_avx512_bf16_supported() -> bool:
    return _has("avx512bf16")


def _is_vnni_supported() -> bool:
    return _has("avx512vnni")


def _is_amx_tile_supported() -> bool:
    return _has("amx-tile")


def _is_amx_fp16_supported() -> bool:
    return _has("amx-fp16")


def __getattr__(name: str) -> Any:
    if name == "amp":
        return importlib.import_module(f"{__name__}.amp")
    raise AttributeError(f"module 'torch.cpu' has no attribute '{name}'")


__all__ = ["Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count", "get_capabilities",
           "is_available", "is_initialized", "set_device", "stream", "synchronize"]
