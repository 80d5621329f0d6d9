"""Fused recurrent backward: the steps of a plain recurrent network, evaluated one after the other in one function.

A step is recorded as three operators and the transpose of its weight (`_tensor/neural/recurrent_cell`): `linear` of
the previous state, an addition of the step's input, and tanh or relu. Evaluated node by node, a step takes four nodes
and six cotangents. Here the cotangent of a step's sum follows from that of the next step in one matmul, whose epilogue
adds other cotangents of the state and multiplies by the derivative; the gradients of weight and bias are deferred
(`deferred_accumulation`). Nodes that do not fit (hooks, a modified state) are left to the engine.
"""

from __future__ import annotations

from heapq import heappop
from typing import Any

from numpy import empty, ndarray

from ...backends.compiled.families import matmul, recurrent_steps
from ...errstate import run_in_quiet
from ..nodes.node import Node
from ..nodes.op_node import FREED
from .compiled_rules import kernel_rule, saved_values
from .deferred_accumulation import DeferredOuterProduct, DeferredRowSum


def sum_of_step(node: Any, g: Any) -> Any:
    """The rule of the addition in a step, by which a step is recognised: both gradients are the cotangent."""
    return g, g


def is_step(node: Node) -> bool:
    """Whether a node is the activation at the end of a step."""
    first = node.edge0 if node.n_edges == 1 else None
    return first is not None and first.run is sum_of_step and node.extra is None


def run_steps(task: Any, node: Any, g: Any) -> bool:
    """Evaluate a step, and the steps before it for as long as no other node is due; False if nothing was done.

    Args:
        task: a pass on arrays to all leaves (`GraphTask`).
        node: an activation for which `is_step` holds.
        g: its cotangent.
    """
    step = _saved_step(node)
    if step is None or g.__class__ is not ndarray:
        return False
    run_in_quiet(_run_steps, (task, node, g, step))
    return True


def _saved_step(node: Any) -> tuple[Any, Any, Any] | None:
    """A step's state, its previous state and its transposed weight (None where not saved); None if a node has hooks."""
    total = node.edge0
    linear = total.edge0
    transpose = linear.more_edges[0]
    if node.extra is not None or total.extra is not None or linear.extra is not None or transpose.extra is not None:
        return None
    after, before = saved_values(node), saved_values(linear)
    if after is None or before is None:
        return None
    (h,), (x, *weight) = after[0], before[0]
    return h, x, weight[0] if weight else None


def _run_steps(task: Any, node: Any, g: Any, step: tuple[Any, Any, Any]) -> None:
    h, x, y = step
    name, last, states_base = node.plan.op.name, node.edge0.edge0, h.base
    # The cotangents are slices of one array, as the states are, so the weight's gradient is one matmul without copies.
    # Copies would take longer than the matmul: memory that another core has read is slow to write to.
    at = end = (h.ctypes.data - states_base.ctypes.data) // h.nbytes
    slices = empty((end + 1, *h.shape), h.dtype)
    step_grad = slices[at]
    step_grad[...] = kernel_rule(node, g)[0]
    while True:
        g = step_grad
        total = node.edge0
        linear = total.edge0
        if not task.keep_graph:
            node.saved0 = linear.saved0 = FREED
            node.saved1 = linear.saved1 = None
        if total.edge1 is not None:
            numbers = total.edge_outputs
            task.discover(total.edge1, 0 if numbers is None else numbers[1], g)
        if y is None:
            break
        numbers, node = linear.edge_outputs, linear.edge1
        before = _next(task, node, last, states_base) if at and (numbers is None or not numbers[1]) else None
        if before is not None:
            step_grad = recurrent_steps.backward(g, y.T, before[0], task.buffers.get(node), name, slices[at - 1])
            if step_grad is not None:
                if node in task.buffers:
                    heappop(task.ready)
                    del task.buffers[node]
                _, x, y = before
                at -= 1
                continue
        s, t = x.strides
        task.discover(node, 0 if numbers is None else numbers[1],
                      matmul.mm(y, g.T).T if s < t else matmul.mm(g, y.T))
        break
    # all states are slices of one array, except the initial state
    cotangents, states, width = [g], [x], states_base.shape[-1]
    if at < end:
        cotangents.append(slices[at + 1:].reshape(-1, width))
        states.append(states_base[at:end].reshape(-1, width))
    task.discover(last.edge0, 0, DeferredRowSum(cotangents))
    task.discover(last.more_edges[0].edge0, 0, DeferredOuterProduct(cotangents[:], states, False))


def _next(task: Any, node: Any, last: Any, states_base: ndarray) -> tuple[Any, Any, Any] | None:
    """The saved values of the previous step, if it is of the same sequence and no other node is due before it."""
    if node.run is not None or node.outputs is not None or not is_step(node):
        return None
    linear = node.edge0.edge0
    if linear.edge0 is not last.edge0 or linear.more_edges[0].edge0 is not last.more_edges[0].edge0:
        return None
    ready = task.ready
    if node in task.buffers:
        pending = task.buffers[node]
        if ready[0][1] is not node or not (pending is None or (
                pending.__class__ is ndarray and pending.dtype is states_base.dtype
                and pending.shape == states_base.shape[1:])):
            return None
    elif ready and -ready[0][0] > node.seq:
        return None
    step = _saved_step(node)
    return step if step is not None and step[0].base is states_base else None


__all__ = ["is_step", "run_steps", "sum_of_step"]
