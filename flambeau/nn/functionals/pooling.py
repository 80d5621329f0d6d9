"""Pooling functions: `return_indices`, output sizes of None, and LP pooling by average pooling."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.argument_errors.parsed_calls import parsed_as
from ..._tensor.fastpath.repeated_calls import launched
from ..ntuple import ntuple

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d",
    "max_pool3d_with_indices",
]

MAX_POOL_DOC = """Maximum of each window of the last {rank} dimension(s); see `nn.MaxPool{rank}d` for the output size.

    Args:
        input: (N, C, *spatial) or (C, *spatial), with {rank} spatial dimension(s).
        kernel_size: the window size, an int or one int per dimension.
        stride: the distance between windows; `kernel_size` by default.
        padding: elements of -inf added on both sides; at most half the window.
        dilation: the distance between the elements of a window.
        ceil_mode: round the output size up instead of down.
        return_indices: return (values, indices), the flat index of each maximum within its plane (int64).

    >>> import flambeau as torch
    >>> torch.nn.functional.{name}({ones}, 2).unique()
    tensor([1.])
    """

ADAPTIVE_MAX_POOL_DOC = """Maximum of windows that divide the last {rank} dimension(s) into `output_size` parts.

    See `nn.AdaptiveMaxPool{rank}d` for the windows.

    Args:
        input: (N, C, *spatial) or (C, *spatial), with {rank} spatial dimension(s).
        output_size: an int, or one int or None (the input's size) per dimension.
        return_indices: return (values, indices), the flat index of each maximum within its plane (int64).

    >>> import flambeau as torch
    >>> torch.nn.functional.{name}({ones}, 1).flatten()
    tensor([1.])
    """

WITH_INDICES_DOC = """`{name}` with `return_indices=True`: returns (values, indices).

    The other arguments are those of `{name}`.

    >>> import flambeau as torch
    >>> values, indices = torch.nn.functional.{name}_with_indices({ones}{arguments})
    >>> indices.flatten()[0]
    tensor(0)
    """

LP_POOL_DOC = """p-norm of each window of the last {rank} dimension(s): (Σ xᵖ)^(1/p).

    Args:
        input: (N, C, *spatial) or (C, *spatial), with {rank} spatial dimension(s).
        norm_type: p.
        kernel_size: the window size, an int or one int per dimension.
        stride: the distance between windows; `kernel_size` by default.
        ceil_mode: round the output size up instead of down.

    >>> import flambeau as torch
    >>> torch.nn.functional.lp_pool{rank}d({ones}, 1, 2).unique() == 2 ** {rank}
    tensor([True])
    """


def _ones(rank: int) -> str:
    """The expression of the example input in a docstring."""
    return f"torch.ones(1{', 4' * rank})"


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

    pool.__doc__ = MAX_POOL_DOC.format(rank=rank, name=name, ones=_ones(rank))
    with_indices.__doc__ = WITH_INDICES_DOC.format(name=name, ones=_ones(rank), arguments=", 2")
    pool.__name__ = pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    return pool, with_indices


max_pool1d, max_pool1d_with_indices = _max_pool(1)
max_pool2d, max_pool2d_with_indices = _max_pool(2)
max_pool3d, max_pool3d_with_indices = _max_pool(3)


def _adaptive_max_pool(rank: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Make adaptive_max_pool{rank}d and adaptive_max_pool{rank}d_with_indices."""
    name = f"adaptive_max_pool{rank}d"

    @parsed_as(name, lambda input, output_size, return_indices=False: (
        (input, output_size if rank == 1 else _requested(output_size, input, rank)), {}))
    def with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
        return getattr(fn, name)(input, resolve_output_size(output_size, input, rank))

    def pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        result = with_indices(input, output_size)
        return result if return_indices else result[0]

    pool.__doc__ = ADAPTIVE_MAX_POOL_DOC.format(rank=rank, name=name, ones=_ones(rank))
    with_indices.__doc__ = WITH_INDICES_DOC.format(name=name, ones=_ones(rank), arguments=", 1")
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


def _requested(output_size: Any, input: Any, rank: int) -> Any:
    """`resolve_output_size`; PyTorch asks for the input's size whether it needs it or not."""
    input.size()
    return resolve_output_size(output_size, input, rank)


@launched
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Mean of windows that divide the last dimension into `output_size` parts; see `nn.AdaptiveAvgPool1d`.

    Args:
        input: (N, C, L) or (C, L).
        output_size: an int.

    Returns:
        The input's shape with the last dimension of size `output_size`.

    >>> import flambeau as torch
    >>> torch.nn.functional.adaptive_avg_pool1d(torch.tensor([[1.0, 2.0, 3.0, 0.0]]), 2)
    tensor([[1.5000, 1.5000]])
    """
    return fn.adaptive_avg_pool1d(input, output_size)


@launched
@parsed_as("adaptive_avg_pool2d", lambda input, output_size: (
    (input, _requested(output_size, input, 2)), {}))
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Mean of windows that divide the last 2 dimensions into `output_size` parts; see `nn.AdaptiveAvgPool2d`.

    Args:
        input: (N, C, H, W) or (C, H, W).
        output_size: an int, or one int or None (the input's size) per dimension.

    Returns:
        The input's shape with the last 2 dimensions of size `output_size`.

    >>> import flambeau as torch
    >>> torch.nn.functional.adaptive_avg_pool2d(torch.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """
    return fn.adaptive_avg_pool2d(input, resolve_output_size(output_size, input, 2))


@launched
@parsed_as("adaptive_avg_pool3d", lambda input, output_size: (
    (input, _requested(output_size, input, 3)), {}))
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Mean of windows that divide the last 3 dimensions into `output_size` parts; see `nn.AdaptiveAvgPool3d`.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).
        output_size: an int, or one int or None (the input's size) per dimension.

    Returns:
        The input's shape with the last 3 dimensions of size `output_size`.

    >>> import flambeau as torch
    >>> torch.nn.functional.adaptive_avg_pool3d(torch.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[3.5000]]]])
    """
    return fn.adaptive_avg_pool3d(input, resolve_output_size(output_size, input, 3))


def _lp_pool(rank: int) -> Callable[..., Tensor]:
    average = f"avg_pool{rank}d"

    def pool(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None,
             ceil_mode: bool = False) -> Tensor:
        area = 1
        for size in ntuple(kernel_size, rank):
            area *= size
        stride = kernel_size if stride is None else stride
        if norm_type == inf:
            return getattr(fn, f"max_pool{rank}d")(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
        mean = getattr(fn, average)(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
        return (fn.sign(mean) * fn.relu(fn.abs(mean))).mul(area).pow(1.0 / norm_type)

    pool.__doc__ = LP_POOL_DOC.format(rank=rank, ones=_ones(rank))
    pool.__name__ = pool.__qualname__ = f"lp_pool{rank}d"
    return pool


lp_pool1d, lp_pool2d, lp_pool3d = _lp_pool(1), _lp_pool(2), _lp_pool(3)
