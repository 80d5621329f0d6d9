"""Time steps of a simple RNN, each computed by one fused kernel and recorded as three operators.

The intermediate results of `linear` and `add` are not materialised, since no backward rule needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...backends.compiled.families import recurrent_steps
from ...backends.compiled.families.matmul import MIN_ELEMENTS
from ...engine.execution.accumulate_grad import AccumulateGrad
from ...engine.grad_mode import grad_mode, inference
from ...engine.nodes.node import next_number
from ...engine.nodes.op_node import OpNode
from ...engine.rules.compiled_rules import kernel_rule
from ...engine.rules.deferred_accumulation import MAX_DEFERRED_ROWS
from ...engine.rules.fused_recurrent_backward import sum_of_step
from ...engine.rules.inlined_rules import plan_of
from ...modes import active_transforms, special
from ...ops.declare import REGISTRY
from ..linalg.linear import linear_node
from ..linalg.matmul import edge_of, fast_wrap, is_fast_mm
from ..tensor import Tensor

__all__ = ["rnn_steps"]

_add_plans = (plan_of(REGISTRY["add"], 1, 2), plan_of(REGISTRY["add"], 3, 2))
_plans = {name: plan_of(REGISTRY[name], 1, 1) for name in ("tanh", "relu")}


def rnn_steps(xs: Sequence[Tensor], h: Tensor, weight: Tensor, bias: Tensor | None,
              nonlinearity: str) -> list[Tensor] | None:
    """h = f(h @ weightᵀ + bias + x) for each x in turn, recorded as `linear`, `add` and f.

    Args:
        xs: (N, out) each, the inputs times their weight, all with the same strides.
        h: (N, in), the initial state.
        weight: (out, in).
        bias: (out).
        nonlinearity: "tanh" or "relu".

    Returns:
        The states after each step, (N, out); None if the operators must be called one by one.
    """
    if special[0] or active_transforms[0] or bias is None or not xs:
        return None
    a, w, b, first = h._array, weight._array, bias._array, xs[0]._array
    if not is_fast_mm(a, w.T) or first.dtype is not a.dtype or b.dtype is not a.dtype or b.shape != w.shape[:1] or (
            first.shape != (a.shape[0], w.shape[0])) or a.size + w.size <= MIN_ELEMENTS[0]:
        return None
    mask = (1 if bias._requires_grad else 0) + (2 if h._requires_grad else 0) + (4 if weight._requires_grad else 0)
    records = grad_mode.get()
    if inference.get() or (records and mask not in (5, 7)):
        return None
    arrays = recurrent_steps.forward(a, w.T, b, [x._array for x in xs], nonlinearity)
    if arrays is None:
        return None
    states: list[Any] = [fast_wrap(array) for array in arrays]
    if not records:
        return states
    plan = _plans[nonlinearity]
    # the backward of several small steps with leaf parameters is fused
    fused_backward = len(xs) > 1 and a.shape[0] <= MAX_DEFERRED_ROWS and w.flags.c_contiguous and (
        edge_of(bias).__class__ is edge_of(weight).__class__ is AccumulateGrad)
    for x, state, array in zip(xs, states, arrays, strict=True):
        total = OpNode()
        total.edge0 = linear_node(h, weight, bias, mask, a, w, b)
        total.edge1 = edge_of(x) if x._requires_grad else None
        total.seq = next_number()
        total.edge_outputs = (0, x._output_nr) if x._output_nr else None
        total.plan = _add_plans[x._requires_grad]
        total.run = sum_of_step if fused_backward else total.plan.run
        total.n_edges = 2
        total.saved0 = total.saved1 = total.extra = total.outputs = total.fix = total.versions = None
        total.consts = ()
        node = OpNode()
        node.seq = next_number()
        node.edge0, node.n_edges = total, 1
        node.plan, node.run = plan, None if fused_backward else kernel_rule
        node.edge1 = node.edge_outputs = node.extra = node.outputs = node.fix = node.versions = None
        node.consts = ()
        state._counter = node.saved1 = [0]
        node.saved0 = array
        state._requires_grad = True
        state._node = node
        h, a, mask = state, array, 7
    return states
