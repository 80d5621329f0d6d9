"""Backward of elementwise operators on large arrays: their rules by a compiled kernel, in one pass.

What is usual (arrays of one shape and dtype, nothing but inputs or the output kept) goes a short way; the rest is
unpacked and mended as `OpNode.vjp` has it, in the same pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from ..backends.compiled import kernels_of
from ..backends.compiled.thresholds import MET, limit_of
from ..backends.errstate import run_in_quiet, run_quietly
from ..ops.backward_plan import NOTHING, ONE_INPUT, ONE_OUTPUT, TWO_INPUTS
from ..ops.declare import ELEMENTWISE, REGISTRY
from .node import FREED, OpNode
from .saved_tensors import Packed

#: what runs a plan's rules on arrays of one dtype, with or without a number among them; None: nothing does
_usual: dict[tuple[Any, ...], Any] = {}
#: the same of a cotangent and one array alone, with one result: quicker to call
_of_two: dict[tuple[Any, ...], Any] = {}
_NUMBERS = (float, int)


def by_kernel(node: Any, g: Any) -> Any:
    """The run of an elementwise operator on large arrays."""
    if node.fix is None and not node.consts and g.__class__ is ndarray:
        found = kept(node)
        if found is not None:
            arrays, numbers = found
            key = (node.plan, g.dtype, len(numbers) and numbers[0].__class__)
            two = _of_two.get(key)
            if two is not None:
                return (run_quietly(two, g, arrays[0]),)
            try:
                usual = _usual[key]
            except KeyError:
                kernels = kernels_of(REGISTRY)
                usual = None if kernels is None else kernels.gradients.usual(node, g, arrays, numbers)
                _usual[key] = usual
                if usual is not None and hasattr(usual, "of_two") and len(arrays) == len(usual.outputs) == 1 and (
                        not numbers):
                    _of_two[key] = usual.of_two()
            if usual is not None:
                return run_quietly(usual, (g, *arrays), numbers)
    return _in_full(node, g)


def quiet_run(node: Any, g: Any) -> Any:
    """The run of other operators on large arrays: their plan's, whose results are put where memory is kept."""
    return run_in_quiet(node.plan.run, (node, g))


def vjp(node: Any, g: Any, tensors: bool) -> Any:
    """`node.vjp`, by a kernel where that serves: for a node that something watches (hooks, a profiler)."""
    if MET[0] and not tensors and g.__class__ is ndarray and isinstance(node, OpNode):
        op = node.op
        if op.kind == ELEMENTWISE and op.n_outputs == 1 and g.size > limit_of(op.name)[0] and not any(
                map(_is_packed, node.saved or ())):
            return _in_full(node, g)
    return node.vjp(g, tensors)


def _is_packed(entry: Any) -> bool:
    """Whether a saved value is a user's: what unpacks it is called once."""
    return entry.__class__ is Packed or (entry.__class__ is tuple and entry[1] is None)


def _in_full(node: Any, g: Any) -> Any:
    kernels = kernels_of(REGISTRY)
    if kernels is None or g.__class__ is not ndarray:
        return node.vjp(g, False)
    saved = node.unpack(False) if node.plan.saves_tensors else ()
    found = run_quietly(kernels.gradients.run, node, g, saved)
    return node.vjp(g, False) if found is None else found


def kept(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """The arrays and the numbers that a node kept, if they are as they were."""
    layout = node.plan.layout
    if layout == NOTHING:
        return (), ()
    x = node.saved0
    if x is FREED:
        return None
    if layout == ONE_OUTPUT:
        counter = node.saved1
        return None if counter is None or counter[0] else ((x,), ())
    versions = node.versions
    if layout == ONE_INPUT:
        if x.__class__ in _NUMBERS:
            return (), (x,)
        counter = x._counter
        if counter is None or counter[0] == (versions[0] if versions is not None else 0):
            return (x._array,), ()
    elif layout == TWO_INPUTS:
        y = node.saved1
        if y.__class__ in _NUMBERS:
            return None
        first, second = x._counter, y._counter
        if (first is None or first[0] == (versions[0] if versions is not None else 0)) and (
                second is None or second[0] == (versions[1] if versions is not None else 0)):
            return (x._array, y._array), ()
    return None


def add(a: Any, b: Any, out: Any = None) -> Any:
    """a + b, as NumPy's, of large arrays by a kernel.

    Args:
        out: where it is written; it may be `a`.
    """
    if a.__class__ is ndarray:
        if b.__class__ is ndarray and a.size > _limit[0] and a.shape == b.shape and a.dtype == b.dtype and (
                a.dtype in _FLOATS):
            kernels = kernels_of(REGISTRY)
            if kernels is not None:
                found = run_quietly(kernels.run, _add, (a, b), {}, None, None, out)
                if found is not None:
                    return found
    elif out is None:  # numbers, or what is `gathered`
        return a + b
    return np.add(a, b, out)


_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_add = REGISTRY["add"]
_limit = limit_of("add")

__all__ = ["add", "by_kernel", "kept", "quiet_run", "vjp"]
