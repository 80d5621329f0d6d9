"""What a function sees without being handed it: names of its module, variables of functions around it, modules.

A program was written down with these as they were. Names are compared by identity at every call. Of modules, only
their count of changes is looked at (`modes.configured`); when it has moved, their modes, parameters, hooks and plain
attributes are compared with what they were.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

from ..tensor import Tensor

_PACKAGE = __name__.partition(".")[0]
#: functions that call functions that call functions ... are looked into so deep
DEPTH = 4
_PLAIN = (bool, int, float, complex, str, bytes, type(None))

#: a holder of names, how a name is looked up in it, and what it was
Name = tuple[Any, str, Any]


def names_of(function: Any) -> list[Name]:
    """The names that decide what a function does, and what they mean now."""
    found: dict[tuple[int, str], Name] = {}
    for holder, key, value in _walk(function, DEPTH, set()):
        found.setdefault((id(holder), key), (holder, key, value))
    return list(found.values())


def _walk(function: Any, depth: int, seen: set[int]) -> Iterator[Name]:
    if isinstance(function, types.MethodType):
        function = function.__func__
    if not isinstance(function, types.FunctionType) or id(function) in seen or depth == 0:
        return
    if (function.__module__ or "").partition(".")[0] == _PACKAGE:
        return
    seen.add(id(function))
    code, space = function.__code__, function.__globals__
    for name in code.co_names:
        if name in space:
            yield from _named(space, f"[{name!r}]", space[name], depth, seen)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        del name
        try:
            value = cell.cell_contents
        except ValueError:  # not set yet
            continue
        yield from _named(cell, ".cell_contents", value, depth, seen)


def _named(holder: Any, key: str, value: Any, depth: int, seen: set[int]) -> Iterator[Name]:
    if isinstance(value, (*_PLAIN, Tensor, types.FunctionType, types.MethodType)) or _is_module(value):
        yield holder, key, value
        yield from _walk(value, depth - 1, seen)


def _is_module(value: Any) -> bool:
    from ..nn import Module

    return isinstance(value, Module)


def snapshot(module: Any) -> tuple[Any, ...]:
    """What of a module decides what it computes, apart from its parameters' numbers."""
    own = module.__dict__
    plain = tuple((name, value) for name, value in own.items() if isinstance(value, _PLAIN))
    held = tuple((kind, name, id(value)) for kind in ("_parameters", "_buffers", "_modules")
                 for name, value in own[kind].items())
    hooks = tuple(tuple(own[kind]) for kind in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks",
                                                "_backward_pre_hooks"))
    return plain, held, hooks, type(module).forward


def comparison(modules: list[Any]) -> Callable[[], bool]:
    """A function that says whether modules are as they are now."""
    before = [snapshot(module) for module in modules]
    return lambda: all(snapshot(module) == was for module, was in zip(modules, before, strict=True))


def optimizer_comparison(groups: list[tuple[Any, dict[str, Any]]]) -> Callable[[], bool]:
    """A function that says whether optimizers have the groups, flags, parameters and states that they have now."""
    found = []
    for optimizer, group in groups:
        flags = {key: value for key, value in group.items() if isinstance(value, bool) or value is None}
        params = group["params"]
        states = [(p, optimizer.state.get(p), p._requires_grad, p._grad is None) for p in params]
        found.append((optimizer, len(optimizer.param_groups), group, flags, list(params), states))

    def is_same() -> bool:
        for optimizer, count, group, flags, params, states in found:
            if len(optimizer.param_groups) != count or len(group["params"]) != len(params):
                return False
            for key, value in flags.items():
                if group[key] is not value:
                    return False
            state = optimizer.state
            for p, known, requires_grad, without in states:
                if state.get(p) is not known or p._requires_grad is not requires_grad or (
                        without and p._grad is not None):
                    return False
        return True

    return is_same


__all__ = ["comparison", "names_of", "optimizer_comparison"]
