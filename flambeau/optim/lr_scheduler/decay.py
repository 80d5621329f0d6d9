"""Schedules that multiply the learning rate: by a function, at milestones, or by a factor in every epoch."""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler

__all__ = ["ConstantLR", "ExponentialLR", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR",
           "PolynomialLR", "StepLR"]


class _FunctionLR(LRScheduler):
    """Base class of schedules that are defined by one function per group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        if isinstance(lr_lambda, list | tuple):
            if len(lr_lambda) != len(optimizer.param_groups):
                raise ValueError(f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas: list[Callable[[int], float]] = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * len(optimizer.param_groups)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """The attributes, without the optimizer and the functions; of callable objects, their `__dict__`."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [None if isinstance(function, types.FunctionType) else function.__dict__.copy()
                               for function in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        own = {key: value for key, value in state_dict.items() if key != "lr_lambdas"}
        self.__dict__.update(own)
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                function.__dict__.update(attributes)


class LambdaLR(_FunctionLR):
    """lr = initial lr · lr_lambda(epoch).

    Args:
        optimizer: the optimizer whose learning rates are set.
        lr_lambda: maps the epoch to a factor; one function, or a list with one per group.
        last_epoch: index of the last epoch; -1 (default) starts a new schedule.

    Raises:
        ValueError: the length of the list is not the number of groups.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5 ** epoch)
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.5]
    """

    def get_lr(self) -> list[Any]:
        self._warn_unless_in_step()
        return [base * function(self.last_epoch)
                for function, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_FunctionLR):
    """lr ← lr · lr_lambda(epoch), in every epoch.

    Args:
        optimizer: the optimizer whose learning rates are set.
        lr_lambda: maps the epoch to a factor; one function, or a list with one per group.
        last_epoch: index of the last epoch; -1 (default) starts a new schedule.

    Raises:
        TypeError: `lr_lambda` is not callable.
        ValueError: the length of the list is not the number of groups.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> for _ in range(3):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step(); scheduler.step()
    [1.0]
    [0.5]
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        for function in lr_lambda if isinstance(lr_lambda, list | tuple) else [lr_lambda]:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_unless_in_step()
        if self._is_initial:
            return self._scaled_lrs(None)
        return [group["lr"] * function(self.last_epoch)
                for function, group in zip(self.lr_lambdas, self.optimizer.param_groups, strict=True)]


class StepLR(LRScheduler):
    """lr ← lr · gamma, every `step_size` epochs.

    Args:
        optimizer: the optimizer whose learning rates are set.
        step_size: number of epochs between two reductions.
        gamma: factor (default 0.1).
        last_epoch: index of the last epoch; -1 (default) starts a new schedule.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     optimizer.step(); scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_unless_in_step()
        unchanged = self.last_epoch == 0 or self.last_epoch % self.step_size != 0
        return self._scaled_lrs(None if unchanged else self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """lr ← lr · gamma, at each of the `milestones`.

    Args:
        optimizer: the optimizer whose learning rates are set.
        milestones: epochs; one that occurs twice counts twice.
        gamma: factor (default 0.1).
        last_epoch: index of the last epoch; -1 (default) starts a new schedule.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> for _ in range(4):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step(); scheduler.step()
    [1.0]
    [0.5]
    [0.5]
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_unless_in_step()
        if self.last_epoch not in self.milestones:
            return self._scaled_lrs(None)
        return self._scaled_lrs(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Any]:
        count = sum(epoch <= self.last_epoch for epoch in self.milestones.elements())
        return [base * self.gamma**count for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """lr = initial lr · factor for `total_iters` epochs, then the initial lr.

    Args:
        optimizer: the optimizer whose learning rates are set.
        factor: in [0, 1] (default 1/3).
        total_iters: number of epochs (default 5).
        last_epoch: index of the last epoch; -1 (default) starts a new schedule.

    Raises:
        ValueError: `factor` is out of range.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> for _ in range(3):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step(); scheduler.step()
    [0.5]
    [0.5]
    [1.0]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
                 last_epoch: int = -1) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_unless_in_step()
        if self.last_epoch == 0:
            return self._scaled_lrs(self.factor)
        return self._scaled_lrs(1.0 / self.factor if self.last_epoch == self.total_iters else None)

    def _get_closed_form_lr(self) -> list[Any]:
        active = self.last_epoch < self.total_iters
        return [base * (self.factor + (not active) * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """lr = initial lr · f, with f linear in the epoch, from `start_factor` to `end_factor` in `total_iters` epochs.

    Args:
        optimizer: the optimizer whose learning rates are set.
        start_factor: in (0, 1] (default 1/3).
        end_factor: in [0, 1] (default 1).
        total_iters: number of epochs (default 5).
        last_epoch: index of the last epoch; -1 (default) starts a new schedule.

    Raises:
        ValueError: a factor is out of range.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> for _ in range(3):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step(); scheduler.step()
    [0.5]
    [0.75]
    [1.0]
    """

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
                 total_iters: int = 5, last_epoch: int = -1) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_unless_in_step()
        if self.last_epoch == 0:
            return self._scaled_lrs(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._scaled_lrs(None)
        slope = self.end_factor - self.start_factor
        return self._scaled_lrs(1.0 + slope / (self.total_iters * self.start_factor + (self.last_epoch - 1) * slope))

    def _get_closed_form_lr(self) -> list[Any]:
        slope = self.end_factor - self.start_factor
        factor = self.start_factor + slope * min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * factor for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """lr ← lr · gamma, in every epoch.

    Args:
        optimizer: the optimizer whose learning rates are set.
        gamma: factor.
        last_epoch: index of the last epoch; -1 (default) starts a new schedule.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for _ in range(3):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step(); scheduler.step()
    [1.0]
    [0.5]
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_unless_in_step()
        return self._scaled_lrs(None if self._is_initial else self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """lr = initial lr · (1 - epoch / total_iters)^power; 0 from epoch `total_iters` on.

    Args:
        optimizer: the optimizer whose learning rates are set.
        total_iters: number of epochs (default 5).
        power: exponent (default 1).
        last_epoch: index of the last epoch; -1 (default) starts a new schedule.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> for _ in range(5):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step(); scheduler.step()
    [1.0]
    [0.75]
    [0.5]
    [0.25]
    [0.0]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0,
                 last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_unless_in_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._scaled_lrs(None)
        now = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._scaled_lrs((now / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Any]:
        now = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * now**self.power for base in self.base_lrs]
