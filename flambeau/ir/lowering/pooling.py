"""Pooling as it stands in graphs: windows of planes, whatever dimensions stand before those."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ...codegen.pooling.plan import Windows, adaptive, regular
from ...runtime.launch import Launch, Spec
from ..graph.extern_kernels import ExternKernel
from ..graph.value import INT64, Unsupported, Value


def _maxima(outputs: list[Spec], inputs: list[Spec], windows: Any) -> list[Launch]:
    from ...codegen.pooling import pooling

    return pooling.max_pool(outputs, inputs[0], windows)


def _spread(outputs: list[Spec], inputs: list[Spec]) -> list[Launch]:
    from ...codegen.pooling import pooling

    return pooling.max_pool_gradient(outputs, inputs[0], inputs[1])


def _means(outputs: list[Spec], inputs: list[Spec], windows: Any, divisor: int) -> list[Launch]:
    from ...codegen.pooling import pooling

    return pooling.avg_pool(outputs, inputs[0], windows, divisor)


def _shares(outputs: list[Spec], inputs: list[Spec], windows: Any, divisor: int) -> list[Launch]:
    from ...codegen.pooling import pooling

    return pooling.avg_pool_gradient(outputs, inputs[0], windows, divisor)


def _planes(x: Value, dims: int) -> Value:
    """Planes as images with channels."""
    lead = x.shape[:x.ndim - dims]
    if x.dtype.kind != "f" or x.dtype.itemsize < 4 or not x.size:
        raise Unsupported(f"pooling of {x.dtype}")
    return x if len(lead) == 2 else x.graph.reshape(x, (1, prod(lead), *x.shape[x.ndim - dims:]))


def windows_of(spatial: Sequence[int], sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int],
               padding: Sequence[int], dilation: Sequence[int] | None = None,
               padded: bool = True) -> tuple[Windows, ...]:
    """The windows along each dimension."""
    steps = dilation or (1,) * len(sizes)
    return tuple(regular(n, m, k, s, p, d, padded)
                 for n, m, k, s, p, d in zip(spatial, sizes, kernel, stride, padding, steps, strict=True))


def even_windows(spatial: Sequence[int], sizes: Sequence[int]) -> tuple[Windows, ...]:
    """The windows that cover each dimension evenly."""
    return tuple(adaptive(n, m) for n, m in zip(spatial, sizes, strict=True))


def maxima(x: Value, windows: tuple[Windows, ...]) -> tuple[Value, Value]:
    """The maximum of each window, and where it is in its plane."""
    planes, sizes = _planes(x, len(windows)), [len(w.starts) for w in windows]
    shape = (*planes.shape[:2], *sizes)
    found = x.graph.extern(ExternKernel("max_pool", _maxima, {"windows": windows}), [planes],
                          [(shape, x.dtype), (shape, INT64)])
    full = (*x.shape[:x.ndim - len(windows)], *sizes)
    values, index = (x.graph.reshape(v, full) for v in found)
    return values, index


def spread(g: Value, index: Value, spatial: Sequence[int]) -> Value:
    """Zeros with each window's cotangent added at its maximum's place."""
    dims = len(spatial)
    planes, places = _planes(g, dims), index.graph.reshape(index, (1, prod(index.shape[:-dims]), *index.shape[-dims:])
                                                           if index.ndim != dims + 2 else index.shape)
    [found] = g.graph.extern(ExternKernel("max_pool_gradient", _spread, {}), [planes, places],
                            [((*planes.shape[:2], *spatial), g.dtype)])
    return g.graph.reshape(found, (*g.shape[:g.ndim - dims], *spatial))


def means(x: Value, windows: tuple[Windows, ...], divisor: int = 0) -> Value:
    """The mean of each window."""
    planes, sizes = _planes(x, len(windows)), [len(w.starts) for w in windows]
    [found] = x.graph.extern(ExternKernel("avg_pool", _means, {"windows": windows, "divisor": divisor}), [planes],
                            [((*planes.shape[:2], *sizes), x.dtype)])
    return x.graph.reshape(found, (*x.shape[:x.ndim - len(windows)], *sizes))


def shares(g: Value, spatial: Sequence[int], windows: tuple[Windows, ...], divisor: int = 0) -> Value:
    """The transpose of `means`."""
    planes = _planes(g, len(windows))
    [found] = g.graph.extern(ExternKernel("avg_pool_gradient", _shares, {"windows": windows, "divisor": divisor}),
                             [planes],
                            [((*planes.shape[:2], *spatial), g.dtype)])
    return g.graph.reshape(found, (*g.shape[:g.ndim - len(windows)], *spatial))
