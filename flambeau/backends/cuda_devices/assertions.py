"""Assertions that kernels make on elements, such as the range of indices: the host does not wait for them.

Each device has an element of int64 in page-locked memory of the host, at an address that kernels write to. One that
finds a wrong element writes 1 there, and the next synchronization raises the error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..numpy.memory import address


class Assertions:
    """The elements of all devices.

    Args:
        pinned: the runtime's function that returns page-locked bytes.
    """

    def __init__(self, pinned: Callable[[int], np.ndarray]) -> None:
        self._pinned = pinned
        self._failed: dict[int, np.ndarray] = {}

    def address(self, device: int) -> int:
        """Where kernels of a device write that an assertion failed."""
        found = self._failed.get(device)
        if found is None:
            found = self._pinned(16)[:8].view(np.int64)
            found[0] = 0
            found = self._failed.setdefault(device, found)
        return address(found)

    def have_failed(self, device: int) -> bool:
        """Whether a kernel that has run on a device found a wrong element."""
        found = self._failed.get(device)
        return found is not None and bool(found[0])


__all__ = ["Assertions"]
