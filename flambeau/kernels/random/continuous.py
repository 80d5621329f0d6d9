"""Continuous distributions: `exponential_` and `cauchy_` by inversion, gamma by rejection, Dirichlet from gamma.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .conversion import CPP_NAME, FLOATS, narrow, require, scalar_name, unit_doubles
from .engine import Engine, UniformStream
from .fma import fma64
from .libm import map_scalar, monotone_map
from .rowsum import row_sums

#: up to so many numbers the C library's function takes less time than the passes of `monotone_map`
_FEW = 512
_FULL: frozenset[np.dtype] = frozenset((np.dtype(np.float32), np.dtype(np.float64)))


def _invert(function: Callable[[float], float], x: np.ndarray, finish: Callable[[np.ndarray], np.ndarray],
            dtype: np.dtype) -> np.ndarray:
    if dtype == np.float64 or x.size <= _FEW:
        values = map_scalar(function, x)
        with np.errstate(all="ignore"):
            return narrow(finish(values), dtype)
    return monotone_map(function, x, lambda y: narrow(finish(y), dtype))


def exponential(engine: Engine, n: int, dtype: np.dtype, rate: float = 1.0) -> np.ndarray:
    """`n` numbers −log1p(−u) / rate.

    Raises:
        RuntimeError: `rate` is not positive, or `dtype` is not real floating.
    """
    dtype, rate = np.dtype(dtype), float(rate)
    if not rate > 0.0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    if n == 0:
        return np.empty(0, dtype)
    if dtype not in FLOATS:
        raise RuntimeError("Exponential distribution is a continuous probability distribution. dtype must be "
                           f"a floating point but you specified {scalar_name(dtype)}")
    scale = -1.0 / rate
    return _invert(math.log1p, -unit_doubles(engine, n), lambda y: scale * y, dtype)


def cauchy(engine: Engine, n: int, dtype: np.dtype, median: float = 0.0, sigma: float = 1.0) -> np.ndarray:
    """`n` numbers median + sigma · tan(π (u − ½)).

    Raises:
        RuntimeError: `sigma` is not positive, or `dtype` is not real floating.
    """
    dtype, median, sigma = np.dtype(dtype), float(median), float(sigma)
    if not sigma > 0.0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if dtype not in FLOATS:
        raise RuntimeError("Cauchy distribution is a continuous probability distribution. dtype must be a "
                           f"floating point but you specified {CPP_NAME[dtype]}")
    angle = math.pi * (unit_doubles(engine, n) - 0.5)
    return _invert(math.tan, angle, lambda y: fma64(y, sigma, median), dtype)


def standard_gamma(engine: Engine, alpha: np.ndarray) -> np.ndarray:
    """One gamma number of unit scale per element of `alpha`, by Marsaglia and Tsang's rejection.

    Args:
        alpha: float32 or float64, any shape; PyTorch reads it in row-major order.

    Returns:
        the shape and dtype of `alpha`; at least the smallest normal number.
    """
    require("gamma_cpu", alpha.dtype, _FULL)
    tiny = float(np.finfo(alpha.dtype).tiny)
    samples = _gammas(engine, alpha.reshape(-1))
    with np.errstate(over="ignore"):
        drawn = samples.astype(alpha.dtype)
    return np.where(drawn < tiny, alpha.dtype.type(tiny), drawn).reshape(alpha.shape)


def dirichlet(engine: Engine, alpha: np.ndarray) -> np.ndarray:
    """Dirichlet samples: gamma numbers along the last axis, divided by their sum.

    Args:
        alpha: float32 or float64, (..., k).

    Returns:
        (..., k), between the smallest normal number and the largest number below 1.
    """
    require("dirichlet", alpha.dtype, _FULL)
    kind = alpha.dtype.type
    gammas = _gammas(engine, alpha.astype(np.float64).reshape(-1)).reshape(alpha.shape)
    gammas = np.fmax(gammas, np.finfo(np.float64).tiny)  # rows of zeros have no quotients
    if alpha.size == 0:
        return np.zeros(alpha.shape, alpha.dtype)
    sums = row_sums(gammas.reshape(-1, alpha.shape[-1] if alpha.ndim else 1)).reshape(*alpha.shape[:-1], 1)
    if not alpha.ndim:
        sums = sums[0]
    with np.errstate(all="ignore"):
        points = (gammas / sums).astype(alpha.dtype)
    bounded: np.ndarray = np.clip(points, kind(np.finfo(kind).tiny), np.nextafter(kind(1), kind(0)))
    return bounded


def _gammas(engine: Engine, alpha: np.ndarray) -> np.ndarray:
    """float64 gamma numbers; constants are computed in the dtype of `alpha`, as in PyTorch."""
    single = alpha.dtype.type
    with np.errstate(all="ignore"):
        boosted = np.where(alpha < 1, alpha + single(1), alpha)
        power = (single(1) / alpha).tolist()
        d = (boosted - single(np.float32(1) / np.float32(3))).astype(np.float64)
        c = (1.0 / np.sqrt(9.0 * d)).tolist()
        d = d.tolist()
    low, squeeze = (alpha < 1).tolist(), float(np.float32(0.0331))
    out = np.empty(alpha.size)
    log, log1p, sqrt, sin, cos, two_pi = math.log, math.log1p, math.sqrt, math.sin, math.cos, 2.0 * math.pi
    cached = engine.next_normal
    with UniformStream(engine, 4 * alpha.size) as take:
        for i, a in enumerate(alpha.tolist()):
            if a == 0.0:
                out[i] = 0.0
                continue
            scale = _power(1.0 - take(), power[i]) if low[i] else 1.0
            d_i, c_i = d[i], c[i]
            while True:
                while True:
                    if cached is not None:
                        x, cached = cached, None
                    else:
                        angle = take()
                        r = sqrt(-2.0 * log1p(-take()))
                        angle *= two_pi
                        cached, x = r * sin(angle), r * cos(angle)
                    y = 1.0 + c_i * x
                    if not y <= 0.0:
                        break
                v = y * y * y
                u = 1.0 - take()
                xx = x * x
                if u < 1.0 - squeeze * xx * xx or log(u) < 0.5 * xx + d_i * (1.0 - v + log(v)):
                    out[i] = scale * d_i * v
                    break
        engine.next_normal = cached
    return out


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan



