"""Fourier transforms on a device by cuFFT: dimensions are put last by copies, transformed by three, and scaled.

`normalization` divides by 1 (0), √n (1) or n (2), n the number of transformed elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt

import numpy as np

from ....backends.cuda_devices import current_runtime
from ....backends.cuda_devices.array import DeviceArray
from ....backends.cuda_devices.cufft import MAX_DIMENSIONS, layout_of
from .namespace import DeviceNamespace, parts, primitive


def _ordered(a: DeviceArray, dims: Sequence[int], last: int | None) -> list[int]:
    """All dimensions: others, then the transformed ones, both by their strides, then that of real signals."""
    others = sorted((d for d in range(a.ndim) if d not in dims and d != last), key=lambda d: -abs(a.strides[d]))
    return [*others, *sorted(dims, key=lambda d: -abs(a.strides[d])), *([] if last is None else [last])]


def _factor(sizes: Sequence[int], normalization: int) -> float:
    n = prod(sizes)
    return 1.0 if not normalization else 1 / sqrt(n) if normalization == 1 else 1 / n


def _dense(xp: DeviceNamespace, a: DeviceArray, order: Sequence[int], own: bool = False) -> DeviceArray:
    """The array with its dimensions in an order, row-major; a copy if it is not, or if it has to be a new one."""
    a = a.transpose(order)
    return a if a.flags.c_contiguous and not own and not a.byte_offset % a.itemsize else xp.copy(a)


def _readable(xp: DeviceNamespace, a: DeviceArray, order: Sequence[int], count: int) -> DeviceArray:
    """The array with its dimensions in an order; a copy where cuFFT does not read the last `count` of them."""
    moved = a.transpose(order)
    return moved if layout_of(moved, min(count, MAX_DIMENSIONS)) is not None else xp.copy(moved)


def _complex(a: DeviceArray, xp: DeviceNamespace, order: Sequence[int]) -> DeviceArray:
    """A copy of real numbers as complex ones, row-major with the dimensions in an order."""
    a = a.transpose(order)
    result = xp.empty(a.shape, np.result_type(a.dtype, np.complex64))
    real, imaginary = parts(result)
    current_runtime().copy_between(real, a)
    xp.fill(imaginary, 0.0)
    return result


def _restored(a: DeviceArray, order: Sequence[int]) -> DeviceArray:
    return a.transpose(np.argsort(order))


def _transform(xp: DeviceNamespace, a: DeviceArray, count: int, forward: bool, own: bool) -> DeviceArray:
    """The complex transform of a row-major array over its last dimensions.

    Args:
        own: whether the array may be written to.
    """
    fourier = current_runtime().fourier
    first = a.ndim - count
    while True:
        rank = min(MAX_DIMENSIONS, a.ndim - first)
        result = a if own else xp.empty(a.shape, a.dtype)
        fourier.execute(a, result, rank, forward)
        if count == rank:
            return result
        # the dimensions that are left are put last
        count -= rank
        order = [*range(first), *range(a.ndim - rank, a.ndim), *range(first, a.ndim - rank)]
        rest = _transform(xp, xp.copy(result.transpose(order)), count, forward, True)
        return xp.copy(_restored(rest, order))


@primitive
def fft_c2c(xp: DeviceNamespace, x: DeviceArray, dim: Sequence[int], normalization: int, forward: bool) -> DeviceArray:
    """The transform of complex numbers over dimensions."""
    if not dim:
        return xp.copy(x)
    order = _ordered(x, dim, None)
    moved = x.transpose(order)
    if len(dim) <= MAX_DIMENSIONS and layout_of(moved, len(dim)) is not None:
        result = xp.empty(moved.shape, x.dtype)
        current_runtime().fourier.execute(moved, result, len(dim), forward)
    else:
        dense = _dense(xp, x, order)
        result = _transform(xp, dense, len(dim), forward, dense.memory is not x.memory)
    _scale(xp, result, [x.shape[d] for d in dim], normalization)
    return _restored(result, order)


def _scale(xp: DeviceNamespace, a: DeviceArray, sizes: Sequence[int], normalization: int) -> None:
    factor = _factor(sizes, normalization)
    if factor != 1:
        xp.scale(a, factor)


@primitive
def fft_r2c(xp: DeviceNamespace, x: DeviceArray, dim: Sequence[int], normalization: int, onesided: bool) -> DeviceArray:
    """The transform of real numbers, of whose last dimension the first half suffices."""
    *others, last = dim
    order = _ordered(x, others, last)
    sizes = [x.shape[d] for d in dim]
    if onesided:
        return _restored(_one_sided(xp, _readable(xp, x, order, len(dim)), len(dim), sizes, normalization), order)
    result = _transform(xp, _complex(x, xp, order), len(dim), True, True)
    _scale(xp, result, sizes, normalization)
    return _restored(result, order)


def _one_sided(xp: DeviceNamespace, x: DeviceArray, count: int, sizes: Sequence[int], normalization: int
               ) -> DeviceArray:
    """Half of the transform of a real array, of a layout that cuFFT has, over its last dimensions."""
    n = x.shape[-1]
    half = xp.empty((*x.shape[:-1], n // 2 + 1), np.result_type(x.dtype, np.complex64))
    rank = min(count, MAX_DIMENSIONS)
    current_runtime().fourier.execute(x, half, rank, True)
    if count > rank:
        half = _over_others(xp, half, count, rank, True)
    _scale(xp, half, sizes, normalization)
    return half


def _over_others(xp: DeviceNamespace, a: DeviceArray, count: int, done: int, forward: bool) -> DeviceArray:
    """The transform of a row-major array over the first of its last `count` dimensions, all but `done`."""
    first, end = a.ndim - count, a.ndim - done
    order = [*range(first), *range(end, a.ndim), *range(first, end)]
    result = _transform(xp, xp.copy(a.transpose(order)), count - done, forward, True)
    return xp.copy(_restored(result, order))


@primitive
def fft_c2r(xp: DeviceNamespace, x: DeviceArray, dim: Sequence[int], normalization: int, last_dim_size: int
            ) -> DeviceArray:
    """The real transform of half of Hermitian complex numbers."""
    *others, last = dim
    order = _ordered(x, others, last)
    sizes = [*(x.shape[d] for d in others), last_dim_size]
    half = x.transpose(order)
    own = xp.empty((*half.shape[:-1], last_dim_size // 2 + 1), x.dtype)
    present = min(half.shape[-1], own.shape[-1])
    if present < own.shape[-1]:
        xp.fill(own[..., present:], 0.0)
    current_runtime().copy_between(own[..., :present], half[..., :present])  # cuFFT overwrites it
    if len(dim) > MAX_DIMENSIONS:
        return _restored(_signal(xp, own, len(dim), sizes, normalization), order)
    result = xp.empty((*own.shape[:-1], last_dim_size), x.dtype.char.lower())
    current_runtime().fourier.execute(own, result, len(dim), False)
    _scale(xp, result, sizes, normalization)
    return _restored(result, order)


def _signal(xp: DeviceNamespace, half: DeviceArray, count: int, sizes: Sequence[int], normalization: int
            ) -> DeviceArray:
    """The real transform of a row-major array of halves, which is overwritten, over its last dimensions.

    What makes halves no Hermitian spectra is ignored, as by the CPU; cuFFT leaves it open.
    """
    if count > 1:
        half = _over_others(xp, half, count, 1, False)
    n = sizes[-1]
    imaginary = parts(half)[1]
    xp.fill(imaginary[..., :1], 0.0)
    if not n % 2:
        xp.fill(imaginary[..., n // 2:], 0.0)
    result = xp.empty((*half.shape[:-1], n), half.dtype.char.lower())
    current_runtime().fourier.execute(half, result, 1, False)
    _scale(xp, result, sizes, normalization)
    return result


def _scale_mirrored(xp: DeviceNamespace, half: DeviceArray, size: int, factor: float) -> None:
    """Scale the elements of halves of spectra that stand for their mirror images, too."""
    mirrored = half[..., 1:1 + size - half.shape[-1]]
    if mirrored.size:
        xp.scale(mirrored, factor)


@primitive
def fft_r2c_adjoint(xp: DeviceNamespace, x: DeviceArray, dim: Sequence[int], normalization: int, last_dim_size: int
                    ) -> DeviceArray:
    """The adjoint of the one-sided transform of real numbers."""
    *others, last = dim
    order = _ordered(x, others, last)
    own = _dense(xp, x, order, own=True)
    _scale_mirrored(xp, own, last_dim_size, 0.5)
    sizes = [*(x.shape[d] for d in others), last_dim_size]
    return _restored(_signal(xp, own, len(dim), sizes, normalization), order)


@primitive
def fft_c2r_adjoint(xp: DeviceNamespace, x: DeviceArray, dim: Sequence[int], normalization: int) -> DeviceArray:
    """The adjoint of the transform to real numbers."""
    *others, last = dim
    order = _ordered(x, others, last)
    readable = _readable(xp, x, order, len(dim))
    result = _one_sided(xp, readable, len(dim), [x.shape[d] for d in dim], normalization)
    _scale_mirrored(xp, result, x.shape[last], 2.0)
    return _restored(result, order)
