"""`torch.distributed.elastic.events`: what happens in a job, written to loggers."""

from __future__ import annotations

import logging
import os
import socket
import sys
import traceback

from .api import Event, EventMetadataValue, EventSource, NodeState, RdzvEvent
from .handlers import get_logging_handler

__all__ = ["Event", "EventMetadataValue", "EventSource", "NodeState", "RdzvEvent", "construct_and_record_rdzv_event",
           "get_logging_handler", "record", "record_rdzv_event"]

_loggers: dict[str, logging.Logger] = {}


def _get_or_create_logger(destination: str = "null") -> logging.Logger:
    """The logger of a destination, which passes nothing on to other loggers."""
    logger = _loggers.get(destination)
    if logger is None:
        logger = logging.getLogger(f"torchelastic-events-{destination}")
        logger.setLevel(os.environ.get("LOGLEVEL", "INFO"))
        logger.propagate = False
        logger.addHandler(get_logging_handler(destination))
        _loggers[destination] = logger
    return logger


def record(event: Event, destination: str = "null") -> None:
    """Write an event.

    Args:
        event: it.
        destination: where to: "console" or "null".

    >>> from flambeau.distributed.elastic import events
    >>> events.record(events.Event("started", events.EventSource.WORKER))
    """
    _get_or_create_logger(destination).info(event.serialize())


def record_rdzv_event(event: RdzvEvent) -> None:
    """Write an event of a rendezvous.

    Args:
        event: it.

    >>> from flambeau.distributed.elastic import events
    >>> events.record_rdzv_event(events.RdzvEvent("join", "job", "", "host", 1, events.NodeState.INIT))
    """
    _get_or_create_logger("dynamic_rendezvous").info(event.serialize())


def construct_and_record_rdzv_event(run_id: str, message: str, node_state: NodeState, name: str = "",
                                    hostname: str = "", pid: int | None = None, master_endpoint: str = "",
                                    local_id: int | None = None, rank: int | None = None) -> None:
    """Write an event of a rendezvous, unless nobody reads them.

    Args:
        run_id, message, node_state, master_endpoint, local_id, rank: of the event.
        name: what happens; default: the caller's name.
        hostname, pid: who says so; default: this process.

    >>> from flambeau.distributed.elastic import events
    >>> events.construct_and_record_rdzv_event("job", "joined", events.NodeState.RUNNING)
    """
    if isinstance(get_logging_handler("dynamic_rendezvous"), logging.NullHandler):
        return
    caller = sys._getframe(1).f_code
    record_rdzv_event(RdzvEvent(
        name=f"{os.path.basename(caller.co_filename)}:{name or caller.co_name}", run_id=run_id, message=message,
        hostname=hostname or socket.getfqdn(), pid=pid or os.getpid(), node_state=node_state,
        master_endpoint=master_endpoint, rank=rank, local_id=local_id,
        error_trace=traceback.format_exc() if node_state == NodeState.FAILED else ""))
