"""Uniform numbers in an interval [low, high): `rand`, `uniform_`."""

from __future__ import annotations

import numpy as np

from .conversion import CPP_NAME, FLOATS, REAL_OF, SIGNIFICAND, narrow, require, scalar_name, unit_doubles, unit_singles
from .engine import Engine
from .fma import fma32, fma64

_SINGLE = np.dtype(np.float32)


def uniform(engine: Engine, n: int, dtype: np.dtype, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """`n` uniform numbers u·(high − low) + low, one rounding.

    Args:
        dtype: float32, float64, float16, bfloat16 (each 16-bit number from a float32 one), or complex
            (real and imaginary part in turn).
        low, high: numbers that `dtype` can hold, low <= high.

    Returns:
        shape (n,); a value that rounds up to `high` becomes `low`.

    Raises:
        RuntimeError: the bounds are out of order or of range.
        NotImplementedError: `dtype` is no floating dtype.
    """
    if dtype is _SINGLE and low == 0.0 and high == 1.0:
        return unit_singles(engine, n)
    dtype = np.dtype(dtype)
    if dtype in REAL_OF:
        return uniform(engine, 2 * n, REAL_OF[dtype], low, high).view(dtype)
    require("check_uniform_bounds", dtype, FLOATS)
    low, high = float(low), float(high)
    check_bounds(low, high, dtype)
    if dtype == np.float64:
        values = unit_doubles(engine, n)
        if low != 0.0 or high != 1.0:
            values = fma64(values, high - low, low)
            values[values == high] = low
        return values
    values = unit_singles(engine, n)
    if low != 0.0 or high != 1.0:
        start = np.float32(low)
        values = fma32(values, float(np.float32(high) - start), float(start))
    elif dtype == np.float32:
        return values
    values = narrow(values, dtype)
    bounds = narrow(np.array([low, high]), dtype)
    if dtype.kind == "f":
        values[values == bounds[1]] = bounds[0]
    else:  # bfloat16: compare bits; zeros of both signs are equal
        bits, (first, last) = values.view(np.uint16), bounds.view(np.uint16).tolist()
        bits[bits == last] = first
        if last & 0x7FFF == 0:
            bits[bits & 0x7FFF == 0] = first
    return values


def check_bounds(low: float, high: float, dtype: np.dtype) -> None:
    """Check the bounds of a uniform distribution.

    Raises:
        RuntimeError: there is nothing between them, or the dtype does not reach so far.
    """
    limit = SIGNIFICAND[dtype][1]
    for name, bound in (("from", low), ("to", high)):
        if not -limit <= bound <= limit:
            raise RuntimeError(f"{name} is out of bounds for {CPP_NAME[dtype]}")
    if not low <= high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > limit:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{scalar_name(dtype)}>::max(), but found "
            f"to={high:g} and from={low:g} which result in to-from to exceed the limit")
