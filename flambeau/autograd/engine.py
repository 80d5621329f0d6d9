"""Backward: reachable nodes, newest first, each handed the sum of its cotangents.

Bare arrays flow where nobody asked for a graph of the gradient; tensors, and with them the
recording of every rule, flow under `create_graph`. The rules are the same lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush, heapreplace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy import ndarray

from ..backends.errstate import IGNORE, reset_state, set_state
from .accumulate import accumulate, add_arrays
from .anomaly_mode import Anomaly, check, explain
from .modes import grad_mode
from .node import FREED, AccumulateGrad, Extra, LeafHooks, Node, layer

Edge = tuple[Node, int]

_by_birth = attrgetter("seq")


def _reachable(roots: Sequence[Edge]) -> tuple[list[Node], dict[Node, int]]:
    """The inner nodes that the roots reach, newest first, and how many edges lead to each leaf."""
    found: list[Node] = []
    seen: set[Node] = set()
    waiting: dict[Node, int] = {}
    for node, _ in roots:
        if node.is_leaf:
            waiting.setdefault(node, 0)
        elif node not in seen:
            seen.add(node)
            found.append(node)
    for node in found:  # grows while it is walked
        for next_node in node.edges:
            if next_node is None:
                continue
            if next_node.is_leaf:
                waiting[next_node] = waiting.get(next_node, 0) + 1
            elif next_node not in seen:
                seen.add(next_node)
                found.append(next_node)
    found.sort(key=_by_birth, reverse=True)
    return found, waiting


def _wanted(order: list[Node], targets: set[Node]) -> set[Node]:
    """The nodes among `order` from which an edge leads towards a target."""
    wanted: set[Node] = set()
    for node in reversed(order):
        for next_node in node.edges:
            if next_node is not None and (next_node in wanted or next_node in targets):
                wanted.add(node)
                break
    return wanted


class _Run:
    """One backward pass."""

    waiting: dict[Node, int]  # edges that have yet to deliver to a leaf
    targets: dict[Node, list[int]] | None = None  # node -> its outputs to capture
    wanted: set[Node] | None = None  # the nodes that lead to a target
    captured: dict[Edge, Any]

    def __init__(self, retain: bool, create: bool) -> None:
        self.retain = retain
        self.create = create
        self.pending: dict[Node, Any] = {}
        self.owned: set[Node] = set()  # nodes whose pending array was made here and may be added to in place
        self.found_heap: list[tuple[int, Node]] = []
        self.found_leaves: list[Node] = []

    def deliver(self, node: Node, output: int, g: Any) -> None:
        """Add a cotangent to what waits at a node's output."""
        pending = self.pending
        if node.outputs is not None:
            waiting = pending.get(node)
            if waiting is None:
                waiting = pending[node] = [None] * len(node.outputs)
            held = waiting[output]
            waiting[output] = g if held is None else held + g if self.create else add_arrays(held, g)
            return
        held = pending.get(node)
        if held is None:
            pending[node] = g
        elif self.create:
            pending[node] = held + g
        elif node in self.owned:
            held += g
        else:
            total = add_arrays(held, g)
            pending[node] = total
            if total.__class__ is np.ndarray and total.dtype.kind != "V":
                self.owned.add(node)

    def discover(self, node: Node, output: int, g: Any) -> None:
        """`deliver`, and note the node if it is met for the first time."""
        if node not in self.pending:
            if node.is_leaf:
                self.found_leaves.append(node)
            else:
                heappush(self.found_heap, (-node.seq, node))
        self.deliver(node, output, g)

    def long_step(self, node: Node) -> None:
        """Run one node with all it may have: hooks, several outputs, gradients to mend."""
        grad = grad_mode.set(False)  # hooks and users' Functions may apply operators
        try:
            found = self.run_one(node)
        finally:
            grad_mode.reset(grad)
        numbers = node.edge_outputs
        for i, next_node in enumerate(node.edges):
            if next_node is not None and found[i] is not None:
                self.discover(next_node, 0 if numbers is None else numbers[i], found[i])
            elif next_node is not None and next_node.runs_undefined and next_node not in self.pending:
                self.pending[next_node] = None
                heappush(self.found_heap, (-next_node.seq, next_node))

    def run_one(self, node: Node) -> Any:
        """One node's hooks, rules, hooks; None where nothing beyond it is wanted."""
        g = self.pending.pop(node, None)
        extra = node.extra
        if extra is not None:
            g = self.before(node, extra, g)
        if self.targets is not None:
            outputs = self.targets.get(node)
            if outputs is not None:
                self.capture(node, outputs, g)
            if self.wanted is not None and node not in self.wanted:
                return None
        if g is None:
            found: Any = (None,) * len(node.edges)
            if node.runs_undefined:
                found = node.vjp(None, self.create)
        else:
            if extra is not None and extra.pre_hooks:
                g = self.prehooks(node, extra, g)
            if node.outputs is not None and node.materializes:
                g = _materialized(node, g, self.create)
            found = self.watched(node, g) if Anomaly.enabled else node.vjp(g, self.create)
            if not self.retain:
                node.release()
        if extra is not None and extra.post_hooks:
            found = self.posthooks(node, extra, found, g)
        return found

    def watched(self, node: Node, g: Any) -> Any:
        """A node's rules in anomaly mode: an error shows where the node was made."""
        try:
            found = node.vjp(g, self.create)
        except Exception:
            explain(node)
            raise
        check(node, found)
        return found

    def step(self, node: Node) -> None:
        """Run one node where leaves are waited for, and deliver what comes out."""
        found = self.run_one(node)
        if found is None:
            return
        edges, numbers, waiting = node.edges, node.edge_outputs, self.waiting
        for i, next_node in enumerate(edges):
            if next_node is None:
                continue
            x = found[i]
            if x is not None:
                if numbers is None and next_node.outputs is None and next_node not in self.pending:
                    self.pending[next_node] = x
                else:
                    self.deliver(next_node, 0 if numbers is None else numbers[i], x)
                del x
            if next_node.is_leaf:
                left = waiting[next_node] = waiting[next_node] - 1
                if not left:
                    if found.__class__ is list:
                        found[i] = None  # so that the leaf may take the array over
                    self.leaf(next_node)

    def leaf(self, node: Node) -> None:
        """Finish a leaf: all its cotangents are in."""
        g = self.pending.pop(node, None)
        if node.extra is not None:
            g = self.before(node, node.extra, g)
        if self.targets is not None:
            outputs = self.targets.get(node)
            if outputs is not None:
                self.capture(node, outputs, g)
                return
            if self.wanted is not None and node not in self.wanted:
                return
        if g is None:
            return
        if node.extra is not None and node.extra.pre_hooks:
            g = self.prehooks(node, node.extra, g)
        if node.extra is not None and node.extra.post_hooks:
            kept = _as_tensor(g, self.create)
            node.vjp(g, self.create)
            for hook in list(node.extra.post_hooks.values()):
                hook((), (kept,))
        else:
            box = [g]
            del g
            node.vjp(box, self.create)

    def capture(self, node: Node, outputs: list[int], g: Any) -> None:
        for output in outputs:
            value = g[output] if g is not None and node.outputs is not None else g
            self.captured[node, output] = value

    # ----- hooks: they see tensors -----

    def before(self, node: Node, extra: Extra, g: Any) -> Any:
        """Tensor hooks, then `retain_grad`, on the node's cotangents."""
        several = node.outputs is not None
        values = (list(g) if g is not None else [None] * len(node.outputs or ())) if several else [g]
        for output, hooks in (extra.tensor_hooks or {}).items():
            for hook in list(hooks.values()):
                shown = None if values[output] is None else _as_tensor(values[output], self.create)
                returned = hook(shown)
                if returned is not None:
                    values[output] = _checked(shown, returned, self.create)
                elif shown is not None:
                    values[output] = shown if self.create else shown._array
        for output, reference in (extra.retained or {}).items():
            tensor = reference()
            if tensor is not None and values[output] is not None:
                kept = _as_tensor(values[output], self.create)
                if not self.create:
                    kept = layer.wrap(np.array(kept._array, copy=True))
                tensor._grad = kept if tensor._grad is None else tensor._grad + kept
        if several:
            return values if any(v is not None for v in values) else None
        return values[0]

    def prehooks(self, node: Node, extra: Extra, g: Any) -> Any:
        several = node.outputs is not None
        shown = tuple(None if v is None else _as_tensor(v, self.create) for v in (g if several else (g,)))
        for hook in list((extra.pre_hooks or {}).values()):
            returned = hook(shown)
            if returned is not None:
                shown = returned if isinstance(returned, tuple) else (returned,)
        values = [None if v is None else v if self.create else v._array for v in shown]
        return values if several else values[0]

    def posthooks(self, node: Node, extra: Extra, found: Any, g: Any) -> Any:
        several = node.outputs is not None
        inputs = tuple(None if v is None else _as_tensor(v, self.create) for v in found)
        outputs = (g if several else (g,)) if g is not None else (None,) * len(node.outputs or (0,))
        shown = tuple(None if v is None else _as_tensor(v, self.create) for v in outputs)
        for hook in list((extra.post_hooks or {}).values()):
            returned = hook(inputs, shown)
            if returned is not None:
                replaced = returned if isinstance(returned, tuple) else (returned,)
                if len(replaced) != len(inputs):
                    raise RuntimeError(f"hook '{getattr(hook, '__name__', hook)}' has returned an incorrect number "
                                       f"of values (got {len(replaced)}, but expected {len(inputs)})")
                inputs = replaced
        return [None if v is None else v if self.create else v._array for v in inputs]


def _as_tensor(value: Any, tensors: bool) -> Any:
    return value if tensors else layer.wrap(np.asarray(value))


def _checked(before: Any, returned: Any, tensors: bool) -> Any:
    """What a tensor hook returned, if it may stand for the cotangent it was given."""
    if not isinstance(returned, layer.tensor_class):
        raise TypeError(f"expected Variable, but hook returned '{type(returned).__name__}'")
    if before is not None:
        if returned._array.dtype != before._array.dtype:
            raise RuntimeError(f"hook has changed the type of value (was {before.type()} got {returned.type()})")
        if returned._array.shape != before._array.shape:
            raise RuntimeError("hook has changed the size of value")
    return returned if tensors else returned._array


def _materialized(node: Node, g: list[Any], tensors: bool) -> list[Any]:
    """Zeros where an output had no cotangent."""
    assert node.outputs is not None
    full = []
    for value, (shape, array_dtype) in zip(g, node.outputs, strict=True):
        if value is None:
            zeros = np.zeros(shape, array_dtype)
            value = layer.wrap(zeros) if tensors else zeros
        full.append(value)
    return full


def _run_plainly(roots: Sequence[Edge], cotangents: Sequence[Any], retain: bool) -> None:
    """Backward to all leaves on arrays, finding the nodes as it goes.

    The newest pending node has all its cotangents: whatever else could send it one is newer
    still, hence done. So no node is visited beforehand. Leaves accumulate at the end.
    """
    run = _Run(retain, False)
    pending, owned, heap, leaves = run.pending, run.owned, run.found_heap, run.found_leaves
    discover = run.discover
    get, pop, add = pending.get, pending.pop, np.add
    node: Any
    next_node: Any
    leaf: Any
    node, _ = roots[0]
    if len(roots) == 1 and node.outputs is None and not node.is_leaf:
        g = cotangents[0]._array
        if not g.ndim and node.run is not None:
            g = g[()]
    else:
        for (node, output), g in zip(roots, cotangents, strict=True):
            discover(node, output, g._array)
        node = heappop(heap)[1] if heap else None
        g = pop(node, None)
    last: Any = None
    held: Any = None
    token = set_state(IGNORE)
    try:
        while node is not None:
            newest = None
            if node.run is None:
                pending[node] = g
                run.long_step(node)
            else:
                found = node.run(node, g)
                if not retain and node.saved0 is not None:
                    node.saved0 = FREED
                    node.saved1 = None
                numbers = node.edge_outputs
                i = 0
                next_node = node.edge0
                while True:
                    if next_node is not None:
                        x = found[i]
                        if x is None:
                            pass
                        elif next_node is last:
                            add(held, x, held)
                        elif type(next_node) is AccumulateGrad:
                            summed = get(next_node)
                            if summed is None:
                                pending[next_node] = x
                                leaves.append(next_node)
                            elif next_node in owned:
                                add(summed, x, summed)
                                last, held = next_node, summed  # a weight is often met many times in a row
                            else:
                                total = pending[next_node] = add_arrays(summed, x)
                                if type(total) is ndarray and total.dtype.kind != "V":
                                    owned.add(next_node)
                        elif numbers is None and next_node.outputs is None and next_node not in pending:
                            if newest is None:  # kept at hand: most often it is the next to run
                                newest = next_node
                                g = x
                            elif newest is next_node:
                                g = add_arrays(g, x)
                            else:
                                pending[next_node] = x
                                heappush(heap, (-next_node.seq, next_node))
                        elif newest is next_node:
                            g = add_arrays(g, x)
                        else:
                            discover(next_node, numbers[i] if numbers else 0, x)
                    i += 1
                    if i == 1:
                        next_node = node.edge1
                    elif i < node.n_edges:
                        next_node = node.more_edges[i - 2]
                    else:
                        break
            if newest is None:
                if not heap:
                    break
                node = heappop(heap)[1]
                g = pop(node)
            elif heap and -heap[0][0] > newest.seq:
                pending[newest] = g
                node = heapreplace(heap, (-newest.seq, newest))[1]
                g = pop(node)
            else:
                node = newest
        found = g = x = summed = total = held = None
        for leaf in leaves:
            accumulate(leaf.variable, [pop(leaf)], False)
    finally:
        reset_state(token)


def run_backward(roots: Sequence[Edge], cotangents: Sequence[Any], *, retain: bool, create: bool,
                 targets: Sequence[Edge] | None = None, accumulate: bool = False) -> dict[Edge, Any]:
    """Send cotangents from the roots to the leaves.

    Args:
        roots: where to begin: (node, output number).
        cotangents: one tensor each.
        retain: keep what the nodes saved.
        create: record the rules, so that the gradients can be differentiated.
        targets: the only places whose gradients are wanted; they are returned. None: all leaves accumulate.
        accumulate: leaves among the targets accumulate into `.grad` as well, and are not returned.

    Returns:
        The gradients captured at the targets: arrays, or tensors if `create`.
    """
    if targets is None and not create and not LeafHooks.count and not Anomaly.enabled:
        _run_plainly(roots, cotangents, retain)
        return {}
    run = _Run(retain, create)
    run.captured = {}
    order, run.waiting = _reachable(roots)
    if targets is not None:
        run.targets = {}
        ends: set[Node] = set()
        for node, output in targets:
            ends.add(node)
            if not (accumulate and node.is_leaf):
                run.targets.setdefault(node, []).append(output)
        run.wanted = _wanted(order, ends)
        if accumulate:
            run.wanted |= {node for node in ends if node.is_leaf}
    for (node, output), g in zip(roots, cotangents, strict=True):
        run.deliver(node, output, g if create else g._array)
    token = set_state(IGNORE)
    grad = grad_mode.set(create)
    try:
        for node, left in list(run.waiting.items()):
            if not left:
                run.leaf(node)
        for node in order:
            run.step(node)
    finally:
        grad_mode.reset(grad)
        reset_state(token)
    return run.captured


def run_node(node: Node, cotangents: Sequence[Any]) -> list[Any]:
    """Run one node on tensors, as when a user calls it: recorded if grad mode is on."""
    several = node.outputs is not None
    expected = len(node.outputs) if node.outputs is not None else 1
    if len(cotangents) != expected:
        raise TypeError(f"{node.name()} expected {expected} arguments, got {len(cotangents)} instead")
    run = _Run(True, True)
    g: Any = list(cotangents) if several else cotangents[0]
    extra = node.extra
    if extra is not None:
        g = run.before(node, extra, g)
        if extra.pre_hooks and g is not None:
            g = run.prehooks(node, extra, g)
    if several and node.materializes and g is not None:
        g = _materialized(node, g, True)
    token = set_state(IGNORE)
    try:
        found = (None,) * len(node.edges) if g is None else node.vjp(g, True)
    finally:
        reset_state(token)
    if extra is not None and extra.post_hooks:
        found = run.posthooks(node, extra, found, g)
    return list(found)
