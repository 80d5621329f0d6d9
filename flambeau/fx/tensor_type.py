"""Types of tensors by their sizes, some of which may be unknown: `TensorType[1, Dyn]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._compatibility import compatibility

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


@compatibility(is_backward_compatible=False)
class TensorType:
    """The type of tensors of given sizes; `Dyn` stands for an unknown size.

    >>> from flambeau.fx.tensor_type import Dyn, TensorType
    >>> TensorType((1, Dyn))
    TensorType[(1, Dyn)]
    """

    def __init__(self, dim: Sequence[Any]) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self) -> Sequence[Any]:
        """The sizes."""
        return self.__args__

    def __repr__(self) -> str:
        return f"TensorType[{self.dims}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and list(self.dims) == list(other.dims)

    def __class_getitem__(cls, *args: Any) -> TensorType:
        if len(args) == 1 and isinstance(args[0], tuple):
            args = args[0]
        return TensorType(tuple(args))


class _DynType:
    """The absence of type information."""

    def __init__(self) -> None:
        self.__name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    def __repr__(self) -> str:
        return "Dyn"


Dyn = _DynType()


def _relates(t1: object, t2: object, relation: Any) -> bool:
    return (isinstance(t1, TensorType) and isinstance(t2, TensorType) and len(t1.dims) == len(t2.dims)
            and all(relation(a, b) for a, b in zip(t1.dims, t2.dims, strict=True)))


@compatibility(is_backward_compatible=False)
def is_consistent(t1: object, t2: object) -> bool:
    """Whether two types may be of one tensor: they are equal wherever both are known.

    >>> from flambeau.fx.tensor_type import Dyn, TensorType, is_consistent
    >>> is_consistent(TensorType((1, Dyn)), TensorType((Dyn, 2)))
    True
    """
    return t1 in (t2, Dyn) or t2 == Dyn or _relates(t1, t2, is_consistent)


@compatibility(is_backward_compatible=False)
def is_more_precise(t1: object, t2: object) -> bool:
    """Whether the first type is equal to the second wherever the second is known.

    >>> from flambeau.fx.tensor_type import Dyn, TensorType, is_more_precise
    >>> is_more_precise(TensorType((1, 2)), TensorType((Dyn, 2)))
    True
    """
    return bool(t1 == t2) or isinstance(t2, _DynType) or _relates(t1, t2, is_more_precise)
