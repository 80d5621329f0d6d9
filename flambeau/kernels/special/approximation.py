"""Building blocks of the special functions: evaluation by cache-sized blocks, piecewise and rational functions.

float32 results are computed in float64 and rounded once: they are almost always correctly rounded, and need no
second set of tables. The tables come from tools/fit_special_functions.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numpy as np

from ... import dtypes

BLOCK = 1 << 13
#: so many numbers are computed one by one where the C library has the function
FEW = 128

Coefficients = tuple[float, ...]
Array = np.ndarray


def blockwise(function: Callable[..., Array]) -> Callable[..., Array]:
    """Lift a function of flat float64 blocks to floating arrays of any shape, broadcasting together.

    The result has the first argument's dtype; callers promote.
    """

    @wraps(function)
    def lifted(*arrays: Array) -> Array:
        return _run(function, arrays)

    return lifted


def blockwise_with_single(single: Callable[..., Array] | None, few: Callable[[float], float] | None = None,
                          ) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """`blockwise`, with a cheaper function for float32.

    Args:
        single: the function of a block; None: the one that is decorated.
        few: the function of one number, which takes less time for up to `FEW` of them. Where it raises ValueError, at
            a pole, the block's function computes.
    """

    def decorate(double: Callable[..., Array]) -> Callable[..., Array]:
        of_single = double if single is None else single

        @wraps(double)
        def lifted(*arrays: Array) -> Array:
            x = arrays[0]
            if x.dtype == np.float64:
                return _run(double, arrays)
            if few is not None and x.size <= FEW and x.dtype == np.float32:
                try:
                    return np.array([few(v) for v in x.ravel().tolist()], np.float32).reshape(x.shape)
                except (OverflowError, ValueError):
                    pass
            return _run(of_single, arrays)

        return lifted

    return decorate


def _run(function: Callable[..., Array], arrays: tuple[Array, ...]) -> Array:
    if not isinstance(arrays[0], np.ndarray | np.generic):  # an expression of a GPU's kernel, in float64
        return function(*arrays)
    dtype = arrays[0].dtype
    if dtype in dtypes.NARROW:
        return dtypes.cast(_run(function, tuple(map(dtypes.widen, arrays))), dtype)
    if len(arrays) > 1:
        arrays = np.broadcast_arrays(*arrays)
    shape = arrays[0].shape
    flat = [np.ascontiguousarray(array).reshape(-1) for array in arrays]
    out = np.empty(shape, dtype)
    target = out.reshape(-1)
    for start in range(0, target.size, BLOCK):
        block = slice(start, start + BLOCK)
        target[block] = function(*(array[block].astype(np.float64) for array in flat))
    return out


def piecewise(x: Array, *cases: tuple[Array, Callable[[Array], Array]]) -> Array:
    """Apply each case's function where its mask holds; masks are disjoint; elsewhere x is returned (NaN)."""
    out = x
    for mask, function in cases:
        count = np.count_nonzero(mask)
        if count == x.size:
            return function(x)
        if count:
            if out is x:
                out = x.copy()
            out[mask] = function(x[mask])
    return out


def polynomial(u: Array, coefficients: Coefficients) -> Array:
    """``c[0] + c[1]·u + ...`` by Horner's rule, in one buffer."""
    total = u * coefficients[-1]
    total += coefficients[-2]
    for c in coefficients[-3::-1]:
        total *= u
        total += c
    return total


def ratio(u: Array, coefficients: tuple[Coefficients, Coefficients]) -> Array:
    """``P(u)/Q(u)``."""
    total = polynomial(u, coefficients[0])
    total /= polynomial(u, coefficients[1])
    return total
