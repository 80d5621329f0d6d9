"""Kernels of operators: what computes an operator on arrays, and the layout of its results."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...backends.compiled import copied
from ...backends.numpy import ArrayNamespace, primitives
from ...engine.tensor_interface import layer
from ...ir.decompositions.composites import lines_with_programs, with_programs
from ...ops.declare import REGISTRY, Op

ndarray = np.ndarray
arrays = layer.arrays = ArrayNamespace(with_programs(primitives()), REGISTRY)
arrays.__dict__.update(lines_with_programs(arrays))


def kernel_of(op: Op) -> Any:
    """What computes an operator on arrays: the namespace's primitive of its name, or its own forward."""
    kernel = op.__dict__.get("kernel")
    if kernel is None:
        name = op.name
        if REGISTRY.get(name) is op or (name in arrays.__dict__ and op.forward.__name__ == name):
            kernel = getattr(arrays, name)
        else:
            kernel = partial(op.forward, arrays) if op.takes_xp else op.forward
        op.kernel = kernel  # type: ignore[attr-defined]
    return kernel


#: operators whose results PyTorch lays out in row-major order, in whatever order their inputs lie
ROW_MAJOR = frozenset((
    "sum", "nansum", "mean", "prod", "amax", "amin", "max", "min", "any", "all", "var", "std", "var_mean", "std_mean",
    "norm", "linalg_vector_norm", "logsumexp", "softmax", "log_softmax", "cumsum", "cumprod", "cummax", "cummin",
    "logcumsumexp", "cat", "stack", "roll", "masked_fill", "repeat", "index", "tril", "triu",
))


def row_major(found: Any) -> Any:
    """What a kernel found, with its elements in row-major order."""
    if found.__class__ is ndarray:
        if found.ndim > 1:
            if not found.flags.c_contiguous:
                return copied(found)
            if 1 in found.shape and found.size:  # NumPy does not mind what strides these have
                return found.reshape(-1).reshape(found.shape)
        return found
    return [row_major(a) for a in found] if found.__class__ in (tuple, list) else found
