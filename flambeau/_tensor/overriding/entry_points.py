"""Entry points: the public functions and methods, which ask for overrides while a handler exists.

A check in every function would cost each call as much as a tenth of a small operator. So there is none: while an
instance of an overriding class is alive, or a mode is active, the code of each public function is replaced by code that
asks `protocol` first and then runs the original. Function objects keep their identity, so handlers may compare with
them. Namespaces are registered by the modules that define them.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Collection, Iterator
from types import CodeType, FunctionType
from typing import Any

from ...backends.elementless_array import ElementlessArray
from ...engine.tensor_interface import layer
from ...modes import dispatch_in_use
from .dispatch import begin_dispatch, end_dispatch, handles
from .protocol import (
    ALL_DISABLED,
    ENABLED,
    OVERRIDES,
    ask_handlers,
    disabled,
    function_modes,
    kind_of,
    overloaded_in_call,
    skips_next,
)

#: [the number of live instances of overriding classes and of active modes, over all threads]
in_use = [0]
#: [what runs a public function that no handler overrides, called with its name, the function, and its arguments];
#: None: nothing but the function itself. Autocast sets it.
innermost: list[Callable[..., Any] | None] = [None]
#: calls through replaced code without any handler in use, after which the original code returns
_IDLE_CALLS = 2000

#: (prefix of the names, the namespace's contents by name, in order of registration)
_namespaces: list[tuple[str, Callable[[], dict[str, Any]]]] = []
_entries: dict[int, EntryPoint] = {}  # by id of the function
_installed = [False]
_idle = [0]
_lock = threading.RLock()


class EntryPoint:
    """A public function: its original code, and the code that asks for overrides.

    Attributes:
        function: the function whose code is replaced.
        public: what handlers are given: the function, a method of which it is the operator, or a property's accessor.
        name: its qualified name, `torch.add`.
    """

    __slots__ = ("function", "name", "original", "public", "replacement")

    def __init__(self, function: FunctionType, public: Any, name: str) -> None:
        self.function, self.public, self.name = function, public, name
        self.original = function.__code__
        implementation = another_function(function)
        function.__wrapped__ = implementation  # type: ignore[attr-defined]  # for `inspect.signature`
        self.replacement = _replacement(function, _asking(public, name, implementation, modes_only=name in _MODES_ONLY,
                                                          accessor=not isinstance(public, FunctionType)))


#: methods that return NotImplemented where they raise TypeError
_PYTHON_OPERATORS = frozenset((
    *(f"torch.Tensor.__{prefix}{name}__" for prefix in ("", "r", "i") for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")),
    *(f"torch.Tensor.__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge"))))

#: functions of data, whose arguments do not override them
_MODES_ONLY = frozenset((
    "torch.tensor", "torch.as_tensor", "torch.asarray", "torch.sparse_compressed_tensor",
    *(f"torch.sparse_{layout}_tensor" for layout in ("coo", "csr", "csc", "bsr", "bsc"))))


def another_function(function: Any, name: str | None = None, public_name: str | None = None) -> Any:
    """A function object of its own with the same code, so that handlers tell `torch.add` from `Tensor.add`.

    Args:
        function: the original.
        name: its name, if it is another one (`arctan`).
        public_name: the name of its code, `Tensor.add`, which tells errors how it was called.
    """
    code = function.__code__ if public_name is None else function.__code__.replace(co_qualname=public_name)
    result = FunctionType(code, function.__globals__, name or function.__name__, function.__defaults__,
                          function.__closure__)
    result.__kwdefaults__, result.__doc__ = function.__kwdefaults__, function.__doc__
    result.__annotations__ = function.__annotations__  # by which `other_objects` knows tensors
    result.__qualname__, result.__module__ = name or function.__qualname__, function.__module__
    if function.__dict__:
        result.__dict__.update(function.__dict__)
    return result


def _asking(public: Any, name: str, implementation: Callable[..., Any], *, modes_only: bool,
            accessor: bool) -> Callable[..., Any]:
    """A function of a call's arguments: asks for overrides, then runs the implementation.

    Args:
        modes_only: whether only modes override it.
        accessor: whether it is a property's: handlers are given the type of the tensor in any case.
    """
    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if dispatch_in_use[0]:
            if called_on_device[0] is not None:
                result = called_on_device[0](name, call_plainly, args, kwargs)
                if result is not NotImplemented:
                    return result
            return run_plainly(args, kwargs)
        call = innermost[0]
        return implementation(*args, **kwargs) if call is None else call(name, implementation, args, kwargs)

    def call_plainly(*args: Any, **kwargs: Any) -> Any:
        return run_plainly(args, kwargs)

    def run_plainly(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if dispatch_in_use[0]:
            if kwargs.get("out") is not None and called_with_out[0] is not None:
                result = called_with_out[0](name, args, kwargs)
                if result is not NotImplemented:
                    return result
            if below is not None:
                return below(implementation, args, kwargs)
        call = innermost[0]
        return implementation(*args, **kwargs) if call is None else call(name, implementation, args, kwargs)

    tables: list[Any] = [None, None]  # the table of this function's calls on devices, and what made it

    def ask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        make = device_calls[0]
        if make is not None:
            if tables[1] is not make:
                tables[:] = make(name), make
            if tables[0] is not None:
                result = tables[0](call_plainly, args, kwargs)
                if result is not NotImplemented:
                    return result
        if not in_use[0]:
            _idle[0] += 1
            if _idle[0] > _IDLE_CALLS:
                uninstall()
        state = disabled.get()
        if state != ALL_DISABLED:
            if skips_next.get():
                skips_next.set(False)
                return run(args, kwargs)
            modes = function_modes.get()
            if as_handlers_see is not None:
                args = as_handlers_see(args, bool(modes))
            overloaded = [] if modes_only or state != ENABLED else overloaded_in_call(args, kwargs)
            if overloaded and not in_use[0]:
                note_foreign(type(overloaded[0]))
            if modes and accessor and not overloaded:
                overloaded = [args[0]]
            if modes or overloaded:
                return ask_handlers(public, name, overloaded, args, kwargs) if kwargs else (
                    ask_handlers(public, name, overloaded, args))
        return run(args, kwargs)

    def ask_operator(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return ask(args, kwargs)
        except TypeError:  # so that Python tries the other operand, and raises its own error
            return NotImplemented

    below, as_handlers_see = below_overrides.get(name), handler_arguments.get(name)
    return ask_operator if name in _PYTHON_OPERATORS else ask


#: functions called once before the code of public functions is first replaced: they fill the tables below
before_installation: list[Callable[[], None]] = []

#: name of a function that applies no operator -> what runs instead of it while there are handlers of
#: `__torch_dispatch__`; it is given the implementation and the arguments
below_overrides: dict[str, Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]] = {}

#: [what runs a call with `out=` while there are such handlers, given the name and the arguments; it returns
#: NotImplemented where no handler sees the call]
called_with_out: list[Callable[..., Any] | None] = [None]

#: [what runs a call while a CUDA device is in use, given the name, the implementation and the arguments; it returns
#: NotImplemented where no tensor and no argument is on a device]
called_on_device: list[Callable[..., Any] | None] = [None]

#: [what makes, of a function's name, the function that runs its repeated calls on a device, given the implementation
#: and the arguments, or returns NotImplemented; it may make None]; None: no device is in use
device_calls: list[Callable[[str], Any] | None] = [None]

#: name of a function of several forms of calls -> the arguments in the form that handlers are given, made of a call's
#: arguments and whether a mode is active
handler_arguments: dict[str, Callable[[tuple[Any, ...], bool], tuple[Any, ...]]] = {}


_MARK = "the function that asks for overrides"


@functools.cache
def _template(n_free: int) -> CodeType:
    """Code that passes its arguments to the constant `_MARK`; it has the given number of unused free variables."""
    names = [f"free{i}" for i in range(n_free)]
    lines = ["def outer():", *(f"    {name} = None" for name in names), "    def replaced(*args, **kwargs):",
             *(["        if False: " + ", ".join(names)] if names else []),
             f"        ask = {_MARK!r}", "        return ask(args, kwargs)", "    return replaced"]
    scope: dict[str, Any] = {"__name__": __name__}  # so that it counts as code of this package
    exec("\n".join(lines), scope)
    result: CodeType = scope["outer"]().__code__
    return result


def _replacement(function: FunctionType, ask: Callable[..., Any]) -> CodeType:
    code = _template(len(function.__code__.co_freevars))
    return code.replace(co_consts=tuple(ask if constant == _MARK else constant for constant in code.co_consts),
                        co_name=function.__code__.co_name, co_qualname=function.__code__.co_qualname,
                        co_filename=function.__code__.co_filename,
                        co_firstlineno=function.__code__.co_firstlineno)


def register_namespace(prefix: str, contents: Callable[[], dict[str, Any]]) -> None:
    """Register public functions.

    Args:
        prefix: the prefix of their names, `torch.`.
        contents: returns name -> function, or (function, what handlers are given).
    """
    _namespaces.append((prefix, contents))
    if _installed[0]:
        install()


def named_entries() -> Iterator[tuple[str, Any, Any]]:
    """(name, function, what handlers are given) of all registered functions."""
    for prefix, contents in _namespaces:
        for name, value in contents().items():
            function, public = value if isinstance(value, tuple) else (value, value)
            yield prefix + name, function, public


def entries() -> Collection[EntryPoint]:
    """The public functions whose code has been replaced."""
    return _entries.values()


def install() -> None:
    """Replace the code of all public functions."""
    with _lock:
        while before_installation:
            before_installation.pop()()
        for name, function, public in named_entries():
            if id(function) not in _entries and isinstance(function, FunctionType):
                _entries[id(function)] = EntryPoint(function, public, name)
        for entry in _entries.values():
            entry.function.__code__ = entry.replacement
        _installed[0] = True
        _idle[0] = 0


def uninstall() -> None:
    """Restore the code of all public functions."""
    with _lock:
        if in_use[0]:
            return
        for entry in _entries.values():
            entry.function.__code__ = entry.original
        _installed[0] = False


def watch() -> None:
    """Replace the code of all public functions for a while, in which values of foreign classes are noticed."""
    if not _installed[0]:
        install()


def begin_use() -> None:
    """Count a handler: an active mode, or a live instance of an overriding class."""
    in_use[0] += 1
    if not _installed[0]:
        install()


def end_use() -> None:
    """Discount a handler."""
    in_use[0] -= 1


def asks_handlers(*values: Any) -> bool:
    """Whether a call with these arguments asks a handler: a mode is active, or one of them overrides the call.

    Modules ask it where they compute a layer without the public function that PyTorch's module calls.
    """
    if not in_use[0]:
        return False
    state = disabled.get()
    if state == ALL_DISABLED or skips_next.get():
        return False
    return bool(function_modes.get() or (state == ENABLED and overloaded_in_call(values, {})))


#: id of an instance -> (reference to it, whether its array has no elements)
_live: dict[int, tuple[weakref.ref[Any], bool]] = {}


def note_instance(x: Any) -> None:
    """Count an instance as a handler for as long as it lives, if its class overrides functions or operators."""
    cls = type(x)
    dispatches = handles(cls)
    if (dispatches or kind_of(cls) == OVERRIDES) and id(x) not in _live:
        key, wrapper = id(x), dispatches and isinstance(getattr(x, "_array", None), ElementlessArray)

        def discard(_: Any) -> None:
            if _live.pop(key, None) is not None:
                end_use()
                if dispatches:
                    end_dispatch(wrapper)

        _live[key] = weakref.ref(x, discard), wrapper
        begin_use()
        if dispatches:
            begin_dispatch(wrapper)


def forget_instance(x: Any) -> None:
    """Discount an instance whose class no longer overrides functions."""
    found = _live.pop(id(x), None)
    if found is not None:
        end_use()
        if handles(type(x)):
            end_dispatch(found[1])


def note_foreign(cls: type) -> bool:
    """Count a class that is no tensor as a handler for as long as it exists; whether it was not counted before."""
    key = id(cls)
    is_new = key not in _foreign
    if is_new:
        def discard(_: Any) -> None:
            if _foreign.pop(key, None) is not None:
                end_use()

        _foreign[key] = weakref.ref(cls, discard)
        begin_use()
    return is_new


layer.note_foreign = note_foreign


_foreign: dict[int, weakref.ref[type]] = {}


def forget_foreign(cls: type) -> None:
    """Discount a class that `note_foreign` has counted."""
    if _foreign.pop(id(cls), None) is not None:
        end_use()


__all__ = ["another_function", "begin_use", "below_overrides", "called_with_out", "end_use", "entries",
           "forget_foreign", "forget_instance", "handler_arguments", "in_use", "innermost", "install",
           "named_entries", "note_foreign", "note_instance", "register_namespace", "uninstall", "watch"]
