"""`torch.utils._python_dispatch`: modes that handle operators below autograd, and wrapper subclasses of tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._tensor import Tensor
from .._tensor.overriding import dispatch, entry_points
from .._tensor.overriding.dispatch import is_wrapper
from ..backends.elementless_array import WrapperArray, addresses_of, plain_dtype, without_elements
from ..backends.numpy.memory import address, owner
from ..ops.overloads import OpOverload


class TorchDispatchMode:
    """A context manager that handles every operator applied inside, below autograd.

    A subclass defines `__torch_dispatch__`, which is given an overload such as `torch.ops.aten.add.Tensor` and its
    arguments. Inside it the mode is not active.

    >>> import flambeau as torch
    >>> from flambeau.utils._python_dispatch import TorchDispatchMode
    >>> class Log(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> with Log():
    ...     y = torch.ones(2) + 1
    aten.ones.default
    aten.add.Tensor
    """

    supports_higher_order_operators = False

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            self.__dict__["_dispatch_key"] = _dispatch_key

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
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

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether it is a mode of flambeau's own: False."""
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Whether operators of compiled functions are not handled: False."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _push_mode(mode: Any) -> None:
    dispatch.push_mode(mode)
    entry_points.begin_use()


def _pop_mode(mode_key: Any = None) -> Any:
    entry_points.end_use()
    return dispatch.pop_mode()


@contextmanager
def _pop_mode_temporarily(mode_key: Any = None) -> Iterator[Any]:
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    modes = dispatch.dispatch_modes.get()
    token = dispatch.dispatch_modes.set(())
    try:
        yield list(modes)
    finally:
        dispatch.dispatch_modes.reset(token)


def _get_current_dispatch_mode() -> Any:
    modes = dispatch.dispatch_modes.get()
    return modes[-1] if modes else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    return list(dispatch.dispatch_modes.get())


def _len_torch_dispatch_stack() -> int:
    return len(dispatch.dispatch_modes.get())


def _get_dispatch_stack_at(index: int) -> Any:
    return dispatch.dispatch_modes.get()[index]


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is active."""
    return bool(dispatch.dispatch_modes.get())


def is_in_any_mode_without_ignore_compile_internals() -> bool:
    """Whether a mode is active that handles operators of compiled functions."""
    return any(not mode.ignore_compile_internals() for mode in dispatch.dispatch_modes.get())


def any_torch_dispatch_mode_on_stack(*, include_infra_modes: bool = True, respect_ignore_compile_internals: bool = True,
                                     ) -> bool:
    """Whether a mode is active."""
    return bool(dispatch.dispatch_modes.get())


# ----- wrapper subclasses -----

def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor is of a subclass that wraps tensors: it has `__tensor_flatten__` and `__tensor_unflatten__`."""
    return isinstance(t, Tensor) and type(t) is not Tensor and _has_protocol(t)


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class is a subclass of tensors that wraps tensors."""
    return issubclass(t, Tensor) and t is not Tensor and _has_protocol(t)


def _has_protocol(t: Any) -> bool:
    return hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def transform_subclass(t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None,
                       outer_stride: Any = None) -> Any:
    """A wrapper of the same class on the inner tensors that `callback(name, inner tensor)` returns.

    Raises:
        AssertionError: its size or stride differs.
    """
    outer_size = t.size() if outer_size is None else outer_size
    outer_stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(inner, context, outer_size, outer_stride)
    if made.shape != outer_size:
        raise AssertionError(f"Expected return value from {type(t)}__tensor_unflatten__() to have shape equal to "
                             f"{outer_size}, but got: {made.shape}")
    if made.stride() != outer_stride:
        raise AssertionError(f"Expected return value from {type(t)}__tensor_unflatten__() to have stride equal to "
                             f"{outer_stride}, but got: {made.stride()}")
    return made


class AliasInfo:
    """The alias annotation of one argument or return."""

    def __init__(self, alias_set: set[str], is_write: bool, name: str | None) -> None:
        self.alias_set, self.is_write, self.name = alias_set, is_write, name


class SchemaInfo:
    """The alias annotations of an overload's arguments and returns."""

    def __init__(self, args: list[AliasInfo], outs: list[AliasInfo]) -> None:
        self.args, self.outs = args, outs


def get_alias_info(func: OpOverload) -> SchemaInfo:
    """The alias annotations of an overload."""
    def info(argument: Any) -> AliasInfo:
        alias = argument.alias_info
        return AliasInfo(set() if alias is None else set(alias.before_set), alias is not None and alias.is_write,
                         argument.name or None)

    return SchemaInfo([info(a) for a in func._schema.arguments], [info(r) for r in func._schema.returns])


def _share_storage(views: Any, base: Any) -> None:
    """Put wrappers that are views onto the addresses of the wrapper that they view."""
    if not is_wrapper(base) or not base._array.size:
        return
    memory = owner(base._array)
    for x in views if isinstance(views, (list, tuple)) else (views,):
        if not is_wrapper(x) or not x._array.size or owner(x._array) is memory:
            continue
        dtype = plain_dtype(x._array.dtype)
        start = address(x._array) - address(owner(x._array))
        try:
            array = np.ndarray(x._array.shape, dtype, addresses_of(memory), start, x._array.strides)
        except (TypeError, ValueError):  # it is not within the storage
            continue
        x._array = without_elements(array, WrapperArray)


def return_and_correct_aliasing(func: OpOverload, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> Any:
    """The result that a wrapper subclass returns for an operator: for an in-place operator, the written argument.

    A wrapper that is a view of an argument gets the argument's storage.

    Args:
        func: the overload that the handler was given.
        args: its arguments.
        kwargs: its keyword arguments.
        out: the handler's result.
    """
    aliases = get_alias_info(func)
    written = [next(iter(r.alias_set)) for r in aliases.outs if r.is_write]
    bound = func._schema.bind(tuple(args), dict(kwargs))
    by_set = {name: a.name for a in aliases.args for name in a.alias_set}
    if not written:
        outs = out if len(aliases.outs) > 1 else (out,)
        for returned, value in zip(aliases.outs, outs, strict=False):
            for name in returned.alias_set:
                _share_storage(value, bound.get(by_set.get(name) or ""))
        return out
    values = [bound[by_set[name] or ""] for name in written]
    return values[0] if len(values) == 1 else type(out)(values)


__all__ = ["AliasInfo", "BaseTorchDispatchMode", "SchemaInfo", "TorchDispatchMode", "any_torch_dispatch_mode_on_stack",
           "get_alias_info", "is_in_any_mode_without_ignore_compile_internals", "is_in_torch_dispatch_mode",
           "is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type", "return_and_correct_aliasing",
           "transform_subclass"]
