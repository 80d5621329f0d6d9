"""`torch.overrides`: functions that handlers of `__torch_function__` replace, modes, functions of one's own.

Every function, method and property of tensors may be overridden: by a subclass of `Tensor`, by any other class with a
`__torch_function__`, and by a `TorchFunctionMode`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from ._tensor import Tensor
from ._tensor.argument_errors.guards import NOT_GIVEN
from ._tensor.overriding import entry_points, protocol
from ._tensor.overriding.asking import (
    _get_overloaded_args as _get_overloaded_args,
)
from ._tensor.overriding.asking import (
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
    is_tensor_like,
    wrap_torch_function,
)
from ._tensor.overriding.function_modes import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
)
from ._tensor.overriding.function_modes import (
    _enable_torch_function as _enable_torch_function,
)
from ._tensor.overriding.function_modes import (
    _get_current_function_mode as _get_current_function_mode,
)
from ._tensor.overriding.function_modes import (
    _get_current_function_mode_stack as _get_current_function_mode_stack,
)
from ._tensor.overriding.function_modes import (
    _get_function_stack_at as _get_function_stack_at,
)
from ._tensor.overriding.function_modes import (
    _is_torch_function_mode_enabled as _is_torch_function_mode_enabled,
)
from ._tensor.overriding.function_modes import (
    _len_torch_function_stack as _len_torch_function_stack,
)
from ._tensor.overriding.function_modes import (
    _pop_mode as _pop_mode,
)
from ._tensor.overriding.function_modes import (
    _pop_mode_temporarily as _pop_mode_temporarily,
)
from ._tensor.overriding.function_modes import (
    _push_mode as _push_mode,
)
from ._tensor.overriding.ignored import IGNORED
from .nn import functional, init
from .ops.aten import OpOverload, OpOverloadPacket
from .ops.declare import REGISTRY

# A program that imports this module may have classes with handlers, whose values the functions are to notice.
entry_points.watch()


def _namespaces() -> Iterator[tuple[str, Any, list[str]]]:
    import importlib

    package = importlib.import_module(__name__.rpartition(".")[0])
    yield "torch", package, sorted({*dir(package)} - {"functional"})
    if hasattr(package, "functional"):
        yield "torch.functional", package.functional, dir(package.functional)
    yield "torch.nn.functional", functional, [*dir(functional)]
    yield "torch.nn.init", init, dir(init)
    yield "torch.Tensor", Tensor, dir(Tensor)
    for name in ("linalg", "fft", "special"):
        module = getattr(package, name, None)
        if module is not None:
            yield f"torch.{name}", module, dir(module)


@functools.cache
def _listing() -> tuple[dict[Any, list[Callable[..., Any]]], dict[Any, str]]:
    """The overridable functions by namespace, and the names of all functions."""
    overridable: dict[Any, list[Callable[..., Any]]] = {}
    names: dict[Any, str] = {}
    entries = {id(public) for _, _, public in entry_points.named_entries()}
    properties = {name.removeprefix("torch.Tensor.").removesuffix(".__get__")
                  for name, _, _ in entry_points.named_entries() if name.endswith(".__get__")}
    for prefix, namespace, members in _namespaces():
        ignored = IGNORED.get(prefix.removeprefix("torch").lstrip("."), frozenset())
        for name in members:
            value = getattr(namespace, name, None)
            if namespace is Tensor:
                if getattr(object, name, None) == value or name == "__weakref__":
                    continue
                if isinstance(value, property):
                    names[value.__get__] = f"{prefix}.{name}.__get__"
                    names[value.__set__] = f"{prefix}.{name}.__set__"
                    if name not in ignored and name in properties:
                        overridable.setdefault(value, []).append(value.__get__)
                    continue
                private = False
            else:
                if name.startswith("__"):
                    continue
                private = name.startswith("_") or name.endswith("_") or not name[0].islower()
            if not isinstance(value, FunctionType):
                continue
            if namespace in (functional, init) and id(value) not in entries:
                continue
            names.setdefault(value, f"{prefix}.{name}")
            if not private and inspect.signature(value).parameters and name not in ignored and id(value) in entries:
                overridable.setdefault(namespace, []).append(value)
    return overridable, names


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that handlers may replace: namespace, or property, -> functions.

    >>> import flambeau as torch
    >>> torch.add in torch.overrides.get_overridable_functions()[torch]
    True
    """
    return _listing()[0]


def resolve_name(f: Any) -> str | None:
    """The qualified name of a function that a handler was given; None for an unknown function.

    >>> import flambeau as torch
    >>> torch.overrides.resolve_name(torch.Tensor.add)
    'torch.Tensor.add'
    """
    if isinstance(f, (OpOverload, OpOverloadPacket)):
        return str(f)
    return _listing()[1].get(f)


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function that a handler was given is a method, or reads a property, of `Tensor`.

    >>> import flambeau as torch
    >>> torch.overrides.is_tensor_method_or_property(torch.Tensor.add)
    True
    """
    return func in _tensor_methods() or func.__name__ == "__get__"


@functools.cache
def _tensor_methods() -> set[Callable[..., Any]]:
    return set(get_overridable_functions()[Tensor])


_get_tensor_methods = _tensor_methods


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """The functions of tensors that handlers of arguments cannot replace.

    >>> import flambeau as torch
    >>> torch.tensor in torch.overrides.get_ignored_functions()
    True
    """
    result: set[Callable[..., Any]] = set()
    for prefix, namespace, members in _namespaces():
        for name in IGNORED.get(prefix.removeprefix("torch").lstrip("."), frozenset()).intersection(members):
            value: Any = getattr(namespace, name)
            result.add(value.__get__ if isinstance(value, property) else value)
    return result


@functools.cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """A function of the same parameters that returns -1, for each overridable function.

    >>> import flambeau as torch
    >>> torch.overrides.get_testing_overrides()[torch.add](torch.ones(1), 2)
    -1
    """
    result: dict[Callable[..., Any], Callable[..., Any]] = {}
    for listed in get_overridable_functions().values():
        for func in listed:
            result[func] = eval(f"lambda {_parameters(func)}: -1")
    return result


def _parameters(func: Callable[..., Any]) -> str:
    """The parameters of a function as source text, with None as default."""
    if not isinstance(func, FunctionType):
        return "self"
    op = REGISTRY.get(func.__name__.removesuffix("_"))
    signature = inspect.signature(func)
    if op is not None and any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()):
        required = len(op.inputs) - op.n_optional
        return ", ".join([*op.inputs[:required], *(f"{name}=None" for name in op.inputs[required:]),
                          *(f"{name}=None" for name in op.params), "out=None"])
    parts: list[str] = []
    for p in signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL or p.kind is p.VAR_KEYWORD:
            parts.append(("*" if p.kind is p.VAR_POSITIONAL else "**") + p.name)
        else:
            if p.kind is p.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
                parts.append("*")
            needed = (p.default is p.empty or p.default is NOT_GIVEN) and p.kind is not p.KEYWORD_ONLY
            parts.append(p.name if needed else f"{p.name}=None")
    return ", ".join(parts)


@functools.cache
def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """The functions whose results the default `__torch_function__` does not convert to the subclass: `Tensor.grad`.

    >>> import flambeau as torch
    >>> torch.Tensor.grad.__get__ in torch.overrides.get_default_nowrap_functions()
    True
    """
    members: Any = Tensor
    return {members._base.__get__, members.grad.__get__, members._grad.__get__}


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """A context manager in which a handler of `__torch_dispatch__` sees operators as outside, with autograd.

    >>> import flambeau as torch
    >>> with torch.overrides.enable_reentrant_dispatch():
    ...     torch.ones(1) + 1
    tensor([2.])
    """
    from ._tensor.overriding.dispatch import outside_handlers

    with outside_handlers():
        yield


def redispatch_function(func: Callable[..., Any], types: Any, args: Any, kwargs: Any = None) -> Any:
    """Run a function as it is implemented, with overrides of the functions that it calls.

    Args:
        func: a function that a handler was given.
        types: the handler's `types`; not used.
        args: the arguments.
        kwargs: the keyword arguments.

    >>> import flambeau as torch
    >>> torch.overrides.redispatch_function(torch.add, (), (torch.ones(1), 1))
    tensor([2.])
    """
    with protocol.skip_once():
        return func(*args, **(kwargs or {}))


__all__ = ["BaseTorchFunctionMode", "TorchFunctionMode", "enable_reentrant_dispatch", "get_default_nowrap_functions",
           "get_ignored_functions", "get_overridable_functions", "get_testing_overrides", "handle_torch_function",
           "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
           "is_tensor_method_or_property", "redispatch_function", "resolve_name", "wrap_torch_function"]
