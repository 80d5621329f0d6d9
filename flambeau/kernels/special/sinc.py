"""The normalised sinc."""

from __future__ import annotations

import numpy as np

from ... import dtypes
from .approximation import Array


def sinc(x: Array) -> Array:
    """``sin(pi x) / (pi x)``, 1 at 0; floating or complex."""
    if x.dtype in dtypes.NARROW:
        return dtypes.cast(sinc(dtypes.widen(x)), x.dtype)
    product = x * x.real.dtype.type(np.pi)
    return np.where(x == 0, x.dtype.type(1), np.sin(product) / product)
