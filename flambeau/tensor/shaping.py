"""Functions that reshape, join and split, where a declaration cannot take their arguments."""

from __future__ import annotations

from typing import Any

from ..devices import contiguous_format
from ..ops.declare import REGISTRY
from ..shapes import infer_size
from .apply import apply
from .binding import functions_of
from .tensor import Tensor

__all__ = ["reshaped", "sum_to_size"]


def reshaped(input: Tensor, shape: Any) -> Tensor:
    """`reshape`: a view where strides allow, else a view of a copy."""
    try:
        return functions_of(REGISTRY["view"])(input, tuple(shape))  # type: ignore[no-any-return]
    except RuntimeError as error:
        if "not compatible" not in str(error):
            raise
    copied = apply(REGISTRY["clone"], [input], {"memory_format": contiguous_format})
    size = infer_size(tuple(shape), input._array.size)
    return apply(REGISTRY["_unsafe_view"], [copied], {"size": size})  # type: ignore[no-any-return]


def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """The sum over broadcast dimensions that brings `input` to `size`.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else tuple(size)
    have = input._array.shape
    if have == shape:
        return input
    lead = len(have) - len(shape)
    if lead < 0 or any(s not in (1, have[i + lead]) for i, s in enumerate(shape)):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(have)}}}.")
    axes = tuple(range(lead)) + tuple(i + lead for i, s in enumerate(shape) if s == 1 and have[i + lead] != 1)
    summed = apply(REGISTRY["sum"], [input], {"dim": axes, "keepdim": True}) if axes else input
    return functions_of(REGISTRY["view"])(summed, shape) if lead else summed  # type: ignore[no-any-return]


METHODS = {"sum_to_size": sum_to_size}
