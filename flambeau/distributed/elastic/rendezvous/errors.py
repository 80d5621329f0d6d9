"""Errors of rendezvous."""

from __future__ import annotations

__all__ = ["RendezvousClosedError", "RendezvousConnectionError", "RendezvousError", "RendezvousGracefulExitError",
           "RendezvousStateError", "RendezvousTimeoutError"]


class RendezvousError(Exception):
    """A rendezvous has failed."""


class RendezvousClosedError(RendezvousError):
    """A rendezvous is closed."""


class RendezvousTimeoutError(RendezvousError):
    """A rendezvous has not come about in time."""


class RendezvousConnectionError(RendezvousError):
    """What machines meet through is not reached."""


class RendezvousStateError(RendezvousError):
    """The state of a rendezvous is damaged."""


class RendezvousGracefulExitError(RendezvousError):
    """A machine is not needed, which is no failure."""
