"""Arguments of scripted code as its annotations declare them: an integer that is passed for a `float` becomes one."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, Union

import numpy as np

from .._tensor import Tensor

_Conversion = Callable[[Any], Any]

#: the classes of Python's and NumPy's numbers that TorchScript takes for a number of a type
_NUMBERS: dict[type, tuple[type, ...]] = {
    int: (int, np.integer),
    float: (int, float, np.integer, np.floating),
    complex: (int, float, complex, np.number),
}


class DeclaredArguments:
    """The parameters of a function whose annotations contain numbers, and what converts their arguments.

    TorchScript's code has static types, so that Python's numbers are converted where they enter it. Arguments of
    other classes are left as they are.

    Args:
        function: what is scripted.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._by_position: list[tuple[str, _Conversion | None]] = []
        self._by_name: dict[str, _Conversion] = {}
        #: defaults that change by the conversion
        self._defaults: dict[str, Any] = {}
        try:
            parameters, hints = inspect.signature(function).parameters, typing.get_type_hints(function)
        except (TypeError, ValueError, NameError, AttributeError):  # builtins, or names that only type checkers know
            return
        for name, parameter in parameters.items():
            convert = _conversion(hints[name]) if name in hints else None
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                self._by_position.append((name, convert))
            elif parameter.kind is not parameter.KEYWORD_ONLY:
                convert = None
            if convert is not None:
                self._by_name[name] = convert
                if parameter.default is not parameter.empty and type(convert(parameter.default)) \
                        is not type(parameter.default):
                    self._defaults[name] = convert(parameter.default)

    def convert(self, args: tuple[Any, ...], kwargs: dict[str, Any], *,
                method: bool = False) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call, numbers converted to what the annotations say.

        Args:
            args: by position.
            kwargs: by name.
            method: whether the first parameter is bound, so that `args` start with the second one.
        """
        if not self._by_name:
            return args, kwargs
        declared = self._by_position[method:len(args) + method]
        given = {name for name, _ in declared} | kwargs.keys()
        by_position = [value if convert is None else convert(value)
                       for value, (_, convert) in zip(args, declared, strict=False)]
        by_name = {name: self._by_name[name](value) if name in self._by_name else value
                   for name, value in kwargs.items()}
        missing = {name: default for name, default in self._defaults.items() if name not in given}
        return (*by_position, *args[len(declared):]), by_name | missing


def _conversion(annotation: Any) -> _Conversion | None:
    """What converts arguments to an annotated type; None if they stay as they are."""
    if annotation in _NUMBERS:
        return _number(annotation)
    if annotation is bool:
        return bool
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (Union, types.UnionType) and len(arguments) == 2 and type(None) in arguments:
        inner = _conversion(arguments[arguments[0] is type(None)])
        return None if inner is None else lambda value: None if value is None else inner(value)
    conversions = [_conversion(each) for each in arguments if each is not Ellipsis]
    if not any(conversions):
        return None
    if origin is list:
        return lambda value: [_apply(conversions[0], each) for each in value] if isinstance(value, (list, tuple)) \
            else value
    if origin is dict:
        return lambda value: {_apply(conversions[0], key): _apply(conversions[1], each)
                              for key, each in value.items()} if isinstance(value, dict) else value
    if origin is tuple and len(conversions) == len(arguments):
        return lambda value: tuple(map(_apply, conversions, value)) \
            if isinstance(value, (tuple, list)) and len(value) == len(conversions) else value
    return None


def _number(kind: type) -> _Conversion:
    accepted = _NUMBERS[kind]

    def convert(value: Any) -> Any:
        if isinstance(value, accepted):
            return kind(value)
        if isinstance(value, Tensor) and value.numel() == 1:
            return kind(value.item())
        return value

    return convert


def _apply(conversion: _Conversion | None, value: Any) -> Any:
    return value if conversion is None else conversion(value)
