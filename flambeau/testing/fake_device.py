"""`fake_cuda`: CUDA devices for tests, on machines without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._tensor import accelerated
from ..backends.cuda_devices import install
from ..backends.cuda_devices.fake import FakeRuntime


@contextmanager
def fake_cuda(count: int = 1, memory: int = 1 << 30, processors: int = 108) -> Iterator[Any]:
    """A block in which there are CUDA devices whose memory and kernels are the host's.

    They have the rules of a GPU: arrays that NumPy cannot compute with, launches whose errors are raised at the next
    synchronization, streams of which one must wait for another before it uses the same memory, the caching allocator,
    and Philox generators. Tensors that are made in the block must not be used after it.

    Args:
        count: the number of devices.
        memory: the bytes of each.
        processors: the multiprocessors of each: random numbers of large tensors depend on them.

    >>> import flambeau as torch
    >>> with torch.testing.fake_cuda():
    ...     torch.ones(2, device="cuda") + 1
    tensor([2., 2.], device='cuda:0')
    """
    assert accelerated.current_runtime is not None
    runtime = FakeRuntime(count, memory, processors)
    before = install(runtime)
    try:
        yield runtime
    finally:
        install(before)


__all__ = ["fake_cuda"]
