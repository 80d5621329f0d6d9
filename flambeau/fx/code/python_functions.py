"""The calls that handlers see of functions which PyTorch writes in Python: these pass on all their arguments.

A parameter without default is passed by position, any other by keyword: `softmax(x, 1)` becomes
`softmax(x, dim=1, _stacklevel=3, dtype=None)`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .torch_names import find

#: functions whose parameters are all passed by keyword
_BY_KEYWORD = frozenset(f"torch.nn.init.{name}" for name in ("uniform_", "normal_", "constant_", "kaiming_uniform_"))
_LEFT_OUT = {"torch.nn.functional.l1_loss": ("weight",), "torch.functional.split": ("split_size",)}
_POSITIONAL = {"torch.functional.split": ("split_size_or_sections",)}
#: functions that call a method of their argument
_METHODS = {"torch.nn.functional.tanh": "tanh", "torch.nn.functional.sigmoid": "sigmoid"}
#: functions of `torch.nn.init` and others that do not ask for overrides
_PREFIXES = ("torch.nn.functional.", "torch.functional.")


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def method_of(function: Any) -> str | None:
    """The method that a function calls; None: it is a function."""
    name = find(function)
    return None if name is None else _METHODS.get(name)


#: functions that choose another one by their parameter `return_indices`, which must be known
_WITH_INDICES = frozenset(f"torch.nn.functional.{name}" for name in (
    "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "fractional_max_pool2d",
    "fractional_max_pool3d", "max_pool1d", "max_pool2d", "max_pool3d"))


def complete(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that handlers are given of a call."""
    name = find(function)
    if name is None or not (name.startswith(_PREFIXES) or name in _BY_KEYWORD):
        return args, kwargs
    signature = _signature(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return args, kwargs
    bound.apply_defaults()
    if name in _WITH_INDICES:
        bool(bound.arguments["return_indices"])  # a proxy raises
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        value = bound.arguments[parameter.name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional.extend(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.update(value)
        elif parameter.name in _LEFT_OUT.get(name, ()):
            continue
        elif parameter.name in _POSITIONAL.get(name, ()) or (
                parameter.default is parameter.empty and not named and name not in _BY_KEYWORD):
            positional.append(value)
        else:
            named[parameter.name] = value
    return tuple(positional), named


__all__ = ["complete", "method_of"]
