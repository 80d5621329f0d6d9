"""Products of large matrices and of batches: by compiled kernels where these are quicker, else by NumPy.

Operands have one dtype, float32 or float64. What is to be done with operands that lie in memory as some before did is
looked up at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import codegen
from ...errstate import run_quietly

ndarray = np.ndarray
_dot, _matmul, _add, _empty = np.dot, np.matmul, np.add, np.empty

_asked = os.environ.get("FLAMBEAU_KERNELS_FROM", "")
#: elements of both operands above which the quick ways ask here
LEAST = [int(_asked) - 1 if _asked else 4095]
#: ways that are remembered
MOST = 4096
#: from expressions of a product and of the arrays that come with it to that of the result
Ending = Callable[..., Any]


class Way:
    """How operands of certain shapes and strides are multiplied.

    Attributes:
        plan: the kernel's; None where NumPy multiplies.
        credit: how much work of this kind may still be done before its limit is measured.
        work: what this product takes of it.
    """

    __slots__ = ("credit", "dtype", "kind", "plan", "shape", "work")

    def __init__(self, plan: Any, shape: tuple[int, ...], dtype: np.dtype, kind: str, credit: list[int],
                 work: int) -> None:
        self.plan, self.shape, self.dtype, self.kind, self.credit, self.work = plan, shape, dtype, kind, credit, work

    def run(self, x: ndarray, y: ndarray) -> ndarray:
        """x @ y."""
        result = _empty(self.shape, self.dtype)
        self.plan.run((result, x, y))
        return result

    def run_with(self, *operands: ndarray) -> ndarray:
        """The product of the first two, and what is made of it with the others."""
        result = _empty(self.shape, self.dtype)
        self.plan.run((result, *operands))
        return result


class Products:
    """The ways that are known, and the limits that decide on new ones."""

    def __init__(self) -> None:
        from ..blas_crossover import Limits

        self.ways: dict[Any, Way] = {}
        self.limits = Limits(self._by_kernel, _matmul)

    def way(self, key: Any, x: ndarray, y: ndarray, *extras: ndarray, ending: Ending | None = None) -> Way:
        """The way for operands that no way is known for yet.

        Args:
            extras: arrays that are added to the product, or whatever else `ending` does with them.
            ending: what becomes of the product and the extras; None: their sum.
        """
        from ..blas_crossover import kind_of

        shape = (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])
        work = x.shape[-1]
        for extent in shape:
            work *= extent
        kind = kind_of(shape, x.shape[-1], y.strides[-2] < y.strides[-1])
        wins = work > self.limits.found[x.dtype, kind]
        plan = self._plan(shape, x, y, extras, ending) if wins else None
        found = Way(plan, shape, x.dtype, kind, self.limits.credit[x.dtype, kind], work)
        if len(self.ways) >= MOST:
            self.ways.clear()
        self.ways[key] = found
        return found

    def settle(self, way: Way) -> None:
        """A kind's credit is used up: its limit is measured, and its ways are decided anew."""
        self.limits.settle(way.dtype, way.kind)
        self.ways.clear()

    @staticmethod
    def _plan(shape: tuple[int, ...], x: ndarray, y: ndarray, extras: tuple[ndarray, ...] = (),
              ending: Ending | None = None) -> Any:
        from ....codegen.matmul import matmul
        from ....codegen.scalar.scalar_ir import variable
        from ....runtime.launch import Spec
        from ..launching import Plan

        first, *rest = [variable(i, x.dtype) for i in range(1 + len(extras))]
        made = sum(rest, first) if ending is None else ending(first, *rest)
        return Plan([(shape, x.dtype, None)], matmul.launches(
            [Spec.dense(shape, x.dtype)], Spec.of(x), Spec.of(y), [Spec.of(each) for each in extras],
            (made,) if extras else None))

    def _by_kernel(self, x: ndarray, y: ndarray) -> ndarray:
        """x @ y by a kernel, whatever the limits say."""
        shape = (*x.shape[:-1], y.shape[-1])
        key = "measured", x.shape, y.strides, x.itemsize
        found = self.ways.get(key)
        if found is None:
            found = self.ways[key] = Way(self._plan(shape, x, y), shape, x.dtype, "", [0], 0)
        return run_quietly(found.run, x, y)


_found: list[Products | None] = []


def kernels() -> Products | None:
    """The kernels, made ready when first asked for; None where there are none."""
    if not _found:
        if codegen.available():
            from ..allocator import allocator

            allocator()
            _found.append(Products())
        else:
            LEAST[0] = 1 << 62
            _found.append(None)
    return _found[0]


def mm(x: ndarray, y: ndarray) -> ndarray:
    """The product of two matrices."""
    found = _found[0] if _found else kernels()
    if found is None:
        return _dot(x, y)
    key = x.shape, x.strides, y.shape, y.strides, x.itemsize
    way = found.ways.get(key) or found.way(key, x, y)
    credit = way.credit
    credit[0] -= way.work
    if credit[0] < 0:
        found.settle(way)
    return _dot(x, y) if way.plan is None else run_quietly(way.run, x, y)


def linear(x: ndarray, y: ndarray, bias: ndarray) -> ndarray:
    """The product of two matrices, and a vector added to each of its rows."""
    found = _found[0] if _found else kernels()
    if found is not None:
        key = x.shape, x.strides, y.shape, y.strides, x.itemsize, bias.strides
        way = found.ways.get(key) or found.way(key, x, y, bias)
        credit = way.credit
        credit[0] -= way.work
        if credit[0] < 0:
            found.settle(way)
        if way.plan is not None:
            return run_quietly(way.run_with, x, y, bias)
    result = _dot(x, y)
    return run_quietly(_add, result, bias, result)


def bmm(x: ndarray, y: ndarray) -> ndarray | None:
    """The products of batches of matrices, which broadcast; None where NumPy is the quicker way."""
    found = _found[0] if _found else kernels()
    if found is None:
        return None
    key = x.shape, x.strides, y.shape, y.strides, x.itemsize
    way = found.ways.get(key) or found.way(key, x, y)
    credit = way.credit
    credit[0] -= way.work
    if credit[0] < 0:
        found.settle(way)
    return None if way.plan is None else run_quietly(way.run, x, y)


__all__ = ["LEAST", "Ending", "Products", "Way", "bmm", "kernels", "linear", "mm"]
