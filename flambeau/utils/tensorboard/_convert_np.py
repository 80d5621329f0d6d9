"""What a summary is given, as an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._tensor import Tensor
from ...dtypes import bfloat16, float16


def make_np(x: Any) -> np.ndarray:
    """A tensor, array or number as an array; bfloat16, which NumPy has not, as float16.

    Raises:
        NotImplementedError: it is none of these.
    """
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        return (x.to(float16) if x.dtype is bfloat16 else x).resolve_conj().resolve_neg().numpy()
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")
