"""GraphTask: the state of one backward pass, and how it evaluates a node with hooks, captures and accumulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from heapq import heappop, heappush
from typing import Any

import numpy as np

from ...backends.compiled.thresholds import LARGE_SEEN
from ...backends.sparse_array import SparseAccess
from ...modes import special
from ...ops.declare import ELEMENTWISE
from ..anomaly_mode import Anomaly, check_nan, evaluated, warn_with_traceback
from ..grad_mode import grad_mode
from ..nodes.hook_calls import as_tensor, call_post_hooks, call_pre_hooks, call_tensor_hooks, materialize
from ..nodes.node import Node
from ..nodes.op_node import OpNode
from ..rules.compiled_rules import vjp
from ..rules.deferred_accumulation import evaluate_deferred
from ..rules.fused_recurrent_backward import is_step, run_steps
from ..rules.large_arrays import add as add_large
from ..tensor_interface import layer
from .accumulate_grad import accumulate, add_arrays, add_to_buffer, call_post_accumulate_hooks, cast_gradient
from .topological_order import Edge, reachable

#: the task of the backward pass that runs in this thread
current_task: ContextVar[GraphTask | None] = ContextVar("backward_pass", default=None)


class GraphTask:
    """One backward pass.

    Args:
        roots: where it begins: (node, output number).
        keep_graph: keep the saved values.
        create_graph: cotangents are tensors and the rules are recorded.
        buffers, owned, ready, leaves: the state of a pass that has begun without a task (`array_backward`).

    Attributes:
        buffers: node -> the sum of the cotangents that have arrived (a list where the node has several outputs).
        owned: nodes whose buffer was allocated by this pass and may be added to in place.
        ready: a heap of the inner nodes that were discovered, highest sequence number first.
        leaves: the leaves that were discovered.
        dependencies: leaf -> edges that have yet to deliver a cotangent.
        captures: node -> its outputs whose gradients are requested; None where all leaves accumulate.
        needed: the nodes on a path to a capture; None where all are.
        captured: the gradients of the captures.
        stops_at_captures: whether the captures are the ends of the pass: neither they nor their hooks are evaluated.
    """

    dependencies: dict[Node, int]
    captures: dict[Node, list[int]] | None = None
    needed: set[Node] | None = None
    stops_at_captures = False
    captured: dict[Edge, Any]
    reachable: set[Node] | None = None  # computed on first use
    task_id = 0  # assigned on first use
    fast = False  # whether nothing observes the pass, so that nodes may run their specialised rules
    entered: Token[GraphTask | None] | None = None
    final_callbacks: list[Callable[[], Any]] | None = None

    def __init__(self, roots: Sequence[Edge], keep_graph: bool, create_graph: bool,
                 buffers: dict[Node, Any] | None = None, owned: set[Node] | None = None,
                 ready: list[tuple[int, Node]] | None = None, leaves: list[Node] | None = None) -> None:
        self.roots = roots
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.buffers: dict[Node, Any] = {} if buffers is None else buffers
        self.owned: set[Node] = set() if owned is None else owned
        self.ready: list[tuple[int, Node]] = [] if ready is None else ready
        self.leaves: list[Node] = [] if leaves is None else leaves

    def deliver(self, node: Node, output: int, g: Any) -> None:
        """Add a cotangent to the buffer of a node's output."""
        buffers = self.buffers
        if node.outputs is not None:
            several = buffers.get(node)
            if several is None:
                several = buffers[node] = [None] * len(node.outputs)
            buffer = several[output]
            several[output] = g if buffer is None else buffer + g if self.create_graph else add_arrays(buffer, g)
            return
        buffer = buffers.get(node)
        if buffer is None:
            buffers[node] = g
        elif self.create_graph:
            buffers[node] = buffer + g
        elif node in self.owned:
            if LARGE_SEEN[0] and buffer.__class__ is np.ndarray:
                add_large(buffer, g, buffer)
            else:
                buffer += g
        else:
            total = add_to_buffer(buffer, g)
            buffers[node] = total
            if total.__class__ is np.ndarray and total.dtype.kind != "V":
                self.owned.add(node)

    def discover(self, node: Node, output: int, g: Any) -> None:
        """`deliver`, and queue the node if nothing was delivered to it before."""
        if node not in self.buffers:
            if node.is_leaf:
                self.leaves.append(node)
            else:
                heappush(self.ready, (-node.seq, node))
        self.deliver(node, output, g)

    def discover_undefined(self, node: Node) -> None:
        """Queue a node whose cotangent from an edge is undefined: it runs all the same, as do those below it."""
        if not node.is_leaf and node not in self.buffers:
            self.buffers[node] = None
            heappush(self.ready, (-node.seq, node))

    def next_defined(self) -> tuple[Node | None, Any]:
        """The next node that has a cotangent, and that cotangent; nodes before it without one are evaluated."""
        while self.ready:
            node = heappop(self.ready)[1]
            g = self.buffers.pop(node, None)
            if g is not None or node.run is None:
                return node, g
            self.evaluate_and_queue(node)
        return None, None

    def is_needed(self, node: Node | None) -> bool:
        """Whether a node's gradient is requested, or leads to one that is."""
        return node is not None and (self.needed is None or node in self.needed or node in (self.captures or ()))

    def partly_wanted(self, node: Node) -> tuple[bool, ...] | None:
        """Which gradients of a node are needed, where some are not: the others are not computed.

        None for elementwise operators, all of whose gradients one kernel computes, and for gradients that are recorded.
        """
        if self.create_graph or special[0] or not isinstance(node, OpNode) or node.op.kind == ELEMENTWISE:
            return None
        edges = node.edges
        wanted = tuple(map(self.is_needed, edges))
        return None if sum(wanted) == sum(edge is not None for edge in edges) else wanted

    def is_root(self, node: Node) -> bool:
        """Whether the pass begins at a node."""
        return any(root is node for root, _ in self.roots)

    def evaluate_and_queue(self, node: Node) -> None:
        """Evaluate one node on the general path (hooks, several outputs, reductions of broadcast gradients)."""
        if is_step(node) and run_steps(self, node, self.buffers[node]):
            del self.buffers[node]
            return
        if self.entered is None:
            self.entered = current_task.set(self)  # until the end of the pass
        grad = grad_mode.get()
        try:  # an interrupt may arrive at any moment
            grad_mode.set(False)  # hooks and custom Functions may apply operators
            grads = self.evaluate(node)
        finally:
            grad_mode.set(grad)
        numbers = node.edge_outputs
        for i, next_node in enumerate(node.edges):
            if next_node is None:
                continue
            if grads[i] is not None:
                self.discover(next_node, 0 if numbers is None else numbers[i], grads[i])
            else:
                self.discover_undefined(next_node)

    def evaluate(self, node: Node) -> Any:
        """Call one node's hooks, rules and post-hooks; None where nothing below it is needed."""
        g = evaluate_deferred(self.buffers.pop(node, None))
        extra = node.extra
        if self.captures is None:
            if extra is not None:
                g = call_tensor_hooks(node, extra, g, self.create_graph)
        else:
            needed = self.needed is None or node in self.needed
            outputs = self.captures.get(node)
            if not needed and outputs is None:
                if extra is not None and self.is_root(node):
                    call_tensor_hooks(node, extra, g, self.create_graph)  # a root's hooks are called in any case
                return None
            if outputs is not None and (needed or self.stops_at_captures):
                self.capture(node, outputs, g)  # before its hooks, as in PyTorch
                if self.stops_at_captures:
                    return None
            if extra is not None:
                g = call_tensor_hooks(node, extra, g, self.create_graph)
            if not needed:
                self.capture(node, outputs or (), g)
                return None
        if extra is not None and extra.pre_hooks:
            g = call_pre_hooks(node, extra, g, self.create_graph)
        if g is None:
            grads: Any = (None,) * len(node.edges)
            if node.runs_undefined:
                grads = node.vjp(None, self.create_graph)
            else:
                node.check_saved()
        else:
            full = materialize(node, g, self.create_graph) if node.outputs is not None and (
                node.materializes_undefined) else g
            wanted = None if self.needed is None else self.partly_wanted(node)
            if wanted is not None:
                grads = node.vjp(full, False, wanted)  # type: ignore[call-arg]
            else:
                grads = self.call_rules(node, full) if special[0] else vjp(node, full, self.create_graph)
            del full
        if extra is not None and extra.post_hooks:
            if self.needed is not None and node.materializes_undefined:  # hooks receive only gradients that are needed
                grads = [x if self.is_needed(child) else None for x, child in zip(grads, node.edges, strict=True)]
            grads = call_post_hooks(node, extra, grads, g, self.create_graph)
        if not self.keep_graph:
            self.release(node)
        return grads

    def release(self, node: Node) -> None:
        """Free a node's saved values."""
        node.release_variables()

    def call_rules(self, node: Node, g: Any) -> Any:
        """Call a node's rules; in anomaly mode an error shows where the node was created, and NaN is an error."""
        if not Anomaly.enabled:
            return self._call(node, g)
        inside = evaluated.set(node)
        try:
            grads = self._call(node, g)
        except Exception:
            warn_with_traceback(node)
            raise
        finally:
            evaluated.reset(inside)
        check_nan(node, grads)
        return grads

    def _call(self, node: Node, g: Any) -> Any:
        """`vjp` of a node; rules of operators on tensors ask no `__torch_function__`, as PyTorch's in C++ do not."""
        if self.create_graph and isinstance(node, OpNode):
            if layer.rule_on_device is not None:
                return layer.run_without_overrides(layer.rule_on_device, vjp, node, g, True)
            return layer.run_without_overrides(vjp, node, g, True)
        return vjp(node, g, self.create_graph)

    def call_specialized_rule(self, node: Node) -> Any:
        """Call a node's specialised rule on arrays; None where the general path must be taken."""
        if self.captures is not None and (node in self.captures or (
                self.needed is not None and node not in self.needed)):
            return None
        g = self.buffers.get(node)
        if g is None:
            return None
        del self.buffers[node]
        wanted = None if self.needed is None else self.partly_wanted(node)
        try:
            if wanted is None:
                grads = node.run(node, g)  # type: ignore[misc]
            else:
                full = g if node.outputs is None else materialize(node, g, False)
                grads = node.vjp(full, False, wanted)  # type: ignore[call-arg]
        except SparseAccess:
            grads = node.vjp(g, False)
        if not self.keep_graph:
            node.release_variables()
        return grads

    def step(self, node: Node) -> None:
        """Evaluate one node of a topological order, deliver its gradients, and finish leaves that are complete."""
        grads = self.call_specialized_rule(node) if self.fast and node.run is not None else None
        if grads is None:
            grads = self.evaluate(node)
            if grads is None:
                return
        edges, numbers, dependencies = node.edges, node.edge_outputs, self.dependencies
        for i, next_node in enumerate(edges):
            if next_node is None:
                continue
            x = grads[i]
            if x is not None:
                if numbers is None and next_node.outputs is None and next_node not in self.buffers:
                    self.buffers[next_node] = x
                else:
                    self.deliver(next_node, 0 if numbers is None else numbers[i], x)
                del x
            if next_node.is_leaf:
                left = dependencies[next_node] = dependencies[next_node] - 1
                if not left:
                    if grads.__class__ is not list:
                        grads = list(grads)
                    grads[i] = None  # the leaf may take the array over if nothing else refers to it
                    self.finish_leaf(next_node)

    def run_to_leaves(self, order: Sequence[Node]) -> None:
        """`step` for each node, where nothing is captured: what most nodes do is written out.

        Args:
            order: the nodes, in topological order.
        """
        buffers, dependencies, keep_graph = self.buffers, self.dependencies, self.keep_graph
        grads: Any
        for node in order:
            run = node.run
            g = None if run is None else buffers.pop(node, None)
            if run is None or g is None:
                self.step(node)
                continue
            try:
                grads = run(node, g)
            except SparseAccess:
                grads = node.vjp(g, False)
            g = None
            if not keep_graph:
                node.release_variables()
            numbers = node.edge_outputs
            for i, next_node in enumerate(node.edges):
                if next_node is not None:
                    x = grads[i]
                    if not next_node.is_leaf:
                        if x is None:
                            pass
                        elif numbers is None and next_node.outputs is None and next_node not in buffers:
                            buffers[next_node] = x
                        else:
                            self.deliver(next_node, 0 if numbers is None else numbers[i], x)
                    else:
                        left = dependencies[next_node] = dependencies[next_node] - 1
                        if x is not None:
                            if next_node in buffers:
                                self.deliver(next_node, 0, x)
                            else:
                                buffers[next_node] = x
                        if not left:
                            x = None
                            if grads.__class__ is not list:
                                grads = list(grads)
                            grads[i] = None  # the leaf may take the array over if nothing else refers to it
                            self.finish_leaf(next_node)
            grads = x = None

    def finish_leaf(self, node: Node) -> None:
        """Accumulate or capture the gradient of a leaf to which all edges have delivered."""
        node.visited = None  # type: ignore[attr-defined]
        variable = node.variable  # type: ignore[attr-defined]
        g = evaluate_deferred(self.buffers.pop(node, None))
        if g is not None and self.captures is None and node.extra is None and not variable._grad_type:
            box = [g]
            del g
            accumulate(variable, box, self.create_graph)
            return
        outputs = None
        if self.captures is not None:
            outputs = self.captures.get(node)
            if outputs is None and self.needed is not None and node not in self.needed:
                if node.extra is not None and self.is_root(node):
                    call_tensor_hooks(node, node.extra, g, self.create_graph)
                return
        if g is not None and node.variable._grad_type:  # type: ignore[attr-defined]
            g = cast_gradient(g, node.variable._grad_type, self.create_graph)  # type: ignore[attr-defined]
        if node.extra is not None:
            g = call_tensor_hooks(node, node.extra, g, self.create_graph)
        if outputs is not None:
            self.capture(node, outputs, g)
            return
        if node.extra is not None and node.extra.pre_hooks:
            g = call_pre_hooks(node, node.extra, g, self.create_graph)
        if g is None:
            call_post_accumulate_hooks(node.variable)  # type: ignore[attr-defined]
            if node.extra is not None:
                for hook in list((node.extra.post_hooks or {}).values()):
                    hook((), (None,))
            return
        if node.extra is not None and node.extra.post_hooks:
            grad_output = as_tensor(g, self.create_graph)
            box = [g]
            del g
            accumulate(node.variable, box, self.create_graph, 1)  # type: ignore[attr-defined]
            for hook in list(node.extra.post_hooks.values()):
                hook((), (grad_output,))
        else:
            box = [g]
            del g
            node.vjp(box, self.create_graph)

    def capture(self, node: Node, outputs: Sequence[int], g: Any) -> None:
        """Store the cotangents of a node's outputs as results of the pass."""
        for output in outputs:
            value = g[output] if g is not None and node.outputs is not None else g
            self.captured[node, output] = value

    def will_execute(self, node: Node) -> bool:
        """Whether this pass evaluates a node, or captures its gradient."""
        if self.reachable is None:
            order, leaves = reachable(self.roots)
            self.reachable = {*order, *leaves}
        if node not in self.reachable:
            return False
        if self.needed is None:
            return True
        if node in (self.captures or ()):
            if node.is_leaf:
                raise RuntimeError("A leaf node was passed to _will_engine_execute_node but we are currently running "
                                   "autograd.grad(). This is currently not supported.")
            return True
        return node in self.needed

    def call_final_callbacks(self) -> None:
        """Call the callbacks that were queued during the pass, and those that they queue."""
        for callback in self.final_callbacks or ():  # may grow during the iteration
            callback()


__all__ = ["GraphTask", "current_task"]
