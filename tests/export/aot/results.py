"""What models compute eagerly, and the comparison with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import flambeau as torch
from flambeau.utils._pytree import tree_leaves


def eager(module: Any, args: Sequence[Any]) -> list[np.ndarray]:
    """The results of a call, as arrays."""
    with torch.no_grad():
        return [x.numpy() for x in tree_leaves(module(*args)) if isinstance(x, torch.Tensor)]


def agree(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float = 1e-5) -> None:
    """Assert that results are equal to rounding.

    Args:
        tolerance: for float32; float16 has a thousand times its rounding.
    """
    for x, y in zip(got, expected, strict=True):
        rounding = 1e-3 if y.dtype == np.float16 else tolerance
        np.testing.assert_allclose(x.astype(np.float64), y.astype(np.float64), rounding, rounding)
