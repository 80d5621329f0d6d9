"""LRScheduler: the base class of learning rate schedulers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any
from weakref import ref

from ..._tensor import Tensor
from ..optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose.")
HOW_TO_ADJUST = "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


def copy_value(value: Any) -> Any:
    """The value; a tensor is cloned, because later steps write to it."""
    return value.clone() if isinstance(value, Tensor) else value


def group_values(optimizer: Optimizer, name: str) -> list[Any]:
    """The value of an option in each group."""
    return [copy_value(group[name]) for group in optimizer.param_groups]


def set_option(group: dict[str, Any], name: str, value: Any) -> None:
    """Set an option of a group; a tensor is written in place."""
    if isinstance(group[name], Tensor):
        group[name].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[name] = value


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A list of one value per group, from a list or from one value for all.

    Raises:
        ValueError: the length of the list is not the number of groups.
    """
    groups = optimizer.param_groups
    if not isinstance(value, list | tuple):
        value = [value] * len(groups)
    elif len(value) != len(groups):
        raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
                         f"values, param_groups has {len(groups)}.")
    return [copy_value(v) for v in value]


def check_optimizer(optimizer: Any) -> None:
    """Raise TypeError unless `optimizer` is an `Optimizer`."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


@contextmanager
def _enable_get_lr_call(o: Any) -> Iterator[Any]:
    """A block in which `get_lr` of a scheduler does not warn."""
    o._get_lr_called_within_step = True
    try:
        yield o
    finally:
        o._get_lr_called_within_step = False


class LRScheduler:
    """Base class of learning rate schedulers: `step` sets the "lr" of each group to what `get_lr` returns.

    Args:
        optimizer: the optimizer; its initial learning rates are saved as "initial_lr" in the groups.
        last_epoch: index of the last epoch; -1 (default) starts a new schedule.

    Raises:
        TypeError: `optimizer` is not an `Optimizer`.
        KeyError: `last_epoch` is not -1, and a group has no "initial_lr".

    >>> import flambeau as torch
    >>> class InverseLR(torch.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [base / (1 + self.last_epoch) for base in self.base_lrs]
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> scheduler = InverseLR(optimizer)
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.5]
    """

    _get_lr_called_within_step: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copy_value(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0.\nThis typically happens when:\n"
                    "1. You're trying to resume training from a checkpoint but haven't properly loaded the "
                    "optimizer state\n2. You're using last_epoch >= 0 for a fresh training run (not recommended)")
        self.base_lrs = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._wrap_optimizer_step()
        self._initial_step()

    def _wrap_optimizer_step(self) -> None:
        """Wrap `optimizer.step` to record that it was called: `step` warns if the order of the two is wrong."""
        step = self.optimizer.step
        if hasattr(step, "_wrapped_by_lr_sched"):
            return
        # the optimizer holds the wrapper, which therefore holds the optimizer weakly
        optimizer, function = ref(self.optimizer), getattr(step, "__func__", None)
        plain: Any = step if function is None else None

        @wraps(step)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            own: Any = optimizer()
            own._opt_called = True
            return plain(*args, **kwargs) if function is None else function(own, *args, **kwargs)

        del wrapped.__wrapped__  # a bound method
        wrapped._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
        self.optimizer.step = wrapped  # type: ignore[method-assign]

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """The attributes, without the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The learning rate of each group, as the last step set it."""
        return [copy_value(lr) for lr in self._last_lr]

    def get_lr(self) -> list[Any]:
        """The learning rate of each group in epoch `last_epoch`; may depend on the current ones."""
        raise NotImplementedError

    def _scaled_lrs(self, factor: float | None) -> list[Any]:
        """The learning rate of each group times a factor; None: unchanged."""
        if factor is None:
            return group_values(self.optimizer, "lr")
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _warn_unless_in_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                          UserWarning, stacklevel=2)

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch, and set the learning rates.

        Args:
            epoch: deprecated; the epoch to go to.
        """
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn("Seems like `optimizer.step()` has been overridden after learning rate scheduler "
                              "initialization. Please, make sure to call `optimizer.step()` before "
                              f"`lr_scheduler.step()`. See more details at {HOW_TO_ADJUST}", UserWarning,
                              stacklevel=2)
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn("Detected call of `lr_scheduler.step()` before `optimizer.step()`. "
                              "In PyTorch 1.1.0 and later, you should call them in the opposite order: "
                              "`optimizer.step()` before `lr_scheduler.step()`.  Failure to do this "
                              "will result in PyTorch skipping the first value of the learning rate schedule. "
                              f"See more details at {HOW_TO_ADJUST}", UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with _enable_get_lr_call(self):
            if epoch is None:
                self.last_epoch += 1
                lrs = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form: Callable[[], list[Any]] | None = getattr(self, "_get_closed_form_lr", None)
                lrs = self.get_lr() if closed_form is None else closed_form()
        self._set_lrs(lrs)

    def _set_lrs(self, lrs: list[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, lrs, strict=True):
            set_option(group, "lr", lr)
        self._last_lr = group_values(self.optimizer, "lr")


_LRScheduler = LRScheduler
