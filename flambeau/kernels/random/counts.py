"""Counts by rejection sampling: `poisson`, `binomial`.

The number of uniforms that a sample consumes depends on their values, so these are scalar loops; only constants
are computed for all samples at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...dtypes import widen
from .conversion import FLOATS, narrow, require, scalar_name
from .engine import Engine, UniformStream
from .libm import map_scalar

_FULL: frozenset[np.dtype] = frozenset((np.dtype(np.float32), np.dtype(np.float64)))


def poisson(engine: Engine, rate: np.ndarray) -> np.ndarray:
    """One Poisson count per rate.

    Below 10: the number of factors of a product of uniforms until it falls below exp(−rate). From 10 on: Hörmann's
    transformed rejection.

    Args:
        rate: floating, any shape, non-negative.

    Returns:
        the shape and dtype of `rate`.

    Raises:
        RuntimeError: a rate is negative or NaN.
    """
    require("poisson_cpu", rate.dtype, FLOATS)
    rates = widen(rate).astype(np.float64).reshape(-1)
    if not np.logical_and.reduce(rates >= 0):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    out = np.empty(rates.size)
    draws = rates.size and engine.direct_draws(rates.size)
    if draws and draws.poisson(out, rates):
        return narrow(out, rate.dtype).reshape(rate.shape)
    expected = int(np.minimum(rates + 1, 4).sum()) if rates.size else 0
    with UniformStream(engine, expected) as take:
        stops = map_scalar(math.exp, -rates).tolist()
        for i, mean in enumerate(rates.tolist()):
            if mean >= 10:
                out[i] = _poisson_large(mean, take)
            elif mean == 0:
                out[i] = 0
            else:
                stop, count, product = stops[i], 0, take()
                while product > stop:
                    count += 1
                    product *= take()
                out[i] = count
    return narrow(out, rate.dtype).reshape(rate.shape)


def _poisson_large(mean: float, take: Callable[[], float]) -> int:
    root, log_mean = math.sqrt(mean), math.log(mean)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = take() - 0.5
        v = take()
        us = 0.5 - abs(u)
        if us == 0.0:
            continue
        k = math.floor((2 * a / us + b) * u + mean + 0.43)
        if us >= 0.07 and v <= v_r:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        log_v = math.log(v) if v > 0.0 else -math.inf
        if (log_v + math.log(inverse_alpha) - math.log(a / (us * us) + b)
                <= -mean + k * log_mean - math.lgamma(k + 1.0)):
            return k


def binomial(engine: Engine, count: np.ndarray, prob: np.ndarray) -> np.ndarray:
    """Successes among `count` trials of probability `prob`, per element.

    Args:
        count, prob: float32 or float64, the same dtype, of shapes that broadcast.

    Returns:
        the broadcast shape, that dtype.
    """
    check_binomial(count, prob)
    require("binomial_cpu", count.dtype, _FULL)
    count, prob = np.broadcast_arrays(count, prob)
    shape, number = count.shape, count.dtype.type
    out = np.empty(count.size, count.dtype)
    with UniformStream(engine, 2 * count.size) as take, np.errstate(all="ignore"):
        for i, (n, p) in enumerate(zip(count.reshape(-1), prob.reshape(-1), strict=True)):
            if n <= 0 or p <= 0:
                out[i] = 0
            elif p >= 1:
                out[i] = n
            elif p <= 0.5:
                out[i] = _successes(n, p, take)
            elif p > 0.5:
                out[i] = n - number(_successes(n, number(1.0 - float(p)), take))
            else:
                out[i] = np.nan
    return out.reshape(shape)


def check_binomial(count: np.ndarray, prob: np.ndarray) -> None:
    """Check the dtypes of trials and probabilities.

    Raises:
        ValueError: one is not floating.
        RuntimeError: they differ.
    """
    for name, given in (("count", count), ("prob", prob)):
        if given.dtype not in FLOATS:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: "
                             f"{scalar_name(given.dtype)}")
    if count.dtype != prob.dtype:
        raise RuntimeError(f"Found dtype {scalar_name(prob.dtype)} but expected {scalar_name(count.dtype)}")


def _successes(n: np.floating, p: np.floating, take: Callable[[], float]) -> float:
    return _rejection(n, p, take) if n * p >= 10 else _waiting_times(float(n), p, take)


def _waiting_times(n: float, p: np.floating, take: Callable[[], float]) -> float:
    """Binomial sample: geometric waiting times, summed until they exceed the trials."""
    log_q = _log1p(-p)
    total, successes = 0.0, 0
    while True:
        u = take()
        total += math.ceil(math.log(u) / log_q) if u > 0.0 else math.inf
        if total > n:
            return successes
        successes += 1


def _log1p(x: np.floating) -> float:
    return math.log1p(float(x)) if x.dtype == np.float64 else float(np.float32(math.log1p(float(x))))


def _rejection(n: np.floating, p: np.floating, take: Callable[[], float]) -> float:
    """Hörmann's BTRS. `n` and `p` are NumPy scalars, so that expressions are rounded to their dtype."""
    number = type(n)
    one = number(1)
    spread = float(np.sqrt(n * p * (one - p)))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * float(p)
    c = float(n * p) + 0.5
    v_r = 0.92 - 4.2 / b
    r = float(p / (one - p))
    alpha = (2.83 + 5.1 / b) * spread
    m = float(np.floor((n + one) * p))
    trials = float(n)
    while True:
        u = take() - 0.5
        v = take()
        us = 0.5 - abs(u)
        k = float(number(math.floor((2 * a / us + b) * u + c))) if us else -1.0
        if k < 0 or k > trials:
            continue
        if us >= 0.07 and v <= v_r:
            return k
        scaled = v * alpha / (a / (us * us) + b)
        log_v = math.log(scaled) if scaled > 0.0 else -math.inf
        taken, left = float(number(k) + one), float(n - number(k) + one)
        bound = ((m + 0.5) * math.log((m + 1) / (r * (trials - m + 1)))
                 + float(n + one) * math.log((trials - m + 1) / left)
                 + (k + 0.5) * math.log(r * left / taken)
                 + _stirling_tail(m) + _stirling_tail(trials - m)
                 - _stirling_tail(k) - _stirling_tail(float(n - number(k))))
        if log_v <= bound:
            return k


_TAILS = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
          0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
          0.00925546218271273, 0.00833056343336287)


def _stirling_tail(k: float) -> float:
    """The error of Stirling's formula: log k! − (k + ½) log(k + 1) + (k + 1) − ½ log 2π."""
    if k < len(_TAILS):
        return _TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)
