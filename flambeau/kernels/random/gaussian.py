"""Normal numbers: `randn`, `normal_`, `torch.normal`, `log_normal_`.

PyTorch has two algorithms. For sixteen and more numbers of a contiguous output: Box-Muller in blocks of sixteen,
where the last sixteen are drawn again if the size is no multiple. For fewer, or another layout: pairs in float64,
whose unused second number is cached in the generator for the next call.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...dtypes import widen
from .boxmuller import box_muller
from .conversion import FLOATS, REAL_OF, narrow, require, unit_doubles, unit_singles
from .engine import Engine
from .fma import fma32, fma64
from .libm import map_scalar

_BLOCK = 16
#: up to this many numbers are transformed by the calling thread
_FEW = 16384
#: by number: dtypes with metadata, of arrays without elements, are other objects
_F32, _F64 = np.dtype(np.float32).num, np.dtype(np.float64).num


def normal(engine: Engine, n: int, dtype: np.dtype, mean: float = 0.0, std: float = 1.0,
           contiguous: bool = True) -> np.ndarray:
    """`n` normal numbers z·std + mean, one rounding.

    Args:
        dtype: float32, float64, float16, bfloat16, or complex (the variance split over both parts).
        contiguous: whether the output is contiguous in PyTorch; another layout uses the pairwise algorithm.

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
    full = n - n % _BLOCK
    redrawn = _BLOCK if full < n else 0
    if dtype.num == _F64:
        data = unit_doubles(engine, n)
        _fill(data, unit_doubles(engine, redrawn), _double_blocks)
        return _scale(fma64, data, std, mean)
    if dtype.num == _F32:
        draws = engine.direct_draws(n) if n <= _FEW and (mean, std) == (0.0, 1.0) else None
        drawn = None if draws is None else draws.normals(np.empty(n, np.float32))
        if drawn is not None:
            return drawn
        data = unit_singles(engine, n)
    else:  # the 16-bit kernels draw no numbers for an incomplete block
        data = np.zeros(n, np.float32)
        data[:full] = unit_singles(engine, full)
    _fill(data, unit_singles(engine, redrawn), box_muller)
    return narrow(_scale(fma32, data, std, mean), dtype)


def _fill(data: np.ndarray, tail: np.ndarray, transform: Callable[[np.ndarray], None]) -> None:
    """Transform the complete blocks of `data` in place; then replace its last sixteen by those of `tail`, if any."""
    transform(data[:data.size - data.size % _BLOCK])
    if tail.size:
        transform(tail)
        data[-_BLOCK:] = tail


def _scale(fma: Callable[[np.ndarray, float, float], np.ndarray], z: np.ndarray, std: float,
           mean: float) -> np.ndarray:
    if std == 1.0 and mean == 0.0:
        z += z.dtype.type(0.0)  # a fused z·1 + 0 has no negative zero
        return z
    return fma(z, std, mean)


def _double_blocks(data: np.ndarray) -> None:
    blocks = data.reshape(-1, 2, _BLOCK // 2)
    logs = map_scalar(math.log, np.subtract(1.0, blocks[:, 0]).reshape(-1))
    r = np.sqrt(-2.0 * logs)
    theta = (2.0 * math.pi) * blocks[:, 1].reshape(-1)
    blocks[:, 0] = (r * map_scalar(math.cos, theta)).reshape(-1, _BLOCK // 2)
    blocks[:, 1] = (r * map_scalar(math.sin, theta)).reshape(-1, _BLOCK // 2)


def _pairs(engine: Engine, n: int) -> np.ndarray:
    """`n` standard normal doubles, pair by pair; an unused second one is cached in the engine."""
    samples = np.empty(n)
    start = 0
    if n and engine.next_normal is not None:
        samples[0], engine.next_normal, start = engine.next_normal, None, 1
    count = (n - start + 1) // 2
    if not count:
        return samples
    u = unit_doubles(engine, 2 * count)
    r = np.sqrt(-2.0 * map_scalar(math.log1p, -u[1::2]))
    theta = (2.0 * math.pi) * u[0::2]
    samples[start::2] = r * map_scalar(math.cos, theta)
    second = r * map_scalar(math.sin, theta)
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
    return narrow(map_scalar(math.exp, fma64(_pairs(engine, n), std, mean)), dtype)


def normal_around(engine: Engine, mean: np.ndarray | float, std: np.ndarray | float) -> np.ndarray:
    """Normal numbers, each with its own mean and standard deviation: `torch.normal` of one or two tensors.

    Args:
        mean, std: arrays that broadcast; one of them may be a scalar. The result has the dtype of `mean`, or of
            `std` if `mean` is a scalar.

    Returns:
        the broadcast shape; the product and the sum are rounded separately, to the result's dtype.

    Raises:
        RuntimeError: an element of `std` is negative.
    """
    dtype = mean.dtype if isinstance(mean, np.ndarray) else np.asarray(std).dtype
    shape = np.broadcast_shapes(np.shape(mean), np.shape(std))
    n = math.prod(shape)
    if isinstance(std, np.ndarray):
        if std.dtype.kind == "c":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if std.size and not widen(std).min() >= 0:
            raise RuntimeError("normal expects all elements of std >= 0.0")
        values = normal(engine, n, dtype).reshape(shape)
    else:
        values = normal(engine, n, dtype, 0.0, std).reshape(shape)
    with np.errstate(all="ignore"):
        if isinstance(std, np.ndarray):
            values = _rounded(widen(values) * widen(std), dtype)
        shift = mean if isinstance(mean, np.ndarray) else _rounded(np.array([mean]), dtype).reshape(())
        return _rounded(widen(values) + widen(shift), dtype)


def _rounded(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return x.astype(dtype) if dtype.kind == "c" else narrow(x, dtype)
