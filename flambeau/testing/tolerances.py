"""How far two values may lie apart, by their dtype: |actual - expected| <= atol + rtol * |expected|."""

from __future__ import annotations

from collections.abc import Mapping

from .. import dtypes
from ..dtypes import dtype
from .mismatch import Mismatch

#: rtol and atol, about the square root of what a dtype resolves; other dtypes must be equal
_HALF, _SINGLE, _DOUBLE = (1e-3, 1e-5), (1.3e-6, 1e-5), (1e-7, 1e-7)
TOLERANCES: dict[dtype, tuple[float, float]] = {
    dtypes.float16: _HALF, dtypes.bfloat16: (1.6e-2, 1e-5), dtypes.float32: _SINGLE, dtypes.float64: _DOUBLE,
    dtypes.complex64: _SINGLE, dtypes.complex128: _DOUBLE,
}

#: those of `assert_allclose`
OLD_TOLERANCES: dict[dtype, tuple[float, float]] = {
    dtypes.float16: (1e-3, 1e-3), dtypes.float32: (1e-4, 1e-5), dtypes.float64: (1e-5, 1e-8)}


def loosest(*of: dtype, table: Mapping[dtype, tuple[float, float]] = TOLERANCES) -> tuple[float, float]:
    """The greatest rtol and the greatest atol of some dtypes."""
    found = [table.get(each, (0.0, 0.0)) for each in of]
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def tolerances(rtol: float | None, atol: float | None, of: tuple[dtype, dtype],
               where: tuple[object, ...]) -> tuple[float, float]:
    """The tolerances that were given; the dtypes' own if none was.

    Raises:
        Mismatch: only one was given.
    """
    if rtol is not None and atol is not None:
        return rtol, atol
    if rtol is None and atol is None:
        return loosest(*of)
    raise Mismatch("Both 'rtol' and 'atol' must be either specified or omitted, but got no "
                   f"{'rtol' if rtol is None else 'atol'}.", where, ValueError)


__all__ = ["OLD_TOLERANCES", "TOLERANCES", "loosest", "tolerances"]
