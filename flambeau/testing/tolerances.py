"""Tolerances by dtype: |actual - expected| <= atol + rtol * |expected|."""

from __future__ import annotations

from collections.abc import Mapping

from .. import dtypes
from ..dtypes import dtype
from .mismatch import Mismatch

#: (rtol, atol), about the square root of the machine epsilon; values of other dtypes must be equal
_HALF, _SINGLE, _DOUBLE = (1e-3, 1e-5), (1.3e-6, 1e-5), (1e-7, 1e-7)
TOLERANCES: dict[dtype, tuple[float, float]] = {
    dtypes.float16: _HALF, dtypes.bfloat16: (1.6e-2, 1e-5), dtypes.float32: _SINGLE, dtypes.float64: _DOUBLE,
    dtypes.complex64: _SINGLE, dtypes.complex128: _DOUBLE,
}

#: (rtol, atol) of `assert_allclose`
ALLCLOSE_TOLERANCES: dict[dtype, tuple[float, float]] = {
    dtypes.float16: (1e-3, 1e-3), dtypes.float32: (1e-4, 1e-5), dtypes.float64: (1e-5, 1e-8)}


def max_tolerances(*value_dtypes: dtype,
                   table: Mapping[dtype, tuple[float, float]] = TOLERANCES) -> tuple[float, float]:
    """The largest rtol and the largest atol of several dtypes."""
    pairs = [table.get(d, (0.0, 0.0)) for d in value_dtypes]
    return max(rtol for rtol, _ in pairs), max(atol for _, atol in pairs)


def tolerances(rtol: float | None, atol: float | None, value_dtypes: tuple[dtype, ...],
               path: tuple[object, ...]) -> tuple[float, float]:
    """The tolerances that were passed, or those of the dtypes.

    Raises:
        Mismatch: only one of `rtol` and `atol` was passed.
    """
    if rtol is not None and atol is not None:
        return rtol, atol
    if rtol is None and atol is None:
        return max_tolerances(*value_dtypes)
    raise Mismatch("Both 'rtol' and 'atol' must be either specified or omitted, but got no "
                   f"{'rtol' if rtol is None else 'atol'}.", path, ValueError)


__all__ = ["ALLCLOSE_TOLERANCES", "TOLERANCES", "max_tolerances", "tolerances"]
