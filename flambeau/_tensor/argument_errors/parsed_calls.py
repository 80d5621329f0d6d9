"""Functions that PyTorch writes in Python, around a function whose arguments it parses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def parsed_as(name: str, arguments: Callable[..., Any]) -> Callable[[_Function], _Function]:
    """A decorator that compares a call's arguments with the signature of the function that PyTorch passes them to.

    It is done once for the classes of a call's arguments, and of the elements of lists among them.

    Args:
        name: the function inside, in `signatures.txt`.
        arguments: what it is passed by position, and a dictionary of what it is passed by name; its own parameters are
            those of the decorated function, and it fails as PyTorch's Python code does.

    Raises:
        TypeError: on a call that does not fit (PyTorch's text).

    >>> from flambeau._tensor.argument_errors.parsed_calls import parsed_as
    >>> function = parsed_as("im2col", lambda x, size: ((x, size, 1, 0, 1), {}))(lambda x, size: "called")
    >>> function(3, 2)
    Traceback (most recent call last):
    TypeError: im2col(): argument 'input' (position 1) must be Tensor, not int
    """
    def decorate(function: _Function) -> _Function:
        seen: set[Any] = set()

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            classes = (*map(_class_of, args), *[(key, _class_of(value)) for key, value in kwargs.items()])
            if classes not in seen:
                _check(name, arguments, args, kwargs)
                if len(seen) < _MOST:
                    seen.add(classes)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


#: so many combinations of classes are remembered for a function
_MOST = 256


def _class_of(value: Any) -> Any:
    """The class, of lists with those of their elements."""
    kind = value.__class__
    return kind if kind is not tuple and kind is not list else (kind, *[x.__class__ for x in value])


def _check(name: str, arguments: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    from .messages import FUNCTION, explained

    try:
        positional, named = arguments(*args, **kwargs)
    except TypeError as error:
        if str(error).startswith("<lambda>()"):
            return  # the function itself refuses the call
        raise
    error_found = explained(FUNCTION, name, positional, named)
    if error_found is not None:
        try:
            raise error_found from None
        finally:
            del error_found  # whose traceback refers to this frame


def pair(value: Any) -> tuple[Any, ...]:
    """Two numbers for an argument that may be one.

    >>> from flambeau._tensor.argument_errors.parsed_calls import pair
    >>> pair(3), pair([1, 2])
    ((3, 3), (1, 2))
    """
    return tuple(value) if isinstance(value, Iterable) else (value, value)


__all__ = ["pair", "parsed_as"]
