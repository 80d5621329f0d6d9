"""Matmuls of large matrices and batches: by compiled kernels where these are faster, else by NumPy's BLAS.

Operands have one dtype, float32 or float64. The decision is cached by the shapes and strides of the operands.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .... import codegen
from ....errstate import run_quietly

if TYPE_CHECKING:
    from ....runtime.launch import Launch, Spec

ndarray = np.ndarray
_dot, _matmul, _add, _empty = np.dot, np.matmul, np.add, np.empty

_override = os.environ.get("FLAMBEAU_KERNELS_FROM", "")
#: elements of both operands above which fast paths call this module
MIN_ELEMENTS = [int(_override) - 1 if _override else 4095]


def most_by_blas_with_vector() -> int:
    """The most elements of a matrix and a vector whose product is BLAS's: it reads the matrix once."""
    return 4 * (MIN_ELEMENTS[0] + 1)

#: the most cached decisions
MAX_DISPATCHES = 4096
#: a function from the expressions of a matmul and of extra arrays to that of the result
Epilogue = Callable[..., Any]


class MatmulDispatch:
    """How operands of given shapes and strides are multiplied.

    Attributes:
        plan: of the kernel; None: NumPy multiplies.
        budget: the number of multiplications of this kind until its limit is measured.
        work: the number of multiplications of this matmul.
    """

    __slots__ = ("budget", "dtype", "kind", "plan", "shape", "work")

    def __init__(self, plan: Any, shape: tuple[int, ...], dtype: np.dtype, kind: str, budget: list[int],
                 work: int) -> None:
        self.plan, self.shape, self.dtype, self.kind, self.budget, self.work = plan, shape, dtype, kind, budget, work

    def run(self, x: ndarray, y: ndarray) -> ndarray:
        """x @ y."""
        result = _empty(self.shape, self.dtype)
        self.plan.run((result, x, y))
        return result

    def run_epilogue(self, *operands: ndarray) -> ndarray:
        """The matmul of the first two operands, with the epilogue over the others."""
        result = _empty(self.shape, self.dtype)
        self.plan.run((result, *operands))
        return result


@lru_cache(256)
def _expressions(dtype: np.dtype, extras: int, epilogue: Epilogue | None) -> tuple[Any, ...]:
    """The expression of the epilogue; None: the sum of the product and the extras."""
    from ....codegen.scalar.scalar_ir import variable

    first, *others = [variable(i, dtype) for i in range(1 + extras)]
    return (sum(others, first) if epilogue is None else epilogue(first, *others),)


class MatmulKernels:
    """The cached decisions, and the limits that decide new ones."""

    def __init__(self) -> None:
        from ....codegen.matmul import matmul
        from ....runtime.launch import Spec
        from .. import blas_crossover
        from ..plan_families import FAMILIES_OF_PLANS
        from .tiny_matmuls import TinyMatmul, is_tiny

        self.dispatches: dict[Any, MatmulDispatch] = {}
        self.crossovers = blas_crossover.Crossovers(self._by_kernel, _matmul)
        # modules that are imported with the first product by a kernel
        self._kind, self._is_tiny, self._tiny = blas_crossover.matmul_kind, is_tiny, TinyMatmul
        self._launches, self._spec, self._families = matmul.launches, Spec, FAMILIES_OF_PLANS

    def choose(self, key: Any, x: ndarray, y: ndarray, *extras: ndarray,
               epilogue: Epilogue | None = None) -> MatmulDispatch:
        """Decide how to multiply operands, and cache the decision.

        Args:
            extras: arrays that the epilogue reads.
            epilogue: computes the result from the matmul and the extras; None: their sum.
        """
        batch = () if x.ndim == y.ndim == 2 else np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        shape = (*batch, x.shape[-2], y.shape[-1])
        work = x.shape[-1]
        for extent in shape:
            work *= extent
        kind = self._kind(shape, x.shape[-1], y.strides[-2] < y.strides[-1])
        plan: Any = None
        if len(shape) > 2 and self._is_tiny(shape, x.shape[-1]) and not extras:
            plan = self._tiny(shape, x, y)
        elif work > self.crossovers.limits[x.dtype, kind] and (len(shape) == 2 or shape[-2:] != (1, 1) or extras):
            # BLAS computes batches of dot products at ten times the kernel's speed
            plan = self._plan(shape, x, y, extras, epilogue)
        dispatch = MatmulDispatch(plan, shape, x.dtype, kind, self.crossovers.budget[x.dtype, kind], work)
        if len(self.dispatches) >= MAX_DISPATCHES:
            self.dispatches.clear()
        self.dispatches[key] = dispatch
        return dispatch

    def remeasure(self, dispatch: MatmulDispatch) -> None:
        """Measure the limit of a kind whose budget is used up, and drop all decisions."""
        self.crossovers.measure(dispatch.dtype, dispatch.kind)
        self.dispatches.clear()

    def _plan(self, shape: tuple[int, ...], x: ndarray, y: ndarray, extras: tuple[ndarray, ...] = (),
              epilogue: Epilogue | None = None) -> Any:
        nodes = _expressions(x.dtype, len(extras), epilogue) if extras else None

        def make(specs: Sequence[Spec]) -> Sequence[Launch]:
            return self._launches(specs[:1], specs[1], specs[2], specs[3:], nodes)

        specs = [self._spec.dense(shape, x.dtype), *map(self._spec.of, (x, y, *extras))]
        return self._families.plan(("matmul", nodes), ((shape, x.dtype, None),), specs, make, 1)

    def _by_kernel(self, x: ndarray, y: ndarray) -> ndarray:
        """x @ y by a kernel, regardless of the limits."""
        shape = (*x.shape[:-1], y.shape[-1])
        key = "measured", x.shape, y.strides, x.itemsize
        dispatch = self.dispatches.get(key)
        if dispatch is None:
            dispatch = self.dispatches[key] = MatmulDispatch(self._plan(shape, x, y), shape, x.dtype, "", [0], 0)
        return run_quietly(dispatch.run, x, y)


_kernels: list[MatmulKernels | None] = []


def kernels() -> MatmulKernels | None:
    """The kernels, created on first use; None where kernels cannot be compiled."""
    if not _kernels:
        if codegen.available():
            from ..allocator import allocator

            allocator()
            _kernels.append(MatmulKernels())
        else:
            MIN_ELEMENTS[0] = 1 << 62
            _kernels.append(None)
    return _kernels[0]


def mm(x: ndarray, y: ndarray) -> ndarray:
    """The matmul of two matrices."""
    matmuls = _kernels[0] if _kernels else kernels()
    if matmuls is None:
        return run_quietly(_dot, x, y)
    key = x.shape, x.strides, y.shape, y.strides, x.itemsize
    dispatch = matmuls.dispatches.get(key) or matmuls.choose(key, x, y)
    budget = dispatch.budget
    budget[0] -= dispatch.work
    if budget[0] < 0:
        matmuls.remeasure(dispatch)
    return run_quietly(_dot if dispatch.plan is None else dispatch.run, x, y)


def linear(x: ndarray, y: ndarray, bias: ndarray) -> ndarray:
    """The matmul of two matrices, plus a vector that is added to each row."""
    matmuls = _kernels[0] if _kernels else kernels()
    if matmuls is not None:
        key = x.shape, x.strides, y.shape, y.strides, x.itemsize, bias.strides
        dispatch = matmuls.dispatches.get(key) or matmuls.choose(key, x, y, bias)
        budget = dispatch.budget
        budget[0] -= dispatch.work
        if budget[0] < 0:
            matmuls.remeasure(dispatch)
        if dispatch.plan is not None:
            return run_quietly(dispatch.run_epilogue, x, y, bias)
    result = run_quietly(_dot, x, y)
    return run_quietly(_add, result, bias, result)


def bmm(x: ndarray, y: ndarray) -> ndarray | None:
    """The matmul of broadcasting batches of matrices; None where NumPy is faster."""
    matmuls = _kernels[0] if _kernels else kernels()
    if matmuls is None:
        return None
    key = x.shape, x.strides, y.shape, y.strides, x.itemsize
    dispatch = matmuls.dispatches.get(key) or matmuls.choose(key, x, y)
    budget = dispatch.budget
    budget[0] -= dispatch.work
    if budget[0] < 0:
        matmuls.remeasure(dispatch)
    return None if dispatch.plan is None else run_quietly(dispatch.run, x, y)


__all__ = ["MIN_ELEMENTS", "Epilogue", "MatmulDispatch", "MatmulKernels", "bmm", "kernels", "linear", "mm",
           "most_by_blas_with_vector"]
