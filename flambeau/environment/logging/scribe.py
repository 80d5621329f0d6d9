"""`torch._logging.scribe`: signposts of events, which PyTorch's test machinery leaves."""

from __future__ import annotations

import logging

_log = logging.getLogger(__name__)


def open_source_signpost(subsystem: str, name: str, parameters: str) -> None:
    """Log an event at level INFO.

    Args:
        subsystem, name: what the event is.
        parameters: a JSON text.

    >>> import flambeau as torch
    >>> torch._logging.scribe.open_source_signpost("tests", "finished", "{}")
    """
    _log.info("%s %s: %r", subsystem, name, parameters)


__all__ = ["open_source_signpost"]
