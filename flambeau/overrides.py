"""`torch.overrides`: functions that handlers of `__torch_function__` replace, modes, functions of one's own.

Every function, method and property of tensors may be overridden: by a subclass of `Tensor`, by any other class with a
`__torch_function__`, and by a `TorchFunctionMode`.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from ._tensor import Tensor
from ._tensor.argument_errors.guards import NOT_GIVEN
from ._tensor.overriding import entry_points, protocol
from ._tensor.overriding.ignored import IGNORED
from .modes import special
from .nn import functional, init
from .ops.aten import OpOverload, OpOverloadPacket
from .ops.declare import REGISTRY

entry_points.watch()


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode is active or one of the values has a `__torch_function__` that is enabled.

    >>> import flambeau as torch
    >>> torch.overrides.has_torch_function((torch.ones(1), 2))
    False
    """
    if protocol.disabled.get() == protocol.ALL_DISABLED:
        return False
    if protocol.skips_next.get():
        protocol.skips_next.set(False)
        return False
    relevant = tuple(relevant_args)
    if relevant and protocol.function_modes.get():
        return True
    if protocol.disabled.get() != protocol.ENABLED:
        return False
    found = False
    for x in relevant:
        if protocol.kind_of(type(x)) == protocol.OVERRIDES:
            found = True
            if not isinstance(x, Tensor):
                entry_points.note_foreign(type(x))
    return found


def has_torch_function_unary(x: Any) -> bool:
    """`has_torch_function` of one value.

    >>> import flambeau as torch
    >>> torch.overrides.has_torch_function_unary(torch.ones(2))
    False
    """
    return has_torch_function((x,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` of several values.

    >>> import flambeau as torch
    >>> torch.overrides.has_torch_function_variadic(torch.ones(2), torch.ones(2))
    False
    """
    return has_torch_function(args)


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any,
                          **kwargs: Any) -> Any:
    """The result of the first handler that does not return NotImplemented.

    Args:
        public_api: the function that was called.
        relevant_args: the values among its arguments that may have handlers.
        args: its arguments, passed to the handlers.
        kwargs: its keyword arguments.

    Raises:
        TypeError: all handlers return NotImplemented.

    >>> import flambeau as torch
    >>> def double(x):
    ...     if torch.overrides.has_torch_function_unary(x):
    ...         return torch.overrides.handle_torch_function(double, (x,), x)
    ...     return x * 2
    >>> double(torch.ones(1))
    tensor([2.])
    """
    overloaded = _get_overloaded_args(relevant_args)
    try:
        return protocol.ask_handlers(public_api, "", overloaded, args, kwargs)
    except protocol.NoImplementation:
        message = (f"no implementation found for '{public_api.__module__}.{public_api.__name__}' on types that "
                   f"implement __torch_function__: {[type(x) for x in overloaded]}")
        if _is_torch_function_mode_enabled():
            message += f" nor in mode {_get_current_function_mode()}"
        raise TypeError(message) from None


def _get_overloaded_args(relevant_args: Iterable[Any], get_type_fn: Callable[[Any], type] | None = None) -> list[Any]:
    """The first value of each overriding class, subclasses before their superclasses."""
    if protocol.disabled.get() != protocol.ENABLED:
        return []
    return protocol.overloaded_arguments(relevant_args, get_type_fn or type)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that makes a function ask for overrides.

    Args:
        dispatcher: returns the relevant arguments; it has the function's signature.

    >>> import flambeau as torch
    >>> @torch.overrides.wrap_torch_function(lambda a: (a,))
    ... def increment(a):
    ...     return a + 1
    >>> increment(torch.ones(1))
    tensor([2.])
    """
    def decorator(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorator


def is_tensor_like(inp: Any) -> bool:
    """Whether a value is a tensor, or its class has a `__torch_function__`.

    >>> import flambeau as torch
    >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like(1)
    (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


# ----- lists of functions -----

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


# ----- modes -----

class TorchFunctionMode:
    """A context manager that handles every function of tensors called inside, factory functions included.

    A subclass defines `__torch_function__`; inside it the mode is not active. Nested modes: the innermost is asked
    first, and the functions that it calls are seen by the next one.

    >>> import flambeau as torch
    >>> class Log(torch.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(torch.overrides.resolve_name(func))
    ...         return func(*args, **(kwargs or {}))
    >>> with Log():
    ...     x = torch.ones(2) + 1
    torch.ones
    torch.Tensor.add
    """

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        _push_mode(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Deprecated: an instance, as `cls(...)` makes it."""
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing.

    >>> import flambeau as torch
    >>> with torch.overrides.BaseTorchFunctionMode():
    ...     print(torch.ones(2) + 1)
    tensor([2., 2.])
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


protocol.set_plain(TorchFunctionMode)


def _push_mode(mode: Any) -> None:
    protocol.function_modes.set((*protocol.function_modes.get(), mode))
    special[0] += 1  # programs do not call modes
    entry_points.begin_use()


def _pop_mode() -> Any:
    modes = protocol.function_modes.get()
    protocol.function_modes.set(modes[:-1])
    special[0] -= 1
    entry_points.end_use()
    return modes[-1]


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


def _get_current_function_mode() -> Any:
    modes = protocol.function_modes.get()
    return modes[-1] if modes else None


def _get_current_function_mode_stack() -> list[Any]:
    return list(protocol.function_modes.get())


def _len_torch_function_stack() -> int:
    return len(protocol.function_modes.get())


def _get_function_stack_at(index: int) -> Any:
    return protocol.function_modes.get()[index]


def _is_torch_function_mode_enabled() -> bool:
    return protocol.disabled.get() != protocol.ALL_DISABLED and bool(protocol.function_modes.get())


@contextmanager
def _enable_torch_function() -> Iterator[None]:
    with protocol.EnableTorchFunction():
        yield


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
