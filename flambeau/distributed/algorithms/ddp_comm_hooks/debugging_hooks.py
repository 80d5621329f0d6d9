"""A communication hook that communicates nothing, to measure what communication costs."""

from __future__ import annotations

from typing import Any

from ....c10d.buckets import GradBucket
from ....runtime.futures import Future

__all__ = ["noop_hook"]


def noop_hook(_: Any, bucket: GradBucket) -> Future[Any]:
    """Return the gradients of this process.

    Args:
        bucket: the gradients.
    """
    future: Future[Any] = Future()
    future.set_result(bucket.buffer())
    return future
