"""`torch.cuda.profiler`: NVIDIA's profiler, which is absent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..accelerators.absent import refusing

start = stop = refusing(AssertionError, "Torch not compiled with CUDA enabled")


@contextmanager
def profile() -> Iterator[None]:
    """Profile a block.

    Raises:
        AssertionError: always.
    """
    start()
    yield
