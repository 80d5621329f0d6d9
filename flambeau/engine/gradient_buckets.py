"""`GradientBuckets`: which gradients are reduced together, for compiled backward passes that are divided there."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

#: the buckets of the `DistributedDataParallel` module whose forward runs in this thread, if its gradients are reduced
current_buckets: ContextVar[GradientBuckets | None] = ContextVar("current_buckets", default=None)


class GradientBuckets:
    """The bucket of each parameter; the buckets are reduced in the order of their numbers.

    Args:
        parameters: the parameters, which must outlive this object.
        buckets: the indices of the parameters in each bucket.
    """

    __slots__ = ("__weakref__", "_numbers")

    def __init__(self, parameters: Sequence[Any], buckets: Sequence[Sequence[int]]) -> None:
        self._numbers = {id(parameters[i]): number for number, bucket in enumerate(buckets) for i in bucket}

    def number_of(self, parameter: Any) -> int | None:
        """The number of a parameter's bucket; None for other tensors.

        Args:
            parameter: any object.
        """
        return self._numbers.get(id(parameter))


__all__ = ["GradientBuckets", "current_buckets"]
