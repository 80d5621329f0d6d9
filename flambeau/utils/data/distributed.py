"""The part of a dataset that a process of a distributed training loads."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any, TypeVar

from ..._tensor.creation.generators import Generator
from ..._tensor.creation.random import randperm
from .sampler import Sampler

__all__ = ["DistributedSampler"]

_T_co = TypeVar("_T_co", covariant=True)


def process_group() -> tuple[int, int] | None:
    """Return the number of processes of the default process group and this one's rank; None if there is no group."""
    module = sys.modules.get(f"{__name__.partition('.')[0]}.distributed")  # no group without the module
    if module is None or not module.is_available() or not module.is_initialized():
        return None
    return module.get_world_size(), module.get_rank()


def _group_entry(which: int) -> int:
    group = process_group()
    if group is None:
        raise ValueError("Default process group has not been initialized, please make sure to call "
                         "init_process_group.")
    return group[which]


class DistributedSampler(Sampler[_T_co]):
    """Every `num_replicas`-th index, so that each process loads its own part of the dataset.

    Args:
        dataset: a dataset with a length, the same in all processes.
        num_replicas: the number of processes; the default process group's if None.
        rank: the number of this process; the default process group's if None.
        shuffle: whether the indices are permuted.
        seed: of the permutation, the same in all processes.
        drop_last: whether to drop the last indices, so that all parts have the same length; if not, the first indices
            are repeated.

    Raises:
        ValueError: the rank is not below `num_replicas`, or there is no process group.

    >>> from flambeau.utils.data import DistributedSampler
    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in range(2)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
                 seed: int = 0, drop_last: bool = False) -> None:
        if num_replicas is None:
            num_replicas = _group_entry(0)
        if rank is None:
            rank = _group_entry(1)
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.epoch, self.drop_last = 0, drop_last
        length = len(dataset)
        if drop_last and length % num_replicas:
            length -= num_replicas
        self.num_samples = math.ceil(length / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle, self.seed = shuffle, seed

    def __iter__(self) -> Iterator[_T_co]:
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            indices = randperm(len(self.dataset), generator=generator).tolist()
        else:
            indices = list(range(len(self.dataset)))
        if self.drop_last:
            indices = indices[:self.total_size]
        elif missing := self.total_size - len(indices):
            indices += (indices * math.ceil(missing / len(indices)))[:missing]
        if len(indices) != self.total_size:
            raise AssertionError(
                f"Number of indices ({len(indices)}) does not match total_size ({self.total_size})")
        return iter(indices[self.rank:self.total_size:self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, with which the permutation changes; call it in every process before each epoch.

        Args:
            epoch: the number of the epoch.
        """
        self.epoch = epoch
