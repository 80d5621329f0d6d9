"""Whether mixed precision on GPUs is possible."""

from __future__ import annotations


def amp_definitely_not_available() -> bool:
    """Whether mixed precision on GPUs is impossible: True, there is no GPU."""
    return True
