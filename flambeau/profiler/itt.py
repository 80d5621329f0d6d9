"""`torch.profiler.itt`: markers for Intel's ITT tools; not supported."""

from __future__ import annotations


def is_available() -> bool:
    """Whether ITT markers are available: they are not.

    >>> import flambeau as torch
    >>> torch.profiler.itt.is_available()
    False
    """
    return False


__all__ = ["is_available"]
