"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

import numpy as np


def _mm(x: Any, y: Any) -> Any:
    if x.ndim != 2 or y.ndim != 2:
        which, n = ("self", x.ndim) if x.ndim != 2 else ("mat2", y.ndim)
        raise RuntimeError(f"{which} must be a matrix")
    if x.shape[1] != y.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({x.shape[0]}x{x.shape[1]} and "
                           f"{y.shape[0]}x{y.shape[1]})")
    return np.matmul(x, y)


PRIMITIVES = {"mm": _mm, "matmul": np.matmul}
