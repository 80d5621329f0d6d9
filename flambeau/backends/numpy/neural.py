"""Convolution and pooling on arrays, by compiled or NumPy kernels that are imported on first use."""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from ...kernels.memory_format import is_channels_last
from ..compiled.families import convolution as compiled_convolution
from ..compiled.families import pooling as compiled_pooling

#: the most elements of the operands of convolutions whose tables are kept
SMALL_CONVOLUTION = 4096


@functools.cache
def _small_kernels() -> Any:
    from ...kernels import small_convolution

    return small_convolution


@functools.lru_cache(512)
def _are_channels_last(*layouts: tuple[tuple[int, ...], tuple[int, ...]]) -> bool:
    """Whether an operand, of which shape and strides are given, is channels-last, maybe besides row-major."""
    return any(is_channels_last(*layout) for layout in layouts)


# ----- convolution ----------------------------------------------------------------------


def _conv_output(image: Any, weight: Any, geometry: Any) -> Any:
    return _convolve(image, weight, None, geometry, False)


def _conv_image(output: Any, weight: Any, geometry: Any) -> Any:
    return _convolve(output, weight, None, geometry, True)


def _conv_weight(output: Any, image: Any, geometry: Any) -> Any:
    result = compiled_convolution.weight_gradient(output, image, geometry)
    if result is not None:
        return result
    if output.size + image.size < SMALL_CONVOLUTION:
        result = _small_kernels().weight_gradient(output, image, geometry)
        if result is not None:
            return result
    from ...kernels.convolution import conv_weight_grad

    _, kernel, _, stride, padding, dilation, groups = geometry
    gradient = conv_weight_grad(output, image, kernel, stride, padding, dilation, groups)
    return compiled_convolution.match_channels_last(gradient, image, output)


def _convolve(x: Any, weight: Any, bias: Any, geometry: Any, transposed: bool) -> Any:
    kernel = compiled_convolution.input_gradient if transposed else compiled_convolution.forward
    result = kernel(x, weight, bias, geometry)
    if result is not None:
        return compiled_convolution.in_format_of_sequences(result, x) if x.ndim == 3 else result
    if x.size + weight.size < SMALL_CONVOLUTION:
        small = _small_kernels()
        result = (small.input_gradient if transposed else small.forward)(x, weight, geometry)
        if result is not None:
            if bias is not None:
                result += bias.reshape(1, -1, *(1 for _ in geometry.spatial))
            if x.ndim == 3:
                return compiled_convolution.in_format_of_sequences(result, x)
            if _are_channels_last((x.shape, x.strides), (weight.shape, weight.strides)):
                return compiled_convolution.match_channels_last(result, x, weight)
            return result
    from ...kernels.convolution import conv_forward, conv_input_grad

    spatial, _, positions, stride, padding, dilation, groups = geometry
    if transposed:
        out = conv_input_grad(x, weight, spatial, stride, padding, dilation, groups)
    else:
        out = conv_forward(x, weight, stride, padding, dilation, groups, positions)
    if bias is not None:
        np.add(out, bias.reshape(1, -1, *(1 for _ in spatial)), out=out)
    if x.ndim == 3:
        return compiled_convolution.in_format_of_sequences(out, x)
    return compiled_convolution.match_channels_last(out, x, weight)


def _im2col(x: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    from ...kernels.convolution import output_size

    if x.ndim == 3:
        return _im2col(x[None], kernel_size, dilation, padding, stride)[0]
    n, c = x.shape[:2]
    positions = output_size(x.shape[2:], kernel_size, stride, padding, dilation)
    padded = x
    if any(padding):
        padded = np.zeros((n, c, *[size + 2 * p for size, p in zip(x.shape[2:], padding, strict=True)]), x.dtype)
        inside = [slice(p, p + size) for size, p in zip(x.shape[2:], padding, strict=True)]
        padded[(slice(None), slice(None), *inside)] = x
    batch, channel, *steps = padded.strides
    windows = np.lib.stride_tricks.as_strided(
        padded, (n, c, *kernel_size, *positions),
        (batch, channel, *(t * d for t, d in zip(steps, dilation, strict=True)),
         *(t * s for t, s in zip(steps, stride, strict=True))))
    return np.array(windows.reshape(n, c * prod(kernel_size), prod(positions)), copy=None)


def _col2im(x: Any, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    from itertools import product

    from ...kernels.convolution import output_size as window_count

    if x.ndim == 2:
        return _col2im(x[None], output_size, kernel_size, dilation, padding, stride)[0]
    n = x.shape[0]
    area = prod(kernel_size)
    c = x.shape[1] // area
    if x.size < SMALL_CONVOLUTION:
        result = _small_kernels().columns_to_images(
            x, (n, c, *output_size), tuple(kernel_size), tuple(stride), tuple(padding), tuple(dilation))
        if result is not None:
            return result
    positions = window_count(output_size, kernel_size, stride, padding, dilation)
    parts = x.reshape(n, c, *kernel_size, *positions)
    out = np.zeros((n, c, *(m + 2 * p for m, p in zip(output_size, padding, strict=True))), x.dtype)
    for offset in product(*map(range, kernel_size)):
        region = tuple(slice(o * d, o * d + (m - 1) * s + 1, s)
                       for o, d, m, s in zip(offset, dilation, positions, stride, strict=True))
        out[(slice(None), slice(None), *region)] += parts[(slice(None), slice(None), *offset)]
    inner = tuple(slice(p, p + m) for p, m in zip(padding, output_size, strict=True))
    return np.ascontiguousarray(out[(slice(None), slice(None), *inner)])


# ----- pooling --------------------------------------------------------------------------


def _max_pool(x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
              saved: list[Any] | None) -> Any:
    from ...kernels import pooling

    positions = pooling.pool_output_size(x.shape[x.ndim - len(kernel_size):], kernel_size, stride, padding, dilation,
                                         ceil_mode)
    result = compiled_pooling.max_pool(x, positions, kernel_size, stride, padding, dilation, saved is not None)
    if result is None:
        results = [*pooling.max_pool(x, kernel_size, stride, padding, dilation, ceil_mode)]
        result = compiled_pooling.match_channels_last(results, x, len(kernel_size))
    if saved is not None:
        saved[:] = result[1:]
    return result[0]


def _adaptive_max_pool(x: Any, output_size: Any, saved: list[Any]) -> Any:
    from ...kernels import pooling

    result = compiled_pooling.adaptive_max_pool(x, output_size)
    if result is None:
        result = compiled_pooling.match_channels_last([*pooling.adaptive_max_pool(x, output_size)], x, len(output_size))
    saved[:] = result[1:]
    return result[0]


def _gather_planes(x: Any, index: Any, dims: int) -> Any:
    lead = x.shape[:x.ndim - dims]
    count, size = prod(lead), prod(x.shape[x.ndim - dims:])
    flat = index.reshape(count, prod(index.shape[x.ndim - dims:])) + (np.arange(count) * size)[:, None]
    return x.reshape(-1)[flat].reshape(index.shape)


def _scatter_planes(g: Any, index: Any, spatial: Any, overlapping: bool) -> Any:
    result = compiled_pooling.scatter_planes(g, index, tuple(spatial))
    if result is not None:
        return result
    from ...kernels.pooling import max_pool_backward

    gradient = max_pool_backward(g, index, tuple(spatial), overlapping)
    return compiled_pooling.match_channels_last([gradient], g, len(spatial))[0]


def _max_unpool(x: Any, indices: Any, output_size: Any) -> Any:
    from ...kernels.pooling import max_unpool

    return max_unpool(x, indices, tuple(output_size))


def _avg_pool(x: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
              divisor_override: int | None) -> Any:
    from ...kernels import pooling

    positions = pooling.pool_output_size(x.shape[x.ndim - len(kernel_size):], kernel_size, stride, padding,
                                         (1,) * len(kernel_size), ceil_mode)
    result = compiled_pooling.avg_pool(x, positions, kernel_size, stride, padding, count_include_pad, divisor_override)
    if result is not None:
        return result
    values = pooling.avg_pool(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return compiled_pooling.match_channels_last([values], x, len(kernel_size), True)[0]


def _avg_pool_backward(g: Any, spatial: Any, kernel_size: Any, stride: Any, padding: Any, count_include_pad: bool,
                       divisor_override: int | None) -> Any:
    result = compiled_pooling.avg_pool_backward(g, tuple(spatial), kernel_size, stride, padding, count_include_pad,
                                      divisor_override)
    if result is not None:
        return result
    from ...kernels.pooling import avg_pool_backward

    image = avg_pool_backward(g, tuple(spatial), kernel_size, stride, padding, count_include_pad, divisor_override)
    return compiled_pooling.match_channels_last([image], g, len(kernel_size), True)[0]


def _adaptive_avg_pool(x: Any, output_size: Any) -> Any:
    result = compiled_pooling.adaptive_avg_pool(x, output_size)
    if result is not None:
        return result
    from ...kernels.pooling import adaptive_avg_pool

    return compiled_pooling.match_channels_last([adaptive_avg_pool(x, output_size)], x, len(output_size), True)[0]


def _adaptive_avg_pool_backward(g: Any, spatial: Any) -> Any:
    result = compiled_pooling.adaptive_avg_pool_backward(g, tuple(spatial))
    if result is not None:
        return result
    from ...kernels.pooling import adaptive_avg_pool_backward

    gradient = adaptive_avg_pool_backward(g, tuple(spatial))
    return compiled_pooling.match_channels_last([gradient], g, len(spatial), True)[0]


# ----- sampling -------------------------------------------------------------------------


def _grid_taps(grid: Any, sizes: Any, mode: int, padding: int, align_corners: bool) -> Any:
    from ...kernels.grid_sampling import grid_taps

    return grid_taps(grid, sizes, mode, padding, align_corners)


def _fractional_maxima(input: Any, samples: Any, kernel_size: Any, output_size: Any) -> Any:
    from ...kernels.fractional_pooling import fractional_maxima

    return fractional_maxima(input, samples, kernel_size, output_size)


PRIMITIVES: dict[str, Any] = {
    "grid_taps": _grid_taps, "fractional_maxima": _fractional_maxima,
    "conv_output": _conv_output, "conv_image": _conv_image, "conv_weight": _conv_weight, "convolve": _convolve,
    "im2col": _im2col, "col2im": _col2im, "max_pool": _max_pool,
    "adaptive_max_pool": _adaptive_max_pool, "gather_planes": _gather_planes, "scatter_planes": _scatter_planes,
    "max_unpool": _max_unpool, "avg_pool": _avg_pool, "avg_pool_backward": _avg_pool_backward,
    "adaptive_avg_pool": _adaptive_avg_pool, "adaptive_avg_pool_backward": _adaptive_avg_pool_backward,
}
