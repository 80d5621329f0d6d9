"""Elementwise operators while levels of `vmap` or of forward mode are active: the fast path on the values of batches.

A level concerns only batched tensors and tensors with tangents. The value of a batch is a plain tensor, and the
batching rule of an elementwise operator is the operator itself on the values. So these, and tensors that belong to no
level, take the fast path by arity, made once more without its test for active modes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...modes import forward_levels, level_count, special
from ...ops.declare import Op
from ..dispatch.handlers import handlers
from ..dispatch.promotion import NO_PARAMS
from ..tensor import Tensor
from .levels import any_tangents, has_tangents

new = object.__new__
#: stands for `modes.special` in fast paths that test nothing
NEVER = [0]
_NUMBERS = frozenset((int, float))


def unary_inside(op: Op, general: Callable[..., Any], make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """The function of an elementwise operator with one input where its fast path steps aside.

    Args:
        general: the public function without a fast path.
        make: makes the fast path that does not test `special`.
    """
    fast: Any = None
    by_value = op.batching_rule == "elementwise" and op.check is None

    def call(input: Any, *, out: Any = None) -> Any:
        nonlocal fast
        if out is not None or not special[0] or special[0] != level_count[0]:
            return general(input, out=out)
        if fast is None:
            fast = make()
        if input.__class__ is handlers.batched_class:
            if not by_value:
                return general(input)
            result = new(handlers.batched_class)
            result._value, result._levels = run(input._value), input._levels
            return result
        return run(input)

    def run(input: Any) -> Any:
        result = fast(input)
        if forward_levels and has_tangents(input):
            handlers.push_forward(op, [input], [result], NO_PARAMS)
        return result

    return call


def binary_inside(op: Op, general: Callable[[Any, Any], Any], make: Callable[[], Callable[[Any, Any], Any]],
                  takes_numbers: bool) -> Callable[[Any, Any], Any]:
    """The function of a binary elementwise operator while `modes.special` is not 0.

    Args:
        general: the operator method without a fast path.
        make: makes the fast path that does not test `special`.
        takes_numbers: whether the second operand may be a number.
    """
    fast: Any = None
    by_value = op.batching_rule == "elementwise" and op.check is None

    def operate(input: Any, other: Any) -> Any:
        nonlocal fast
        if special[0] != level_count[0]:
            return general(input, other)
        if fast is None:
            fast = make()
        batched = handlers.batched_class
        left, right = input.__class__ is batched, other.__class__ is batched
        if not (left or right):
            result = fast(input, other)
            if forward_levels and result is not NotImplemented and any_tangents((input, other)):
                handlers.push_forward(op, [input, other], [result], NO_PARAMS)
            return result
        if not by_value or (forward_levels and any_tangents((input, other))):
            return general(input, other)
        if other.__class__ in _NUMBERS:
            if not takes_numbers:
                return general(input, other)
            result = new(batched)
            result._value, result._levels = fast(input._value, other), input._levels
            return result
        x, y = (input._value if left else input), (other._value if right else other)
        if not (isinstance(x, Tensor) and isinstance(y, Tensor)):
            return general(input, other)
        a, b = x._array, y._array
        if a.dtype is not b.dtype:  # which of two dtypes wins depends on the number of logical dimensions
            return general(input, other)
        if left and right:
            levels = input._levels
            if levels != other._levels:
                return general(input, other)
            if a.ndim < b.ndim:
                x = handlers.align_levels(input, levels, b.ndim - len(levels))
            elif b.ndim < a.ndim:
                y = handlers.align_levels(other, levels, a.ndim - len(levels))
        elif left:
            levels = input._levels
            if b.ndim > a.ndim - len(levels):
                x = handlers.align_levels(input, levels, b.ndim)
        else:
            levels = other._levels
            if a.ndim > b.ndim - len(levels):
                y = handlers.align_levels(other, levels, a.ndim)
        result = new(batched)
        result._value, result._levels = fast(x, y), levels
        return result

    return operate


__all__ = ["NEVER", "binary_inside", "unary_inside"]
