"""What uninitialised memory is filled with where determinism is required."""

from __future__ import annotations

import numpy as np

from ... import dtypes


def fill_uninitialized(x: np.ndarray) -> None:
    """Write NaN, the largest integer or True to all elements."""
    kind = x.dtype.kind
    if kind == "V":  # bfloat16 and the dtypes of eight bits
        x[...] = dtypes.cast(np.asarray(np.nan, np.float32), x.dtype)
    else:
        x[...] = True if kind == "b" else np.iinfo(x.dtype).max if kind in "iu" else np.nan
