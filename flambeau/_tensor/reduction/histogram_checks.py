"""The checks of histograms: bins, ranges and weights that fit the points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dtypes import C_NAMES
from ..tensor import Tensor

_PREFIX = "torch.histogramdd: "


def check_histogram(input: Tensor, shape: tuple[int, ...], bins: Sequence[Any], range: Any, weight: Tensor | None,
                    weight_shape: tuple[int, ...] = ()) -> None:
    """Check the arguments of a histogram of points.

    Args:
        input: the coordinates.
        shape: (..., d), the shape of the points.
        bins: for each dimension, the number of bins or the tensor of their edges.
        range: the lowest and highest edge of each dimension, or None.
        weight: the weights, or None.
        weight_shape: their shape, without which they have that of the points.

    Raises:
        RuntimeError: an argument does not fit the others (PyTorch's texts).
    """
    count, name = shape[-1], C_NAMES[input.dtype.name]
    if bins and isinstance(bins[0], Tensor):
        _check_edges(name, bins, count)
    elif len(bins) != count:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    elif range is not None and len(range) != 2 * count:
        raise RuntimeError(f"{_PREFIX}for a {count}-dimensional histogram range should have {2 * count} elements, but "
                           f"got {len(range)}")
    if weight is None:
        return
    if weight.dtype is not input.dtype:
        raise RuntimeError(f"{_PREFIX}if weight tensor is provided, input tensor and weight tensor should have the "
                           f"same dtype, but got input({name}), and weight({C_NAMES[weight.dtype.name]})")
    weight_shape = weight_shape or weight._array.shape
    if weight_shape != shape[:-1]:
        raise RuntimeError(f"{_PREFIX}if weight tensor is provided it should have the same shape as the input tensor "
                           f"excluding its innermost dimension, but got input with shape {list(shape)} and weight with "
                           f"shape {list(weight_shape)}")


def _check_edges(input_dtype: str, bins: Sequence[Tensor], count: int) -> None:
    if len(bins) != count:
        raise RuntimeError(f"{_PREFIX}expected {count} sequences of bin edges for a {count}-dimensional histogram but "
                           f"got {len(bins)}")
    for i, edges in enumerate(bins):
        where = f"in the bins tensor for dimension {i}"
        if C_NAMES[edges.dtype.name] != input_dtype:
            raise RuntimeError(f"{_PREFIX}input tensor and bins tensors should have the same dtype, but got input with "
                               f"dtype {input_dtype} and bins for dimension {i} with dtype {C_NAMES[edges.dtype.name]}")
        if edges._array.ndim != 1:
            raise RuntimeError(f"{_PREFIX}bins tensor should have one dimension, but got {edges._array.ndim} "
                               f"dimensions {where}")
        if not edges._array.size:
            raise RuntimeError(f"{_PREFIX}bins tensor should have at least 1 element, but got 0 elements {where}")


__all__ = ["check_histogram"]
