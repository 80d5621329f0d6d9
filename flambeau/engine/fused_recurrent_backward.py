"""Backward through the steps of a plain recurrent network, one after the other, as long as nothing else comes between.

A step is recorded as three operators, with the transpose of its weight (`_tensor/neural/recurrent_cell`): `linear` of
the state
before, a sum with the step's input, and tanh or relu. Node by node, a step takes four turns of the engine and six
cotangents that it hands on. Here the cotangent of a step's sum is computed from that of the next step's in one product,
which ends with what the state is given from elsewhere and with the derivative; the gradients of weight and bias are
`gathered`. Whatever is unusual about a node (a hook, a state that was written to) is left to the engine.
"""

from __future__ import annotations

from heapq import heappop
from typing import Any

from numpy import empty, ndarray

from ..backends.compiled.families import matmul as products
from ..backends.compiled.families import recurrent_steps
from ..backends.errstate import run_in_quiet
from .compiled_rules import by_kernel, kept
from .deferred_accumulation import Outer, RowSum
from .node import FREED, Node


def sum_of_step(node: Any, g: Any) -> Any:
    """The run of a step's sum, by which the engine knows a step: its cotangent goes to both inputs."""
    return g, g


def is_step(node: Node) -> bool:
    """Whether a node is the last of a step's, and may be walked from."""
    first = node.edge0 if node.n_edges == 1 else None
    return first is not None and first.run is sum_of_step and node.extra is None


def walk(run: Any, node: Any, g: Any) -> bool:
    """Run a step's nodes, and those of the steps before it that could be next; False: nothing is done.

    Args:
        run: the pass, to all leaves, on arrays.
        node: for which `is_step` holds.
        g: its cotangent.
    """
    step = _kept(node)
    if step is None or g.__class__ is not ndarray:
        return False
    run_in_quiet(_walk, (run, node, g, step))
    return True


def _kept(node: Any) -> tuple[Any, Any, Any] | None:
    """A step's state, the state before and the transposed weight (None where it ends), if all is as usual."""
    total = node.edge0
    linear = total.edge0
    turned = linear.more_edges[0]
    if node.extra is not None or total.extra is not None or linear.extra is not None or turned.extra is not None:
        return None
    after, before = kept(node), kept(linear)
    if after is None or before is None:
        return None
    (h,), (x, *weight) = after[0], before[0]
    return h, x, weight[0] if weight else None


def _walk(run: Any, node: Any, g: Any, step: tuple[Any, Any, Any]) -> None:
    h, x, y = step
    name, last, whole = node.plan.op.name, node.edge0.edge0, h.base
    # Cotangents are parts of one array, as the states are: so both are there in one piece when the weight's gradient is
    # computed of them. Copies would take longer than that: what another processor has read is slow to write to.
    at = end = (h.ctypes.data - whole.ctypes.data) // h.nbytes
    parts = empty((end + 1, *h.shape), h.dtype)
    made = parts[at]
    made[...] = by_kernel(node, g)[0]
    while True:
        g = made
        total = node.edge0
        linear = total.edge0
        if not run.retain:
            node.saved0 = linear.saved0 = FREED
            node.saved1 = linear.saved1 = None
        if total.edge1 is not None:
            numbers = total.edge_outputs
            run.discover(total.edge1, 0 if numbers is None else numbers[1], g)
        if y is None:
            break
        numbers, node = linear.edge_outputs, linear.edge1
        before = _next(run, node, last, whole) if at and (numbers is None or not numbers[1]) else None
        if before is not None:
            made = recurrent_steps.back(g, y.T, before[0], run.pending.get(node), name, parts[at - 1])
            if made is not None:
                if node in run.pending:
                    heappop(run.found_heap)
                    del run.pending[node]
                _, x, y = before
                at -= 1
                continue
        s, t = x.strides
        run.discover(node, 0 if numbers is None else numbers[1],
                     products.mm(y, g.T).T if s < t else products.mm(g, y.T))
        break
    # all states but the one that the oldest step began with are parts
    cotangents, states, width = [g], [x], whole.shape[-1]
    if at < end:
        cotangents.append(parts[at + 1:].reshape(-1, width))
        states.append(whole[at:end].reshape(-1, width))
    run.discover(last.edge0, 0, RowSum(cotangents))
    run.discover(last.more_edges[0].edge0, 0, Outer(cotangents[:], states, False))


def _next(run: Any, node: Any, last: Any, whole: ndarray) -> tuple[Any, Any, Any] | None:
    """What the step before kept, if it is one of the same sequence, and nothing that is newer waits."""
    if node.run is not None or node.outputs is not None or not is_step(node):
        return None
    linear = node.edge0.edge0
    if linear.edge0 is not last.edge0 or linear.more_edges[0].edge0 is not last.more_edges[0].edge0:
        return None
    heap = run.found_heap
    if node in run.pending:
        waiting = run.pending[node]
        if heap[0][1] is not node or not (waiting is None or (
                waiting.__class__ is ndarray and waiting.dtype is whole.dtype and waiting.shape == whole.shape[1:])):
            return None
    elif heap and -heap[0][0] > node.seq:
        return None
    step = _kept(node)
    return step if step is not None and step[0].base is whole else None


__all__ = ["is_step", "sum_of_step", "walk"]
