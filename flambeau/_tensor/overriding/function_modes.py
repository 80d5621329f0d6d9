"""`torch.overrides`: modes that handle every function of tensors, and their stack."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...modes import special
from . import entry_points, protocol

_PUBLIC_MODULE = __name__.partition(".")[0] + ".overrides"


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


TorchFunctionMode.__module__ = BaseTorchFunctionMode.__module__ = _PUBLIC_MODULE

__all__ = ["BaseTorchFunctionMode", "TorchFunctionMode"]
