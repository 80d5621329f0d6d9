"""`ElasticDistributedSampler`: a distributed sampler that begins in the middle of an epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ....._tensor.creation.generators import Generator
from ....._tensor.creation.random import randperm
from .....utils.data.distributed import DistributedSampler


class ElasticDistributedSampler(DistributedSampler[Any]):
    """Divides what is left of an epoch between processes, whose number may have changed.

    Args:
        dataset: the data.
        num_replicas: the number of processes; those of the default group if None.
        rank: this process.
        start_index: how many examples of the epoch were seen before.

    Raises:
        ValueError: no example is left.

    >>> from flambeau.distributed.elastic.utils.data import ElasticDistributedSampler
    >>> len(ElasticDistributedSampler(range(10), num_replicas=2, rank=0, start_index=4))
    3
    """

    def __init__(self, dataset: Any, num_replicas: int | None = None, rank: int | None = None,
                 start_index: int = 0) -> None:
        super().__init__(dataset, num_replicas, rank)
        if start_index >= len(dataset):
            raise ValueError(f"Start index {start_index} should be less than dataset size {len(dataset)}")
        self.start_index = start_index
        self.num_samples = math.ceil((len(dataset) - start_index) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[Any]:
        left = len(self.dataset) - self.start_index
        order = (randperm(left, generator=Generator().manual_seed(self.epoch)) + self.start_index).tolist()
        order += order[:self.total_size - left]
        return iter(order[self.rank::self.num_replicas])


__all__ = ["ElasticDistributedSampler"]
