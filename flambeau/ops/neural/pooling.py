"""Max, average and adaptive pooling, max unpooling, and their gradients as operators.

Max pooling stores the indices of the maxima in the list `saved`, for the derivatives and for `return_indices`. The last
dimensions of a tensor are its planes (2) or volumes (3).
"""

from __future__ import annotations

from math import prod
from typing import Any

from ..declare import linear, not_implemented, op

_POOL: dict[str, Any] = {"expose": (), "batching_rule": "trailing"}
_NOT_REAL = ("bool", "integer", "complex")
#: dtypes without average pooling in PyTorch
_NO_AVERAGE = ("bool", "uint8", "int8", "int16", "int32", "unsigned", "complex")


@linear(node="MaxPool2DWithIndicesBackwardBackward0", opmath=False, **_POOL)
def _gather_planes(xp, input, *, index, dims):
    """The elements of planes, the last `dims` dimensions, at flat indices: (*planes, *positions)."""
    return xp.gather_planes(input, index, dims)


@linear("grad_output", node="MaxPool2DWithIndicesBackwardBackward0", **_POOL)
def _scatter_planes(xp, grad_output, input, *, index, dims, overlapping):
    """Zeros like the input, with `grad_output` added at flat indices of its planes."""
    return xp.scatter_planes(grad_output, index, input.shape[len(input.shape) - dims:], overlapping)


def _batched_index(batch, index):
    """Broadcast flat indices over the batch; those computed in the batch have its dimensions already."""
    from numpy import broadcast_to

    return broadcast_to(index, (*batch.sizes, *index.shape))


_gather_planes.vmap(lambda xp, batch, input, *, index, dims: xp._gather_planes(
    input, index=_batched_index(batch, index), dims=dims))
_scatter_planes.vmap(lambda xp, batch, grad_output, input, *, index, dims, overlapping: xp._scatter_planes(
    grad_output if batch.on[0] else batch.expand_levels(grad_output),
    input if batch.on[1] else batch.expand_levels(input),
    index=_batched_index(batch, index), dims=dims, overlapping=overlapping))
_gather_planes.vjp(input=lambda xp, g, input, index, dims: xp._scatter_planes(
    g, input, index=index, dims=dims, overlapping=True))
_scatter_planes.vjp(grad_output=lambda xp, g, index, dims: xp._gather_planes(g, index=index, dims=dims),
                    input=lambda xp, input: xp.zeros_like(input))


# ----- max pooling ---------------------------------------------------------------------------


@op(node="MaxPool2DWithIndicesBackward0", opmath=False,
    unsupported_dtypes=not_implemented("max_pool2d", "bool", "unsigned", "complex"),
    saved="ceil_mode dilation kernel_size padding result1=saved[0] self stride", **_POOL)
def _max_pool2d(xp, input, *, kernel_size, stride, padding, dilation, ceil_mode, saved):
    """The maximum of each window of planes; `saved` receives its flat index within the plane."""
    return xp.max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, saved)


@op(node="MaxPool3DWithIndicesBackward0", opmath=False,
    unsupported_dtypes=not_implemented("max_pool3d", "bool", "unsigned", "complex"),
    saved="ceil_mode dilation kernel_size padding result1=saved[0] self stride", **_POOL)
def _max_pool3d(xp, input, *, kernel_size, stride, padding, dilation, ceil_mode, saved):
    """The maximum of each window of volumes; `saved` receives its flat index within the volume."""
    return xp.max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, saved)


def _overlap(kernel, stride):
    return any(k > s for k, s in zip(kernel, stride, strict=True))


for _op in (_max_pool2d, _max_pool3d):
    _op.vjp(input=lambda xp, g, input, kernel_size, stride, dilation, saved: xp._scatter_planes(
        g, input, index=saved[0], dims=len(kernel_size),
        overlapping=_overlap(kernel_size, stride) or max(dilation) > 1))
    _op.jvp(lambda xp, t_input, kernel_size, saved: xp._gather_planes(t_input, index=saved[0], dims=len(kernel_size)))


@op(node="AdaptiveMaxPool2DBackward0", opmath=False,
    unsupported_dtypes=not_implemented("adaptive_max_pool2d", *_NOT_REAL), saved="self result1=saved[0]", **_POOL)
def _adaptive_max_pool2d(xp, input, *, output_size, saved):
    """The maximum of each of `output_size` windows that evenly cover a plane."""
    return xp.adaptive_max_pool(input, output_size, saved)


@op(node="AdaptiveMaxPool3DBackward0", opmath=False,
    unsupported_dtypes=not_implemented("adaptive_max_pool3d_cpu", *_NOT_REAL), saved="self result1=saved[0]", **_POOL)
def _adaptive_max_pool3d(xp, input, *, output_size, saved):
    """The maximum of each of `output_size` windows that evenly cover a volume."""
    return xp.adaptive_max_pool(input, output_size, saved)


for _op in (_adaptive_max_pool2d, _adaptive_max_pool3d):
    _op.vjp(input=lambda xp, g, input, output_size, saved: xp._scatter_planes(
        g, input, index=saved[0], dims=len(output_size), overlapping=True))
    _op.jvp(lambda xp, t_input, output_size, saved: xp._gather_planes(t_input, index=saved[0], dims=len(output_size)))


@linear("input", nondifferentiable_inputs=("indices",), node="MaxUnpool2DBackward0", opmath=False,
        unsupported_dtypes=not_implemented("max_unpool2d", *_NOT_REAL), **_POOL)
def _max_unpool2d(xp, input, indices, *, output_size):
    """Zeros (*planes, *output_size) with each value at its flat index."""
    return xp.max_unpool(input, indices, output_size)


@linear("input", nondifferentiable_inputs=("indices",), node="MaxUnpool3DBackward0", opmath=False,
        unsupported_dtypes=not_implemented("max_unpool3d", *_NOT_REAL), **_POOL)
def _max_unpool3d(xp, input, indices, *, output_size):
    """Zeros (*volumes, *output_size) with each value at its flat index."""
    return xp.max_unpool(input, indices, output_size)


def _at_indices(xp, planes, indices, dims):
    """The elements of planes, the last `dims` dimensions, at the flat indices of a tensor (*planes, *positions)."""
    lead = planes.shape[:len(planes.shape) - dims]
    flat = xp.gather(xp.reshape(planes, (*lead, prod(planes.shape[len(lead):]))),
                     index=xp.reshape(indices, (*lead, prod(indices.shape[len(lead):]))), dim=len(lead))
    return xp.reshape(flat, indices.shape)


_max_unpool2d.vjp(input=lambda xp, g, indices: _at_indices(xp, g, indices, 2))
_max_unpool3d.vjp(input=lambda xp, g, indices: _at_indices(xp, g, indices, 3))


# ----- fractional max pooling ---------------------------------------------------------------------


def _fractional(xp, input, samples, kernel_size, output_size, saved):
    saved[:] = [xp.fractional_maxima(input, samples, kernel_size, output_size)]
    return xp._gather_planes(input, index=saved[0], dims=len(kernel_size))


@op(node="FractionalMaxPool2DBackward0", opmath=False, expose=(), nondifferentiable_inputs=("samples",),
    unsupported_dtypes=not_implemented("fractional_max_pool2d_out_frame", *_NOT_REAL),
    saved="kernel_size output_size result1=saved[0] self")
def _fractional_max_pool2d(xp, input, samples, *, kernel_size, output_size, saved):
    """The maximum of windows of (N, C, H, W) that random samples (N, C, 2) position."""
    return _fractional(xp, input, samples, kernel_size, output_size, saved)


@op(node="FractionalMaxPool3DBackward0", opmath=False, expose=(), nondifferentiable_inputs=("samples",),
    unsupported_dtypes=not_implemented("fractional_max_pool3d_out_frame", *_NOT_REAL),
    saved="kernel_size output_size result1=saved[0] self")
def _fractional_max_pool3d(xp, input, samples, *, kernel_size, output_size, saved):
    """The maximum of windows of (N, C, D, H, W) that random samples (N, C, 3) position."""
    return _fractional(xp, input, samples, kernel_size, output_size, saved)


for _op in (_fractional_max_pool2d, _fractional_max_pool3d):
    _op.vjp(input=lambda xp, g, input, kernel_size, saved: xp._scatter_planes(
        g, input, index=saved[0], dims=len(kernel_size), overlapping=True))
    _op.jvp(lambda xp, t_input, kernel_size, saved: xp._gather_planes(t_input, index=saved[0], dims=len(kernel_size)))


# ----- average pooling ----------------------------------------------------------------------------


@linear(node="AvgPool2DBackward0", unsupported_dtypes=not_implemented("avg_pool2d", *_NO_AVERAGE), exact_out=True,
        **_POOL)
def _avg_pool2d(xp, input, *, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    """The mean of each window of planes."""
    return xp.avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@linear(node="AvgPool3DBackward0", unsupported_dtypes=not_implemented("avg_pool3d_out_frame", *_NO_AVERAGE, "narrow"),
        exact_out=True, **_POOL)
def _avg_pool3d(xp, input, *, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    """The mean of each window of volumes."""
    return xp.avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@linear("grad_output", node="AvgPool2DBackwardBackward0", **_POOL)
def _avg_pool_backward(xp, grad_output, input, *, kernel_size, stride, padding, ceil_mode, count_include_pad,
                       divisor_override):
    """The transpose of average pooling, in the input's shape."""
    return xp.avg_pool_backward(grad_output, input.shape[len(input.shape) - len(kernel_size):], kernel_size, stride,
                                padding, count_include_pad, divisor_override)


for _op in (_avg_pool2d, _avg_pool3d):
    _op.vjp(input=lambda xp, g, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
            divisor_override: xp._avg_pool_backward(
                g, input, kernel_size=kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode,
                count_include_pad=count_include_pad, divisor_override=divisor_override))
_avg_pool_backward.vjp(
    grad_output=lambda xp, g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: (
        xp._avg_pool2d if len(kernel_size) == 2 else xp._avg_pool3d)(
            g, kernel_size=kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode,
            count_include_pad=count_include_pad, divisor_override=divisor_override),
    input=lambda xp, input: xp.zeros_like(input))


@linear(node="AdaptiveAvgPool2DBackward0", unsupported_dtypes=not_implemented("adaptive_avg_pool2d", *_NOT_REAL),
        saved="self", **_POOL)
def _adaptive_avg_pool2d(xp, input, *, output_size):
    """The mean of each of `output_size` windows that evenly cover a plane."""
    return xp.adaptive_avg_pool(input, output_size)


@linear(node="AdaptiveAvgPool3DBackward0", unsupported_dtypes=not_implemented("adaptive_avg_pool3d_cpu", *_NOT_REAL),
        saved="self", **_POOL)
def _adaptive_avg_pool3d(xp, input, *, output_size):
    """The mean of each of `output_size` windows that evenly cover a volume."""
    return xp.adaptive_avg_pool(input, output_size)


@linear("grad_output", node="AdaptiveAvgPool2DBackwardBackward0", **_POOL)
def _adaptive_avg_pool_backward(xp, grad_output, input, *, output_size):
    """The transpose of adaptive average pooling, in the input's shape."""
    return xp.adaptive_avg_pool_backward(grad_output, input.shape[len(input.shape) - len(output_size):])


for _op in (_adaptive_avg_pool2d, _adaptive_avg_pool3d):
    _op.vjp(input=lambda xp, g, input, output_size: xp._adaptive_avg_pool_backward(g, input, output_size=output_size))
_adaptive_avg_pool_backward.vjp(
    grad_output=lambda xp, g, output_size: (
        xp._adaptive_avg_pool2d if len(output_size) == 2 else xp._adaptive_avg_pool3d)(g, output_size=output_size),
    input=lambda xp, input: xp.zeros_like(input))
