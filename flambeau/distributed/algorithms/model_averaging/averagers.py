"""Averages of models every few steps (post-local SGD, arXiv:1808.07217)."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from ....c10d.process_group import ProcessGroup
from ....c10d.world import default_group
from .utils import average_parameters_or_parameter_groups

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """What averages the parameters of a model in some of its steps.

    Args:
        process_group: the processes; all if None.

    Attributes:
        step: how many steps there were.
    """

    def __init__(self, process_group: ProcessGroup | None = None) -> None:
        self.process_group = default_group() if process_group is None else process_group
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Count a step, and average if it is time.

        Args:
            params: parameters, or parameter groups of an optimizer.

        Raises:
            NotImplementedError: always: subclasses say when it is time.
        """
        raise NotImplementedError


class PeriodicModelAverager(ModelAverager):
    """Averages every `period` steps.

    Args:
        period: the number of steps from one average to the next.
        warmup_steps: steps before the first.
        process_group: the processes; all if None.

    Raises:
        ValueError: a number is negative, or the period 0.

    >>> import flambeau as torch
    >>> from flambeau.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> averager, layer = PeriodicModelAverager(period=4, warmup_steps=2), torch.nn.Linear(2, 1)
    >>> layer(torch.ones(1, 2)).sum().backward()
    >>> averager.average_parameters(layer.parameters())
    >>> averager.step
    1
    >>> dist.destroy_process_group()
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: ProcessGroup | None = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn(
                "When period is 1, no need to use model averaging because the communication cost of all-reducing "
                "parameters will be no less than the cost of all-reducing gradients by DistributedDataParallel in the "
                "backward pass. Therefore, only DistributedDataParallel should be used for this case.", stacklevel=2)
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Count a step, and average if it is time.

        Args:
            params: parameters, or parameter groups of an optimizer.
        """
        steps = self.step - self.warmup_steps
        if steps >= 0 and steps % self.period == 0:
            average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
