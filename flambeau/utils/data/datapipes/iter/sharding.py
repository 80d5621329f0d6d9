"""Shards: every n-th sample of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NoReturn

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..lengths import length_of

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]


class SHARDING_PRIORITIES(IntEnum):
    """Groups of shards, in the order in which they are applied."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


class _ShardingIterDataPipe(IterDataPipe[Any]):
    """The base class of pipelines that can be sharded."""

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any) -> NoReturn:
        raise NotImplementedError


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(_ShardingIterDataPipe):
    """Every n-th sample, once `apply_sharding` is called with n (`sharding_filter`).

    Args:
        source_datapipe: the source.
        sharding_group_filter: the group of shards that counts; None: all.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> pipe = IterableWrapper(range(5)).sharding_filter()
    >>> pipe.apply_sharding(2, 0)
    >>> list(pipe)
    [0, 2, 4]
    """

    def __init__(self, source_datapipe: IterDataPipe[Any], sharding_group_filter: Any = None) -> None:
        super().__init__()
        self.source_datapipe, self.sharding_group_filter = source_datapipe, sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self._update_num_of_instances()

    def apply_sharding(self, num_of_instances: int, instance_id: int,  # type: ignore[override]
                       sharding_group: Any = SHARDING_PRIORITIES.DEFAULT) -> None:
        """Select one of several parts.

        Args:
            num_of_instances: the number of parts.
            instance_id: the number of the part.
            sharding_group: the group; the parts of a group are divided by the groups after it.

        Raises:
            ValueError: there is no such part.
            RuntimeError: the default group is combined with others.
        """
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        default = SHARDING_PRIORITIES.DEFAULT
        if self.groups and (sharding_group == default) != (default in self.groups):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = (num_of_instances, instance_id)
        self._update_num_of_instances()

    def _update_num_of_instances(self) -> None:
        self.num_of_instances, self.instance_id = 1, 0
        for group in sorted(self.groups, reverse=True):
            if self.sharding_group_filter is None or group == self.sharding_group_filter:
                count, number = self.groups[group]
                self.instance_id += self.num_of_instances * number
                self.num_of_instances *= count

    def __iter__(self) -> Iterator[Any]:
        for i, sample in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield sample

    def __len__(self) -> int:
        whole, rest = divmod(length_of(self.source_datapipe, self), self.num_of_instances)
        return whole + (self.instance_id < rest)
