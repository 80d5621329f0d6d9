"""One-hot gradients: cotangents whose rows have one non-zero element, as classification losses have them.

`nll_loss` passes such a matrix to the `log_softmax` before it. The gradient g - e^y Σ g uses only the positions of the
elements, so that the matrix is never written: two passes over memory are saved. Where anything else may receive
the cotangent it is converted to an array (`deferred_accumulation.evaluate_deferred`).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...backends.compiled import copy_kernels, scaled_negative_exp
from ...backends.compiled.thresholds import COPIES
from ...errstate import run_in_quiet
from .compiled_rules import allocator_rule, saved_values
from .deferred_accumulation import DeferredSum


class OneHotGradient(DeferredSum):
    """A matrix with one non-zero element in each row.

    Args:
        positions: flat indices of these elements.
        value: their value.
        shape: of the matrix.
    """

    __slots__ = ("positions", "shape", "value")

    def __init__(self, positions: np.ndarray, value: Any, shape: tuple[int, ...]) -> None:
        self.positions, self.value, self.shape = positions, value, shape

    def __add__(self, other: Any) -> Any:
        return np.asarray(self) + np.asarray(other)

    __radd__ = __add__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The matrix."""
        matrix = one_hot_matrix(self.positions, self.value, self.shape)
        return matrix if dtype is None else matrix.astype(dtype, copy=False)


def one_hot_matrix(positions: np.ndarray, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The matrix of a `OneHotGradient` as an array."""
    by = copy_kernels() if prod(shape) > COPIES[0] else None
    matrix: np.ndarray = np.zeros(shape, value.dtype) if by is None else by.zeros(shape, value.dtype)
    matrix.reshape(-1)[positions] = value
    return matrix


def accepts_one_hot(node: Any) -> bool:
    """Let a node accept one-hot gradients if it is a large `log_softmax` along rows without hooks; whether it is."""
    if node is None or node.extra is not None or (node.run is not allocator_rule and node.run is not _log_softmax_rule):
        return False
    if node.plan.op.name != "log_softmax" or node.consts not in ((1,), (-1,)) or (
            node.saved0.__class__ is not np.ndarray):
        return False
    node.run = _log_softmax_rule
    return True


def still_accepts_one_hot(node: Any) -> bool:
    """Whether a node that accepted one-hot gradients when it was recorded still does."""
    return node.run is _log_softmax_rule


def _log_softmax_rule(node: Any, g: Any) -> Any:
    """The specialised rule of a `log_softmax` that accepts one-hot gradients."""
    if g.__class__ is OneHotGradient:
        out = saved_values(node)
        if out is not None:
            grad = run_in_quiet(_log_softmax_of_one_hot, (*out[0], g))
            if grad is not None:
                return (grad,)
        g = np.asarray(g)
    return allocator_rule(node, g)


def _log_softmax_of_one_hot(out: np.ndarray, g: OneHotGradient) -> np.ndarray | None:
    grad: np.ndarray | None = scaled_negative_exp(out, g.value)
    if grad is not None:
        grad.reshape(-1)[g.positions] += g.value
    return grad
