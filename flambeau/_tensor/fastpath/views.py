"""Views and copies, quickly: an array that is made already gets its base, its version and its node.

It does what `apply` does for a view operator, or for a copy of one input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...engine.grad_mode import grad_mode, inference
from ...engine.rules.inlined_rules import plan_of
from ...ops.backward_plan import BackwardPlan
from ...ops.declare import REGISTRY, Op
from ..dispatch.gradient_edge import gradient_edge
from ..dispatch.graph_recording import hang
from ..dtype_views import steps_to
from ..tensor import INFERENCE, Tensor, wrap
from ..untracked_views import follow

_enabled, _inferring = grad_mode.get, inference.get


def plan_keeping(key: str, *names: str) -> tuple[Op, BackwardPlan]:
    """An operator of one input and its plan, whose rule keeps these constants in this order."""
    op = REGISTRY[key]
    plan = plan_of(op, 1, 1)
    kept = tuple("input_shape" if what == "shape" else which for what, which in plan.consts)
    assert kept == names, f"{key} keeps {kept}"
    return op, plan


def viewing(key: str, *names: str) -> Callable[..., Tensor]:
    """What makes views of one operator: called with the source, the array, and what the node keeps.

    Args:
        key: the operator's.
        names: what its rule keeps, in order: `input_shape` and parameters.
    """
    op, plan = plan_keeping(key, *names)

    def make(source: Tensor, array: np.ndarray, *consts: Any) -> Tensor:
        out: Tensor = wrap(array)
        counter = source._counter
        if counter is None:
            counter = source._counter = [0]
        out._counter = counter
        if counter is INFERENCE:
            out._inference = True
            return out
        if counter[0]:
            out._view_version = counter[0]
        base = source._base
        if base is None:
            out._base = source
        else:
            out._base = base
            if source._steps is not None:
                out._steps = steps_to(array, source)
        if _enabled():
            if base is not None and source._creation is not None:
                out._creation = source._creation
            if source._requires_grad:
                edge = source._node
                if edge is None or base is not None:
                    edge = gradient_edge(source)
                hang(out, edge, source._output_nr, op, plan, consts, source)
                return out
        else:
            out._creation = "inference" if _inferring() or source._creation == "inference" else "no_grad"
        if source._inference:  # shown by `detach` outside inference mode
            out._base, out._creation, out._inference, out._counter = None, None, True, INFERENCE
            return out
        out._requires_grad = out._base._requires_grad
        follow(out, counter)
        return out

    return make


Step = tuple[Op, BackwardPlan, tuple[Any, ...]]


def viewed_in_steps(source: Tensor, array: np.ndarray, steps: Sequence[Step]) -> Tensor:
    """The view that several steps make, with a node each: `array` is what the last one shows."""
    out = _alias(source, array)
    edge: Any = gradient_edge(source)
    number = source._output_nr
    for op, plan, consts in steps:
        hang(out, edge, number, op, plan, consts, source)
        edge, number = out._node, 0
    return out


def _alias(source: Tensor, array: np.ndarray) -> Tensor:
    out: Tensor = wrap(array)
    counter = source._counter
    if counter is None:
        counter = source._counter = [0]
    out._counter = counter
    if counter[0]:
        out._view_version = counter[0]
    base = source._base
    out._base = source if base is None else base
    if base is not None:
        if source._creation is not None:
            out._creation = source._creation
        if source._steps is not None:
            out._steps = steps_to(array, source)
    return out


def copying(key: str) -> Callable[[Tensor, np.ndarray], Tensor]:
    """What makes copies of one operator whose rule keeps nothing: called with the source and the new array."""
    op, plan = plan_keeping(key)

    def make(source: Tensor, array: np.ndarray) -> Tensor:
        out: Tensor = wrap(array)
        if source._requires_grad and _enabled():
            if array.dtype.kind in "fcV":
                edge = source._node
                if edge is None or source._base is not None:
                    edge = gradient_edge(source)
                hang(out, edge, source._output_nr, op, plan, (), source)
        elif _inferring():
            out._inference, out._counter = True, INFERENCE
        return out

    return make
