"""Memory at a fixed address whose pages can be given back, and taken again."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

_ALIGNMENT = 64
_CAN_RELEASE = hasattr(mmap.mmap, "madvise") and hasattr(mmap, "MADV_DONTNEED")
#: shared memory would keep its pages
_PRIVATE: dict[str, Any] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


class ReleasableMemory:
    """Arrays that views and saved tensors may point to while they hold nothing.

    After `release` they read as zeros, and use no memory, until something is written. Where the operating system cannot
    take pages back, they keep their elements.

    Args:
        layouts: (shape, dtype) of each array.

    >>> import numpy as np
    >>> from flambeau.distributed.fsdp._fully_shard._releasable_memory import ReleasableMemory
    >>> memory = ReleasableMemory([((2, 3), np.dtype("f4"))])
    >>> memory.arrays[0].shape, memory.nbytes
    ((2, 3), 24)
    """

    __slots__ = ("_map", "arrays", "nbytes")

    def __init__(self, layouts: list[tuple[tuple[int, ...], Any]]) -> None:
        offsets, end = [], 0
        sizes = [int(np.prod(shape, dtype=np.int64)) * dtype.itemsize for shape, dtype in layouts]
        for size in sizes:
            offsets.append(end)
            end += -(-size // _ALIGNMENT) * _ALIGNMENT
        self.nbytes = sum(sizes)
        self._map = mmap.mmap(-1, max(end, 1), **_PRIVATE)
        whole = np.frombuffer(self._map, np.uint8)
        self.arrays = [whole[at:at + size].view(dtype).reshape(shape) for at, size, (shape, dtype) in zip(
            offsets, sizes, layouts, strict=True)]

    def release(self) -> None:
        """Give the pages back."""
        if _CAN_RELEASE:
            self._map.madvise(mmap.MADV_DONTNEED)


__all__ = ["ReleasableMemory"]
