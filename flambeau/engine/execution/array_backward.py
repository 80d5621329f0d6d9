"""The fast path of `backward()`: arrays flow to all leaves, and nodes are discovered as they are reached.

It handles the nodes that run a specialised rule (`inlined_rules`, `compiled_rules`) itself, and leaves every other
node to `GraphTask.evaluate_and_queue`, with which it shares the buffers, the ready queue and the leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush, heapreplace
from typing import Any

import numpy as np
from numpy import ndarray

from ...backends.compiled.thresholds import LARGE_SEEN
from ...backends.sparse_array import SparseAccess
from ...errstate import IGNORE, reset_state, set_state
from ..grad_mode import grad_mode
from ..nodes.node import Node
from ..nodes.op_node import FREED
from ..rules.compiled_rules import allocator_rule
from ..rules.inlined_rules import expand, expand_contiguous, multiply_rule, pass_to_both
from ..rules.large_arrays import add as add_large
from .accumulate_grad import AccumulateGrad, accumulate, add_arrays, add_to_buffer
from .graph_task import GraphTask, current_task
from .topological_order import Edge, reachable


def run_array_backward(roots: Sequence[Edge], cotangents: Sequence[Any], keep_graph: bool) -> None:
    """Run backward to all leaves on arrays.

    Of the discovered nodes, the one with the highest sequence number has received all its cotangents: every node
    that could deliver one has a higher number, hence was evaluated. So the graph is not traversed beforehand.
    Leaves accumulate at the end.

    Args:
        roots: where the pass begins: (node, output number).
        cotangents: one tensor each.
        keep_graph: keep the saved values.
    """
    buffers: dict[Node, Any] = {}
    owned: set[Node] = set()
    ready: list[tuple[int, Node]] = []
    leaves: list[Node] = []
    task: GraphTask | None = None  # created for the first node that is not on the fast path
    get, pop, multiply = buffers.get, buffers.pop, np.multiply
    add: Any = add_large if LARGE_SEEN[0] else np.add
    node: Any
    next_node: Any
    leaf: Any
    node, _ = roots[0]
    if len(roots) == 1 and node.outputs is None and not node.is_leaf:
        g = cotangents[0]._array
        if not g.ndim and node.run is not None:
            g = g[()]
    else:
        task = GraphTask(roots, keep_graph, False, buffers, owned, ready, leaves)
        for (node, output), g in zip(roots, cotangents, strict=True):
            task.discover(node, output, g._array)
        node = heappop(ready)[1] if ready else None
        g = pop(node, None)
    # The two leaves that were accumulated into last, and their buffers: the weights of a recurrent network alternate.
    last: Any = None
    last_sum: Any = None
    last_but_one: Any = last
    last_but_one_sum: Any = last_sum
    sum_so_far: Any
    grads: Any
    x: Any
    y: Any
    token = set_state(IGNORE)
    try:
        while node is not None:
            newest = None
            if node.run is None:
                if task is None:
                    task = GraphTask(roots, keep_graph, False, buffers, owned, ready, leaves)
                buffers[node] = g
                task.evaluate_and_queue(node)
            else:
                step = node.run
                if step is pass_to_both:  # additions and products are inlined: a call costs half a product of scalars
                    grads = (g, g)
                elif step is multiply_rule and node.versions is None and type(g) is ndarray and (
                        node.saved0 is not FREED):
                    first, second = node.saved0, node.saved1
                    x, y = first._counter, second._counter
                    if (x is None or not x[0]) and (y is None or not y[0]):
                        grads = (multiply(g, second._array), multiply(g, first._array))
                    else:
                        grads = multiply_rule(node, g)
                elif step is expand and node.edge0 is not None and (
                        type(node.edge0) is AccumulateGrad or node.edge0.run is not None):
                    grads = expand_contiguous(node, g)  # no hook receives it
                else:
                    try:
                        grads = step(node, g)
                    except SparseAccess:
                        grads = node.vjp(g, False)
                    if step is allocator_rule and not keep_graph:
                        node.release_variables()  # and the list that the kernel filled
                if not keep_graph and (node.saved0 is not None or node.saved1 is not None):
                    node.saved0 = FREED
                    node.saved1 = None
                numbers = node.edge_outputs
                if last is not None and node.n_edges == 2 and numbers is None and not ready:
                    # One input is a leaf that was accumulated into just before: the other one is the next node.
                    leaf = node.edge1
                    next_node = node.edge0
                    if leaf is last:
                        x, y = grads
                        sum_so_far = last_sum
                    elif leaf is last_but_one:
                        x, y = grads
                        sum_so_far = last_but_one_sum
                    else:
                        leaf, next_node = next_node, leaf
                        y, x = grads
                        sum_so_far = last_sum if leaf is last else last_but_one_sum if leaf is last_but_one else None
                    if (sum_so_far is not None and next_node is not None and x is not None and y is not None
                            and type(next_node) is not AccumulateGrad and next_node.outputs is None
                            and next_node not in buffers):
                        add(sum_so_far, y, sum_so_far)
                        g = x
                        node = next_node
                        continue
                i = 0
                next_node = node.edge0
                while True:
                    if next_node is not None:
                        x = grads[i]
                        if x is None:
                            if task is None:
                                task = GraphTask(roots, keep_graph, False, buffers, owned, ready, leaves)
                            task.discover_undefined(next_node)
                        elif next_node is last:
                            add(last_sum, x, last_sum)
                        elif next_node is last_but_one:
                            add(last_but_one_sum, x, last_but_one_sum)
                        elif type(next_node) is AccumulateGrad:
                            leaf_sum = get(next_node)
                            if leaf_sum is None:
                                buffers[next_node] = x
                                leaves.append(next_node)
                            elif next_node in owned:
                                add(leaf_sum, x, leaf_sum)
                                last_but_one, last_but_one_sum = last, last_sum
                                last, last_sum = next_node, leaf_sum
                            else:
                                total = buffers[next_node] = (
                                    add_to_buffer if LARGE_SEEN[0] else add_arrays)(leaf_sum, x)
                                if type(total) is ndarray and total.dtype.kind != "V":
                                    owned.add(next_node)
                        elif (numbers is None or not numbers[i]) and next_node.outputs is None and (
                                next_node not in buffers):
                            if newest is None:  # not queued: most often it is the next to run
                                newest = next_node
                                g = x
                            elif newest is next_node:
                                g = add_arrays(g, x)
                            else:
                                buffers[next_node] = x
                                heappush(ready, (-next_node.seq, next_node))
                        elif newest is next_node:
                            g = add_arrays(g, x)
                        else:
                            if task is None:
                                task = GraphTask(roots, keep_graph, False, buffers, owned, ready, leaves)
                            task.discover(next_node, numbers[i] if numbers else 0, x)
                    i += 1
                    if i == 1:
                        next_node = node.edge1
                    elif i < node.n_edges:
                        next_node = node.more_edges[i - 2]
                    else:
                        break
            if newest is None:
                if not ready:
                    break
                node = heappop(ready)[1]
                g = pop(node)
                if g is None and node.run is not None:
                    if task is None:
                        task = GraphTask(roots, keep_graph, False, buffers, owned, ready, leaves)
                    task.evaluate_and_queue(node)
                    node, g = task.next_defined()
            elif ready and -ready[0][0] > newest.seq:
                buffers[newest] = g
                node = heapreplace(ready, (-newest.seq, newest))[1]
                g = pop(node)
                if g is None and node.run is not None:
                    if task is None:
                        task = GraphTask(roots, keep_graph, False, buffers, owned, ready, leaves)
                    task.evaluate_and_queue(node)
                    node, g = task.next_defined()
            else:
                node = newest
        grads = g = x = y = first = second = leaf_sum = total = last_sum = last_but_one_sum = sum_so_far = None
        node = None
        for leaf in leaves:
            leaf.visited = None
            accumulate(leaf.variable, [pop(leaf)], False)
        if task is not None and task.final_callbacks:
            _finish(task)
    except BaseException:
        if node is not None:
            _accumulate_complete_leaves(roots, node, buffers, leaves)
        raise
    finally:
        if task is not None and task.entered is not None:
            current_task.reset(task.entered)
        reset_state(token)


def _accumulate_complete_leaves(roots: Sequence[Edge], failed: Node, buffers: dict[Node, Any],
                                leaves: list[Node]) -> None:
    """After an error in a node, accumulate into the leaves whose gradients are complete."""
    order, _ = reachable(roots)
    incomplete = {leaf for node in order if node.seq <= failed.seq for leaf in node.edges}
    for leaf in leaves:
        if leaf not in incomplete:
            accumulate(leaf.variable, [buffers.pop(leaf)], False)  # type: ignore[attr-defined]


def _finish(task: GraphTask) -> None:
    """Call the final callbacks, with the task as the current one and grad mode off."""
    grad, outer = grad_mode.get(), current_task.get()
    try:
        grad_mode.set(False)
        current_task.set(task)
        task.call_final_callbacks()
    finally:
        grad_mode.set(grad)
        current_task.set(outer)


__all__ = ["run_array_backward"]
