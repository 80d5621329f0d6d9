"""`torch.monitor`: events that handlers receive, and statistics over windows of time."""

from __future__ import annotations

import enum
import threading
import time
import warnings
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

data_value_t = str | float | int | bool


class Aggregation(enum.Enum):
    """How a `Stat` summarizes values.

    >>> from flambeau.environment.monitor import Aggregation
    >>> Aggregation.MEAN.name
    'MEAN'
    """

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


VALUE, MEAN, COUNT, SUM, MAX, MIN = Aggregation
STAT_EVENT = "torch.monitor.Stat"  #: the name of events that a `Stat` logs


class Event:
    """An event: a name, a time and data.

    >>> import flambeau as torch
    >>> from datetime import datetime
    >>> torch.monitor.Event("loss", datetime(2020, 1, 1), {"value": 0.5}).name
    'loss'
    """

    __slots__ = ("data", "name", "timestamp")

    def __init__(self, name: str, timestamp: datetime, data: dict[str, data_value_t]) -> None:
        self.name, self.timestamp, self.data = name, timestamp, data


class EventHandlerHandle:
    """A registered handler, which `unregister_event_handler` takes."""

    def __init__(self, handler: Callable[[Event], None]) -> None:
        self.handler = handler


_handlers: list[EventHandlerHandle] = []


def register_event_handler(handler: Callable[[Event], None]) -> EventHandlerHandle:
    """Call `handler(event)` for each event that is logged.

    >>> from datetime import datetime
    >>> from flambeau.environment.monitor import Event, log_event, register_event_handler, unregister_event_handler
    >>> handle = register_event_handler(lambda event: print(event.name, event.data))
    >>> log_event(Event("epoch", datetime(2026, 1, 1), {"loss": 0.5}))
    epoch {'loss': 0.5}
    >>> unregister_event_handler(handle)
    """
    handle = EventHandlerHandle(handler)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Remove a handler.

    >>> from flambeau.environment.monitor import register_event_handler, unregister_event_handler
    >>> unregister_event_handler(register_event_handler(print))
    """
    _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Pass an event to all handlers.

    >>> from datetime import datetime
    >>> from flambeau.environment.monitor import Event, log_event
    >>> log_event(Event("epoch", datetime(2026, 1, 1), {"loss": 0.5}))
    """
    for handle in list(_handlers):
        handle.handler(event)


class Stat:
    """Statistics of values: logged as an event once for each window, or after a number of values.

    Args:
        name: its name.
        aggregations: what is computed.
        window_size: the length of a window.
        max_samples: the number of values after which a window ends at the latest.

    >>> from datetime import timedelta
    >>> from flambeau.environment.monitor import Aggregation, Stat
    >>> stat = Stat("loss", [Aggregation.SUM, Aggregation.COUNT], timedelta(seconds=60))
    >>> stat.add(2.0)
    >>> stat.add(3.0)
    >>> stat.count
    2
    """

    def __init__(self, name: str, aggregations: list[Aggregation], window_size: timedelta,
                 max_samples: int | None = None) -> None:
        self.name, self._max = name, max_samples
        self._aggregations = [each for each in _ORDER if each in aggregations]
        self._length = window_size.total_seconds()
        self._window = self._current_window()
        self._values: list[float] = []
        self._ended = False  # whether the window has its number of values already
        self._last = self._results()
        self._lock = threading.Lock()

    def __del__(self) -> None:
        if hasattr(self, "_lock"):
            self._log()

    @property
    def count(self) -> int:
        """The number of values of the current window."""
        return len(self._values)

    def add(self, v: float) -> None:
        """Add a value; it is dropped if the window has its number of values already."""
        with self._lock:
            if (window := self._current_window()) != self._window:
                self._log()
                self._window, self._ended = window, False
            if self._ended:
                return
            self._values.append(float(v))
            if self._max is not None and len(self._values) >= self._max:
                self._log()
                self._ended = True

    def get(self) -> dict[Aggregation, float]:
        """The statistics of the last window that was logged, zeros before."""
        return dict(self._last)

    def _current_window(self) -> int:
        return int(time.monotonic() // self._length) if self._length else 0

    def _results(self) -> dict[Aggregation, float]:
        values = self._values
        results = {
            Aggregation.COUNT: float(len(values)), Aggregation.SUM: float(sum(values)),
            Aggregation.MEAN: sum(values) / len(values) if values else 0.0,
            Aggregation.MAX: max(values, default=0.0), Aggregation.MIN: min(values, default=0.0)}
        return {each: results[each] for each in self._aggregations}

    def _log(self) -> None:
        if self._values:
            self._last = self._results()
            log_event(Event("torch.monitor.Stat", datetime.now(), {
                f"{self.name}.{each.name.lower()}": value for each, value in self._last.items()}))
        self._values = []


#: the statistics that are computed, in the order of an event's data
_ORDER = (Aggregation.COUNT, Aggregation.SUM, Aggregation.MAX, Aggregation.MEAN, Aggregation.MIN)


class TensorboardEventHandler:
    """A handler that writes statistics to a `SummaryWriter`.

    >>> from flambeau.environment.monitor import TensorboardEventHandler
    >>> class Writer:
    ...     def add_scalar(self, name, value, walltime=None):
    ...         print(name, value)
    >>> handler = TensorboardEventHandler(Writer())
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == "torch.monitor.Stat":
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())


def set_vital(vital: str, attr: str, value: str) -> None:
    """Does nothing but warn: PyTorch's log of vitals is no more."""
    warnings.warn("'set_vital' is deprecated, please do not call", stacklevel=2)


__all__ = ["Aggregation", "Event", "Stat", "TensorboardEventHandler", "data_value_t", "log_event",
           "register_event_handler", "unregister_event_handler"]
