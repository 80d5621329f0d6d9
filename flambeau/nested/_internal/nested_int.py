"""The size of a ragged dimension: a symbolic number that only says which dimensions have equal sizes."""

from __future__ import annotations

import weakref
from typing import Any

from ..._tensor import Tensor
from ...environment.symbolic import SymInt

_INDETERMINATE = "ge: relation is indeterminate"


class NestedIntNode:
    """What a ragged size is of: the number of its offsets, and a factor."""

    def __init__(self, number: int, coefficient: int = 1) -> None:
        self.t_id, self.coeff = number, coefficient

    def nested_int(self) -> int:
        """The number of the offsets."""
        return self.t_id

    def nested_int_coeff(self) -> int:
        """The factor."""
        return self.coeff

    def is_nested_int(self) -> bool:
        """Whether it is a ragged size: True."""
        return True

    def __str__(self) -> str:
        return f"{'' if self.coeff == 1 else f'{self.coeff}*'}j{self.t_id}"

    __repr__ = __str__


def _unsupported(name: str) -> Any:
    """An operator that ragged sizes lack."""
    def method(self: Any, *others: Any) -> Any:
        raise AttributeError(f"'NestedIntNode' object has no attribute '{name}'")

    return method


class NestedInt(SymInt):
    """The size of a ragged dimension: it can be compared, and multiplied by an integer.

    >>> import flambeau as torch
    >>> x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    >>> x.shape[1] == (2 * x).shape[1], x.shape[1] == 3
    (True, False)
    """

    def __init__(self, node: NestedIntNode) -> None:
        self.node = node

    def _key(self) -> tuple[int, int]:
        return self.node.t_id, self.node.coeff

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NestedInt) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self.node.coeff)

    def __ge__(self, other: Any) -> bool:
        if isinstance(other, NestedInt):
            if self.node.t_id == other.node.t_id:
                return self.node.coeff >= other.node.coeff
            raise ValueError(_INDETERMINATE)
        if other <= 2:
            return True
        raise ValueError(_INDETERMINATE)

    def __le__(self, other: Any) -> bool:
        if isinstance(other, NestedInt):
            return other >= self
        if other < 2:
            return False
        raise ValueError(_INDETERMINATE)

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __mul__(self, other: Any) -> NestedInt:
        if isinstance(other, NestedInt):
            raise ValueError("unsupported: <class 'torch.nested._internal.nested_int.NestedIntNode'>")
        return NestedInt(NestedIntNode(self.node.t_id, self.node.coeff * other))

    __rmul__ = __mul__

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return str(self.node)

    __add__ = __radd__ = _unsupported("add")
    __sub__ = __rsub__ = _unsupported("sub")
    __neg__ = _unsupported("neg")
    __floordiv__ = _unsupported("int_floordiv")
    __mod__ = _unsupported("mod")
    __int__ = __index__ = __float__ = _unsupported("int_")


NestedInt.__name__ = NestedInt.__qualname__ = "SymInt"

#: ragged sizes by the identity of the offsets (or lengths) tensor: tensors compare by elements
_sizes: dict[int, tuple[weakref.ref[Tensor], NestedInt]] = {}
_next = [0]
_view_made = [False]


def _register(tensor: Tensor, size: NestedInt) -> None:
    key = id(tensor)
    _sizes[key] = weakref.ref(tensor, lambda _: _sizes.pop(key, None)), size


def get_tensor_symint(tensor: Tensor, *, coeff: int = 1) -> NestedInt:
    """The ragged size that an offsets (or lengths) tensor determines: the same for the same object."""
    found = _sizes.get(id(tensor))
    if found is None or found[0]() is not tensor:
        size = NestedInt(NestedIntNode(_next[0]))
        _next[0] += 1
        _register(tensor, size)
    else:
        size = found[1]
    return size * coeff if coeff != 1 else size


def copy_with_number(tensor: Tensor) -> Tensor:
    """A copy of an offsets (or lengths) tensor that determines the same ragged size."""
    copied = tensor.clone()
    _register(copied, get_tensor_symint(tensor))
    return copied


def number_first_view() -> None:
    """Pass over a number once: PyTorch makes views beside an example, a nested tensor that is made before the first."""
    if not _view_made[0]:
        _view_made[0] = True
        _next[0] += 1


__all__ = ["NestedInt", "NestedIntNode", "copy_with_number", "get_tensor_symint", "number_first_view"]
