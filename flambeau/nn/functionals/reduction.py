"""The `reduction` argument of losses: "none", "mean", "sum", and the deprecated `size_average` and `reduce`."""

from __future__ import annotations

import warnings

from ..._tensor import Tensor, functions
from ...modes import special
from ...warning_location import stacklevel_beside_wrappers

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def legacy_reduction(size_average: bool | None, reduce: bool | None, reduction: str, emit_warning: bool = True,
                     stacklevel: int = 2) -> str:
    """The reduction equivalent to the deprecated arguments; `reduction` if both are None."""
    if size_average is None and reduce is None:
        return reduction
    averages = True if size_average is None else size_average
    reduces = True if reduce is None else reduce
    resolved = "none" if not reduces else "mean" if averages else "sum"
    if emit_warning:
        warnings.warn("size_average and reduce args will be deprecated, please use "
                      f"reduction='{resolved}' instead.", stacklevel=stacklevel)
    return resolved


def check_reduction(reduction: str) -> str:
    """Return `reduction` if it is valid.

    Raises:
        ValueError: it is unknown.
    """
    if reduction not in ("none", "mean", "sum", "elementwise_mean"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduction_number(reduction: str) -> int:
    """The number that stands for a reduction in `torch` itself.

    Raises:
        ValueError: it is unknown.
    """
    return _NUMBERS[check_reduction(reduction)]


def reduce_loss(loss: Tensor, reduction: str) -> Tensor:
    """Apply `reduction` to the elementwise `loss`."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    check_reduction(reduction)
    return loss


def broadcast_operands(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Input and target of an elementwise loss, expanded to their common shape; warn if they differ in size."""
    if input.__class__ is Tensor and target.__class__ is Tensor and not special[0] and (
            input._array.shape == target._array.shape):
        return input, target
    if target.size() != input.size():
        warnings.warn(f"Using a target size ({target.size()}) that is different to the input size "
                      f"({input.size()}). This will likely lead to incorrect results due to broadcasting. "
                      "Please ensure they have the same size.", stacklevel=stacklevel_beside_wrappers(3))
    return functions.broadcast_tensors(input, target)
