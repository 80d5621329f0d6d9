"""Communication hooks that average gradients, as they are or in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import dtypes
from ....c10d.buckets import GradBucket
from ....c10d.process_group import ProcessGroup
from ....c10d.world import default_group
from ....runtime.futures import Future

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook",
           "fp16_compress_wrapper"]

Hook = Callable[[Any, GradBucket], Future[Any]]


def _allreduce_fut(process_group: ProcessGroup | None, tensor: Any) -> Future[Any]:
    """The average of a tensor over processes."""
    group = default_group() if process_group is None else process_group
    tensor.div_(group.size())
    future: Future[Any] = group.allreduce([tensor]).get_future()
    return future.then(lambda done: done.value()[0])


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Any]:
    """Average gradients.

    Args:
        process_group: the processes; all if None.
        bucket: the gradients.
    """
    return _allreduce_fut(process_group, bucket.buffer())


def _compressed(dtype: Any, process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Any]:
    group = default_group() if process_group is None else process_group
    flat = bucket.buffer()
    narrow = flat.to(dtype).div_(group.size())

    def decompress(done: Future[Any]) -> Any:
        value = done.value()
        flat.copy_(value[0] if isinstance(value, list) else value)
        return flat

    return group.allreduce([narrow]).get_future().then(decompress)


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Any]:
    """Average gradients in float16.

    Args:
        process_group: the processes; all if None.
        bucket: the gradients.
    """
    return _compressed(dtypes.float16, process_group, bucket)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Any]:
    """Average gradients in bfloat16.

    Args:
        process_group: the processes; all if None.
        bucket: the gradients.
    """
    return _compressed(dtypes.bfloat16, process_group, bucket)


def _wrapper(dtype: Any, hook: Hook) -> Hook:
    def wrapped(state: Any, bucket: GradBucket) -> Future[Any]:
        flat = bucket.buffer()
        bucket.set_buffer(flat.to(dtype))

        def decompress(done: Future[Any]) -> Any:
            flat.copy_(done.value())
            return flat

        return hook(state, bucket).then(decompress)

    return wrapped


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Give a hook gradients in float16.

    Args:
        hook: the hook.
    """
    return _wrapper(dtypes.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Give a hook gradients in bfloat16.

    Args:
        hook: the hook.
    """
    return _wrapper(dtypes.bfloat16, hook)
