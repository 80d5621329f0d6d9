"""Normal numbers: `randn`, `normal_`, `torch.normal`, `log_normal_`.

PyTorch has two ways. Sixteen and more numbers of a contiguous output: Box-Muller in blocks of sixteen, the last
sixteen drawn once more when the size is no multiple. Fewer, or another layout: pairs in float64, the second of a
pair kept in the generator for the next call.
"""

from __future__ import annotations

import math

import numpy as np

from ...dtypes import widen
from .boxmuller import box_muller
from .engine import Engine
from .fma import fma32, fma64
from .library import each
from .numbers import FLOATS, REAL_OF, narrow, require, unit_doubles, unit_singles

_BLOCK = 16


def normal(engine: Engine, n: int, dtype: np.dtype, mean: float = 0.0, std: float = 1.0,
           contiguous: bool = True) -> np.ndarray:
    """`n` normal numbers z·std + mean, one rounding.

    Args:
        dtype: float32, float64, float16, bfloat16, or complex (the variance split over both parts).
        contiguous: whether PyTorch's output would be contiguous; another layout is filled the other way.

    Returns:
        shape (n,).

    Raises:
        RuntimeError: `std` is negative or NaN.
        NotImplementedError: `dtype` is no floating dtype.
    """
    dtype, mean, std = np.dtype(dtype), float(mean), float(std)
    if not std >= 0.0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if dtype in REAL_OF:
        return normal(engine, 2 * n, REAL_OF[dtype], mean, std / math.sqrt(2.0), contiguous).view(dtype)
    if n == 0:
        return np.empty(0, dtype)
    require("normal_kernel_cpu", dtype, FLOATS)
    if n < _BLOCK or not contiguous:
        return narrow(fma64(_pairs(engine, n), std, mean), dtype)
    if dtype == np.float64:
        return _fill(unit_doubles(engine, n), unit_doubles(engine, _BLOCK if n % _BLOCK else 0), _double_blocks,
                     lambda z: _scale(fma64, z, std, mean))
    if dtype == np.float32:
        return _fill(unit_singles(engine, n), unit_singles(engine, _BLOCK if n % _BLOCK else 0), box_muller,
                     lambda z: _scale(fma32, z, std, mean))
    whole = n - n % _BLOCK
    data = np.empty(n, np.float32)  # the 16-bit kernels draw no numbers for an incomplete block
    data[:whole] = unit_singles(engine, whole)
    values = _fill(data, unit_singles(engine, _BLOCK if n % _BLOCK else 0), box_muller,
                   lambda z: _scale(fma32, z, std, mean))
    return narrow(values, dtype)


def _fill(data: np.ndarray, tail: np.ndarray, transform, scale) -> np.ndarray:
    """Transform whole blocks of `data`; then its last sixteen are those of `tail`."""
    whole = data.size - data.size % _BLOCK
    transform(data[:whole])
    if tail.size:
        transform(tail)
        data[-_BLOCK:] = tail
    return scale(data)


def _scale(fma, z: np.ndarray, std: float, mean: float) -> np.ndarray:
    if std == 1.0 and mean == 0.0:
        z += z.dtype.type(0.0)  # a fused z·1 + 0 has no negative zero
        return z
    return fma(z, std, mean)


def _double_blocks(data: np.ndarray) -> None:
    blocks = data.reshape(-1, 2, _BLOCK // 2)
    logs = each(math.log, np.subtract(1.0, blocks[:, 0]).reshape(-1))
    r = np.sqrt(-2.0 * logs)
    theta = (2.0 * math.pi) * blocks[:, 1].reshape(-1)
    blocks[:, 0] = (r * each(math.cos, theta)).reshape(-1, _BLOCK // 2)
    blocks[:, 1] = (r * each(math.sin, theta)).reshape(-1, _BLOCK // 2)


def _pairs(engine: Engine, n: int) -> np.ndarray:
    """`n` standard normal doubles, pair by pair; a second one that is left over stays in the engine."""
    samples = np.empty(n)
    start = 0
    if n and engine.next_normal is not None:
        samples[0], engine.next_normal, start = engine.next_normal, None, 1
    count = (n - start + 1) // 2
    if not count:
        return samples
    u = unit_doubles(engine, 2 * count)
    r = np.sqrt(-2.0 * each(math.log1p, -u[1::2]))
    theta = (2.0 * math.pi) * u[0::2]
    samples[start::2] = r * each(math.cos, theta)
    second = r * each(math.sin, theta)
    if (n - start) % 2:
        engine.next_normal = float(second[-1])
        second = second[:-1]
    samples[start + 1::2] = second
    return samples


def log_normal(engine: Engine, n: int, dtype: np.dtype, mean: float = 1.0, std: float = 2.0) -> np.ndarray:
    """`n` numbers exp(z·std + mean), computed in float64.

    Raises:
        RuntimeError: `std` is not positive.
        NotImplementedError: `dtype` is not real floating.
    """
    dtype, mean, std = np.dtype(dtype), float(mean), float(std)
    if not std > 0.0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if n == 0:
        return np.empty(0, dtype)
    require("log_normal_cpu", dtype, FLOATS)
    return narrow(each(math.exp, fma64(_pairs(engine, n), std, mean)), dtype)


def normal_around(engine: Engine, mean: np.ndarray | float, std: np.ndarray | float) -> np.ndarray:
    """Normal numbers with a mean and a deviation each: `torch.normal` of one or two tensors.

    Args:
        mean, std: arrays that broadcast, or one of them a number; the result has the dtype of `mean`, or of
            `std` when `mean` is a number.

    Returns:
        the broadcast shape; the product and the sum are rounded separately, to the result's dtype.

    Raises:
        RuntimeError: an element of `std` is negative.
    """
    dtype = np.dtype(mean.dtype if isinstance(mean, np.ndarray) else std.dtype)
    shape = np.broadcast_shapes(np.shape(mean), np.shape(std))
    n = math.prod(shape)
    if isinstance(std, np.ndarray):
        if std.dtype.kind == "c":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if std.size and not widen(std).min() >= 0:
            raise RuntimeError("normal expects all elements of std >= 0.0")
        values = normal(engine, n, dtype).reshape(shape)
        values = _rounded(widen(values) * widen(std), dtype)
    else:
        values = normal(engine, n, dtype, 0.0, std).reshape(shape)
    shift = widen(mean) if isinstance(mean, np.ndarray) else widen(values).dtype.type(mean)
    return _rounded(widen(values) + shift, dtype)


def _rounded(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return x.astype(dtype) if dtype.kind == "c" else narrow(x, dtype)
