"""`torch.cuda.nvtx`: marks in NVIDIA's profiler, which is absent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..accelerators.absent import refusing

mark = range_push = range_pop = range_start = range_end = refusing(
    RuntimeError, "NVTX functions not installed. Are you sure you have a CUDA build?")


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Mark a block.

    Raises:
        RuntimeError: always: NVIDIA's profiler is absent.
    """
    range_push(msg.format(*args, **kwargs))
    yield
