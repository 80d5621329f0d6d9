"""`contract`: functions that change how modules are trained, but no names of parameters, buffers and submodules."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from ...nn.modules.module import Module

__all__ = ["RegistryItem", "contract"]

STATE_KEY = f"__composable_api_state_key{uuid.uuid4()}"
REGISTRY_KEY = f"__composable_api_registry_key{uuid.uuid4()}"


class RegistryItem:
    """A function that was applied to modules."""


class _State:
    """What a function keeps of the modules that it was applied to."""


def contract(state_cls: type[Any] = _State) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function of a module, or of several: it may be applied to a module once, and may change no names.

    Its attribute `state` is a function of a module that returns what belongs to it.

    Args:
        state_cls: the class of the state, made without arguments.

    Raises:
        AssertionError: the function was applied to a module already, or returns another number of modules.
        RuntimeError: it changes names (PyTorch's texts).

    >>> from flambeau import nn
    >>> from flambeau.distributed._composable import contract
    >>> @contract()
    ... def mark(module):
    ...     mark.state(module).text = "marked"
    >>> layer = mark(nn.Linear(1, 1))
    >>> mark.state(layer).text
    'marked'
    """
    def decorate(func: Callable[..., Any]) -> Any:
        @wraps(func)
        def apply(module: Any, *args: Any, **kwargs: Any) -> Any:
            modules = [module] if isinstance(module, Module) else _roots(list(module))
            state, item = state_cls(), RegistryItem()
            for each in modules:
                states = each.__dict__.setdefault(STATE_KEY, OrderedDict())
                registry = each.__dict__.setdefault(REGISTRY_KEY, OrderedDict())
                if func in states or func.__name__ in registry:
                    raise AssertionError("Each distinct composable distributed API can only be applied to a module "
                                         f"once. {func.__name__} has already been applied to the following module:\n"
                                         f"{each}")
                states[func], registry[func.__name__] = state, item
            before = [_names(each) for each in modules]
            returned = func(module, *args, **kwargs)
            updated = module if returned is None else returned
            after = [_names(each) for each in (
                [updated] if isinstance(updated, Module) else _roots(list(module)))]
            if len(before) != len(after):
                raise AssertionError(f"{func.__name__} should return the same number of modules as input modules"
                                     f"Inputs: {len(before)} modules\nOutputs: {len(after)} modules")
            for old, new in zip(before, after, strict=True):
                for kind in old:
                    _check(old[kind], new[kind], kind)
            return updated

        apply.state = lambda module: module.__dict__.setdefault(STATE_KEY, {}).get(func)  # type: ignore[attr-defined]
        return apply

    return decorate


def _names(module: Module) -> dict[str, list[str]]:
    return {"parameters": [name for name, _ in module.named_parameters()],
            "buffers": [name for name, _ in module.named_buffers()],
            "modules": [name for name, _ in module.named_modules()]}


def _check(old: list[str], new: list[str], kind: str) -> None:
    if old == new:
        return
    lost, added = set(old) - set(new), set(new) - set(old)
    if lost or added:
        raise RuntimeError(f"Checking {kind}: Composable distributed API implementations cannot modify FQNs.\n"
                           f"FQNs only in original: {lost}\nFQNs only in new: {added}")
    raise RuntimeError(f"Checking {kind}: Composable distributed API implementations cannot modify the order of FQNs.\n"
                       f"Original FQNs: {lost}\nNew FQNs: {added}")


def _roots(modules: Sequence[Module]) -> list[Module]:
    """The modules that are in no other one of them."""
    below = {id(inner) for module in modules for inner in module.modules() if inner is not module}
    return [module for module in modules if id(module) not in below]


def _get_registry(module: Module) -> dict[str, RegistryItem] | None:
    """The functions that were applied to a module, by name; None if there are none."""
    return module.__dict__.get(REGISTRY_KEY)
