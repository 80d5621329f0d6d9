"""`torch.SymInt` and its like: classes of symbolic numbers, of which there are none, and functions of plain numbers.

Shapes are always concrete here. The functions `sym_max`, `sym_int`, ... accept the numbers that programs pass to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


class _Symbolic:
    """A symbolic number: an instance cannot be made."""

    def __init__(self, node: Any) -> None:
        raise RuntimeError(f"{type(self).__name__}: shapes are concrete numbers here, there are no symbolic ones")


class SymInt(_Symbolic):
    """A symbolic integer. Shapes are concrete, so there is none.

    >>> import flambeau as torch
    >>> isinstance(torch.ones(3).shape[0], torch.SymInt)
    False
    """

    __module__ = "torch"


class SymFloat(_Symbolic):
    """A symbolic float. Shapes are concrete, so there is none.

    >>> import flambeau as torch
    >>> isinstance(0.5, torch.SymFloat)
    False
    """

    __module__ = "torch"


class SymBool(_Symbolic):
    """A symbolic bool. Shapes are concrete, so there is none.

    >>> import flambeau as torch
    >>> isinstance(True, torch.SymBool)
    False
    """

    __module__ = "torch"


def sym_not(a: Any) -> bool:
    """The negation of a bool.

    >>> import flambeau as torch
    >>> torch.sym_not(True)
    False
    """
    return not a


def sym_int(a: Any) -> int:
    """A number, truncated to an integer.

    >>> import flambeau as torch
    >>> torch.sym_int(-2.5)
    -2
    """
    return int(a)


def sym_float(a: Any) -> float:
    """A number as a float.

    >>> import flambeau as torch
    >>> torch.sym_float(2)
    2.0
    """
    return float(a)


def _promoted(a: Any, b: Any, result: Any) -> Any:
    return float(result) if isinstance(a, float) or isinstance(b, float) else result


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers; a float if one of them is.

    >>> import flambeau as torch
    >>> torch.sym_max(2, 1.0)
    2.0
    """
    return _promoted(a, b, max(a, b))


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers; a float if one of them is.

    >>> import flambeau as torch
    >>> torch.sym_min(2, 1.0)
    1.0
    """
    return _promoted(a, b, min(a, b))


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum of numbers.

    >>> import flambeau as torch
    >>> torch.sym_sum([1, 2, 3])
    6
    """
    return sum(args)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t` if `b` else `f`.

    >>> import flambeau as torch
    >>> torch.sym_ite(True, 1, 2)
    1
    """
    return t if b else f


def sym_fresh_size(expr: Any) -> Any:
    """A size as a new symbol, which symbolic shapes would need.

    Raises:
        NotImplementedError: always.

    >>> import flambeau as torch
    >>> torch.sym_fresh_size(1)
    Traceback (most recent call last):
      ...
    NotImplementedError: sym_fresh_size: shapes are concrete numbers here
    """
    raise NotImplementedError("sym_fresh_size: shapes are concrete numbers here")


def sym_sqrt(a: Any) -> float:
    """The square root of a number.

    >>> import flambeau as torch
    >>> torch.sym_sqrt(4)
    2.0
    """
    return math.sqrt(a)


__all__ = ["SymBool", "SymFloat", "SymInt", "sym_float", "sym_fresh_size", "sym_int", "sym_ite", "sym_max",
           "sym_min", "sym_not", "sym_sqrt", "sym_sum"]
