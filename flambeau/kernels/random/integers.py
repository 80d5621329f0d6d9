"""Random integers: `randint`, `random_`, in every dtype.

A range below 2**28 uses 32 random bits per number, a larger one 64; the number is the remainder by the range,
plus `low`.
"""

from __future__ import annotations

import warnings

import numpy as np

from ...dtypes import BFLOAT16, widen
from .conversion import CPP_NAME, FLOATS, SIGNIFICAND, narrow, require
from .engine import Engine

_INT64 = np.dtype(np.int64)
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1
_INTEGERS = frozenset(map(np.dtype, ("u1", "i1", "i2", "i4", "i8", "u2", "u4", "u8")))
#: the smallest and the largest number of integer dtypes; `np.iinfo` takes longer than a small draw
_RANGES = {dtype: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) for dtype in _INTEGERS} | {
    np.dtype(np.bool_): (0, 1)}
_RANDOM_DTYPES = frozenset(map(np.dtype, ("?", "u1", "i1", "i2", "i4", "i8"))) | FLOATS
_FULL_64_BIT_DTYPES = frozenset((np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.float32), BFLOAT16))


def random(engine: Engine, n: int, dtype: np.dtype, low: int | None = None,
           high: int | None = None) -> np.ndarray:
    """`n` integers in [low, high), as `dtype` numbers: `random_`.

    Args:
        low, high: without both, [0, the largest integer] of an integer dtype and [0, 2**digits] of a floating
            one; with `low` alone, up to that largest.

    Returns:
        shape (n,).

    Raises:
        RuntimeError: the range is empty or `dtype` cannot hold it.
        NotImplementedError: `dtype` has no such kernel.
    """
    dtype = np.dtype(dtype)
    if low is None and high is None:
        return _full_range(engine, n, dtype)
    if low is not None and int(low) == _LOWEST and high is None:
        return _all_64_bits(engine, n, dtype)
    low, size = integer_bounds(dtype, low, high)
    if n == 0:
        return np.empty(0, dtype)
    return _remainders(engine, n, size & 0xFFFF_FFFF_FFFF_FFFF, low, dtype)


def integer_bounds(dtype: np.dtype, low: int | None, high: int | None) -> tuple[int, int]:
    """The lowest of the integers that `random_` draws, and their number; 2**64 from 0 on stand for all int64.

    Raises:
        RuntimeError: the range is empty or `dtype` cannot hold it.
    """
    low = 0 if low is None else int(low)
    for bound in (low, high):
        if bound is not None and not _LOWEST <= int(bound) <= _HIGHEST:
            raise ValueError("Overflow when unpacking long long")
    if high is not None:
        high = int(high)
        if low >= high:
            raise RuntimeError("random_ expects 'from' to be less than 'to', but got "
                               f"from={low} >= to={high}")
        if dtype in FLOATS:
            low, high = _representable_low(low, dtype), _representable_high(high, dtype)
            if low >= high:
                raise RuntimeError("random_ expects 'from' casted to dtype to be less than 'to' casted to "
                                   f"dtype, but got from={low} >= to={high}")
        last = high - 1
    elif low != _LOWEST:
        if dtype in FLOATS:
            last = min(1 << SIGNIFICAND[dtype][0], _HIGHEST)
            low = _representable_low(low, dtype)
            if low >= last:
                raise RuntimeError("random_ expects 'from' casted to dtype to be less than or equal to "
                                   f"'to_inc' casted to dtype, but got from={low} > to_inc={last}")
        elif dtype in _INTEGERS or dtype == np.bool_:
            last = _wrap(_RANGES[dtype][1])
        else:
            raise RuntimeError("random_from_to_impl handles only integral, floating-point and boolean types")
    else:
        check_full_range(dtype)
        return 0, 1 << 64
    _check(low, last, dtype)
    return low, last - low + 1


def randint(engine: Engine, n: int, low: int, high: int, dtype: np.dtype = _INT64) -> np.ndarray:
    """`n` integers in [low, high): `torch.randint`."""
    return random(engine, n, dtype, low, high)


def _remainders(engine: Engine, n: int, size: int, low: int, dtype: np.dtype) -> np.ndarray:
    if size < 1 << 28:
        draws = engine.direct_draws(n) if dtype == _INT64 else None
        if draws is not None:
            return draws.remainders(np.empty(n, np.int64), size, low)
        words = engine.draw(n)
        words %= np.uint32(size)
        if low == 0 and dtype in _INTEGERS:
            return words.astype(dtype)
        values = words.astype(np.int64)
    else:
        words = engine.draw64(n)
        values = (words if size == 0 else words % np.uint64(size)).view(np.int64)
    values += np.int64(low)
    return _from_int64(values, dtype)


def _full_range(engine: Engine, n: int, dtype: np.dtype) -> np.ndarray:
    if n == 0:
        return np.empty(0, dtype)
    require("random_kernel_cpu", dtype, _RANDOM_DTYPES)
    if dtype == np.bool_:
        return (engine.draw(n) & np.uint32(1)).astype(np.bool_)
    if dtype == np.int64:
        return (engine.draw64(n) & np.uint64(_HIGHEST)).view(np.int64)
    if dtype == np.float64:
        return (engine.draw64(n) % np.uint64((1 << 53) + 1)).astype(np.float64)
    if dtype in FLOATS:
        words = engine.draw(n) % np.uint32((1 << SIGNIFICAND[dtype][0]) + 1)
        return _from_int64(words.astype(np.int64), dtype)
    return (engine.draw(n) & np.uint32(np.iinfo(dtype).max)).astype(dtype)


def _all_64_bits(engine: Engine, n: int, dtype: np.dtype) -> np.ndarray:
    if n == 0:
        return np.empty(0, dtype)
    check_full_range(dtype)
    return _from_int64(engine.draw64(n).view(np.int64), dtype)


def check_full_range(dtype: np.dtype) -> None:
    """Check that all int64 are drawn for a dtype.

    Raises:
        NotImplementedError, RuntimeError: they are not (PyTorch's texts).
    """
    require("random_full_64_bits_range_kernel_cpu", dtype,
            frozenset(map(np.dtype, ("u1", "i1", "i2", "i4", "i8", "f4", "f8"))) | {BFLOAT16})
    if dtype not in _FULL_64_BIT_DTYPES:
        raise RuntimeError("random_full_64_bits_range_kernel_cpu handles only int64, double, float and "
                           "bfloat16")


def _from_int64(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype in (np.dtype(np.float16), BFLOAT16):
        return narrow(values.astype(np.float32), dtype)
    return values.astype(dtype, copy=False)


def _wrap(x: int) -> int:
    return (x + (1 << 63)) % (1 << 64) - (1 << 63)


def _as_integer(x: int, dtype: np.dtype) -> int:
    """`x` rounded to `dtype` and back to 64 bits, saturating as the processor's conversion does."""
    if dtype == np.float64:
        value = float(x)
    else:
        with np.errstate(over="ignore"):
            value = float(widen(narrow(np.array([x]).astype(np.float32), dtype))[0])
    return int(value) if -(2.0**63) <= value < 2.0**63 else _LOWEST


def _representable_low(low: int, dtype: np.dtype) -> int:
    """`low`, rounded up to a `dtype` number where rounding could go below it."""
    after = _as_integer(_wrap(low + 1), dtype)
    if after < low:
        low = after + (1 << max(abs(low + 1).bit_length() - SIGNIFICAND[dtype][0], 0))
    return low


def _representable_high(high: int, dtype: np.dtype) -> int:
    """`high`, rounded down to a `dtype` number where rounding could reach it."""
    before = _as_integer(_wrap(high - 1), dtype)
    if before >= high:
        high = before - (1 << max(abs(high - 1).bit_length() - SIGNIFICAND[dtype][0], 0))
    return high


def _check(low: int, last: int, dtype: np.dtype) -> None:
    name = CPP_NAME[dtype]
    if dtype in FLOATS:
        digits, limit = SIGNIFICAND[dtype]
        for what, bound in (("from", low), ("to - 1", last)):
            if not -limit <= bound <= limit:
                raise RuntimeError(f"{what} is out of bounds for {name}")
            if not -(1 << digits) <= bound <= 1 << digits:
                warnings.warn(
                    f"{what} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations "
                    f"{name} can support discrete uniform distribution only within this range. This warning "
                    "will become an error in version 1.7 release, please fix the code in advance",
                    UserWarning,
                    stacklevel=4)
    elif dtype == np.uint64:
        if low < 0:
            raise RuntimeError(f"from is out of bounds for {name}")
        if last < 0:
            raise RuntimeError(f"to - 1 is out of bounds for {name}")
    elif dtype in _RANGES:
        smallest, largest = _RANGES[dtype]
        for what, bound in (("from", low), ("to - 1", last)):
            if not smallest <= bound <= largest:
                raise RuntimeError(f"{what} is out of bounds for {name}")
    else:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
