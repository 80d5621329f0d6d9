"""Functional optimizers: they are given gradients, one parameter at a time or all at once, and read no `.grad`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from ...optim.adadelta import Adadelta
from ...optim.adagrad import Adagrad
from ...optim.adam import Adam
from ...optim.adamax import Adamax
from ...optim.adamw import AdamW
from ...optim.optimizer import Optimizer
from ...optim.rmsprop import RMSprop
from ...optim.rprop import Rprop
from ...optim.sgd import SGD
from ...warning_location import user_stacklevel

_DEPRECATED = ("`TorchScript` support for functional optimizers is deprecated and will be removed in a future PyTorch "
               "release. Consider using the `torch.compile` optimizer instead.")


class _FunctionalOptimizer:
    """An optimizer that takes steps with gradients it is given.

    Args:
        params: the parameters of `step`; `step_param` takes others, too.
        args, options: those of the optimizer.

    Attributes:
        state: parameter -> its state.
        param_group: the parameters.

    Raises:
        ValueError: an option is out of range, or there are no parameters.
    """

    _optimizer: type[Optimizer]

    def __init__(self, params: Sequence[Tensor], *args: Any, _allow_empty_param_list: bool = False,
                 **options: Any) -> None:
        warnings.warn(_DEPRECATED, DeprecationWarning, stacklevel=user_stacklevel())
        params = list(params)
        options = {name: value for name, value in options.items()
                   if name not in ("foreach", "fused", "coalesce_grad", "warmup_lr_multiplier", "warmup_num_iters")}
        if not params and not _allow_empty_param_list:
            raise ValueError("optimizer got an empty parameter list")
        self._arguments, self._options = args, options
        self._make([Tensor([0.0])])  # the options are checked now
        self._owners: dict[int, Optimizer] = {}
        self._together = self._make(params) if params else None
        self.param_group: dict[str, list[Tensor]] = {"params": params}
        self.defaults = {name: value for name, value in options.items() if isinstance(value, float)}

    def _make(self, params: list[Tensor]) -> Optimizer:
        make: Any = self._optimizer
        return make(params, *self._arguments, **self._options)

    @property
    def state(self) -> dict[Tensor, Any]:
        """Parameter -> its state."""
        owners = [*([self._together] if self._together is not None else []), *self._owners.values()]
        return {p: state for owner in owners for p, state in owner.state.items()}

    def step_param(self, param: Tensor, grad: Tensor | None) -> None:
        """Update one parameter."""
        if grad is None:
            return
        if self._together is not None and any(p is param for p in self.param_group["params"]):
            owner = self._together
        else:
            found = self._owners.get(id(param))
            owner = found if found is not None else self._make([param])
            self._owners[id(param)] = owner
        _step(owner, [param], [grad])

    def step(self, gradients: Sequence[Tensor | None]) -> None:
        """Update the parameters that have a gradient.

        Raises:
            ValueError: not one gradient for each parameter.
        """
        params = self.param_group["params"]
        if len(params) != len(gradients):
            raise ValueError("the gradients passed in does not equal to the size of the parameters!"
                             f"Params length: {len(params)}. Gradients length: {len(gradients)}")
        if self._together is not None:
            _step(self._together, params, gradients)


def _step(owner: Optimizer, params: Sequence[Tensor], gradients: Sequence[Tensor | None]) -> None:
    """A step of an optimizer with gradients in place of those of its parameters."""
    every = [p for group in owner.param_groups for p in group["params"]]
    former = [p.grad for p in every]
    for p in every:
        p.grad = None
    try:
        for p, gradient in zip(params, gradients, strict=True):
            p.grad = gradient
        owner.step()
    finally:
        for p, gradient in zip(every, former, strict=True):
            p.grad = gradient


class _FunctionalSGD(_FunctionalOptimizer):
    _optimizer = SGD


class _FunctionalAdam(_FunctionalOptimizer):
    _optimizer = Adam


class _FunctionalAdamW(_FunctionalOptimizer):
    _optimizer = AdamW


class _FunctionalAdadelta(_FunctionalOptimizer):
    _optimizer = Adadelta


class _FunctionalAdagrad(_FunctionalOptimizer):
    _optimizer = Adagrad


class _FunctionalAdamax(_FunctionalOptimizer):
    _optimizer = Adamax


class _FunctionalRMSprop(_FunctionalOptimizer):
    _optimizer = RMSprop


class _FunctionalRprop(_FunctionalOptimizer):
    _optimizer = Rprop


__all__ = ["_FunctionalAdadelta", "_FunctionalAdagrad", "_FunctionalAdam", "_FunctionalAdamW", "_FunctionalAdamax",
           "_FunctionalRMSprop", "_FunctionalRprop", "_FunctionalSGD"]
