"""`torch._C._jit_try_infer_type`: the TorchScript type of a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from ..devices import device, layout, memory_format
from ..dtypes import dtype
from .script_types import (
    BoolType,
    ComplexType,
    DeviceObjType,
    DictType,
    FloatType,
    IntType,
    ListType,
    NoneType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    Type,
)

__all__ = ["InferredType", "_jit_try_infer_type"]

_SIMPLE: tuple[tuple[type | tuple[type, ...], Any], ...] = (
    (Tensor, TensorType), (bool, BoolType), ((int, dtype, layout), IntType), (float, FloatType),
    (complex, ComplexType), ((str, bytes), StringType), (type(None), NoneType), (device, DeviceObjType))


class InferredType:
    """The type of a value, or why it has none.

    Args:
        found: the type, or the reason.
    """

    def __init__(self, found: Type | str) -> None:
        self._found = found

    def success(self) -> bool:
        """Whether there is a type."""
        return isinstance(self._found, Type)

    def type(self) -> Type:
        """The type.

        Raises:
            RuntimeError: there is none.
        """
        if isinstance(self._found, Type):
            return self._found
        raise RuntimeError("Tried to get the type from an InferredType but the type is null. " + self._found)

    def reason(self) -> str:
        """Why there is no type."""
        return self._found if isinstance(self._found, str) else ""


class _NoTypeError(Exception):
    """A value has no type in TorchScript."""


def _unified(types: Iterable[Type], error: str) -> Type:
    """The type of values of several types: they are equal, or some are None."""
    found, *others = types
    for other in others:
        if found != other:
            pair = {type(found): found, type(other): other}
            if len(pair) == 1 or not pair.keys() & {NoneType, OptionalType}:
                raise _NoTypeError(error.format(other, found))
            inner = [t._element if isinstance(t, OptionalType) else t for t in (found, other)]
            inner = [t for t in inner if not isinstance(t, NoneType)]
            if len(inner) == 2 and inner[0] != inner[1]:
                raise _NoTypeError(error.format(other, found))
            found = OptionalType(inner[0])
    return found


def _type_of(value: Any) -> Type:
    for classes, script_type in _SIMPLE:
        if isinstance(value, classes) and not isinstance(value, memory_format):
            found: Type = script_type.get()
            return found
    if isinstance(value, tuple):
        return TupleType([_type_of(item) for item in value])
    if isinstance(value, list):
        if not value:
            raise _NoTypeError("List trace inputs must have elements")
        return ListType(_unified(map(_type_of, value), "List inputs to traced functions must have consistent element "
                                                       "type. Found {1} and {0}"))
    if isinstance(value, dict):
        if not value:
            raise _NoTypeError("Dictionary inputs must have entries")
        error = "Dictionary inputs to traced functions must have consistent type. Found {1} and {0}"
        return DictType(_unified(map(_type_of, value), error), _unified(map(_type_of, value.values()), error))
    raise _NoTypeError("Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs "
                       "or outputs of traced functions, but instead got value of type "
                       f"{type(value).__name__}.")


def _jit_try_infer_type(obj: Any) -> InferredType:
    """The type of a value.

    >>> from flambeau.environment.script_inference import _jit_try_infer_type
    >>> _jit_try_infer_type([1, None]).type(), _jit_try_infer_type([]).reason()
    (List[Optional[int]], 'List trace inputs must have elements')
    """
    try:
        return InferredType(_type_of(obj))
    except _NoTypeError as error:
        return InferredType(str(error))
