"""`torch._functorch.make_functional`: modules as functions of their parameters, without a warning of deprecation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ... import functorch
from ...functorch import FunctionalModule, FunctionalModuleWithBuffers
from ...nn import Module


def _silent(function: Callable[..., Any], *args: Any) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="We've integrated functorch into PyTorch", category=FutureWarning)
        return function(*args)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Any, ...]]:
    """A module as a function of its parameters, and its parameters.

    Raises:
        ValueError: it has buffers (`make_functional_with_buffers`).

    >>> import flambeau as torch
    >>> f, parameters = make_functional(torch.nn.Linear(2, 1))
    >>> f([torch.ones(1, 2), torch.zeros(1)], torch.tensor([2., 3.]))
    tensor([5.])
    """
    found: tuple[FunctionalModule, tuple[Any, ...]] = _silent(
        functorch.make_functional, model, disable_autograd_tracking)
    return found


def make_functional_with_buffers(model: Module, disable_autograd_tracking: bool = False
                                 ) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """A module as a function of its parameters and buffers, its parameters, and its buffers."""
    found: tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]] = _silent(
        functorch.make_functional_with_buffers, model, disable_autograd_tracking)
    return found


def combine_state_for_ensemble(models: Sequence[Module]
                               ) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Modules of one class as a function of parameters and buffers, and their stacked parameters and buffers.

    Raises:
        RuntimeError: no modules, or modules of different classes or modes.
    """
    found: tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]] = _silent(
        functorch.combine_state_for_ensemble, models)
    return found


__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "make_functional",
           "make_functional_with_buffers"]
