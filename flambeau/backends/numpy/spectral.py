"""Discrete Fourier transforms on arrays in the input's precision: by kernels, or by pocketfft of NumPy or SciPy.

Kernels transform large float32 and float64 arrays along dimensions of common lengths (`codegen.fourier`). SciPy, if
installed, transforms several rows at once: large batches are 2 to 6 times as fast as with NumPy.
`normalization` divides by 1 (0), √n (1) or n (2), n the number of transformed elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from math import prod, sqrt
from typing import Any

import numpy as np

from ...kernels.memory_format import noted
from ..compiled import fourier_kernels, new_copy

#: elements from which SciPy's transforms are worth importing them
_LARGE = 1 << 14

_scipy: list[Any] = []


def _transforms(size: int) -> Any:
    """The module of transforms for arrays of this size."""
    if size < _LARGE:
        return np.fft
    if not _scipy:
        try:
            _scipy.append(import_module("scipy.fft"))
        except ImportError:
            _scipy.append(np.fft)
    return _scipy[0]


#: normalization -> NumPy's name, of a forward and of an inverse transform
_FORWARD = ("backward", "ortho", "forward")
_INVERSE = ("forward", "ortho", "backward")


def _scale(sizes: Sequence[int], normalization: int) -> float:
    """The factor of the result."""
    n = prod(sizes)
    return 1.0 if not normalization else 1 / sqrt(n) if normalization == 1 else 1 / n


def _transform(x: Any, dim: Sequence[int], steps: Sequence[tuple[str, int]], normalization: int,
               fallback: Callable[[Any, tuple[int, ...]], Any]) -> Any:
    """Transforms along several dimensions.

    The memory of the result is in PyTorch's order: other dimensions by the strides of the input, then `dim`.

    Args:
        dim: the dimensions, outermost first.
        steps: of each dimension the kind of kernel and the length of the signal.
        fallback: computes the result from an array and its transformed dimensions.
    """
    others = _by_stride(x, [d for d in range(x.ndim) if d not in dim])
    order = [*others, *dim]
    is_ordered = order == list(range(x.ndim))
    y = x if is_ordered else x.transpose(order)
    axes = tuple(range(len(others), x.ndim))
    result = _by_kernels(y, axes, steps, _scale([n for _, n in steps], normalization))
    if result is None:
        result = fallback(y, axes)
    if not result.flags.c_contiguous:
        result = new_copy(result)
    return result if is_ordered else noted(result.transpose(np.argsort(order)))


def _by_kernels(x: Any, axes: Sequence[int], steps: Sequence[tuple[str, int]], scale: float) -> Any:
    """Transforms along one dimension after the other, or None. Real signals are read first and written last."""
    kernels = fourier_kernels(x.size)
    if kernels is None:
        return None
    pairs = list(zip(axes, steps, strict=True))
    if steps[-1][0] not in _TO_SIGNALS:
        pairs = pairs[::-1]
    result = x
    for i, (axis, (kind, length)) in enumerate(pairs):
        result = kernels.transform(kind, result, axis, length, scale if i == len(pairs) - 1 else 1.0)
        if result is None:
            return None
    return result


_TO_SIGNALS = ("c2r", "r2c_adjoint")


def _by_stride(x: Any, dim: Sequence[int]) -> list[int]:
    """Dimensions in the order of their strides, the largest first."""
    return sorted(dim, key=lambda d: -abs(x.strides[d]))


def _fft_c2c(x: Any, dim: Any, normalization: int, forward: bool) -> Any:
    if not dim:
        return x.copy()
    if not x.size:
        return np.empty_like(x)
    module = _transforms(x.size)
    transform, names = (module.fftn, _FORWARD) if forward else (module.ifftn, _INVERSE)
    dim = _by_stride(x, dim)
    kind = "c2c" if forward else "c2c_inverse"
    return _transform(x, dim, [(kind, x.shape[d]) for d in dim], normalization,
                      lambda y, axes: transform(y, axes=axes, norm=names[normalization]))


def _fft_r2c(x: Any, dim: Any, normalization: int, onesided: bool) -> Any:
    *dim, last = dim
    if not x.size:
        shape = list(x.shape)
        if onesided:
            shape[last] = shape[last] // 2 + 1
        return np.empty(shape, np.result_type(x.dtype, np.complex64))
    dim = _by_stride(x, dim)
    module = _transforms(x.size)
    transform = module.rfftn if onesided else module.fftn
    steps = [*(("c2c", x.shape[d]) for d in dim), ("r2c" if onesided else "r2c_twosided", x.shape[last])]
    return _transform(x, (*dim, last), steps, normalization,
                      lambda y, axes: transform(y, axes=axes, norm=_FORWARD[normalization]))


def _fft_c2r(x: Any, dim: Any, normalization: int, last_dim_size: int) -> Any:
    *dim, last = dim
    if not x.size:
        shape = list(x.shape)
        shape[last] = last_dim_size
        return np.empty(shape, x.real.dtype)
    dim = _by_stride(x, dim)
    steps = [*(("c2c_inverse", x.shape[d]) for d in dim), ("c2r", last_dim_size)]
    sizes = [n for _, n in steps]
    return _transform(x, (*dim, last), steps, normalization, lambda y, axes: _transforms(x.size).irfftn(
        y, s=sizes, axes=axes, norm=_INVERSE[normalization]))


def _scale_mirrored(x: Any, axis: int, size: int, factor: float) -> Any:
    """Half of a spectrum, its elements that stand for their mirror images too times `factor`, in place."""
    x[(*((slice(None),) * axis), slice(1, 1 + size - x.shape[axis]))] *= factor
    return x


def _fft_r2c_adjoint(x: Any, dim: Any, normalization: int, last_dim_size: int) -> Any:
    *dim, last = dim
    if not x.size:
        return _fft_c2r(x, (*dim, last), normalization, last_dim_size)
    dim = _by_stride(x, dim)
    steps = [*(("c2c_inverse", x.shape[d]) for d in dim), ("r2c_adjoint", last_dim_size)]
    return _transform(x, (*dim, last), steps, normalization, lambda y, axes: _fft_c2r(
        _scale_mirrored(y.copy(), axes[-1], last_dim_size, 0.5), axes, normalization, last_dim_size))


def _fft_c2r_adjoint(x: Any, dim: Any, normalization: int) -> Any:
    *dim, last = dim
    if not x.size:
        return _fft_r2c(x, (*dim, last), normalization, True)
    dim = _by_stride(x, dim)
    steps = [*(("c2c", x.shape[d]) for d in dim), ("c2r_adjoint", x.shape[last])]
    return _transform(x, (*dim, last), steps, normalization, lambda y, axes: _scale_mirrored(
        _fft_r2c(y, axes, normalization, True), axes[-1], x.shape[last], 2))


PRIMITIVES: dict[str, Any] = {"fft_c2c": _fft_c2c, "fft_r2c": _fft_r2c, "fft_c2r": _fft_c2r,
                              "fft_r2c_adjoint": _fft_r2c_adjoint, "fft_c2r_adjoint": _fft_c2r_adjoint}
