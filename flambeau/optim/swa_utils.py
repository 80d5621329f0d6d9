"""Averages of models over training: stochastic weight averaging (SWA) and exponential moving averages (EMA)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from .. import dtypes
from .._tensor import Tensor, foreach, no_grad
from .._tensor import functions as fn
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from .lr_scheduler import LRScheduler
from .lr_scheduler.base import per_group
from .optimizer import Optimizer
from .tensor_groups import _group_tensors_by_device_and_dtype

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
           "get_swa_multi_avg_fn", "update_bn"]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _is_inexact(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """A function that updates exponential moving averages of a list of parameters in place.

    Args:
        decay: weight of the average, in [0, 1].

    Raises:
        ValueError: `decay` is out of range.

    >>> import flambeau as torch
    >>> average = [torch.zeros(1)]
    >>> torch.optim.swa_utils.get_ema_multi_avg_fn(0.75)(average, [torch.ones(1)], 1)
    >>> average
    [tensor([0.2500])]
    """
    _check_decay(decay)

    def ema_update(ema_param_list: list[Tensor], current_param_list: list[Tensor], _: Any) -> None:
        with no_grad():
            if _is_inexact(ema_param_list[0]):
                foreach._foreach_lerp_(ema_param_list, current_param_list, 1 - decay)  # type: ignore[attr-defined]
                return
            for average, current in zip(ema_param_list, current_param_list, strict=True):
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """A function that updates equally weighted averages of a list of parameters in place.

    >>> import flambeau as torch
    >>> average = [torch.zeros(1)]
    >>> torch.optim.swa_utils.get_swa_multi_avg_fn()(average, [torch.ones(1)], 1)
    >>> average
    [tensor([0.5000])]
    """

    def swa_update(averaged_param_list: list[Tensor], current_param_list: list[Tensor], num_averaged: Any) -> None:
        with no_grad():
            weight = 1 / (num_averaged + 1)
            if _is_inexact(averaged_param_list[0]):
                for average, current in zip(averaged_param_list, current_param_list, strict=True):
                    average.lerp_(current, weight.to(average.dtype) if isinstance(weight, Tensor) else weight)
                return
            differences = [c - a for a, c in zip(averaged_param_list, current_param_list, strict=True)]
            for average, difference in zip(averaged_param_list, differences, strict=True):
                if isinstance(num_averaged, Tensor):
                    average.addcdiv_(difference, num_averaged + 1)
                else:
                    average.add_(difference, alpha=weight)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """A function that returns the exponential moving average of one parameter: decay · average + (1 - decay) · p.

    Args:
        decay: weight of the average, in [0, 1].

    Raises:
        ValueError: `decay` is out of range.

    >>> import flambeau as torch
    >>> torch.optim.swa_utils.get_ema_avg_fn(0.75)(torch.zeros(1), torch.ones(1), 1)
    tensor([0.2500])
    """
    _check_decay(decay)

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """A function that returns the equally weighted average of one parameter: average + (p - average) / (n + 1).

    >>> import flambeau as torch
    >>> torch.optim.swa_utils.get_swa_avg_fn()(torch.zeros(1), torch.ones(1), 1)
    tensor([0.5000])
    """

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's parameters over updates.

    Args:
        model: the model.
        device: device of the copy.
        avg_fn: maps (average, parameter, number of averaged models) to the new average; equal weights by default.
        multi_avg_fn: the same for lists of parameters, in place.
        use_buffers: average buffers too; otherwise they are copied.

    Raises:
        AssertionError: both functions are given.

    >>> import flambeau as torch
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> averaged = torch.optim.swa_utils.AveragedModel(model)
    >>> for value in (1., 3.):
    ...     _ = model.weight.data.fill_(value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item()
    2.0
    """

    n_averaged: Tensor

    def __init__(self, model: Module, device: Any = None, avg_fn: Callable[..., Tensor] | None = None,
                 multi_avg_fn: Callable[..., None] | None = None, use_buffers: bool = False) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", fn.tensor(0, dtype=dtypes.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Include the present parameters of a model in the averages."""
        if self.use_buffers:
            own = chain(self.module.parameters(), self.module.buffers())
            others = chain(model.parameters(), model.buffers())
        else:
            own, others = self.parameters(), model.parameters()  # type: ignore[assignment]
        averages, values = [], []
        first = bool(self.n_averaged == 0)
        for average, value in zip(own, others, strict=False):
            averages.append(average.detach())
            values.append(value.detach().to(average.device))
            if first:
                averages[-1].copy_(values[-1])
        if not first:
            self._average(averages, values)
        if not self.use_buffers:
            for own_buffer, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
                own_buffer.detach().copy_(buffer.detach().to(own_buffer.device))
        self.n_averaged += 1

    def _average(self, averages: list[Tensor], values: list[Tensor]) -> None:
        if self.multi_avg_fn is None:
            average_of = self.avg_fn or get_swa_avg_fn()
            for average, value in zip(averages, values, strict=True):
                average.copy_(average_of(average, value, self.n_averaged.to(average.device)))
            return
        groups = _group_tensors_by_device_and_dtype([averages, values])
        for (device, _), ((own, others), _) in groups.items():
            self.multi_avg_fn(own, others, self.n_averaged.to(device))


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of all batch normalization layers by a pass over the data.

    Args:
        loader: yields inputs of the model, or tuples or lists whose first item is one.
        model: the model.
        device: device of the inputs.

    >>> import flambeau as torch
    >>> model = torch.nn.BatchNorm1d(1)
    >>> torch.optim.swa_utils.update_bn([torch.tensor([[1.], [3.]])], model)
    >>> model.running_mean
    tensor([2.])
    """
    with no_grad():
        momenta = {}
        for module in model.modules():
            if isinstance(module, _BatchNorm):
                module.reset_running_stats()
                momenta[module] = module.momentum
        if not momenta:
            return
        was_training = model.training
        model.train()
        for module in momenta:
            module.momentum = None  # cumulative averages
        for input in loader:
            if isinstance(input, list | tuple):
                input = input[0]
            model(input if device is None else input.to(device))
        for module, momentum in momenta.items():
            module.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the learning rate of each group to a constant one, for stochastic weight averaging.

    Args:
        optimizer: the optimizer.
        swa_lr: the final learning rate, or one per group.
        anneal_epochs: number of epochs of the annealing.
        anneal_strategy: "cos" or "linear".
        last_epoch: index of the last epoch.

    Raises:
        ValueError: the strategy is unknown, or `anneal_epochs` is negative.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> scheduler = torch.optim.swa_utils.SWALR(optimizer, 0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.75]
    """

    def __init__(self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos",
                 last_epoch: int = -1) -> None:
        for group, value in zip(optimizer.param_groups, per_group("swa_lr", optimizer, swa_lr), strict=True):
            group["swa_lr"] = value
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._set_anneal_func(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _linear_anneal(t: float) -> float:
        return t

    @staticmethod
    def _cosine_anneal(t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2

    @staticmethod
    def _get_initial_lr(lr: Any, swa_lr: Any, alpha: float) -> Any:
        """The learning rate before annealing, from the present one."""
        return swa_lr if alpha == 1 else (lr - alpha * swa_lr) / (1 - alpha)

    def get_lr(self) -> list[Any]:
        """The learning rates of the present epoch."""
        if not self._get_lr_called_within_step:
            warnings.warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                          UserWarning, stacklevel=2)
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before = self.anneal_func(max(0, min(1, (step - 1) / max(1, self.anneal_epochs))))
        now = self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))
        groups = self.optimizer.param_groups
        initial = [self._get_initial_lr(group["lr"], group["swa_lr"], before) for group in groups]
        return [group["swa_lr"] * now + lr * (1 - now) for group, lr in zip(groups, initial, strict=True)]

    def _set_anneal_func(self, anneal_strategy: str) -> None:
        self._anneal_strategy = anneal_strategy
        self.anneal_func = self._cosine_anneal if anneal_strategy == "cos" else self._linear_anneal

    def state_dict(self) -> dict[str, Any]:
        """All attributes except the optimizer and the annealing function."""
        return {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "anneal_func")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a `state_dict`."""
        self.__dict__.update(state_dict)
        self._set_anneal_func(self._anneal_strategy)
