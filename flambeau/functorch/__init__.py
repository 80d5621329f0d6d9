"""`functorch`: the deprecated predecessor of `torch.func`.

Transforms are those of `flambeau.func`, with PyTorch's deprecation warning. `make_functional` converts a module to a
function of its parameters.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .. import func
from .._tensor import Tensor
from ..func.modules import reparametrized, stacked
from ..nn import Module


def _warn(name: str, instead: str) -> None:
    warnings.warn(
        "We've integrated functorch into PyTorch. As the final step of the integration, "
        f"`functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future version of PyTorch >= "
        f"2.3. Please use `{instead}` instead; see the PyTorch 2.0 release notes and/or the `torch.func` migration "
        "guide for more details https://pytorch.org/docs/main/func.migrating.html", FutureWarning, stacklevel=3)


def _deprecated(name: str) -> Callable[..., Any]:
    function = getattr(func, name)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _warn(name, "torch.vmap" if name == "vmap" else f"torch.func.{name}")
        return function(*args, **kwargs)

    return call


(functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap) = map(
    _deprecated, ("functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap"))


class FunctionalModule(Module):  # type: ignore[misc]
    """A module as a function of its parameters: `f(parameters, *args)`.

    Args:
        stateless_model: the module; its own parameters are not used.
        param_names: the names of the parameters, in the order of the argument `params`.
    """

    def __init__(self, stateless_model: Module, param_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(param_names)

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """The module's result with these parameters."""
        tensors = dict(zip(self.param_names, params, strict=True))
        with reparametrized(self.stateless_model, tensors):
            return self.stateless_model(*args, **kwargs)


class FunctionalModuleWithBuffers(Module):  # type: ignore[misc]
    """A module as a function of its parameters and buffers: `f(parameters, buffers, *args)`.

    Args:
        stateless_model: the module; its own parameters and buffers are not used.
        param_names: the names of the parameters, in the order of the argument `params`.
        buffer_names: the names of the buffers.
    """

    def __init__(self, stateless_model: Module, param_names: Sequence[str], buffer_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(param_names)
        self.buffer_names = tuple(buffer_names)

    def forward(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """The module's result with these parameters and buffers."""
        tensors = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True))
        with reparametrized(self.stateless_model, tensors):
            return self.stateless_model(*args, **kwargs)


def _copied(model: Module) -> tuple[Module, dict[str, Any], dict[str, Any]]:
    import copy

    return copy.deepcopy(model), dict(model.named_parameters()), dict(model.named_buffers())


def _as_parameters(values: Sequence[Any], without_tracking: bool) -> tuple[Any, ...]:
    return tuple(p.detach().requires_grad_(False) if without_tracking else p for p in values)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Any, ...]]:
    """A module as a function of its parameters, and its parameters.

    Raises:
        ValueError: it has buffers (`make_functional_with_buffers`).

    >>> import flambeau as torch, warnings
    >>> import flambeau.functorch as functorch
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     f, parameters = functorch.make_functional(torch.nn.Linear(2, 1))
    >>> f([torch.ones(1, 2), torch.zeros(1)], torch.tensor([2., 3.]))
    tensor([5.])
    """
    _warn("make_functional", "torch.func.functional_call")
    copied, parameters, buffers = _copied(model)
    if buffers:
        raise ValueError("make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) "
                         "instead.")
    return FunctionalModule(copied, tuple(parameters)), _as_parameters(tuple(parameters.values()),
                                                                       disable_autograd_tracking)


def make_functional_with_buffers(model: Module, disable_autograd_tracking: bool = False
                                 ) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """A module as a function of its parameters and buffers, its parameters, and its buffers."""
    _warn("make_functional_with_buffers", "torch.func.functional_call")
    copied, parameters, buffers = _copied(model)
    functional = FunctionalModuleWithBuffers(copied, tuple(parameters), tuple(buffers))
    return functional, _as_parameters(tuple(parameters.values()), disable_autograd_tracking), tuple(buffers.values())


def combine_state_for_ensemble(models: Sequence[Module]
                               ) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Modules of one class as a function of parameters and buffers, and their stacked parameters and buffers.

    Raises:
        RuntimeError: no modules, or modules of different classes or modes.
    """
    _warn("combine_state_for_ensemble", "torch.func.stack_module_state")
    if not len(models):
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or not any(m.training for m in models)):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    copied, parameters, buffers = _copied(models[0])
    functional = FunctionalModuleWithBuffers(copied, tuple(parameters), tuple(buffers))
    return (functional, tuple(stacked(name, [dict(m.named_parameters())[name] for m in models]) for name in parameters),
            tuple(stacked(name, [dict(m.named_buffers())[name] for m in models]) for name in buffers))


def __getattr__(name: str) -> Any:
    if name == "make_fx":
        from ..fx.experimental.proxy_tensor import make_fx

        return make_fx
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad",
           "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers",
           "make_fx", "vjp", "vmap"]
