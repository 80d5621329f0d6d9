"""`torch.profiler.itt`: marks for Intel's tools, to which there is no connection."""

from __future__ import annotations


def is_available() -> bool:
    """Whether marks can be made: they cannot.

    >>> import flambeau as torch
    >>> torch.profiler.itt.is_available()
    False
    """
    return False


__all__ = ["is_available"]
