"""Discrete distributions: `bernoulli` (dropout masks), `geometric_`, `multinomial`."""

from __future__ import annotations

import math

import numpy as np

from ...dtypes import widen
from ..memory_format import empty_in_layout
from ..sorting import topk
from .continuous import exponential
from .conversion import FLOATS, narrow, require, scalar_name, unit_doubles, unit_singles
from .engine import Engine
from .libm import monotone_map
from .memory_order import place

_BERNOULLI_DTYPES = frozenset(map(np.dtype, ("?", "u1", "i1", "i2", "i4", "i8"))) | FLOATS
_max, _min, _all = np.maximum.reduce, np.minimum.reduce, np.logical_and.reduce
#: the bits of a float32 1
_ONE = int(np.ones(1, np.float32).view(np.int32)[0])
_GEOMETRIC_DTYPES = _BERNOULLI_DTYPES - {np.dtype(np.bool_)}


def bernoulli(engine: Engine, n: int, p: float, dtype: np.dtype) -> np.ndarray:
    """`n` Bernoulli samples: 1 with probability `p`, else 0.

    A dropout mask is `bernoulli(engine, n, 1 - p, dtype)`, divided by 1 − p.

    Raises:
        RuntimeError: `p` is outside [0, 1].
        NotImplementedError: `dtype` has no such kernel.
    """
    dtype, p = np.dtype(dtype), float(p)
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if n == 0:
        return np.empty(0, dtype)
    require("bernoulli_scalar_cpu_", dtype, _BERNOULLI_DTYPES)
    limit = math.ceil(p * 2.0**53)
    draws = engine.direct_draws(n) if dtype == np.float32 else None
    if draws is not None:
        return draws.choices(np.empty(n, np.float32), limit, _ONE)
    return _as_numbers(_below(engine, n, limit), dtype)


def _below(engine: Engine, n: int, limit: int) -> np.ndarray:
    """Whether each of `n` 53-bit integers is less than a limit: u < p, scaled by 2**53.

    An integer is two words, high word first; the low word is compared only where the high words are equal.
    """
    words = engine.draw(2 * n)
    first, second = limit >> 32, limit & 0xFFFFFFFF
    high = words[0::2] & np.uint32((1 << 21) - 1)
    below = high < first
    equal = high == first
    if np.logical_or.reduce(equal):
        undecided = equal.nonzero()[0]
        below[undecided] = words[2 * undecided + 1] < second
    return below


def bernoulli_each(engine: Engine, p: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """One Bernoulli sample per probability.

    Args:
        p: floating, any shape; float64 is compared with 53 random bits, other dtypes with 24.
        dtype: of the result.

    Returns:
        the shape of `p`.

    Raises:
        RuntimeError: a probability is outside [0, 1].
    """
    dtype = np.dtype(dtype)
    if p.size == 0:
        return np.empty(p.shape, dtype)
    require("bernoulli_tensor_cpu_self_", dtype, _BERNOULLI_DTYPES)
    require("bernoulli_tensor_cpu_p_", p.dtype, FLOATS)
    chance = widen(p).reshape(-1)
    draws = engine.direct_draws(p.size) if dtype == chance.dtype == np.float32 and chance.flags.contiguous else None
    if draws is not None:
        drawn = draws.events(np.empty(chance.size, np.float32), chance)
        if drawn is not chance:
            return drawn.reshape(p.shape)
    valid = (chance >= 0) & (chance <= 1)
    bad = chance.size if valid.all() else int(np.argmin(valid))
    double = chance.dtype == np.float64
    u = (unit_doubles if double else unit_singles)(engine, bad)
    if bad < chance.size:
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error "
                           "message be improved?  If so, please report an enhancement request to PyTorch.)")
    return _as_numbers(u < chance, dtype).reshape(p.shape)


def _as_numbers(mask: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype.kind in "iu" and dtype.itemsize == 1:
        return mask.view(dtype)
    return narrow(mask.astype(np.float32), dtype) if dtype in FLOATS else mask.astype(dtype, copy=False)


def geometric(engine: Engine, n: int, p: float, dtype: np.dtype) -> np.ndarray:
    """`n` numbers ⌈log u / log(1 − p)⌉: trials up to the first success.

    Raises:
        RuntimeError: `p` is outside (0, 1).
        NotImplementedError: `dtype` has no such kernel.
    """
    dtype, p = np.dtype(dtype), float(p)
    if not 0.0 < p < 1.0:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if n == 0:
        return np.empty(0, dtype)
    require("geometric_cpu", dtype, _GEOMETRIC_DTYPES)
    scale = math.log1p(-p)
    trials = monotone_map(math.log, unit_doubles(engine, n), lambda y: np.ceil(y / scale))
    if dtype in FLOATS:
        return narrow(trials, dtype)
    # an out-of-range conversion gives the lowest integer, of 64 bits for int64, of 32 for smaller dtypes
    word = np.int64 if dtype == np.int64 else np.int32
    limit = -float(np.iinfo(word).min)
    return np.where(np.abs(trials) < limit, trials, -limit).astype(word).astype(dtype, copy=False)


def multinomial(engine: Engine, weights: np.ndarray, n: int, replacement: bool = False) -> np.ndarray:
    """`n` indices per row, with probabilities proportional to the row's weights.

    Args:
        weights: floating, (categories,) or (rows, categories); non-negative.
        n: indices per row; at most `categories` without replacement.

    Returns:
        int64, (n,) or (rows, n).

    Raises:
        RuntimeError: invalid weights, or more samples than categories without replacement.
    """
    check_multinomial(weights, n, replacement)
    categories = weights.shape[-1]
    rows = weights.reshape(-1, categories)
    if rows.size == 0:
        return np.empty((*weights.shape[:-1], n), np.int64)
    chosen = (_with_replacement if replacement and n > 1 else _without_replacement)(engine, rows, n)
    return chosen.reshape(*weights.shape[:-1], n)


def check_multinomial(weights: np.ndarray, n: int, replacement: bool) -> None:
    """Check the shape and dtype of weights, and the number of samples.

    Raises:
        RuntimeError: there are no such samples (PyTorch's texts).
    """
    if weights.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if weights.dtype not in FLOATS:
        raise RuntimeError("multinomial only supports floating-point dtypes for input, got: "
                           f"{scalar_name(weights.dtype)}")
    if n <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    categories = weights.shape[-1]
    if not replacement and n > categories:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if categories > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")


def _without_replacement(engine: Engine, rows: np.ndarray, n: int) -> np.ndarray:
    """The `n` largest of weight / exponential number."""
    wide = widen(rows)
    if not (_max(wide, None) < np.inf and _min(wide, None) >= 0):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not _min(_max(wide, 1), None) > 0:
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    times = exponential(engine, rows.size, rows.dtype).reshape(rows.shape)
    if not rows.flags.c_contiguous:
        times = place(times.reshape(-1), empty_in_layout(rows))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        speeds = widen(narrow(wide / widen(times), rows.dtype))
    if n == 1:
        return np.asarray(speeds.argmax(axis=1)).reshape(-1, 1)
    chosen = _first_of_few(speeds, n) if speeds.size <= _FEW else None
    return np.ascontiguousarray(topk(speeds, n)[1] if chosen is None else chosen)


#: up to so many weights are sorted as a whole
_FEW = 4096


def _first_of_few(speeds: np.ndarray, n: int) -> np.ndarray | None:
    """The positions of the n largest of each row; None where some are equal, or none is a number."""
    order = speeds.argsort(axis=1)[:, ::-1]
    places = order[:, :n + 1] + np.arange(0, speeds.size, speeds.shape[1])[:, None]
    best = speeds.take(places)
    return order[:, :n] if _all(best[:, :-1] > best[:, 1:], None) else None


def _with_replacement(engine: Engine, rows: np.ndarray, n: int) -> np.ndarray:
    """The positions of uniform numbers among the row's cumulative weights."""
    wide = widen(rows)
    cumulative = np.cumsum(wide, 1, wide.dtype)
    totals = cumulative[:, -1:]
    if not (_min(wide, None) >= 0 and _max(wide, None) < np.inf and _min(totals, None) > 0):
        _refuse_row(engine, wide, totals, n)
    cumulative /= totals
    uniforms = unit_doubles(engine, len(wide) * n).reshape(len(wide), n)
    if uniforms.size * wide.shape[1] <= _FEW:
        below = cumulative[:, None].astype(np.float64) < uniforms[:, :, None]
        return np.asarray(np.add.reduce(below, 2, np.int64))
    pairs = zip(cumulative.astype(np.float64), uniforms, strict=True)
    return np.stack([edges.searchsorted(row) for edges, row in pairs])


def _refuse_row(engine: Engine, wide: np.ndarray, totals: np.ndarray, n: int) -> None:
    """Draw the numbers of the rows before the first one that has no distribution, and raise.

    Raises:
        RuntimeError: a weight is negative or not finite, or the sum is not positive (PyTorch's texts).
    """
    for row, total in zip(wide, totals, strict=True):
        fits = np.isfinite(row) & (row >= 0)
        if not fits.all():
            first = row[np.argmin(fits)]
            raise RuntimeError("invalid multinomial distribution (encountering probability entry "
                               f"{'< 0' if not first >= 0 else '= infinity or NaN'})")
        if not total > 0:
            raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
        unit_doubles(engine, n)
