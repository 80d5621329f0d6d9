"""Averages of models over groups of different sizes, the larger the rarer (arXiv:2010.12998)."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from ....c10d.process_group import ProcessGroup
from ...groups.making import new_subgroups
from ...groups.queries import get_world_size
from .averagers import ModelAverager
from .utils import average_parameters_or_parameter_groups

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(ModelAverager):
    """Averages over a group whenever its period is over; of several groups, over the largest.

    Args:
        period_group_size_dict: periods in steps, in ascending order -> sizes of groups; the last is that of all
            processes.
        warmup_steps: steps before the first average.
        process_group: the processes; all if None.

    Raises:
        ValueError: there are no periods, one is not positive, or the last size is not that of all processes.
    """

    def __init__(self, period_group_size_dict: Mapping[int, int] | None = None, warmup_steps: int = 0,
                 process_group: ProcessGroup | None = None) -> None:
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(period_group_size_dict)
        if self._periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        if self._periods[-1] == 1:
            warnings.warn(
                "When the maximum period in arg ``period_group_size_dict`` is 1, no need to use model averaging "
                "because the communication cost of all-reducing parameters will be no less than the cost of "
                "all-reducing gradients by DistributedDataParallel in the backward pass. Therefore, only "
                "DistributedDataParallel should be used for this case.", stacklevel=2)
        whole, last = get_world_size(self.process_group), list(period_group_size_dict.values())[-1]
        if last != whole:
            raise ValueError(f"The last value in arg ``period_group_size_dict`` {last} must be equal to the size of "
                             f"arg ``process_group`` {whole}.")
        self.period_process_group_dict: OrderedDict[int, Any] = OrderedDict()
        for period, size in period_group_size_dict.items():
            self.period_process_group_dict[period] = self.process_group if size == whole else new_subgroups(
                group_size=size, group=self.process_group)[0]
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.warmup_steps = warmup_steps

    def _find_process_group(self) -> Any:
        for period in reversed(self._periods):
            if self.step % period == 0:
                return self.period_process_group_dict[period]
        return None

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Count a step, and average if it is time.

        Args:
            params: parameters, or parameter groups of an optimizer.
        """
        if self.step >= self.warmup_steps:
            group = self._find_process_group()
            if group is not None:
                average_parameters_or_parameter_groups(params, group)
        self.step += 1
