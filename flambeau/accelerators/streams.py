"""`torch.Stream` and `torch.Event`: queues of work and marks in them. The CPU has one queue, and runs at once."""

from __future__ import annotations

from typing import Any

from ..devices import device as _device

_NO_IPC = "torch.Event ipc is not supported yet, please open an issue if you need this!"


class Stream:
    """A queue of work of a device. Work of the CPU is done when a call returns, so there is nothing to wait for.

    Args:
        device: the device; the CPU.

    >>> import flambeau as torch
    >>> torch.Stream(device="cpu").query()
    True
    """

    __module__ = "torch"
    __slots__ = ("__weakref__", "device", "device_index", "device_type", "stream_id")

    def __init__(self, device: Any = None, *, priority: int = 0, stream_id: int = 0, device_index: int = -1,
                 device_type: int = 0) -> None:
        self.device = _device("cpu" if device is None else device)
        if self.device.type != "cpu":
            raise RuntimeError(f"PyTorch is not linked with support for {self.device.type} devices")
        self.stream_id, self.device_index, self.device_type = stream_id, -1, 0

    def query(self) -> bool:
        """Whether all work is done: True."""
        return True

    def synchronize(self) -> None:
        """Wait for the work: none is pending."""

    def is_capturing(self) -> bool:
        """Whether the stream is recorded as a graph: False."""
        return False

    @property
    def native_handle(self) -> int:
        """The handle of the stream, of which the CPU has none.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("Backend doesn't support getting stream native handle.")

    def wait_event(self, event: Any) -> None:
        """Let later work wait for an event: none is pending."""

    def wait_stream(self, stream: Any) -> None:
        """Let later work wait for another stream: none is pending."""

    def record_event(self, event: Any = None) -> Any:
        """Record an event in the stream, which the CPU does not support.

        Raises:
            RuntimeError: always.
        """
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.stream_id, self.device) == (other.stream_id, other.device)

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device))

    def __repr__(self) -> str:
        return f"torch.Stream device_type=cpu, device_index=-1, stream_id={self.stream_id}"


class Event:
    """A mark in a stream. The CPU has none to record.

    Args:
        device: the device; the CPU.
        enable_timing: whether the event measures time.

    >>> import flambeau as torch
    >>> torch.Event(device="cpu").query()
    True
    """

    __module__ = "torch"
    __slots__ = ("__weakref__", "_timed", "device", "event_id")

    def __init__(self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False,
                 interprocess: bool = False) -> None:
        self.device = _device("cpu" if device is None else device)
        if self.device.type != "cpu":
            raise RuntimeError(f"PyTorch is not linked with support for {self.device.type} devices")
        self.event_id, self._timed = 0, enable_timing

    def record(self, stream: Any = None) -> None:
        """Record the event.

        Raises:
            RuntimeError: always: the CPU has no events.
        """
        raise RuntimeError("cpu backend doesn't support events.")

    def elapsed_time(self, end_event: Any) -> float:
        """The milliseconds between two events, which the CPU does not measure.

        Raises:
            RuntimeError: always.
        """
        timed = self._timed and end_event._timed
        raise ValueError("Both events must be recorded before calculating elapsed time." if timed else
                         "Both events must be created with argument 'enable_timing=True'.")

    def ipc_handle(self) -> bytes:
        """The handle of the event for other processes, which PyTorch lacks, too.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(_NO_IPC)

    @classmethod
    def from_ipc_handle(cls, device: Any, ipc_handle: bytes) -> Event:
        """The event of a handle, which PyTorch lacks, too.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(_NO_IPC)

    def query(self) -> bool:
        """Whether all work before the event is done: True."""
        return True

    def synchronize(self) -> None:
        """Wait for the work before the event: none is pending."""

    def wait(self, stream: Any = None) -> None:
        """Let a stream wait for the event: none is pending."""

    def __repr__(self) -> str:
        return "torch.Event device_type=cpu, device_index=-1, event_flag=0, event_id=0"
