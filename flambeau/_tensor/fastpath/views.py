"""Fast paths of views and copies: an array that is already computed gets its base, version counter and node.

They do what `apply` does for a view operator, or for a copy of one input.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...backends.compiled.thresholds import LARGE_SEEN, MIN_ELEMENTS
from ...backends.elementless_array import ElementlessArray
from ...engine.grad_mode import grad_mode, inference
from ...engine.rules.inlined_rules import plan_of
from ...modes import active_transforms, inference_used, transform_stack
from ...ops.backward_plan import BackwardPlan
from ...ops.declare import REGISTRY, Op
from ..dispatch.gradient_edge import gradient_edge
from ..dispatch.graph_recording import record_unary
from ..tensor import INFERENCE, Tensor, wrap
from ..views.dtype_views import view_steps_to
from ..views.untracked import register_view

new, reference = object.__new__, weakref.ref
_enabled, _inferring = grad_mode.get, inference.get
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)


def plan_with_constants(key: str, *names: str) -> tuple[Op, BackwardPlan]:
    """An operator with one input and its backward plan, which must save the constants `names`, in this order."""
    op = REGISTRY[key]
    plan = plan_of(op, 1, 1)
    constants = tuple("input_shape" if what == "shape" else which for what, which in plan.consts)
    assert constants == names, f"{key} saves {constants}"
    return op, plan


def view_function(key: str, *names: str) -> Callable[..., Tensor]:
    """The function (source, array, *constants) -> view of one view operator.

    Args:
        key: the operator's key in REGISTRY.
        names: the constants that its rule saves, in order: `input_shape` and parameters.
    """
    op, plan = plan_with_constants(key, *names)

    def make(source: Tensor, array: np.ndarray, *consts: Any) -> Tensor:
        out: Any = new(Tensor)  # `wrap`, inlined
        out._array = array
        out._requires_grad = False
        out._node = out._grad = out._base = out._accumulator = None
        out._output_nr = 0
        if active_transforms[0]:
            out._transform_depth = len(transform_stack.get())
        if not LARGE_SEEN[0] and array.size > MIN_ELEMENTS[0] and not isinstance(array, ElementlessArray):
            LARGE_SEEN[0] = True
        counter: Any = source._counter
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
            if source._view_steps is not None:
                out._view_steps = view_steps_to(array, source)
        if _enabled():
            if base is not None and source._creation is not None:
                out._creation = source._creation
            if source._requires_grad:
                edge = source._node
                if edge is None or base is not None:
                    edge = gradient_edge(source)
                record_unary(out, edge, source._output_nr, op, plan, consts, source)
                return out
        else:
            out._creation = "inference" if source._creation == "inference" or (
                inference_used[0] and _inferring()) else "no_grad"
        if source._inference:  # an alias made outside inference mode
            out._base, out._creation, out._inference, out._counter = None, None, True, INFERENCE
            return out
        out._requires_grad = out._base._requires_grad
        dt = array.dtype
        if dt is _F32 or dt is _F64 or dt.kind in "fcV":  # others never require gradients
            if 1 < len(counter) <= counter[1]:
                counter.append(reference(out))
            else:
                register_view(out, counter)
        return out

    return make


ViewStep = tuple[Op, BackwardPlan, tuple[Any, ...]]


def view_chain(source: Tensor, array: np.ndarray, steps: Sequence[ViewStep]) -> Tensor:
    """The view made by a chain of view operators, one node each; `array` is the last one's."""
    out = _alias(source, array)
    edge: Any = gradient_edge(source)
    number = source._output_nr
    for op, plan, consts in steps:
        record_unary(out, edge, number, op, plan, consts, source)
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
        if source._view_steps is not None:
            out._view_steps = view_steps_to(array, source)
    return out


def copy_function(key: str) -> Callable[[Tensor, np.ndarray], Tensor]:
    """The function (source, new array) -> tensor of one copying operator whose rule saves nothing."""
    op, plan = plan_with_constants(key)

    def make(source: Tensor, array: np.ndarray) -> Tensor:
        out: Any = new(Tensor)  # `wrap`, but for what a copy cannot be: the first large tensor
        out._array = array
        out._requires_grad = False
        out._node = out._grad = out._counter = out._base = out._accumulator = None
        out._output_nr = 0
        if active_transforms[0]:
            out._transform_depth = len(transform_stack.get())
        if source._requires_grad and _enabled():
            if array.dtype.kind in "fcV":
                edge = source._node
                if edge is None or source._base is not None:
                    edge = gradient_edge(source)
                record_unary(out, edge, source._output_nr, op, plan, (), source)
        elif inference_used[0] and _inferring():
            out._inference, out._counter = True, INFERENCE
        return out

    return make
