"""`__torch_dispatch__`: handlers of operators below autograd, of tensor subclasses and of modes.

`apply` asks here before it runs a kernel. A handler is given the overload, the classes and the arguments, in the order
of the schema. Nothing is recorded inside it; afterwards the operator is recorded with the handler's result.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ...backends.elementless_array import ElementlessArray
from ...modes import dispatch_in_use, grad_mode, level_count, special
from .protocol import CLASSMETHOD


class _DisabledDispatch:
    """The `__torch_dispatch__` of a class that handles no operators: `torch._C._disabled_torch_dispatch_impl`."""

    __name__ = "_disabled_torch_dispatch_impl"

    def __call__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        token = no_dispatch.set(True)
        try:
            return func(*args, **(kwargs or {}))
        finally:
            no_dispatch.reset(token)


DISABLED_DISPATCH = _DisabledDispatch()

#: the modes of this thread, outermost first
dispatch_modes: ContextVar[tuple[Any, ...]] = ContextVar("torch_dispatch_modes", default=())
#: whether this thread ignores all handlers
no_dispatch: ContextVar[bool] = ContextVar("no_dispatch", default=False)

#: class -> what its handler does for a declared operator (its inputs, its parameters, whether it writes to the first
#: input), where that needs no overload and no arguments of PyTorch's; it may return NotImplemented
declared_handlers: dict[type, Any] = {}

_handles: dict[type, bool] = {}


def handles(cls: type) -> bool:
    """Whether a class has a `__torch_dispatch__` that is enabled."""
    found = _handles.get(cls)
    if found is None:
        handler = getattr(cls, "__torch_dispatch__", None)
        found = handler is not None and handler is not DISABLED_DISPATCH
        if not found:
            _handles[cls] = False
    return found


_wrappers: dict[int, weakref.ref[Any]] = {}


def note_wrapper(x: Any) -> None:
    """Note that a tensor has no memory of its own: it is made by `_make_wrapper_subclass`."""
    key = id(x)
    _wrappers[key] = weakref.ref(x, lambda _: _wrappers.pop(key, None))


def is_wrapper(x: Any) -> bool:
    """Whether a tensor has no memory of its own."""
    found = _wrappers.get(id(x))
    return found is not None and found() is x


def forget_wrapper(x: Any) -> bool:
    """Drop the note of `note_wrapper`; whether there was one."""
    return _wrappers.pop(id(x), None) is not None


#: id of a tensor -> a reference to it, and what its handler answers: "strides", "sizes", "device", "layout"
policies: dict[int, tuple[weakref.ref[Any], frozenset[str]]] = {}


def note_policy(x: Any, sizes_strides: str | None, device: bool, layout: bool) -> None:
    """Note what a tensor's handler answers (`dispatch_policies`).

    Raises:
        ValueError: an unknown policy of sizes and strides.
    """
    if sizes_strides not in (None, "sizes", "strides"):
        raise ValueError(f"Unknown sizes_strides_policy: {sizes_strides}; expected 'strides' or 'sizes'")
    fields = {"sizes": {"sizes", "strides"}, "strides": {"strides"}, None: set()}[sizes_strides] | (
        {"device"} if device else set()) | ({"layout"} if layout else set())
    if fields:
        key = id(x)
        policies[key] = weakref.ref(x, lambda _: policies.pop(key, None)), frozenset(fields)


def policy_of(x: Any) -> frozenset[str]:
    """What a tensor's handler answers."""
    found = policies.get(id(x))
    return found[1] if found is not None and found[0]() is x else frozenset()


#: id of a tensor -> a reference to it, and the dispatch keys that it was made with
extra_keys: dict[int, tuple[weakref.ref[Any], Any]] = {}


def note_extra_keys(x: Any, keys: Any) -> None:
    """Note the dispatch keys that a tensor was made with, which `torch._C._dispatch_keys` shows."""
    key = id(x)
    extra_keys[key] = weakref.ref(x, lambda _: extra_keys.pop(key, None)), keys


#: [the number of kernels that replace those of PyTorch's operators (`replaced_kernels`)]
replaced_count = [0]


class SavedStatistics(list[Any]):
    """What an operator saves besides its results, with arguments that only the overload has, which handlers see.

    Args:
        arguments: name in the schema -> argument, such as the running averages that the function updates itself.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__()
        self.arguments = arguments


class Draw:
    """Numbers that have not been drawn yet, for a handler: the overload that draws them, and its arguments.

    Args:
        name: of the packet, `uniform_`.
        overload: its name in the packet.
        args: its arguments, without the tensor that is filled.
        generator: the generator; None is the default one.
    """

    __slots__ = ("args", "generator", "name", "overload")

    def __init__(self, name: str, overload: str, args: tuple[Any, ...], generator: Any) -> None:
        self.name, self.overload, self.args, self.generator = name, overload, args, generator


def is_on_accelerator(x: Any) -> bool:
    """Whether a value is a tensor whose elements are in a device's memory."""
    return getattr(getattr(x, "_array", None), "torch_device", None) is not None


def begin_dispatch(wrapper: bool = False) -> None:
    """Count a handler; operators take the general path while there is one.

    Args:
        wrapper: it handles only operators on tensors whose arrays have no elements, so that others are beside it as
            they are beside levels.
    """
    dispatch_in_use[0] += 1
    special[0] += 1
    if wrapper:
        level_count[0] += 1


def end_dispatch(wrapper: bool = False) -> None:
    """Discount a handler."""
    dispatch_in_use[0] -= 1
    special[0] -= 1
    if wrapper:
        level_count[0] -= 1


def hold_handlers(node: Any, tensors: Any) -> None:
    """Count a node as a handler for as long as it lives, if one of its tensors is of a class that handles operators.

    Its derivative has such tensors again, even where none is alive when a backward pass begins.
    """
    handled = [x for x in tensors if handles(type(x))]
    if handled:
        wrapper = all(isinstance(x._array, ElementlessArray) for x in handled)
        begin_dispatch(wrapper)
        weakref.finalize(node, end_dispatch, wrapper).atexit = False


def push_mode(mode: Any) -> None:
    """Make a mode the innermost."""
    dispatch_modes.set((*dispatch_modes.get(), mode))
    begin_dispatch()


def pop_mode() -> Any:
    """Leave the innermost mode; the mode."""
    modes = dispatch_modes.get()
    dispatch_modes.set(modes[:-1])
    end_dispatch()
    return modes[-1]


@contextmanager
def without_handlers() -> Iterator[None]:
    """Ignore all handlers in the block."""
    token = no_dispatch.set(True)
    try:
        yield
    finally:
        no_dispatch.reset(token)


_outside: ContextVar[tuple[bool, tuple[Any, ...]] | None] = ContextVar("outside_handlers", default=None)


@contextmanager
def outside_handlers() -> Iterator[None]:
    """Apply operators in the block as outside the innermost handler: with its grad mode and its modes."""
    state = _outside.get()
    if state is None:
        yield
        return
    grad_token, mode_token = grad_mode.set(state[0]), dispatch_modes.set(state[1])
    try:
        yield
    finally:
        dispatch_modes.reset(mode_token)
        grad_mode.reset(grad_token)


def handling_inputs(inputs: Sequence[Any]) -> list[Any]:
    """The first input of each class with a handler, subclasses before their superclasses."""
    found: list[Any] = []
    for x in inputs:
        cls = type(x)
        if cls is list or cls is tuple:
            nested: Sequence[Any] = x
        else:
            nested = (x,)
        for each in nested:
            kind = type(each)
            if handles(kind) and not any(type(other) is kind for other in found):
                at = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
                found.insert(at, each)
    return found


def ask(func: Any, found: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None) -> Any:
    """The result of the first handler that returns one.

    Args:
        found: the result of `handling_inputs`.
        name: the operator in the error's text; default: `torch._ops.` and the overload.

    Raises:
        TypeError: all handlers return NotImplemented.
    """
    types = tuple(map(type, found))
    modes = dispatch_modes.get()
    state = _outside.set((grad_mode.get(), modes))
    grad_token = grad_mode.set(False)
    lines = []
    try:
        if modes:
            mode_token = dispatch_modes.set(modes[:-1])
            try:
                handler = modes[-1].__torch_dispatch__
                if getattr(handler, "__self__", None) is type(modes[-1]):
                    raise RuntimeError(CLASSMETHOD.format("__torch_dispatch__"))
                result = handler(func, types, args, kwargs)
            finally:
                dispatch_modes.reset(mode_token)
            if result is not NotImplemented:
                return result
            lines.append(f"  - mode object {modes[-1]!r}")
        for x in found:
            result = type(x).__torch_dispatch__(func, types, args, kwargs)
            if result is not NotImplemented:
                return result
            lines.append(f"  - tensor subclass {type(x)!r}")
    finally:
        grad_mode.reset(grad_token)
        _outside.reset(state)
    name = name or f"torch._ops.{func}"
    raise TypeError(f"Multiple dispatch failed for '{name}'; all __torch_dispatch__ handlers returned "
                    "NotImplemented:\n\n" + "\n".join(lines) +
                    "\n\nFor more information, try re-running with TORCH_LOGS=not_implemented")


def ask_declared(op: Any, inputs: Sequence[Any], params: dict[str, Any], found: list[Any],
                 in_place: bool = False) -> Any:
    """The result of the handler of declared operators; NotImplemented where there is none, or a mode comes before it.

    Args:
        found: the result of `handling_inputs`.
        in_place: whether the first input is written to.
    """
    if len(found) != 1 or dispatch_modes.get():
        return NotImplemented
    handler = declared_handlers.get(type(found[0]))
    if handler is None:
        return NotImplemented
    grad_token = grad_mode.set(False)
    try:
        return handler(op, inputs, params, in_place)
    finally:
        grad_mode.reset(grad_token)


__all__ = [
    "DISABLED_DISPATCH",
    "Draw",
    "SavedStatistics",
    "ask",
    "ask_declared",
    "begin_dispatch",
    "declared_handlers",
    "dispatch_modes",
    "end_dispatch",
    "handles",
    "handling_inputs",
    "hold_handlers",
    "is_on_accelerator",
    "is_wrapper",
    "no_dispatch",
    "note_policy",
    "note_wrapper",
    "outside_handlers",
    "policies",
    "policy_of",
    "pop_mode",
    "push_mode",
    "replaced_count",
    "without_handlers",
]
