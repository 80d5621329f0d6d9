"""The methods of Python's numbers that follow from one comparison and from two kinds of division."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


class ComparedNumber:
    """A number whose comparisons are one method, which is called by the special methods directly: its caller's caller
    is the code that compares. Each class has its own `__hash__`.
    """

    __slots__ = ()

    def _compare(self, other: Any, function: Callable[[Any, Any], Any]) -> Any:
        """The outcome of a function of `operator`; NotImplemented for other objects than numbers."""
        raise NotImplementedError

    def __eq__(self, other: object) -> Any:
        return self._compare(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._compare(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, operator.ge)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self


__all__ = ["ComparedNumber"]
