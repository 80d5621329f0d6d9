"""`torch.utils._ordered_set`: sets that keep the order in which elements were added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet, Set
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class OrderedSet(MutableSet[T], Generic[T]):
    """A set whose elements are iterated over in the order in which they were added.

    It has the operators and methods of `set`; a result has its own elements first.

    >>> from flambeau.utils._ordered_set import OrderedSet
    >>> OrderedSet([3, 1, 3]) | {2}
    OrderedSet([3, 1, 2])
    """

    __slots__ = ("_dict",)

    def __init__(self, iterable: Iterable[T] | None = None) -> None:
        self._dict: dict[T, None] = dict.fromkeys(iterable or ())

    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self) -> Iterator[T]:
        return iter(self._dict)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    def __getstate__(self) -> list[T]:
        return list(self._dict)

    def __setstate__(self, state: list[T]) -> None:
        self._dict = dict.fromkeys(state)

    def add(self, elem: T) -> None:
        """Add an element."""
        self._dict[elem] = None

    def discard(self, elem: T) -> None:
        """Remove an element if it is there."""
        self._dict.pop(elem, None)

    def clear(self) -> None:
        """Remove all elements."""
        self._dict.clear()

    def copy(self) -> OrderedSet[T]:
        """Return a set of the same elements."""
        return OrderedSet(self)

    def pop(self) -> T:
        """Remove and return the element that was added last.

        Raises:
            KeyError: the set is empty.
        """
        if not self:
            raise KeyError("pop from an empty set")
        return self._dict.popitem()[0]

    def update(self, *others: Iterable[T]) -> None:
        """Add the elements of others."""
        for other in others:
            self |= other if isinstance(other, Set) else dict.fromkeys(other).keys()

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        """Return the elements of this set and of others."""
        result = self.copy()
        result.update(*others)
        return result

    def intersection(self, *others: Iterable[T]) -> OrderedSet[T]:
        """Return the elements that others have, too."""
        kept = [set(other) for other in others]
        return OrderedSet(elem for elem in self if all(elem in other for other in kept))

    def intersection_update(self, *others: Iterable[T]) -> None:
        """Remove the elements that not all others have."""
        self._dict = self.intersection(*others)._dict

    def difference(self, *others: Iterable[T]) -> OrderedSet[T]:
        """Return the elements that no other has."""
        left_out = {elem for other in others for elem in other}
        return OrderedSet(elem for elem in self if elem not in left_out)

    def difference_update(self, *others: Iterable[T]) -> None:
        """Remove the elements of others."""
        self._dict = self.difference(*others)._dict

    def symmetric_difference(self, other: Iterable[T]) -> OrderedSet[T]:
        """Return the elements of either this set or another one."""
        return self ^ OrderedSet(other)  # type: ignore[return-value]

    def symmetric_difference_update(self, other: Iterable[T]) -> None:
        """Keep the elements of either this set or another one."""
        self ^= OrderedSet(other)

    def issubset(self, other: Iterable[Any]) -> bool:
        """Whether another one has all elements."""
        return self <= OrderedSet(other)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Whether this set has all elements of another one."""
        return self >= OrderedSet(other)


__all__ = ["OrderedSet"]
