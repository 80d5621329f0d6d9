"""`torch.distributed.optim.utils`: which functional optimizer stands for which optimizer."""

from __future__ import annotations

from typing import Any

from ...optim.adadelta import Adadelta
from ...optim.adagrad import Adagrad
from ...optim.adam import Adam
from ...optim.adamax import Adamax
from ...optim.adamw import AdamW
from ...optim.rmsprop import RMSprop
from ...optim.rprop import Rprop
from ...optim.sgd import SGD
from . import functional_optimizers as functional

#: optimizer class, or another key -> functional optimizer class
functional_optim_map: dict[Any, Any] = {
    Adagrad: functional._FunctionalAdagrad, Adam: functional._FunctionalAdam,
    AdamW: functional._FunctionalAdamW, SGD: functional._FunctionalSGD,
    Adadelta: functional._FunctionalAdadelta, RMSprop: functional._FunctionalRMSprop,
    Rprop: functional._FunctionalRprop, Adamax: functional._FunctionalAdamax}


def register_functional_optim(key: Any, optim: Any) -> None:
    """Enter a functional optimizer, unless there is one."""
    functional_optim_map.setdefault(key, optim)


def as_functional_optim(optim_cls: type, *args: Any, **kwargs: Any) -> Any:
    """The functional optimizer of an optimizer class, without parameters.

    Raises:
        ValueError: there is none.

    >>> import warnings
    >>> import flambeau as torch
    >>> from flambeau.distributed.optim.utils import as_functional_optim
    >>> with warnings.catch_warnings(action="ignore"):
    ...     sgd = as_functional_optim(torch.optim.SGD, lr=0.5)
    >>> x = torch.nn.Parameter(torch.ones(2))
    >>> sgd.step_param(x, torch.ones(2))
    >>> x
    Parameter containing:
    tensor([0.5000, 0.5000], requires_grad=True)
    """
    found = functional_optim_map.get(optim_cls)
    if found is None:
        raise ValueError(f"Optimizer {optim_cls} does not have a functional counterpart!")
    return found([], *args, **kwargs, _allow_empty_param_list=True)


__all__ = ["as_functional_optim", "functional_optim_map", "register_functional_optim"]
