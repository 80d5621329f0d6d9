"""Compiled rules: the backward of elementwise operators on large arrays by one fused kernel.

The common case (arrays of one shape and dtype; inputs or the output saved) calls the kernel directly. In all other
cases the kernel also does what `OpNode.vjp` does around the rules: broadcasting, reductions, casts.
"""

from __future__ import annotations

from typing import Any

from numpy import ndarray

from ...backends.compiled import compiled_operators
from ...backends.compiled.thresholds import LARGE_SEEN, threshold_of
from ...errstate import run_in_quiet, run_quietly
from ...ops.backward_plan import NOTHING, ONE_INPUT, ONE_OUTPUT, TWO_INPUTS
from ...ops.declare import ELEMENTWISE, REGISTRY
from ..nodes.op_node import FREED, OpNode

#: (plan, dtype, class of a Python scalar among the operands) -> kernel; None where there is none
_kernels: dict[tuple[Any, ...], Any] = {}
#: the same for a cotangent and one array with one result: faster to call
_binary_kernels: dict[tuple[Any, ...], Any] = {}
_SCALARS = (float, int)


def kernel_rule(node: Any, g: Any) -> Any:
    """The specialised rule of an elementwise operator on large arrays."""
    if node.fix is None and not node.consts and g.__class__ is ndarray:
        operands = saved_values(node)
        if operands is not None:
            arrays, scalars = operands
            key = (node.plan, g.dtype, len(scalars) and scalars[0].__class__)
            two = _binary_kernels.get(key)
            if two is not None:
                return (run_quietly(two, g, arrays[0]),)
            try:
                kernel = _kernels[key]
            except KeyError:
                kernels = compiled_operators(REGISTRY)
                kernel = None if kernels is None else kernels.gradients.direct(node, g, arrays, scalars)
                _kernels[key] = kernel
                if kernel is not None and hasattr(kernel, "binary") and len(arrays) == len(kernel.outputs) == 1 and (
                        not scalars):
                    _binary_kernels[key] = kernel.binary()
            if kernel is not None:
                return run_quietly(kernel, (g, *arrays), scalars)
    return _kernel_vjp(node, g)


def allocator_rule(node: Any, g: Any) -> Any:
    """The specialised rule of any other operator on large arrays: its plan's, with the allocator's memory."""
    return run_in_quiet(node.plan.run, (node, g))


def vjp(node: Any, g: Any, tensors: bool) -> Any:
    """`node.vjp`, by a kernel where there is one: for nodes on the general path (hooks, a profiler)."""
    if LARGE_SEEN[0] and not tensors and g.__class__ is ndarray and isinstance(node, OpNode):
        op = node.op
        if op.kind == ELEMENTWISE and op.n_outputs == 1 and g.size > threshold_of(op.name)[0]:
            return _kernel_vjp(node, g)
    return node.vjp(g, tensors)


def _kernel_vjp(node: Any, g: Any) -> Any:
    kernels = compiled_operators(REGISTRY)
    if kernels is None or g.__class__ is not ndarray:
        return node.vjp(g, False)
    saved = node.unpack(False) if node.plan.saves_tensors else []
    gradients = run_quietly(kernels.gradients.run, node, g, saved)
    # a hook of the user that unpacks is called once only
    return node.vjp(g, False, None, saved) if gradients is None else gradients


def saved_values(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """The arrays and the Python scalars that a node saved; None if any was freed or modified."""
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
        if x.__class__ in _SCALARS:
            return (), (x,)
        counter = x._counter
        if counter is None or counter[0] == (versions[0] if versions is not None else 0):
            return (x._array,), ()
    elif layout == TWO_INPUTS:
        y = node.saved1
        if y.__class__ in _SCALARS:
            return None
        first, second = x._counter, y._counter
        if (first is None or first[0] == (versions[0] if versions is not None else 0)) and (
                second is None or second[0] == (versions[1] if versions is not None else 0)):
            return (x._array, y._array), ()
    return None


__all__ = ["allocator_rule", "kernel_rule", "saved_values", "vjp"]
