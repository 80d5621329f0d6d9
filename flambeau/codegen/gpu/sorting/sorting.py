"""Sorts of rows, and the first elements of sorted rows: by a block where rows are short, else by radix passes."""

from __future__ import annotations

from ....runtime.launch import Spec
from ..launches import DeviceLaunch
from . import block_sort, radix_sort


def sort(order: Spec, values: Spec, x: Spec, descending: bool) -> list[DeviceLaunch]:
    """Launches that sort rows stably; NaN is above all numbers.

    Args:
        order: the places in the rows, of the shape of `x`, int64, dense.
        values: the elements, of the dtype of `x`, dense.
        x: (rows, n), dense.
        descending: whether the largest elements are first.
    """
    n = x.shape[1]
    if n <= block_sort.LONGEST:
        return block_sort.launches(order, values, x, n, descending)
    return radix_sort.launches(order, values, x, descending)


def can_select(n: int, keep: int) -> bool:
    """Whether `select` takes so many elements of rows of n."""
    return n <= block_sort.LONGEST or keep <= block_sort.LONGEST // 4


def select(order: Spec, values: Spec, x: Spec, descending: bool) -> list[DeviceLaunch]:
    """Launches that write the first elements of each sorted row: as many as the results have columns.

    Args:
        order, values, x, descending: as for `sort`; `can_select` tells how many columns there may be.
    """
    return block_sort.launches(order, values, x, order.shape[1], descending)


__all__ = ["can_select", "select", "sort"]
