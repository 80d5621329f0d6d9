"""Whether mixed precision on GPUs is possible."""

from __future__ import annotations

from ...devices import current_cuda


def amp_definitely_not_available() -> bool:
    """Whether mixed precision on GPUs is impossible: there is no GPU."""
    return current_cuda() is None
