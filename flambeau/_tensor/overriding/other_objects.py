"""The errors of functions that are given other objects in place of tensors, in the words of PyTorch's argument parser.

Declared operators bind their arguments (`binding`). Other functions read `x._array` at once, and it is their
AttributeError that tells that an argument is no tensor: so nothing is checked in a call that succeeds.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from typing import Any

from ..argument_errors.type_names import not_a_tensor, type_name
from ..tensor import Tensor
from .entry_points import note_foreign
from .first_calls import called_again
from .protocol import overrides

#: parameters that are tensors whatever their annotation says, because they may override the function, too
_TENSORS = frozenset(("input", "self", "tensors", "matrices"))


def reports_other_objects(function: Any, name: str, of_method: bool = False) -> Any:
    """A function of the same behaviour that raises PyTorch's TypeError for objects that are no tensors.

    Args:
        function: reads attributes of tensors without a check; parameters that are tensors are annotated so.
        name: its public name, for the message.
        of_method: whether the first argument is a method's tensor, which the message does not count.
    """
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError) as error:
            result = called_again(call, args, kwargs)
            if result is not NotImplemented:
                return result
            if isinstance(error, TypeError):
                raise
            return with_other_object(error, call, args, kwargs, name, of_method)

    return call


def with_other_object(error: AttributeError, function: Any, args: Sequence[Any], kwargs: dict[str, Any] | None = None,
                      name: str | None = None, of_method: bool = False) -> Any:
    """The result of a function whose argument has no attribute of a tensor, if it overrides the function.

    An object whose class has a `__torch_function__` is noted, and the call repeated, so that it is asked.

    Args:
        error: that of the missing attribute; raised again if all tensors are tensors.
        function, args, kwargs: the call.
        name: the public name of the function; by default its own.
        of_method: whether the message does not count the first argument.

    Raises:
        TypeError: an argument is no tensor (PyTorch's text).
    """
    kwargs = kwargs or {}
    name = name or function.__name__
    found = _other_object(function, args, kwargs)
    if found is None:
        try:
            raise error
        finally:
            del error  # whose traceback refers to this frame, and so to the arguments
    parameter, position, value = found
    if overrides(value) and note_foreign(type(value)):
        return function(*args, **kwargs)
    parameter = "input" if parameter in ("self", "tensor") and not of_method else parameter
    if not parameter:
        raise TypeError(f"expected Tensor as element {position} in argument 0, but got {type_name(value)}") from None
    raise not_a_tensor(name, value, parameter, position - of_method) from None


def _other_object(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[str, int, Any] | None:
    """The first argument that should be a tensor and is none: its parameter ("" for one of several) and position."""
    parameters = inspect.signature(function).parameters
    for position, (name, parameter) in enumerate(parameters.items()):
        kind = str(parameter.annotation)
        if name in _TENSORS:
            kind = "Tensor"
        elif "Tensor" not in kind:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            given = args[position:]
            several = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
            for number, value in enumerate(several):
                if not isinstance(value, Tensor):
                    return "", number, value
        elif position < len(args) or name in kwargs:
            value = args[position] if position < len(args) else kwargs[name]
            if kind in ("Tensor", "Tensor | None") and not isinstance(value, Tensor) and not (
                    value is None and kind != "Tensor"):
                return name, position + 1, value
    return None


__all__ = ["reports_other_objects", "with_other_object"]
