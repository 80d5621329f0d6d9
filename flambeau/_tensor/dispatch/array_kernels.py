"""The kernel of each operator on NumPy arrays, and the memory layout of its results."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...backends.compiled import new_copy
from ...backends.numpy import ArrayNamespace, primitives
from ...engine.tensor_interface import layer
from ...ir.decompositions.composites import declarations_with_programs, with_programs
from ...ops.declare import REGISTRY, Op

ndarray = np.ndarray
arrays = layer.arrays = ArrayNamespace(with_programs(primitives()), REGISTRY)
arrays.__dict__.update(declarations_with_programs(arrays))


def kernel_of(op: Op) -> Any:
    """The function that computes an operator on arrays: the namespace's primitive of its name, or its forward."""
    kernel = op.__dict__.get("kernel")
    if kernel is None:
        name = op.name
        if REGISTRY.get(name) is op or (name in arrays.__dict__ and op.forward.__name__ == name):
            kernel = getattr(arrays, name)
        else:
            kernel = partial(op.forward, arrays) if op.takes_xp else op.forward
        op.kernel = kernel  # type: ignore[attr-defined]
    return kernel


#: operators whose results are row-major in PyTorch, whatever the strides of their inputs
ROW_MAJOR = frozenset((
    "sum", "nansum", "mean", "prod", "amax", "amin", "max", "min", "any", "all", "var", "std", "var_mean", "std_mean",
    "norm", "linalg_vector_norm", "logsumexp", "softmax", "log_softmax", "cumsum", "cumprod", "cummax", "cummin",
    "logcumsumexp", "cat", "stack", "roll", "masked_fill", "repeat", "index", "tril", "triu",
))


def row_major(result: Any) -> Any:
    """A kernel's result or results, copied to row-major order where they are not."""
    if result.__class__ is ndarray:
        if result.ndim > 1:
            if not result.flags.c_contiguous:
                return new_copy(result)
            if 1 in result.shape and result.size:  # NumPy leaves the strides of size-1 dimensions arbitrary
                return result.reshape(-1).reshape(result.shape)
        return result
    return [row_major(a) for a in result] if result.__class__ in (tuple, list) else result
