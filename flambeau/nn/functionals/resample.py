"""Interpolation, upsampling, pixel shuffle and channel shuffle."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.argument_errors.call_sites import FUNCTIONALS
from ..._tensor.argument_errors.guards import raise_refusal
from ..._tensor.argument_errors.messages import unfit
from ..._tensor.fastpath.repeated_calls import repeated
from ..._tensor.overriding.other_objects import with_other_object
from ...devices import channels_last, contiguous_format
from ...kernels.memory_format import is_channels_last
from ...ops.neural.upsampling_modes import UPSAMPLING
from . import pooling

__all__ = [
    "channel_shuffle", "interpolate", "pixel_shuffle", "pixel_unshuffle", "upsample", "upsample_bilinear",
    "upsample_nearest",
]

RANK_OF_LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}
MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"


@repeated
def interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:
    """Resample the spatial dimensions of the input to `size`, or by `scale_factor`.

    Args:
        input: (N, C, *spatial), 3-D to 5-D.
        size: the output size, an int or one int per spatial dimension.
        scale_factor: output size divided by input size, instead of `size`; the size is rounded down.
        mode: "nearest", "nearest-exact", "area"; "linear" (3-D), "bilinear", "bicubic", "lanczos" (4-D), "trilinear"
            (5-D).
        align_corners: for the linear and cubic modes: keep the centers of the corner elements in place, not their
            outer corners.
        recompute_scale_factor: use the ratio of the integer sizes as the scale.
        antialias: with "bilinear", "bicubic" and "lanczos", widen the filter by the scale where the output is smaller.

    Returns:
        (N, C, *size).

    Raises:
        ValueError: both or neither of `size` and `scale_factor` are given, or their length is wrong, or `antialias`
            is given with another mode.
        NotImplementedError: the mode does not exist for this rank or dtype.

    >>> import flambeau as torch
    >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError("align_corners option can only be set with the "
                         "interpolating modes: linear | bilinear | bicubic | trilinear")
    align = bool(align_corners)
    if antialias and not (mode in _SUPPORT and input.dim() == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D "
                         "tensor as input")
    if mode == "lanczos" and align:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    rank = input.dim() - 2
    sizes, factors = _sizes_and_factors(input, rank, size, scale_factor)
    if recompute_scale_factor is not None and recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if mode == "area" and factors is not None:
        recompute_scale_factor = True
    if sizes is None:
        sizes = [math.floor(float(n) * factor) for n, factor in zip(input.shape[2:], factors, strict=True)]
    if recompute_scale_factor or factors is None:
        factors = [None] * rank
    _check_mode(input, mode, rank)
    if mode == "area":
        return getattr(pooling, f"adaptive_avg_pool{rank}d")(input, sizes if rank > 1 else sizes[0])
    if any(n <= 0 for n in (*input.shape[2:], *sizes)):
        conjunction = " and" if rank == 1 else ""
        raise RuntimeError("Input and output sizes should be greater than 0, but got "
                           f"input {_format_sizes(input.shape[2:])}{conjunction} output {_format_sizes(sizes)}")
    return upsampled(input, sizes, factors, mode, align, antialias)


def upsampled(input: Tensor, sizes: list[int], factors: list[float | None], mode: str, align: bool,
              antialias: bool) -> Tensor:
    """The input (N, C, *spatial) resampled to `sizes`; `factors` are the scales of coordinates, or None.

    Raises:
        NotImplementedError: the mode does not exist for the dtype.
    """
    rank = len(sizes)
    _check_dtype(input, sizes, mode, antialias)
    steps = []
    for i in reversed(range(rank)):
        n, factor = input.size(2 + i), factors[i]
        if n == sizes[i] and (factor is None or factor == 1 or align):
            continue
        positions, taps = (_antialiased_taps if antialias else _taps)(n, sizes[i], factor, mode, align)
        steps.append((i - rank, n, positions, taps))
    if input.dtype.name == "uint8" and not mode.startswith("nearest"):
        result = input
        for dim, _, positions, taps in steps:
            result = _resample_bytes(result, 2 + rank + dim, positions, taps)
        kept = channels_last if is_channels_last(input.shape, input.stride()) else contiguous_format
        return result.clone(memory_format=kept) if result is input else result.contiguous(memory_format=kept)
    return getattr(fn, UPSAMPLING[mode, rank, antialias])(input, steps=tuple([
        (dim, n, tuple(map(tuple, positions)), tuple(map(tuple, taps)) if len(taps) > 1 else None)
        for dim, n, positions, taps in steps]), output_size=tuple(sizes), align_corners=align, scales=tuple(factors))


def _format_sizes(sizes: Any) -> str:
    letters = ("D", "H", "W")[-len(sizes):]
    return "(" + ", ".join(f"{letter}: {n}" for letter, n in zip(letters, sizes, strict=True)) + ")"


def _sizes_and_factors(input: Tensor, rank: int, size: Any,
                       scale_factor: Any) -> tuple[list[int] | None, Any]:
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if not isinstance(size, list | tuple):
            return [size] * rank, None
        if len(size) != rank:
            raise ValueError("Input and output must have the same number of spatial dimensions, but got input "
                             f"with spatial dimensions of {list(input.shape[2:])} and output size of {size}. "
                             "Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                             "output size in (o1, o2, ...,oK) format.")
        if any(n.is_floating_point() if isinstance(n, Tensor) else not hasattr(n, "__index__") for n in size):
            raise TypeError("expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], "
                            f"but got size with types {[type(n) for n in size]}")
        return list(size), None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if not isinstance(scale_factor, list | tuple):
        return None, [scale_factor] * rank
    if len(scale_factor) != rank:
        raise ValueError("Input and scale_factor must have the same number of spatial dimensions, but got "
                         f"input with spatial dimensions of {list(input.shape[2:])} and "
                         f"scale_factor of shape {scale_factor}. "
                         "Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                         "scale_factor in (s1, s2, ...,sK) format.")
    return None, list(scale_factor)


def _check_mode(input: Tensor, mode: str, rank: int) -> None:
    if mode in RANK_OF_LINEAR and rank in (1, 2, 3) and RANK_OF_LINEAR[mode] != rank:
        needed = RANK_OF_LINEAR[mode] + 2
        raise NotImplementedError(f"Got {rank + 2}D input, but {mode} mode needs {needed}D input")
    known = mode in RANK_OF_LINEAR or mode in ("nearest", "nearest-exact", "area")
    if not (known and rank in (1, 2, 3)) and not (mode in ("bicubic", "lanczos") and rank == 2):
        raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) "
                                  f"for the modes: {MODES} (got {mode})")


def _check_dtype(input: Tensor, sizes: list[int], mode: str, antialias: bool) -> None:
    """Raise PyTorch's NotImplementedError, which names the kernel, for a dtype without one."""
    rank, name = len(sizes), input.dtype.name
    if name in ("float32", "float64") or (name in ("float16", "bfloat16") and not antialias) or (
            name == "uint8" and mode not in ("linear", "trilinear")):
        return
    kind = "nearest" if mode.startswith("nearest") else "cubic" if mode == "bicubic" else "linear"
    if antialias:
        kernel = "compute_index_ranges_weights"
    elif kind != "cubic" and rank == 2 and sizes[0] + sizes[1] <= 128:
        kernel = f"upsample_{mode.removesuffix('-exact')}2d_channels_last"
    else:
        kernel = f"compute_indices_weights_{kind}"
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.scalar_name}'")


def _antialiased_taps(n: int, size: int, factor: float | None, mode: str,
                      align: bool) -> tuple[list[list[int]], list[list[float]]]:
    """Input indices and weights of each output element, one list per tap: (taps, size) each."""
    if align:
        step = (n - 1) / (size - 1) if size > 1 else 0.0
    else:
        step = 1.0 / factor if factor is not None and factor > 0 else n / size
    stretch = max(step, 1.0)
    support = _SUPPORT[mode] * stretch
    width = 2 * math.ceil(support) + 1
    positions, taps = [[0] * size for _ in range(width)], [[0.0] * size for _ in range(width)]
    for i in range(size):
        center = step * (i + 0.5)
        first = max(int(center - support + 0.5), 0)
        last = min(int(center + support + 0.5), n)
        weights = [_filter((j - center + 0.5) / stretch, mode) for j in range(first, last)]
        total = math.fsum(weights) or 1.0
        for k, row in enumerate(positions):
            row[i] = min(first + k, last - 1)  # positions of a tap do not decrease
            if k < len(weights):
                taps[k][i] = weights[k] / total
    return positions, taps


#: half the width of the filters, in input elements where the output is not smaller
_SUPPORT = {"bilinear": 1.0, "bicubic": 2.0, "lanczos": 3.0}


def _filter(x: float, mode: str) -> float:
    """The triangle of "bilinear", the cubic convolution kernel of "bicubic", or the windowed sinc of "lanczos"."""
    x = abs(x)
    if mode == "bilinear":
        return max(1.0 - x, 0.0)
    if mode == "lanczos":
        return float(np.sinc(x) * np.sinc(x / 3)) if x < 3 else 0.0
    if x >= 2:
        return 0.0
    outer, inner, _, _ = _cubic(x % 1, -0.5)
    return inner if x < 1 else outer


def _resample_bytes(input: Tensor, dim: int, positions: Sequence[Sequence[int]],
                    taps: Sequence[Sequence[float]]) -> Tensor:
    """Resample a uint8 dimension in fixed point with int16 weights, as PyTorch does, rounded to uint8."""
    width, size = len(taps), len(taps[0])
    weights_per_output = []  # per output element: (input index, weight), equal indices merged
    for i in range(size):
        weights: dict[int, float] = {}
        for row, column in zip(positions, taps, strict=True):
            weights[row[i]] = weights.get(row[i], 0.0) + column[i]
        weights_per_output.append(list(weights.items()) + [(0, 0.0)] * (width - len(weights)))
    largest_weight = max(weight for weights in weights_per_output for _, weight in weights)
    precision = next((p for p in range(22) if 0.5 + largest_weight * (2 << p) >= 1 << 15), 22)  # weights fit in int16
    index = fn.tensor([[i for i, _ in weights] for weights in weights_per_output], device=input.device)
    shape = [1] * input.dim()
    shape[dim] = size
    total: Any = 1 << (precision - 1)
    for k in range(width):
        fixed = [_round_half_away(weights[k][1] * (1 << precision)) for weights in weights_per_output]
        weight = fn.tensor(fixed, device=input.device)
        total = total + input.index_select(dim, index[:, k]) * weight.reshape(shape)
    return fn.bitwise_right_shift(total, precision).clamp(0, 255).to(input.dtype)


def _round_half_away(x: float) -> int:
    return int(x + 0.5 if x >= 0 else x - 0.5)


@functools.lru_cache(256)
def _taps(n: int, size: int, factor: float | None, mode: str,
          align: bool) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[float, ...], ...]]:
    """Input indices and weights of each output element, a tuple for each tap: (taps, size) each."""
    positions, weights = _list_taps(n, size, factor, mode, align)
    return tuple(map(tuple, positions)), tuple(map(tuple, weights))


def _list_taps(n: int, size: int, factor: float | None, mode: str,
               align: bool) -> tuple[list[list[int]], list[list[float]]]:
    step = 1.0 / factor if factor is not None and factor > 0 else n / size
    if mode in ("nearest", "nearest-exact"):
        shift = 0.5 if mode == "nearest-exact" else 0.0
        return [[min(math.floor((i + shift) * step), n - 1) for i in range(size)]], [[1.0] * size]
    if align:
        step = (n - 1) / (size - 1) if size > 1 else 0.0
        coordinates = [i * step for i in range(size)]
    else:
        coordinates = [step * (i + 0.5) - 0.5 for i in range(size)]
    if mode != "bicubic":
        coordinates = [max(x, 0.0) for x in coordinates]
        low = [min(int(x), n - 1) for x in coordinates]
        high = [min(i + 1, n - 1) for i in low]
        fraction = [min(x - i, 1.0) for x, i in zip(coordinates, low, strict=True)]
        return [low, high], [[1 - s for s in fraction], fraction]
    floors = [math.floor(x) for x in coordinates]
    index = [[min(max(f + k, 0), n - 1) for f in floors] for k in (-1, 0, 1, 2)]
    weights = [_cubic(x - f) for x, f in zip(coordinates, floors, strict=True)]
    return index, [list(column) for column in zip(*weights, strict=True)]


def _cubic(t: float, a: float = -0.75) -> tuple[float, float, float, float]:
    """Cubic convolution weights of four neighbors; `t` in [0, 1) is the distance from the second."""
    def near(x: float) -> float:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: float) -> float:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Tensor:
    """Deprecated: use `interpolate(...)`.

    Args:
        input: (N, C, *spatial).
        size: the output size.
        scale_factor: output size divided by input size, instead of `size`.
        mode: see `interpolate`.
        align_corners: see `interpolate`.

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.nn.functional.upsample(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.",
                  stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Deprecated: use `interpolate(..., mode="nearest")`.

    Args:
        input: (N, C, *spatial).
        size: the output size.
        scale_factor: output size divided by input size, instead of `size`.

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.nn.functional.upsample_nearest(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    warnings.warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
                  stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Deprecated: use `interpolate(..., mode="bilinear", align_corners=True)`.

    Args:
        input: (N, C, *spatial).
        size: the output size.
        scale_factor: output size divided by input size, instead of `size`.

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.nn.functional.upsample_bilinear(torch.tensor([[[[1.0, 2.0]]]]), size=(1, 3))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """
    warnings.warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
                  stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


@repeated
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Rearrange channels into pixels: (..., C·r², H, W) to (..., C, H·r, W·r).

    Args:
        input: (..., C·r², H, W).
        upscale_factor: r, positive.

    Raises:
        RuntimeError: the input has fewer than 3 dimensions, or r² does not divide the channels.

    >>> import flambeau as torch
    >>> torch.nn.functional.pixel_shuffle(torch.arange(4.0).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    r = upscale_factor
    try:
        ndim = input.dim()
    except AttributeError as error:
        return with_other_object(error, pixel_shuffle, (input, upscale_factor))
    if r.__class__ is not int:
        raise_refusal(unfit(("pixel_shuffle",), (input, r), {}, inside=FUNCTIONALS))
    if ndim < 3:
        raise RuntimeError("pixel_shuffle expects input to have at least 3 dimensions, but got input with "
                           f"{ndim} dimension(s)")
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    channels = input.shape[-3]
    if channels % (r * r):
        raise RuntimeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
                           f"of upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}")
    return fn._pixel_shuffle(input, factor=r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Rearrange pixels into channels: (..., C, H·r, W·r) to (..., C·r², H, W).

    Args:
        input: (..., C, H·r, W·r).
        downscale_factor: r, positive.

    Raises:
        RuntimeError: the input has fewer than 3 dimensions, or r does not divide its height and width.

    >>> import flambeau as torch
    >>> torch.nn.functional.pixel_unshuffle(torch.arange(4.0).reshape(1, 2, 2), 2).flatten()
    tensor([0., 1., 2., 3.])
    """
    r = downscale_factor
    try:
        ndim = input.dim()
    except AttributeError as error:
        return with_other_object(error, pixel_unshuffle, (input, downscale_factor))
    if r.__class__ is not int:
        raise_refusal(unfit(("pixel_unshuffle",), (input, r), {}, inside=FUNCTIONALS))
    if ndim < 3:
        raise RuntimeError("pixel_unshuffle expects input to have at least 3 dimensions, but got input with "
                           f"{ndim} dimension(s)")
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    height, width = input.shape[-2:]
    if height % r:
        raise RuntimeError("pixel_unshuffle expects height to be divisible by downscale_factor, but "
                           f"input.size(-2)={height} is not divisible by {r}")
    if width % r:
        raise RuntimeError("pixel_unshuffle expects width to be divisible by downscale_factor, but "
                           f"input.size(-1)={width} is not divisible by {r}")
    return fn._pixel_unshuffle(input, factor=r)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channel shuffle: view C as (groups, C / groups), transpose, flatten.

    Args:
        input: (N, C, ...), at least 3-D.
        groups: the number of groups; divides C.

    Raises:
        RuntimeError: the input has fewer than 3 dimensions, or `groups` does not divide C.

    >>> import flambeau as torch
    >>> torch.nn.functional.channel_shuffle(torch.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    try:
        ndim = input.dim()
    except AttributeError as error:
        return with_other_object(error, channel_shuffle, (input, groups))
    if groups.__class__ is not int:
        raise_refusal(unfit(("channel_shuffle",), (input, groups), {}, inside=FUNCTIONALS))
    if ndim <= 2:
        raise RuntimeError("channel_shuffle expects input with > 2 dims, but got input with sizes "
                           f"{list(input.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    channels = input.shape[1]
    if channels % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {channels} channels and "
                           f"{groups} groups.")
    return fn._channel_shuffle(input, groups=groups)
