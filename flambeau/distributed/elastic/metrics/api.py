"""Metrics of a job, by group, and the handlers that receive them."""

from __future__ import annotations

import abc
import time
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

__all__ = ["ConsoleMetricHandler", "MetricData", "MetricHandler", "MetricStream", "MetricsConfig", "NullMetricHandler",
           "configure", "getStream", "get_elapsed_time_ms", "prof", "profile", "publish_metric", "put_metric"]


class MetricData(NamedTuple):
    """One number: when, in which group, its name, itself."""

    timestamp: float
    group_name: str
    name: str
    value: int


class MetricsConfig:
    """Parameters of metrics.

    Args:
        params: name -> value.
    """

    __slots__ = ("params",)

    def __init__(self, params: dict[str, str] | None = None) -> None:
        self.params = {} if params is None else params


class MetricHandler(abc.ABC):
    """Gets numbers."""

    @abc.abstractmethod
    def emit(self, metric_data: MetricData) -> None:
        """Take a number.

        Args:
            metric_data: it.
        """


class ConsoleMetricHandler(MetricHandler):
    """Prints numbers.

    >>> from flambeau.distributed.elastic.metrics import ConsoleMetricHandler, MetricData
    >>> ConsoleMetricHandler().emit(MetricData(1.5, "group", "steps", 3))
    [1.5][group]: steps=3
    """

    def emit(self, metric_data: MetricData) -> None:
        print(f"[{metric_data.timestamp}][{metric_data.group_name}]: {metric_data.name}={metric_data.value}")


class NullMetricHandler(MetricHandler):
    """Drops numbers."""

    def emit(self, metric_data: MetricData) -> None:
        """Take a number, and forget it.

        Args:
            metric_data: it.
        """


class MetricStream:
    """The numbers of a group.

    Args:
        group_name: its name.
        handler: who gets them.
    """

    def __init__(self, group_name: str, handler: MetricHandler) -> None:
        self.group_name, self.handler = group_name, handler

    def add_value(self, metric_name: str, metric_value: int) -> None:
        """Pass a number on.

        Args:
            metric_name: its name.
            metric_value: itself.
        """
        self.handler.emit(MetricData(time.time(), self.group_name, metric_name, metric_value))


_handlers: dict[str | None, MetricHandler] = {None: NullMetricHandler()}


def configure(handler: MetricHandler, group: str | None = None) -> None:
    """Say who gets the numbers of a group.

    Args:
        handler: who.
        group: the group; None: all groups that nothing was said about.

    >>> from flambeau.distributed.elastic import metrics
    >>> metrics.configure(metrics.NullMetricHandler(), "agent")
    """
    _handlers[group] = handler


def getStream(group: str) -> MetricStream:
    """The stream of a group.

    Args:
        group: its name.

    >>> from flambeau.distributed.elastic import metrics
    >>> metrics.getStream("agent").group_name
    'agent'
    """
    return MetricStream(group, _handlers.get(group, _handlers[None]))


def _get_metric_name(fn: Callable[..., Any]) -> str:
    """Class and method, or module and function."""
    if "." in fn.__qualname__ or not fn.__module__:
        return fn.__qualname__
    return f"{fn.__module__.rpartition('.')[2]}.{fn.__qualname__}"


def _measured(fn: Callable[..., Any], name: str, group: str) -> Callable[..., Any]:
    @wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        start = time.time()
        try:
            result = fn(*args, **kwargs)
            put_metric(f"{name}.success", 1, group)
        except Exception:
            put_metric(f"{name}.failure", 1, group)
            raise
        finally:
            put_metric(f"{name}.duration.ms", get_elapsed_time_ms(start), group)
        return result

    return wrapper


def prof(fn: Callable[..., Any] | None = None, group: str = "torchelastic") -> Any:
    """Decorate a function: each call is counted as a success or a failure, and its milliseconds.

    Args:
        fn: the function; with `group=` alone, a decorator is returned.
        group: of the numbers.

    >>> from flambeau.distributed.elastic import metrics
    >>> metrics.prof(lambda x: x + 1)(2)
    3
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return _measured(function, _get_metric_name(function), group)

    return decorate if fn is None else decorate(fn)


def profile(group: Any = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function as `prof` does, with its plain name.

    Args:
        group: of the numbers.
    """
    warnings.warn("Deprecated, use `@prof` instead", FutureWarning, stacklevel=2)
    return lambda function: _measured(function, function.__name__, group)


def put_metric(metric_name: str, metric_value: int, metric_group: str = "torchelastic") -> None:
    """Pass a number on.

    Args:
        metric_name: its name.
        metric_value: itself.
        metric_group: its group.

    >>> from flambeau.distributed.elastic import metrics
    >>> metrics.put_metric("steps", 3)
    """
    getStream(metric_group).add_value(metric_name, metric_value)


def publish_metric(metric_group: str, metric_name: str, metric_value: int) -> None:
    """Pass a number on.

    Args:
        metric_group: its group.
        metric_name: its name.
        metric_value: itself.
    """
    warnings.warn("Deprecated, use `put_metric(metric_group)(metric_name, metric_value)` instead", FutureWarning,
                  stacklevel=2)
    put_metric(metric_name, metric_value, metric_group)


def get_elapsed_time_ms(start_time_in_seconds: float) -> int:
    """The milliseconds since a time.

    Args:
        start_time_in_seconds: the time.

    >>> import time
    >>> from flambeau.distributed.elastic.metrics import get_elapsed_time_ms
    >>> get_elapsed_time_ms(time.time() - 1) >= 1000
    True
    """
    return int((time.time() - start_time_in_seconds) * 1000)
