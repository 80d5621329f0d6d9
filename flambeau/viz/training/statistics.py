"""Statistics of arrays: range, mean, standard deviation, histogram, and the elements of small arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import dtypes

BINS = 32
FEW = 64  # maximum number of elements that are included


def statistics(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The statistics of an array's finite elements, as JSON data.

    Args:
        array: of any shape and dtype; absolute values of complex numbers are used.

    Returns:
        `shape`, `dtype`, `min`, `max`, `mean`, `std` (of the population; None without finite elements), `nan`, `inf`
        and `zeros` (counts), `bins` (counts of 32 equal bins from `min` to `max`), and `values` (nested lists, non-
        finite elements as text) up to 64 elements, else None.

    >>> import numpy as np
    >>> from flambeau.viz.training.statistics import statistics
    >>> found = statistics(np.array([1., 2., np.nan, 5.]))
    >>> found["min"], found["max"], found["nan"], found["values"]
    (1.0, 5.0, 1, [1.0, 2.0, 'nan', 5.0])
    """
    array = np.asarray(array)
    found: dict[str, Any] = {"shape": list(array.shape), "dtype": dtypes.of(array.dtype).name}
    real = dtypes.widen(array) if array.dtype.kind == "V" else array
    values = _plain(real.tolist()) if real.size <= FEW else None
    if real.dtype.kind == "c":
        real = np.abs(real)
    with np.errstate(all="ignore"):
        flat = real.reshape(-1).astype(np.float64)
        finite = flat[np.isfinite(flat)]
        nan = int(np.isnan(flat).sum())
        zeros = int(flat.size - np.count_nonzero(flat))
        found |= {"nan": nan, "inf": int(flat.size - finite.size) - nan, "zeros": zeros}
        if finite.size:
            low, high = float(finite.min()), float(finite.max())
            found |= {"min": low, "max": high, "mean": _finite(finite.mean()), "std": _finite(finite.std()),
                      "bins": _bins(finite, low, high)}
        else:
            found |= {"min": None, "max": None, "mean": None, "std": None, "bins": [0] * BINS}
    return found | {"values": values}


def _bins(finite: np.ndarray[Any, Any], low: float, high: float) -> list[int]:
    """The counts of the bins; equal elements are in the middle bin."""
    width = high - low
    if not width:
        return [0] * (BINS // 2) + [finite.size] + [0] * (BINS // 2 - 1)
    if not math.isfinite(width):  # overflow
        finite, low, width = finite / 4, low / 4, high / 4 - low / 4
    place = ((finite - low) / width * BINS).astype(np.int64)
    counts: list[int] = np.bincount(np.minimum(place, BINS - 1), minlength=BINS).tolist()
    return counts


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    """Nested lists of JSON numbers; other numbers as text."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value


__all__ = ["BINS", "FEW", "statistics"]
