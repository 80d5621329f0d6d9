"""Which operations are CUDA's functions in kernels for NVIDIA's GPUs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...scalar.scalar_ir import Node
from . import double_precision, single_precision
from .constants import F32, F64

_FUNCTIONS: dict[np.dtype, dict[str, Callable[..., Node]]] = {
    F32: single_precision.FUNCTIONS, F64: {"log": double_precision.log, "exp": double_precision.exp}}


def function_of(op: str, dtype: np.dtype) -> Callable[..., Node] | None:
    """CUDA's function for an operation; None where it is that of the CPU's kernels.

    >>> function_of("exp", np.dtype(np.float32)).__name__, function_of("lgamma", np.dtype(np.float32))
    ('exp', None)
    """
    return _FUNCTIONS.get(dtype, {}).get(op)


__all__ = ["function_of"]
