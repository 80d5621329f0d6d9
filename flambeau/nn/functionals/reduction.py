"""How a loss over many elements becomes one number."""

from __future__ import annotations

import warnings

from ..._tensor import Tensor


def legacy(size_average: bool | None, reduce: bool | None, reduction: str, emit_warning: bool = True,
           stacklevel: int = 2) -> str:
    """The reduction that the deprecated arguments mean; `reduction` itself if they are not given."""
    if size_average is None and reduce is None:
        return reduction
    average = True if size_average is None else size_average
    reduces = True if reduce is None else reduce
    meant = "none" if not reduces else "mean" if average else "sum"
    if emit_warning:
        warnings.warn("size_average and reduce args will be deprecated, please use "
                      f"reduction='{meant}' instead.", stacklevel=stacklevel)
    return meant


def check(reduction: str) -> str:
    """`reduction`, if it is one.

    Raises:
        ValueError: it is not.
    """
    if reduction not in ("none", "mean", "sum", "elementwise_mean"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """`loss`, its mean or its sum."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    check(reduction)
    return loss


def warn_of_sizes(input: Tensor, target: Tensor) -> None:
    """Warn that an elementwise loss will broadcast."""
    if target.size() != input.size():
        warnings.warn(f"Using a target size ({target.size()}) that is different to the input size "
                      f"({input.size()}). This will likely lead to incorrect results due to broadcasting. "
                      "Please ensure they have the same size.", stacklevel=3)
