"""Pooling functions: `return_indices`, output sizes of None, and LP pooling by average pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..ntuple import ntuple

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d",
    "max_pool3d_with_indices",
]


def _max_pool(rank: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Make max_pool{rank}d and max_pool{rank}d_with_indices."""
    name = f"max_pool{rank}d"

    def with_indices(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                     ceil_mode: bool = False, return_indices: bool = False) -> tuple[Tensor, Tensor]:
        operator = getattr(fn, name + "_with_indices")
        return operator(input, kernel_size, kernel_size if stride is None else stride, padding, dilation,
                        ceil_mode)

    def pool(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False, return_indices: bool = False) -> Any:
        if return_indices:
            return with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
        return getattr(fn, name)(input, kernel_size, kernel_size if stride is None else stride, padding,
                                 dilation, ceil_mode)

    pool.__doc__ = (f"The maximum of each window over the last {rank} dimension{'s' * (rank > 1)}.\n\n"
                    "With `return_indices`, also where in its plane each maximum lies.")
    with_indices.__doc__ = f"`{name}`, and where in its plane each maximum lies."
    pool.__name__ = pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    return pool, with_indices


max_pool1d, max_pool1d_with_indices = _max_pool(1)
max_pool2d, max_pool2d_with_indices = _max_pool(2)
max_pool3d, max_pool3d_with_indices = _max_pool(3)


def _adaptive_max_pool(rank: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Make adaptive_max_pool{rank}d and adaptive_max_pool{rank}d_with_indices."""
    name = f"adaptive_max_pool{rank}d"

    def with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
        return getattr(fn, name)(input, resolve_output_size(output_size, input, rank))

    def pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        result = with_indices(input, output_size)
        return result if return_indices else result[0]

    pool.__doc__ = (f"The maximum of each of `output_size` windows, covering the last {rank} "
                    f"dimension{'s' * (rank > 1)} evenly.")
    with_indices.__doc__ = f"`{name}`, and where in its plane each maximum lies."
    pool.__name__ = pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    return pool, with_indices


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max_pool(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max_pool(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max_pool(3)


def resolve_output_size(output_size: Any, input: Tensor, rank: int) -> Any:
    """`output_size` with None replaced by the input's size in that dimension.

    Raises:
        ValueError: `output_size` has as many elements as the input has dimensions, or more.
    """
    if isinstance(output_size, int):
        return output_size
    input_size = input.size()
    if len(input_size) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    return [n if requested is None else requested
            for requested, n in zip(output_size, input_size[len(input_size) - len(output_size):], strict=True)]


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of each of `output_size` windows, covering the last dimension evenly."""
    return fn.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of each of `output_size` windows, covering the last 2 dimensions evenly."""
    return fn.adaptive_avg_pool2d(input, resolve_output_size(output_size, input, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of each of `output_size` windows, covering the last 3 dimensions evenly."""
    return fn.adaptive_avg_pool3d(input, resolve_output_size(output_size, input, 3))


def _lp_pool(rank: int) -> Callable[..., Tensor]:
    average = f"avg_pool{rank}d"

    def pool(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None,
             ceil_mode: bool = False) -> Tensor:
        area = 1
        for size in ntuple(kernel_size, rank):
            area *= size
        stride = kernel_size if stride is None else stride
        mean = getattr(fn, average)(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
        return (fn.sign(mean) * fn.relu(fn.abs(mean))).mul(area).pow(1.0 / norm_type)

    pool.__doc__ = f"The p-norm of each window over the last {rank} dimension{'s' * (rank > 1)}."
    pool.__name__ = pool.__qualname__ = f"lp_pool{rank}d"
    return pool


lp_pool1d, lp_pool2d, lp_pool3d = _lp_pool(1), _lp_pool(2), _lp_pool(3)
