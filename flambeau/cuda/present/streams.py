"""Streams and events of CUDA devices."""

from __future__ import annotations

from typing import Any

from ...accelerators.streams import Event as _Event
from ...accelerators.streams import Stream as _Stream
from ...backends.cuda_devices import current_runtime
from ...devices import cuda
from .devices import index_of


class Stream(_Stream):
    """A queue of launches of a device: they run one after the other, and beside those of other streams.

    Args:
        device: the device; default: the current one.
        priority: 0, or a negative number for a stream that goes first.
    """

    __module__ = "torch.cuda.streams"
    __slots__ = ("priority",)

    def __init__(self, device: Any = None, priority: int = 0, *, stream_id: int | None = None,
                 device_index: int | None = None, device_type: int = 1, **ignored: Any) -> None:
        index = index_of(device) if device_index is None else device_index
        self.device, self.device_index, self.device_type, self.priority = cuda(index), index, 1, priority
        self.stream_id = current_runtime().new_stream(index, priority) if stream_id is None else stream_id

    @property
    def cuda_stream(self) -> int:
        """The handle of the stream; 0 for the default stream."""
        return self.stream_id

    @property
    def native_handle(self) -> int:
        """The handle of the stream."""
        return self.stream_id

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The least and the greatest priority."""
        return 0, -5

    def query(self) -> bool:
        """Whether all work of the stream is done."""
        return bool(current_runtime().is_idle(self.device_index, self.stream_id))

    def synchronize(self) -> None:
        """Wait for the work of the stream.

        Raises:
            AcceleratorError: a launch has failed.
        """
        current_runtime().synchronize(self.device_index, self.stream_id)

    def wait_event(self, event: Any) -> None:
        """Let later work wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Any) -> None:
        """Let later work wait for what another stream has been given."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Any = None) -> Any:
        """Record an event after the present work."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        _entered.append((current_runtime().current_device(), current_stream(self.device_index)))
        set_stream(self)
        return self

    def __exit__(self, *exception: object) -> None:
        device, before = _entered.pop()
        set_stream(before)
        current_runtime().set_device(device)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.stream_id:#x}>"


_entered: list[tuple[int, Stream]] = []


class ExternalStream(Stream):
    """A stream that another library has made.

    Args:
        stream_ptr: its handle.
        device: its device.
    """

    __module__ = "torch.cuda.streams"
    __slots__ = ()

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
        super().__init__(device, stream_id=stream_ptr)


class Event(_Event):
    """A mark in a stream, for other streams and the host to wait for, and to measure time.

    Args:
        enable_timing: whether it measures time.
        blocking: whether a host that waits sleeps.
        interprocess: whether other processes may wait for it, which is refused.
    """

    __module__ = "torch.cuda.streams"
    __slots__ = ("point",)

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False,
                 external: bool = False) -> None:
        if interprocess:
            raise NotImplementedError("torch.cuda.Event(interprocess=True): events of other processes are not "
                                      "supported. Synchronize, and use a message of torch.distributed instead")
        self.point: Any = None
        self.event_id, self._timed, self.device = 0, enable_timing, cuda(current_runtime().current_device())

    @property
    def cuda_event(self) -> int:
        """The handle of the event; 0 before it is recorded."""
        return 0 if self.point is None else id(self.point)

    def record(self, stream: Any = None) -> None:
        """Record the event in a stream: the current one of the current device by default."""
        stream = current_stream() if stream is None else stream
        self.device = stream.device
        self.point = current_runtime().record_event(stream.device_index, stream.stream_id)

    def wait(self, stream: Any = None) -> None:
        """Let later work of a stream wait for the event; nothing if it is not recorded."""
        stream = current_stream() if stream is None else stream
        if self.point is not None:
            current_runtime().wait_event(stream.device_index, stream.stream_id, self.point)

    def query(self) -> bool:
        """Whether all work before the event is done; True if it is not recorded."""
        return self.point is None or bool(current_runtime().has_happened(self.point))

    def synchronize(self) -> None:
        """Wait for the work before the event.

        Raises:
            AcceleratorError: a launch has failed.
        """
        if self.point is not None:
            current_runtime().synchronize_event(self.point)

    def elapsed_time(self, end_event: Any) -> float:
        """The milliseconds from this event to another one.

        Raises:
            ValueError: one is not recorded, or measures no time (PyTorch's texts).
        """
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.point is None or end_event.point is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return float(current_runtime().elapsed(self.point, end_event.point))

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self.cuda_event:#x}>" if self.point is not None else (
            "<torch.cuda.Event uninitialized>")


def current_stream(device: Any = None) -> Stream:
    """The current stream of a device."""
    index = index_of(device)
    return Stream(device_index=index, stream_id=current_runtime().current_stream(index))


def default_stream(device: Any = None) -> Stream:
    """The default stream of a device."""
    return Stream(device_index=index_of(device), stream_id=0)


def set_stream(stream: Any) -> None:
    """Make a stream the current one, and its device the current device; None changes nothing."""
    if stream is not None:
        current_runtime().set_device(stream.device_index)
        current_runtime().set_stream(stream.device_index, stream.stream_id)


class StreamContext:
    """A context manager that makes a stream the current one; None changes nothing."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        if self.stream is not None:
            self.stream.__exit__()


def stream(stream: Any) -> StreamContext:
    """A context manager that makes a stream the current one."""
    return StreamContext(stream)


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """The stream of a handle that another library has made."""
    return ExternalStream(data_ptr, device)


StreamContext.__module__ = "torch.cuda"
NAMES: dict[str, Any] = {each.__name__: each for each in (
    Stream, ExternalStream, Event, StreamContext, current_stream, default_stream, set_stream, stream,
    get_stream_from_external)}

__all__ = ["NAMES", "Event", "ExternalStream", "Stream", "StreamContext"]
