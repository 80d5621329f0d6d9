"""The spherical Bessel function of order 0, sin(x) / x."""

from __future__ import annotations

import numpy as np

from .approximation import Array, blockwise


@blockwise
def spherical_bessel_j0(x: Array) -> Array:
    """``sin(x) / x``; 1 at 0 and 0 at both infinities."""
    return np.where(np.isinf(x), 0.0, np.where(x == 0, 1.0, np.sin(x) / x))
