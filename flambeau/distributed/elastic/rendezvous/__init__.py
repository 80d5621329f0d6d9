"""`torch.distributed.elastic.rendezvous`: rendezvous of the launchers of several machines."""

from __future__ import annotations

from .api import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousError,
    RendezvousGracefulExitError,
    RendezvousHandler,
    RendezvousHandlerCreator,
    RendezvousHandlerRegistry,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStateError,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
    rendezvous_handler_registry,
)
from .registry import _register_default_handlers as _register_default_handlers

__all__ = ["RendezvousClosedError", "RendezvousConnectionError", "RendezvousError", "RendezvousGracefulExitError",
           "RendezvousHandler", "RendezvousHandlerCreator", "RendezvousHandlerRegistry", "RendezvousInfo",
           "RendezvousParameters", "RendezvousStateError", "RendezvousStoreInfo", "RendezvousTimeoutError",
           "rendezvous_handler_registry"]
