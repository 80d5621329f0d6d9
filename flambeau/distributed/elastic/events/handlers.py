"""Where events go: to the console or nowhere."""

from __future__ import annotations

import logging

__all__ = ["get_logging_handler"]

_HANDLERS: dict[str, logging.Handler] = {
    "console": logging.StreamHandler(), "dynamic_rendezvous": logging.NullHandler(), "null": logging.NullHandler()}


def get_logging_handler(destination: str = "null") -> logging.Handler:
    """The handler of a destination.

    Args:
        destination: "console", "dynamic_rendezvous" or "null".

    >>> from flambeau.distributed.elastic.events import get_logging_handler
    >>> get_logging_handler()
    <NullHandler (NOTSET)>
    """
    return _HANDLERS[destination]
