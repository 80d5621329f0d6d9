"""The registry of rendezvous handlers: "static", and those that a program registers."""

from __future__ import annotations

from .api import RendezvousHandler, RendezvousParameters, rendezvous_handler_registry
from .static_tcp_rendezvous import create_rdzv_handler

__all__ = ["get_rendezvous_handler"]


def _register_default_handlers() -> None:
    rendezvous_handler_registry.register("static", create_rdzv_handler)


def get_rendezvous_handler(params: RendezvousParameters) -> RendezvousHandler:
    """Make the handler of a name.

    Args:
        params: its parameters.

    Raises:
        ValueError: an unknown name (PyTorch's text).

    >>> from flambeau.distributed.elastic.rendezvous import RendezvousParameters
    >>> from flambeau.distributed.elastic.rendezvous.registry import get_rendezvous_handler
    >>> get_rendezvous_handler(RendezvousParameters("static", "host:1", "job", 1, 1, rank=0)).get_backend()
    'static'
    """
    return rendezvous_handler_registry.create_handler(params)


_register_default_handlers()
