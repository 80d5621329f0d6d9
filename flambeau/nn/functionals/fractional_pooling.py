"""Fractional max pooling: maxima of windows at pseudorandom positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.neural.pooling import indices_of_maxima
from ..ntuple import ntuple

__all__ = ["fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
           "fractional_max_pool3d_with_indices"]

_DOC = """Maximum of windows at pseudorandom positions of the last {rank} dimensions, `output_size` of them.

    Args:
        input: (N, C, *spatial) or (C, *spatial), with {rank} spatial dimensions.
        kernel_size: the window size, an int or one int per dimension.
        output_size: the size of the result, an int or one int per dimension.
        output_ratio: the size of the result as a fraction of the input's, in (0, 1), instead of `output_size`.
        return_indices: return (values, indices), the flat index of each maximum within its plane (int64).

    Raises:
        ValueError: neither output size nor ratio is given.
        RuntimeError: the windows do not fit.

    >>> import flambeau as torch
    >>> torch.nn.functional.{name}({ones}, 2, output_size=2).unique()
    tensor([1.])
    """

_INDICES_DOC = """`{name}` with `return_indices=True`: returns (values, indices). See `{name}` for the arguments.

    >>> import flambeau as torch
    >>> torch.nn.functional.{name}_with_indices({ones}, 2, output_size=2)[1].shape == (1, 1{twos})
    True
    """

_AXES = {2: ("height", "width"), 3: ("time", "height", "width")}


def _sizes(name: str, argument: str, value: Any, rank: int) -> tuple[int, ...]:
    sizes = ntuple(value, rank)
    sizes = sizes * rank if len(sizes) == 1 and not isinstance(value, tuple | list) else sizes
    if len(sizes) != rank:
        kind = "Ints" if rank == 2 else "three Ints"
        raise RuntimeError(f"{name}: {argument} must either be a single Int or tuple of {kind}")
    return sizes


def _check(rank: int, input: Tensor, kernel: tuple[int, ...], output: tuple[int, ...], samples: Tensor) -> None:
    name = f"fractional_max_pool{rank}d()" if rank == 2 else "fractional_max_pool3d_out()"
    shape = list(input.shape)
    for i in range(len(shape) - rank - 1, len(shape)):
        if shape[i] == 0:
            raise RuntimeError(f"{name}: Expected input to have non-zero size for non-batch dimensions, but got"
                               f"{shape} with dimension {i} being empty.")
    for axis, window, size, length in zip(_AXES[rank], kernel, output, shape[-rank:], strict=True):
        # a single window may be as large as the input
        if size + window - 1 > length or (rank == 3 and size + window - 1 >= length):
            raise RuntimeError(f"{name}: pool {axis} {window} too large relative to input {axis} {length}")
    if samples.dtype is not input.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    batch = 1 if len(shape) == rank + 1 else shape[0]
    if samples.dim() != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions got {samples.dim()}")
    if samples.size(0) < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.size(1) != shape[-rank - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.size(2) != rank:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {rank}; got {samples.size(2)}.")


def _pool(rank: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    name = f"fractional_max_pool{rank}d"

    def with_indices(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                     return_indices: bool = False, _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            if rank == 2 and len(output_ratio) > 2:
                raise ValueError("fractional_max_pool2d requires output_ratio to either be a single Int or tuple of "
                                 "Ints.")
            ratios = ntuple(output_ratio, rank)
            output_size = [int(input.size(axis - rank) * ratios[axis]) for axis in range(rank)]
        if _random_samples is None:
            batch = 1 if input.dim() == rank + 1 else input.size(0)
            _random_samples = fn.rand(batch, input.size(-rank - 1), rank, dtype=input.dtype, device=input.device)
        kernel = _sizes(name, "kernel_size", kernel_size, rank)
        output = _sizes(name, "output_size", output_size, rank)
        _check(rank, input, kernel, output, _random_samples)
        saved: list[Any] = []
        values = getattr(fn, "_" + name)(input, _random_samples, kernel_size=kernel, output_size=output, saved=saved)
        return values, indices_of_maxima(values, saved)

    def pool(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
             return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:
        result = with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
        return result if return_indices else result[0]

    ones = f"torch.ones(1, 1{', 4' * rank})"
    pool.__name__ = pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    pool.__doc__ = _DOC.format(rank=rank, name=name, ones=ones)
    with_indices.__doc__ = _INDICES_DOC.format(name=name, ones=ones, twos=", 2" * rank)
    return pool, with_indices


fractional_max_pool2d, fractional_max_pool2d_with_indices = _pool(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _pool(3)
