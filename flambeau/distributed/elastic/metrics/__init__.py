"""`torch.distributed.elastic.metrics`: metrics of a job, and their handlers."""

from __future__ import annotations

from .api import (
    ConsoleMetricHandler,
    MetricData,
    MetricHandler,
    MetricsConfig,
    NullMetricHandler,
    configure,
    get_elapsed_time_ms,
    getStream,
    prof,
    profile,
    publish_metric,
    put_metric,
)

__all__ = ["ConsoleMetricHandler", "MetricData", "MetricHandler", "MetricsConfig", "NullMetricHandler", "configure",
           "getStream", "get_elapsed_time_ms", "initialize_metrics", "prof", "profile", "publish_metric", "put_metric"]


def initialize_metrics(cfg: MetricsConfig | None = None) -> None:
    """Where an installation sets up its handlers; there is nothing to set up.

    Args:
        cfg: parameters.
    """
