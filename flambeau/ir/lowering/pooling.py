"""Pooling kernels as extern values: windows over the last dimensions, any leading dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ...codegen.pooling.plan import AdaptiveWindows, AnyWindows, RegularWindows
from ...dtypes import NARROW
from ...kernels.pooling import pool_output_size
from ...runtime.launch import Launch, Spec
from ..graph.extern_kernels import ExternKernel
from ..graph.value import INT64, Graph, Unsupported, Value


def _max_pool_launches(outputs: list[Spec], inputs: list[Spec], windows: Any) -> list[Launch]:
    from ...codegen.pooling import pooling

    return pooling.max_pool(outputs, inputs[0], windows)


def _max_pool_gradient_launches(outputs: list[Spec], inputs: list[Spec]) -> list[Launch]:
    from ...codegen.pooling import pooling

    return pooling.max_pool_gradient(outputs, inputs[0], inputs[1])


def _avg_pool_launches(outputs: list[Spec], inputs: list[Spec], windows: Any, divisor: int) -> list[Launch]:
    from ...codegen.pooling import pooling

    return pooling.avg_pool(outputs, inputs[0], windows, divisor)


def _avg_pool_gradient_launches(outputs: list[Spec], inputs: list[Spec], windows: Any, divisor: int) -> list[Launch]:
    from ...codegen.pooling import pooling

    return pooling.avg_pool_gradient(outputs, inputs[0], windows, divisor)


def _planes(x: Value, dims: int, narrow: bool = False) -> Value:
    """Merge the leading dimensions to (N, C); `narrow`: of float16 and bfloat16, too."""
    lead = x.shape[:x.ndim - dims]
    fits = narrow if x.dtype in NARROW else x.dtype.kind == "f"
    if not fits or not x.size:
        raise Unsupported(f"pooling of {x.dtype}")
    return x if len(lead) == 2 else x.graph.reshape(x, (1, prod(lead), *x.shape[x.ndim - dims:]))


def regular_windows(spatial: Sequence[int], sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int],
               padding: Sequence[int], dilation: Sequence[int] | None = None,
               padded: bool = True) -> tuple[AnyWindows, ...]:
    """The regular windows along each dimension."""
    steps = dilation or (1,) * len(sizes)
    return tuple(RegularWindows(n, m, k, s, p, d, padded)
                 for n, m, k, s, p, d in zip(spatial, sizes, kernel, stride, padding, steps, strict=True))


def adaptive_windows(spatial: Sequence[int], sizes: Sequence[int]) -> tuple[AnyWindows, ...]:
    """The windows of adaptive pooling along each dimension."""
    return tuple(AdaptiveWindows(n, m) for n, m in zip(spatial, sizes, strict=True))


def max_pool(x: Value, windows: tuple[AnyWindows, ...], narrow: bool = False) -> tuple[Value, Value]:
    """The maximum of each window, and its flat index in the plane; `narrow`: of float16 and bfloat16, too."""
    planes, sizes = _planes(x, len(windows), narrow), [w.number for w in windows]
    shape = (*planes.shape[:2], *sizes)
    kernel = ExternKernel("max_pool", _max_pool_launches, {"windows": windows}, optional=1)
    outputs = x.graph.extern(kernel, [planes], [(shape, x.dtype), (shape, INT64)])
    result_shape = (*x.shape[:x.ndim - len(windows)], *sizes)
    values, index = (x.graph.reshape(v, result_shape) for v in outputs)
    return values, index


def max_pool_gradient(g: Value, index: Value, spatial: Sequence[int]) -> Value:
    """The gradient of `max_pool`: each window's cotangent added at its maximum's index."""
    dims = len(spatial)
    planes = _planes(g, dims)
    indices = index if index.ndim == dims + 2 else index.graph.reshape(
        index, (1, prod(index.shape[:-dims]), *index.shape[-dims:]))
    kernel = ExternKernel("max_pool_gradient", _max_pool_gradient_launches, {})
    [result] = g.graph.extern(kernel, [planes, indices], [((*planes.shape[:2], *spatial), g.dtype)])
    return g.graph.reshape(result, (*g.shape[:g.ndim - dims], *spatial))


def avg_pool(x: Value, windows: tuple[AnyWindows, ...], divisor: int = 0) -> Value:
    """The mean of each window."""
    planes, sizes = _planes(x, len(windows)), [w.number for w in windows]
    kernel = ExternKernel("avg_pool", _avg_pool_launches, {"windows": windows, "divisor": divisor})
    [result] = x.graph.extern(kernel, [planes], [((*planes.shape[:2], *sizes), x.dtype)])
    return x.graph.reshape(result, (*x.shape[:x.ndim - len(windows)], *sizes))


def avg_pool_gradient(g: Value, spatial: Sequence[int], windows: tuple[AnyWindows, ...], divisor: int = 0) -> Value:
    """The gradient of `avg_pool`."""
    planes = _planes(g, len(windows))
    kernel = ExternKernel("avg_pool_gradient", _avg_pool_gradient_launches, {"windows": windows, "divisor": divisor})
    [result] = g.graph.extern(kernel, [planes], [((*planes.shape[:2], *spatial), g.dtype)])
    return g.graph.reshape(result, (*g.shape[:g.ndim - len(windows)], *spatial))


class PoolingOps:
    """Pooling primitives."""

    graph: Graph
    #: whether maxima of float16 and bfloat16 have kernels
    pools_narrow = False

    def max_pool(self, x: Value, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
                 saved: Any) -> Value:
        spatial = x.shape[x.ndim - len(kernel_size):]
        sizes = pool_output_size(spatial, kernel_size, stride, padding, dilation, ceil_mode)
        values, index = max_pool(x, regular_windows(spatial, sizes, kernel_size, stride, padding, dilation),
                                 self.pools_narrow)
        if saved is not None:
            saved[:] = (index,)
        return values

    def adaptive_max_pool(self, x: Value, output_size: Any, saved: Any) -> Value:
        values, index = max_pool(x, adaptive_windows(x.shape[x.ndim - len(output_size):], output_size),
                                 self.pools_narrow)
        saved[:] = (index,)
        return values

    def scatter_planes(self, g: Value, index: Value, spatial: Any, overlapping: bool) -> Value:
        return max_pool_gradient(g, index, tuple(spatial))

    def avg_pool(self, x: Value, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
                 count_include_pad: bool, divisor_override: Any) -> Value:
        spatial = x.shape[x.ndim - len(kernel_size):]
        sizes = pool_output_size(spatial, kernel_size, stride, padding, (1,) * len(kernel_size), ceil_mode)
        windows = regular_windows(spatial, sizes, kernel_size, stride, padding, None, count_include_pad)
        return avg_pool(x, windows, divisor_override or 0)

    def avg_pool_backward(self, g: Value, spatial: Any, kernel_size: Any, stride: Any, padding: Any,
                          count_include_pad: bool, divisor_override: Any) -> Value:
        windows = regular_windows(spatial, g.shape[g.ndim - len(kernel_size):], kernel_size, stride, padding,
                                        None, count_include_pad)
        return avg_pool_gradient(g, tuple(spatial), windows, divisor_override or 0)

    def adaptive_avg_pool(self, x: Value, output_size: Any) -> Value:
        return avg_pool(x, adaptive_windows(x.shape[x.ndim - len(output_size):], output_size))

    def adaptive_avg_pool_backward(self, g: Value, spatial: Any) -> Value:
        windows = adaptive_windows(spatial, g.shape[g.ndim - len(spatial):])
        return avg_pool_gradient(g, tuple(spatial), windows)


__all__ = ["PoolingOps"]
