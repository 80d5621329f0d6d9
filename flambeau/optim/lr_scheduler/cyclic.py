"""Cyclical schedules; momentum varies in the opposite direction."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from functools import partial
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, check_optimizer, per_group, set_option

__all__ = ["CyclicLR", "OneCycleLR"]


def init_momentum(optimizer: Optimizer, base: list[Any], max_momentums: list[Any], is_start: bool) -> bool:
    """Set the momentum of each group to its maximum, at the start; return whether momentum is beta1 of Adam."""
    use_beta1 = "betas" in optimizer.defaults
    if is_start:
        for high, low, group in zip(max_momentums, base, optimizer.param_groups, strict=True):
            set_momentum(group, high, use_beta1)
            group["max_momentum"] = high
            group["base_momentum"] = low
    return use_beta1


def check_momentum(optimizer: Optimizer) -> None:
    """Raise ValueError unless the optimizer has a momentum."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")


def set_momentum(group: dict[str, Any], momentum: Any, use_beta1: bool) -> None:
    """Set the momentum of a group, or beta1 of Adam."""
    if use_beta1:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


class CyclicLR(LRScheduler):
    """A triangular wave between `base_lr` and `max_lr`: up in `step_size_up` steps, down in `step_size_down`.

    lr = base_lr + (max_lr - base_lr) · position · amplitude, with position in [0, 1]. Call `step` after each batch.
    Source: Smith, "Cyclical Learning Rates for Training Neural Networks" (2017).

    Args:
        optimizer: the optimizer whose learning rates are set.
        base_lr: lower bound; one number, or a list with one per group.
        max_lr: upper bound, in the same form.
        step_size_up: steps of the rising half (default 2000).
        step_size_down: steps of the falling half (default: `step_size_up`).
        mode: amplitude: "triangular" (1), "triangular2" (½^(cycle - 1)) or "exp_range" (gamma^step).
        gamma: base of mode "exp_range" (default 1).
        scale_fn: amplitude, as a function of the number of the cycle or step; replaces `mode`.
        scale_mode: argument of `scale_fn`: "cycle" (default) or "iterations".
        cycle_momentum: vary the momentum (of Adam: beta1) from `max_momentum` to `base_momentum` and back.
        base_momentum: lower bound of the momentum (default 0.8).
        max_momentum: upper bound of the momentum (default 0.9).
        last_epoch: index of the last step; -1 (default) starts a new schedule.

    Raises:
        TypeError: `optimizer` is not an `Optimizer`.
        ValueError: unknown `mode`; or `cycle_momentum`, and the optimizer has no momentum.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.5, 1.0, step_size_up=2, cycle_momentum=False)
    >>> for _ in range(5):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step(); scheduler.step()
    [0.5]
    [0.75]
    [1.0]
    [0.75]
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
                 step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
                 scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
                 cycle_momentum: bool = True, base_momentum: Any = 0.8, max_momentum: Any = 0.9,
                 last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_option(group, "lr", lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = float(step_size_down) if step_size_down is not None else up
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            check_momentum(optimizer)
            self.use_beta1 = "betas" in optimizer.defaults
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
            self.use_beta1 = init_momentum(optimizer, self.base_momentums, self.max_momentums, last_epoch == -1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    @property
    def _scale_fn_ref(self) -> Callable[[float], float]:
        """The function of the mode; unused if the user gave one."""
        if self.mode == "exp_range":
            return partial(self._exp_range_scale_fn, self.gamma)
        return self._triangular2_scale_fn if self.mode == "triangular2" else self._triangular_scale_fn

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 1 / (2.0 ** (x - 1))

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return gamma**x

    def scale_fn(self, x: float) -> float:
        """The amplitude of cycle or step number `x`."""
        return (self._scale_fn_custom or self._scale_fn_ref)(x)

    def get_lr(self) -> list[Any]:
        self._warn_unless_in_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        position = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        amplitude = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for low, high, group in zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups,
                                        strict=True):
                set_momentum(group, high - (high - low) * position * amplitude, self.use_beta1)
        return [low + (high - low) * position * amplitude
                for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """The attributes, without the optimizer; of a callable object `scale_fn`, its `__dict__`."""
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        is_object = function is not None and not isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = function.__dict__.copy() if is_object else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        attributes = state_dict["_scale_fn_custom"]
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)


class OneCycleLR(LRScheduler):
    """One cycle: the lr rises from max_lr / div_factor to `max_lr`, then falls to initial lr / final_div_factor.

    Momentum falls and rises in the opposite direction. Call `step` after each batch.
    Source: Smith and Topin, "Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates"
    (2018).

    Args:
        optimizer: the optimizer whose learning rates are set.
        max_lr: largest learning rate; one number, or a list with one per group.
        total_steps: length of the cycle in steps.
        epochs: with `steps_per_epoch`, gives the length if `total_steps` is None.
        steps_per_epoch: see `epochs`.
        pct_start: share of the steps in which the lr rises, in [0, 1] (default 0.3).
        anneal_strategy: interpolation, "cos" (default) or "linear".
        cycle_momentum: vary the momentum (of Adam: beta1).
        base_momentum: lower bound of the momentum (default 0.85).
        max_momentum: upper bound of the momentum (default 0.95).
        div_factor: initial lr = max_lr / div_factor (default 25).
        final_div_factor: last lr = initial lr / final_div_factor (default 1e4).
        three_phase: fall to the initial lr symmetrically first, and to the last lr in a third phase.
        last_epoch: index of the last step; -1 (default) starts a new schedule.

    Raises:
        TypeError: `optimizer` is not an `Optimizer`.
        ValueError: no length is given, an argument is out of range, or the optimizer has no momentum; in `step`: after
            the last step.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1, momentum=0.9)
    >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=4, pct_start=0.5)
    >>> for _ in range(4):
    ...     print([round(lr, 4) for lr in scheduler.get_last_lr()])
    ...     optimizer.step()
    ...     if _ < 3: scheduler.step()
    [0.04]
    [1.0]
    [0.5]
    [0.0]
    """

    def __init__(self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None,
                 epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
                 anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: Any = 0.85,
                 max_momentum: Any = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
                 three_phase: bool = False, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        if total_steps is not None:
            _check_positive("total_steps", total_steps)
            self.total_steps = total_steps
        elif epochs is not None and steps_per_epoch is not None:
            _check_positive("epochs", epochs)
            _check_positive("steps_per_epoch", steps_per_epoch)
            self.total_steps = epochs * steps_per_epoch
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        warmup_end = float(pct_start * self.total_steps) - 1
        phases = [_phase(warmup_end, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            fall_end = float(2 * pct_start * self.total_steps) - 2
            phases.append(_phase(fall_end, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
            phases.append(_phase(self.total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
        else:
            phases.append(_phase(self.total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
        self._schedule_phases = phases
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        max_lrs = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for lr, group in zip(max_lrs, optimizer.param_groups, strict=True):
                group["initial_lr"] = lr / div_factor
                group["max_lr"] = lr
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            check_momentum(optimizer)
            max_momentums = per_group("max_momentum", optimizer, max_momentum)
            base = per_group("base_momentum", optimizer, base_momentum)
            self.use_beta1 = init_momentum(optimizer, base, max_momentums, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: Any, end: Any, pct: float) -> Any:
        kind = getattr(self, "_anneal_func_type", None)
        if kind is None:  # from a state of PyTorch before 2.0, which holds the function
            return self.__dict__["anneal_func"](start, end, pct)
        return (self._annealing_linear if kind == "linear" else self._annealing_cos)(start, end, pct)

    @staticmethod
    def _annealing_cos(start: Any, end: Any, pct: float) -> Any:
        """The value at a share of a phase, along half a cosine."""
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start: Any, end: Any, pct: float) -> Any:
        """The value at a share of a phase, along a line."""
        return (end - start) * pct + start

    def get_lr(self) -> list[Any]:
        self._warn_unless_in_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start: float = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        pct = (step - start) / (phase["end_step"] - start)
        lrs = []
        for group in self.optimizer.param_groups:
            lrs.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], pct))
            if self.cycle_momentum:
                momentum = self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], pct)
                set_momentum(group, momentum, self.use_beta1)
        return lrs


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")


def _phase(end: float, start_lr: str, end_lr: str, start_momentum: str, end_momentum: str) -> dict[str, Any]:
    return {"end_step": end, "start_lr": start_lr, "end_lr": end_lr, "start_momentum": start_momentum,
            "end_momentum": end_momentum}
