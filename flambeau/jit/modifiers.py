"""Decorators that say how TorchScript treats a function: `export`, `ignore`, `unused`, overloads, broadcasting lists.

Scripted functions run as Python here. The decorators mark functions as PyTorch does, for programs that read the marks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final, TypeVar, get_args, get_origin

F = TypeVar("F", bound=Callable[..., Any])


class FunctionModifiers:
    """The marks of functions, kept in their attribute `_torchscript_modifier`."""

    UNUSED = "unused (ignored and replaced with raising of an exception)"
    IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    EXPORT = "export (compile this function even if nothing calls it)"
    DEFAULT = "default (compile if called from a exported function / forward)"
    COPY_TO_SCRIPT_WRAPPER = "if this method is not scripted, copy the python method onto the scripted model"
    _DROP = "_drop (function is fully ignored, declaration can be unscriptable)"


def _mark(fn: Any, modifier: str) -> Any:
    fn._torchscript_modifier = modifier
    return fn


def export(fn: F) -> F:
    """Mark a method to be compiled though `forward` does not call it; methods of scripted modules all remain here.

    >>> import flambeau as torch
    >>> class Doubler(torch.nn.Module):
    ...     @torch.jit.export
    ...     def twice(self, x):
    ...         return 2 * x
    >>> torch.jit.script(Doubler()).twice(torch.ones(1))
    tensor([2.])
    """
    return _mark(fn, FunctionModifiers.EXPORT)


def unused(fn: Any) -> Any:
    """Mark a function that scripted code does not call.

    >>> import flambeau as torch
    >>> @torch.jit.unused
    ... def plot(x):
    ...     return x
    >>> plot(1)
    1
    """
    if isinstance(fn, property):
        if fn.fget is not None:
            _mark(fn.fget, FunctionModifiers.UNUSED)
        if fn.fset is not None:
            _mark(fn.fset, FunctionModifiers.UNUSED)
        return fn
    return _mark(fn, FunctionModifiers.UNUSED)


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a function that scripted code calls as Python.

    >>> import flambeau as torch
    >>> @torch.jit.ignore
    ... def log(x):
    ...     return x
    >>> log(1)
    1
    """
    if callable(drop):
        return _mark(drop, FunctionModifiers.IGNORE)
    if not isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    drop_on_export = kwargs.pop("drop_on_export", None)
    if drop_on_export:
        warnings.warn("ignore(drop_on_export=True) has been deprecated. TorchScript will now drop the function call on "
                      "compilation. Use torch.jit.unused now. {}", category=FutureWarning, stacklevel=2)
        drop = drop_on_export
    elif drop:
        warnings.warn("ignore(True) has been deprecated. TorchScript will now drop the function call on compilation. "
                      "Use torch.jit.unused now. {}", category=FutureWarning, stacklevel=2)
    return lambda fn: _mark(fn, FunctionModifiers.UNUSED if drop else FunctionModifiers.IGNORE)


def _drop(fn: F) -> F:
    return _mark(fn, FunctionModifiers._DROP)


def _copy_to_script_wrapper(fn: F) -> F:
    return _mark(fn, FunctionModifiers.COPY_TO_SCRIPT_WRAPPER)


def get_torchscript_modifier(fn: Any) -> str | None:
    """The mark of a function."""
    if not callable(fn):
        return None
    return getattr(getattr(fn, "__func__", fn), "_torchscript_modifier", FunctionModifiers.DEFAULT)


def copy_torchscript_modifier(orig: Any, new: Any) -> None:
    """Give a function the mark of another."""
    modifier = get_torchscript_modifier(orig)
    if modifier is not None:
        new._torchscript_modifier = modifier


def should_drop(fn: Any) -> bool:
    """Whether a function is not called by scripted code."""
    return get_torchscript_modifier(fn) in (FunctionModifiers.UNUSED, FunctionModifiers._DROP)


def is_ignored_fn(fn: Any) -> bool:
    """Whether a function is not compiled."""
    return get_torchscript_modifier(fn) in (FunctionModifiers.UNUSED, FunctionModifiers.IGNORE,
                                            FunctionModifiers._DROP)


def module_has_exports(mod: Any) -> bool:
    """Whether a module has a method marked by `export`."""
    return any(get_torchscript_modifier(getattr(type(mod), name, None)) is FunctionModifiers.EXPORT
               for name in dir(type(mod)))


def _overload(func: F) -> F:
    """Declare a signature of a function; the last definition, without the decorator, is what runs."""
    return func


def _overload_method(func: F) -> F:
    """Declare a signature of a method; the last definition, without the decorator, is what runs."""
    return func


def boolean_dispatch(arg_name: str, arg_index: int, default: bool, if_true: Callable[..., Any],
                     if_false: Callable[..., Any], module_name: str, func_name: str) -> Callable[..., Any]:
    """A function that calls one of two functions, by a bool among its arguments."""
    def dispatched(*args: Any, **kwargs: Any) -> Any:
        flag = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    dispatched.__name__, dispatched.__module__ = func_name, module_name
    dispatched.__doc__ = if_true.__doc__ or if_false.__doc__
    return dispatched


class _IgnoreContextManager:
    """A block that scripted code leaves to Python."""

    def __init__(self, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        return None


class BroadcastingListCls:
    """The type of `BroadcastingList2[int]`: a number, or a list of that length."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingListCls()
BroadcastingList2, BroadcastingList3, BroadcastingList4, BroadcastingList5, BroadcastingList6 = (
    BroadcastingListCls() for _ in range(5))


def is_final(ann: Any) -> bool:
    """Whether an annotation is `Final`."""
    return ann is Final or get_origin(ann) is Final


def container_matches(obj: Any, target: Any) -> bool:
    """Whether a value is of a type, and the elements of a container are of the types in brackets."""
    origin, arguments = get_origin(target), get_args(target)
    if origin is None:
        return target is Any or isinstance(obj, target)
    if origin in (list, set, frozenset):
        return isinstance(obj, origin) and all(container_matches(x, arguments[0]) for x in obj)
    if origin is dict:
        return isinstance(obj, dict) and all(
            container_matches(key, arguments[0]) and container_matches(x, arguments[1]) for key, x in obj.items())
    if origin is tuple:
        if not isinstance(obj, tuple):
            return False
        if arguments[-1:] == (Ellipsis,):
            return all(container_matches(x, arguments[0]) for x in obj)
        return len(obj) == len(arguments) and all(map(container_matches, obj, arguments))
    return any(container_matches(obj, each) for each in arguments)  # a union


def _isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value is of a type such as `List[int]`, or of one of several."""
    targets = target_type if isinstance(target_type, tuple) else (target_type,)
    for each in targets:
        if each in (list, dict, tuple):
            raise RuntimeError(f"Attempted to use {str(each)[8:-2].title()} without a contained type. Please add a "
                               f"contained type, e.g. {str(each)[8:-2].title()}[int]")
    return any(container_matches(obj, each) for each in targets)
