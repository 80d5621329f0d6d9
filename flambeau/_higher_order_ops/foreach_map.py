"""`foreach_map`: a function of each group of elements of several lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["foreach_map"]


def foreach_map(op: Callable[..., Any], *operands: Any, **kwargs: Any) -> Any:
    """`op` of the first elements of the lists among the operands, of the second ones, and so on.

    Operands that are no lists are passed in each call; without a list, `op` is called once. As in PyTorch, the shortest
    list counts, and keyword arguments are ignored.

    >>> import flambeau as torch
    >>> from flambeau._higher_order_ops.foreach_map import foreach_map
    >>> foreach_map(torch.add, [torch.ones(2), torch.zeros(1)], 3)
    [tensor([4., 4.]), tensor([3.])]
    """
    lists = [each for each in operands if isinstance(each, (list, tuple))]
    if not lists:
        return op(*operands)
    count = min(map(len, lists))
    return [op(*(each[i] if isinstance(each, (list, tuple)) else each for each in operands)) for i in range(count)]
