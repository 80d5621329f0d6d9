"""Grad mode and inference mode: context managers and decorators that control recording."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Self, TypeVar, overload

from ..modes import (
    grad_mode,
    inference,
    inference_used,
    is_grad_enabled,
    is_inference_mode_enabled,
    requested_grad_mode,
    result_modes_used,
    set_grad,
)

F = TypeVar("F", bound=Callable[..., Any])


class _Mode:
    """A context manager that also decorates functions, generators and classes."""

    __slots__ = ()

    def _fresh(self) -> _Mode:
        return type(self)()

    def clone(self) -> _Mode:
        """A new context manager of the same mode."""
        return self._fresh()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exception: object) -> None:
        raise NotImplementedError

    def __call__(self, function: F) -> F:
        if isinstance(function, type):
            import warnings

            warnings.warn("Decorating classes is deprecated and will be disabled in future versions. You should "
                          "only decorate functions or methods. To preserve the current behavior of class "
                          "decoration, you can directly decorate the `__init__` method and nothing else.",
                          FutureWarning, stacklevel=2)
            function.__init__ = self(function.__init__)  # type: ignore[misc]
            return function
        flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
        if flags & 0x20:  # a generator: the mode holds while it runs, not while it is suspended
            @functools.wraps(function)
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                return self._generator(function(*args, **kwargs))
        else:
            @functools.wraps(function)
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                with self._fresh():
                    return function(*args, **kwargs)
        return wrapped  # type: ignore[return-value]

    def _generator(self, generator: Any) -> Any:
        try:
            with self._fresh():
                response = generator.send(None)
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with self._fresh():
                        generator.close()
                    raise
                except BaseException as error:
                    with self._fresh():
                        response = generator.throw(error)
                else:
                    with self._fresh():
                        response = generator.send(request)
        except StopIteration as stop:
            return stop.value


class _NoArgumentMode(_Mode):
    # `@no_grad` without parentheses decorates too
    __slots__ = ("prev",)
    prev: bool

    @overload
    def __new__(cls) -> Self: ...
    @overload
    def __new__(cls, orig_func: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, orig_func: Any = None) -> Any:
        self = object.__new__(cls)
        return self if orig_func is None else self(orig_func)

    # `set_grad` and `is_grad_enabled` are written out here and in `__enter__`: each step of an optimizer runs them
    def __exit__(self, *exception: object) -> None:
        (requested_grad_mode if inference_used[0] and inference.get() else grad_mode).set(self.prev)


class no_grad(_NoArgumentMode):
    """Operators inside do not record; results do not require grad.

    >>> import flambeau as torch
    >>> x = torch.tensor([1.], requires_grad=True)
    >>> with torch.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    __slots__ = ()

    def __enter__(self) -> None:
        mode = requested_grad_mode if inference_used[0] and inference.get() else grad_mode
        self.prev = mode.get()
        mode.set(False)


class enable_grad(_NoArgumentMode):
    """Operators inside record, also within `no_grad`.

    >>> import flambeau as torch
    >>> x = torch.tensor([1.], requires_grad=True)
    >>> with torch.no_grad(), torch.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    __slots__ = ()

    def __enter__(self) -> None:
        mode = requested_grad_mode if inference_used[0] and inference.get() else grad_mode
        self.prev = mode.get()
        mode.set(True)


class set_grad_enabled(_Mode):
    """Set grad mode; as a context manager or decorator, until its end.

    >>> import flambeau as torch
    >>> with torch.set_grad_enabled(False):
    ...     torch.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        self.prev = is_grad_enabled()
        self.mode = mode
        set_grad(bool(mode))

    def __call__(self, function: F) -> F:
        set_grad(self.prev)
        return super().__call__(function)

    def __enter__(self) -> None:
        set_grad(bool(self.mode))

    def __exit__(self, *exception: object) -> None:
        set_grad(self.prev)

    def _fresh(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)

    def __str__(self) -> str:
        return f"{type(self).__module__}.{type(self).__qualname__}(mode={self.mode})"

    __repr__ = __str__


class inference_mode(_Mode):
    """No recording and no version counting: results can never take part in autograd later.

    >>> import flambeau as torch
    >>> with torch.inference_mode():
    ...     torch.ones(1).is_inference()
    True
    """

    def __new__(cls, mode: Any = True) -> Any:
        self = object.__new__(cls)
        if isinstance(mode, bool):
            return self
        self.__init__(True)  # type: ignore[misc]
        return self(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self._previous: list[tuple[bool, bool, bool]] = []

    def __enter__(self) -> None:
        self._previous.append((grad_mode.get(), requested_grad_mode.get(), inference.get()))
        grad_mode.set(not self.mode)
        requested_grad_mode.set(not self.mode)
        inference.set(self.mode)
        inference_used[0] = result_modes_used[0] = True

    def __exit__(self, *exception: object) -> None:
        previous_grad, previous_asked, previous_inference = self._previous.pop()
        grad_mode.set(previous_grad)
        requested_grad_mode.set(previous_asked)
        inference.set(previous_inference)

    def _fresh(self) -> inference_mode:
        return inference_mode(self.mode)


__all__ = ["enable_grad", "grad_mode", "inference", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled",
           "no_grad", "set_grad_enabled"]
