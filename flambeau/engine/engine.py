"""Backward: reachable nodes, newest first, each handed the sum of its cotangents.

Bare arrays flow where nobody asked for a graph of the gradient; tensors, and with them the
recording of every rule, flow under `create_graph`. The rules are the same lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from heapq import heappop, heappush, heapreplace
from itertools import count
from operator import attrgetter
from typing import Any

import numpy as np
from numpy import ndarray

from .. import dtypes
from ..backends.compiled.thresholds import MET
from ..backends.errstate import IGNORE, reset_state, set_state
from ..modes import active_tracer, special
from .accumulate_grad import accumulate, add_arrays, converted, told
from .anomaly_mode import Anomaly, check, evaluated, explain
from .compiled_rules import add as add_large
from .compiled_rules import vjp
from .deferred_accumulation import settled
from .fused_recurrent_backward import is_step, walk
from .grad_mode import grad_mode
from .inlined_rules import both, spread, spread_out, times
from .node import FREED, AccumulateGrad, Extra, LeafHooks, Node, layer
from .observers import observers
from .profiler_events import recording

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
    if Node.renumbered:
        return _unlocked(found), waiting
    found.sort(key=_by_birth, reverse=True)
    return found, waiting


def _unlocked(nodes: list[Node]) -> list[Node]:
    """The nodes, each after all that lead to it, and among those that could be next the one with the highest number."""
    locks: dict[Node, int] = dict.fromkeys(nodes, 0)
    for node in nodes:
        for next_node in node.edges:
            if next_node in locks:
                locks[next_node] += 1
    free = [(-node.seq, i, node) for i, node in enumerate(nodes) if not locks[node]]
    free.sort()
    places = {node: i for i, node in enumerate(nodes)}
    order = []
    while free:
        _, _, node = heappop(free)
        order.append(node)
        for next_node in node.edges:
            if next_node in locks:
                locks[next_node] -= 1
                if not locks[next_node]:
                    heappush(free, (-next_node.seq, places[next_node], next_node))
    return order


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
    reachable: set[Node] | None = None  # found when first asked for
    number = 0  # given when first asked for
    quick = False  # whether nothing watches, and nodes may run the short way
    entered: Token[_Run | None] | None = None
    callbacks: list[Callable[[], Any]] | None = None  # to be called when all is done

    def __init__(self, roots: Sequence[Edge], retain: bool, create: bool, pending: dict[Node, Any] | None = None,
                 owned: set[Node] | None = None, heap: list[tuple[int, Node]] | None = None,
                 leaves: list[Node] | None = None) -> None:
        self.roots = roots
        self.retain = retain
        self.create = create
        self.pending: dict[Node, Any] = {} if pending is None else pending
        #: nodes whose pending array was made here and may be added to in place
        self.owned: set[Node] = set() if owned is None else owned
        self.found_heap: list[tuple[int, Node]] = [] if heap is None else heap
        self.found_leaves: list[Node] = [] if leaves is None else leaves

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
            if MET[0] and held.__class__ is np.ndarray:
                add_large(held, g, held)
            else:
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

    def discover_undefined(self, node: Node) -> None:
        """Note a node that gets no cotangent from an edge: it runs all the same, and what is below it."""
        if not node.is_leaf and node not in self.pending:
            self.pending[node] = None
            heappush(self.found_heap, (-node.seq, node))

    def next_defined(self) -> tuple[Node | None, Any]:
        """The newest node that has a cotangent, and that; older ones without have run by then."""
        while self.found_heap:
            node = heappop(self.found_heap)[1]
            g = self.pending.pop(node, None)
            if g is not None or node.run is None:
                return node, g
            self.long_step(node)
        return None, None

    def is_wanted(self, node: Node | None) -> bool:
        """Whether what arrives at a node is asked for, or leads to what is."""
        return node is not None and (self.wanted is None or node in self.wanted or node in (self.targets or ()))

    def is_root(self, node: Node) -> bool:
        """Whether the pass begins at a node."""
        return any(root is node for root, _ in self.roots)

    def long_step(self, node: Node) -> None:
        """Run one node with all it may have: hooks, several outputs, gradients to mend."""
        if is_step(node) and walk(self, node, self.pending[node]):
            del self.pending[node]
            return
        if self.entered is None:
            self.entered = _current.set(self)  # until the end of the pass
        grad = grad_mode.get()
        try:  # a signal may come at any moment
            grad_mode.set(False)  # hooks and users' Functions may apply operators
            found = self.run_one(node)
        finally:
            grad_mode.set(grad)
        numbers = node.edge_outputs
        for i, next_node in enumerate(node.edges):
            if next_node is None:
                continue
            if found[i] is not None:
                self.discover(next_node, 0 if numbers is None else numbers[i], found[i])
            else:
                self.discover_undefined(next_node)

    def run_one(self, node: Node) -> Any:
        """One node's hooks, rules, hooks; None where nothing beyond it is wanted."""
        g = settled(self.pending.pop(node, None))
        extra = node.extra
        if self.targets is None:
            if extra is not None:
                g = self.before(node, extra, g)
        else:
            wanted = self.wanted is None or node in self.wanted
            outputs = self.targets.get(node)
            if not wanted and outputs is None:
                if extra is not None and self.is_root(node):
                    self.before(node, extra, g)  # a root's hooks see its cotangent whatever is wanted
                return None
            if wanted and outputs is not None:
                self.capture(node, outputs, g)  # before its hooks, as in PyTorch
            if extra is not None:
                g = self.before(node, extra, g)
            if not wanted:
                self.capture(node, outputs or (), g)
                return None
        if extra is not None and extra.pre_hooks:
            g = self.prehooks(node, extra, g)
        if g is None:
            found: Any = (None,) * len(node.edges)
            if node.runs_undefined:
                found = node.vjp(None, self.create)
            else:
                node.check_saved()
        else:
            full = _materialized(node, g, self.create) if node.outputs is not None and node.materializes else g
            found = self.watched(node, full) if special[0] else vjp(node, full, self.create)
            del full
        if extra is not None and extra.post_hooks:
            if self.wanted is not None and node.materializes:  # hooks do not see what nobody wants
                found = [x if self.is_wanted(child) else None for x, child in zip(found, node.edges, strict=True)]
            found = self.posthooks(node, extra, found, g)
        if not self.retain:
            self.let_go(node)
        return found

    def let_go(self, node: Node) -> None:
        """Have a node forget what it saved."""
        node.release()

    def watched(self, node: Node, g: Any) -> Any:
        """A node's rules, in anomaly mode if that is on: then an error shows where the node was made."""
        if not Anomaly.enabled:
            return vjp(node, g, self.create)
        inside = evaluated.set(node)
        try:
            found = vjp(node, g, self.create)
        except Exception:
            explain(node)
            raise
        finally:
            evaluated.reset(inside)
        check(node, found)
        return found

    def run_quickly(self, node: Node) -> Any:
        """The rules of a node that nothing watches, on arrays; None where the long way must be gone."""
        if self.targets is not None and (node in self.targets or (self.wanted is not None and node not in self.wanted)):
            return None
        g = self.pending.get(node)
        if g is None:
            return None
        del self.pending[node]
        found = node.run(node, g)  # type: ignore[misc]
        if not self.retain:
            node.release()
        return found

    def step(self, node: Node) -> None:
        """Run one node where leaves are waited for, and deliver what comes out."""
        found = self.run_quickly(node) if self.quick and node.run is not None else None
        if found is None:
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
                    if found.__class__ is not list:
                        found = list(found)
                    found[i] = None  # so that the leaf may take the array over
                    self.leaf(next_node)

    def leaf(self, node: Node) -> None:
        """Finish a leaf: all its cotangents are in."""
        node.met = None  # type: ignore[attr-defined]
        g = settled(self.pending.pop(node, None))
        outputs = None
        if self.targets is not None:
            outputs = self.targets.get(node)
            if outputs is None and self.wanted is not None and node not in self.wanted:
                if node.extra is not None and self.is_root(node):
                    self.before(node, node.extra, g)
                return
        if g is not None and node.variable._grad_type:  # type: ignore[attr-defined]
            g = converted(g, node.variable._grad_type, self.create)  # type: ignore[attr-defined]
        if node.extra is not None:
            g = self.before(node, node.extra, g)
        if outputs is not None:
            self.capture(node, outputs, g)
            return
        if node.extra is not None and node.extra.pre_hooks:
            g = self.prehooks(node, node.extra, g)
        if g is None:
            told(node.variable)  # type: ignore[attr-defined]
            if node.extra is not None:
                for hook in list((node.extra.post_hooks or {}).values()):
                    hook((), (None,))
            return
        if node.extra is not None and node.extra.post_hooks:
            kept = _as_tensor(g, self.create)
            box = [g]
            del g
            accumulate(node.variable, box, self.create, 1)  # type: ignore[attr-defined]
            for hook in list(node.extra.post_hooks.values()):
                hook((), (kept,))
        else:
            box = [g]
            del g
            node.vjp(box, self.create)

    def capture(self, node: Node, outputs: Sequence[int], g: Any) -> None:
        for output in outputs:
            value = g[output] if g is not None and node.outputs is not None else g
            self.captured[node, output] = value

    def executes(self, node: Node) -> bool:
        """Whether this pass runs a node, or captures what arrives there."""
        if self.reachable is None:
            order, leaves = _reachable(self.roots)
            self.reachable = {*order, *leaves}
        if node not in self.reachable:
            return False
        if self.wanted is None:
            return True
        if node in (self.targets or ()):
            if node.is_leaf:
                raise RuntimeError("A leaf node was passed to _will_engine_execute_node but we are currently running "
                                   "autograd.grad(). This is currently not supported.")
            return True
        return node in self.wanted

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
                    values[output] = _checked(hook, shown, returned, self.create)
                elif shown is not None:
                    values[output] = shown if self.create else shown._array
        for output, reference in (extra.retained or {}).items():
            tensor = reference()
            if tensor is not None and values[output] is not None:
                kept = _as_tensor(values[output], self.create)
                kept = kept.clone() if self.create else layer.wrap(np.array(kept._array, copy=True))
                tensor._grad = kept if tensor._grad is None else tensor._grad + kept
        if several:
            return values if any(v is not None for v in values) else None
        return values[0]

    def prehooks(self, node: Node, extra: Extra, g: Any) -> Any:
        several = node.outputs is not None
        places = _differentiable(node) if several else (0,)
        given = [None if g is None else g[i] for i in places] if several else (g,)
        shown = tuple(None if v is None else _as_tensor(v, self.create) for v in given)
        for hook in list((extra.pre_hooks or {}).values()):
            returned = hook(shown)
            if returned is not None:
                shown = returned if isinstance(returned, tuple) else (returned,)
        values = [None if v is None else v if self.create else v._array for v in shown]
        if several:
            values = _among(values, places, len(node.outputs or ()))
            return values if any(v is not None for v in values) else None
        return values[0]

    def posthooks(self, node: Node, extra: Extra, found: Any, g: Any) -> Any:
        several = node.outputs is not None
        drawn = node.drawn_edges()
        if node.materializes:  # what nobody could want is not there, though a rule may have made it
            found = [None if child is None else x for x, child in zip(found, node.edges, strict=True)]
        inputs = tuple(None if v is None else _as_tensor(v, self.create)
                       for v in (found if drawn is None else [found[i] for i in drawn]))
        outputs = ([g[i] for i in _differentiable(node)] if several else (g,)) if g is not None else (None,) * (
            len(_differentiable(node)) if several else 1)
        shown = tuple(None if v is None else _as_tensor(v, self.create) for v in outputs)
        for hook in list((extra.post_hooks or {}).values()):
            returned = hook(inputs, shown)
            if returned is not None:
                replaced = returned if isinstance(returned, tuple) else (returned,)
                if len(replaced) != len(inputs):
                    raise RuntimeError(f"hook '{getattr(hook, '__name__', hook)}' has returned an incorrect number "
                                       f"of values (got {len(replaced)}, but expected {len(inputs)})")
                inputs = replaced
        values = [None if v is None else v if self.create else v._array for v in inputs]
        return values if drawn is None else _among(values, drawn, len(found))


def _differentiable(node: Node) -> Sequence[int]:
    """The outputs that hooks see a cotangent of: not those of an operator that are integers."""
    assert node.outputs is not None
    return [i for i, told in enumerate(node.outputs) if not node.materializes or told[1].kind in "fcV"]


def _among(values: Sequence[Any], places: Sequence[int], count: int) -> list[Any]:
    """The values in their places among `count`, None in the others."""
    found = [None] * count
    for i, value in zip(places, values, strict=True):
        found[i] = value
    return found


def _as_tensor(value: Any, tensors: bool) -> Any:
    return value if tensors else layer.wrap(np.asarray(value))


def _checked(hook: Any, before: Any, returned: Any, tensors: bool) -> Any:
    """What a tensor hook returned, if it may stand for the cotangent it was given."""
    if before is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(returned, layer.tensor_class):
        raise TypeError(f"expected Variable, but hook returned '{type(returned).__name__}'")
    name = getattr(hook, "__name__", "<unknown>")
    if returned._array.dtype != before._array.dtype:
        raise RuntimeError(f"hook '{name}' has changed the type of value (was {before.type()} got {returned.type()})")
    if returned._array.shape != before._array.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    return returned if tensors else returned._array


def _materialized(node: Node, g: list[Any], tensors: bool) -> list[Any]:
    """Zeros where an output had no cotangent."""
    assert node.outputs is not None
    full = []
    for value, (shape, array_dtype) in zip(g, node.outputs, strict=True):
        if value is None:
            value = layer.functions.zeros(shape, dtype=dtypes.of(array_dtype)) if tensors else np.zeros(
                shape, array_dtype)
        full.append(value)
    return full


def _run_plainly(roots: Sequence[Edge], cotangents: Sequence[Any], retain: bool) -> None:
    """Backward to all leaves on arrays, finding the nodes as it goes.

    The newest pending node has all its cotangents: whatever else could send it one is newer
    still, hence done. So no node is visited beforehand. Leaves accumulate at the end.
    """
    pending: dict[Node, Any] = {}
    owned: set[Node] = set()
    heap: list[tuple[int, Node]] = []
    leaves: list[Node] = []
    run: _Run | None = None  # made when something unusual is met
    get, pop, multiply = pending.get, pending.pop, np.multiply
    add: Any = add_large if MET[0] else np.add
    node: Any
    next_node: Any
    leaf: Any
    node, _ = roots[0]
    if len(roots) == 1 and node.outputs is None and not node.is_leaf:
        g = cotangents[0]._array
        if not g.ndim and node.run is not None:
            g = g[()]
    else:
        run = _Run(roots, retain, False, pending, owned, heap, leaves)
        for (node, output), g in zip(roots, cotangents, strict=True):
            run.discover(node, output, g._array)
        node = heappop(heap)[1] if heap else None
        g = pop(node, None)
    last: Any = None  # the leaves that were met last, and what they have been given so far
    held: Any = None
    last_but_one: Any = last
    held_but_one: Any = held
    sum_so_far: Any
    found: Any
    x: Any
    y: Any
    token = set_state(IGNORE)
    try:
        while node is not None:
            newest = None
            if node.run is None:
                if run is None:
                    run = _Run(roots, retain, False, pending, owned, heap, leaves)
                pending[node] = g
                run.long_step(node)
            else:
                step = node.run
                if step is both:  # sums and products are the most frequent: a call costs as much as half a product
                    found = (g, g)
                elif step is times and node.versions is None and type(g) is ndarray and node.saved0 is not FREED:
                    first, second = node.saved0, node.saved1
                    x, y = first._counter, second._counter
                    if (x is None or not x[0]) and (y is None or not y[0]):
                        found = (multiply(g, second._array), multiply(g, first._array))
                    else:
                        found = times(node, g)
                elif step is spread and node.edge0 is not None and (
                        type(node.edge0) is AccumulateGrad or node.edge0.run is not None):
                    found = spread_out(node, g)  # nobody looks at it
                else:
                    found = step(node, g)
                if not retain and node.saved0 is not None:
                    node.saved0 = FREED
                    node.saved1 = None
                numbers = node.edge_outputs
                if last is not None and node.n_edges == 2 and numbers is None and not heap:
                    # One input is a weight that was met just before, and the other goes on alone.
                    leaf = node.edge1
                    next_node = node.edge0
                    if leaf is last:
                        x, y = found
                        sum_so_far = held
                    elif leaf is last_but_one:
                        x, y = found
                        sum_so_far = held_but_one
                    else:
                        leaf, next_node = next_node, leaf
                        y, x = found
                        sum_so_far = held if leaf is last else held_but_one if leaf is last_but_one else None
                    if (sum_so_far is not None and next_node is not None and x is not None and y is not None
                            and type(next_node) is not AccumulateGrad and next_node.outputs is None
                            and next_node not in pending):
                        add(sum_so_far, y, sum_so_far)
                        g = x
                        node = next_node
                        continue
                i = 0
                next_node = node.edge0
                while True:
                    if next_node is not None:
                        x = found[i]
                        if x is None:
                            if run is None:
                                run = _Run(roots, retain, False, pending, owned, heap, leaves)
                            run.discover_undefined(next_node)
                        elif next_node is last:
                            add(held, x, held)
                        elif next_node is last_but_one:
                            add(held_but_one, x, held_but_one)
                        elif type(next_node) is AccumulateGrad:
                            summed = get(next_node)
                            if summed is None:
                                pending[next_node] = x
                                leaves.append(next_node)
                            elif next_node in owned:
                                add(summed, x, summed)
                                last_but_one, held_but_one = last, held  # weights are often met by turns
                                last, held = next_node, summed
                            else:
                                total = pending[next_node] = add_arrays(summed, x)
                                if type(total) is ndarray and total.dtype.kind != "V":
                                    owned.add(next_node)
                        elif (numbers is None or not numbers[i]) and next_node.outputs is None and (
                                next_node not in pending):
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
                            if run is None:
                                run = _Run(roots, retain, False, pending, owned, heap, leaves)
                            run.discover(next_node, numbers[i] if numbers else 0, x)
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
                if g is None and node.run is not None:
                    if run is None:
                        run = _Run(roots, retain, False, pending, owned, heap, leaves)
                    run.long_step(node)
                    node, g = run.next_defined()
            elif heap and -heap[0][0] > newest.seq:
                pending[newest] = g
                node = heapreplace(heap, (-newest.seq, newest))[1]
                g = pop(node)
                if g is None and node.run is not None:
                    if run is None:
                        run = _Run(roots, retain, False, pending, owned, heap, leaves)
                    run.long_step(node)
                    node, g = run.next_defined()
            else:
                node = newest
        found = g = x = y = first = second = summed = total = held = held_but_one = sum_so_far = None
        node = None
        for leaf in leaves:
            leaf.met = None
            accumulate(leaf.variable, [pop(leaf)], False)
        if run is not None and run.callbacks:
            _finish(run)
    except BaseException:
        if node is not None:
            _accumulate_finished(roots, node, pending, leaves)
        raise
    finally:
        if run is not None and run.entered is not None:
            _current.reset(run.entered)
        reset_state(token)


def _accumulate_finished(roots: Sequence[Edge], failed: Node, pending: dict[Node, Any], leaves: list[Node]) -> None:
    """After an error in a node, accumulate into the leaves that only nodes before it lead to."""
    order, _ = _reachable(roots)
    waiting = {leaf for node in order if node.seq <= failed.seq for leaf in node.edges}
    for leaf in leaves:
        if leaf not in waiting:
            accumulate(leaf.variable, [pending.pop(leaf)], False)  # type: ignore[attr-defined]


def _run_to_do(roots: Sequence[Edge], retain: bool, tensors: bool) -> _Run:
    if special[0] and observers():
        from .instrumented_run import ObservedRun

        return ObservedRun(roots, retain, tensors)
    if recording() is None:
        return _Run(roots, retain, tensors)
    from .profiled_run import TimedRun

    return TimedRun(roots, retain, tensors)


def run_backward(roots: Sequence[Edge], cotangents: Sequence[Any], *, retain: bool, create: bool,
                 targets: Sequence[Edge] | None = None, accumulate: bool = False,
                 tensors: bool = False) -> dict[Edge, Any]:
    """Send cotangents from the roots to the leaves.

    Args:
        roots: where to begin: (node, output number).
        cotangents: one tensor each.
        retain: keep what the nodes saved.
        create: record the rules, so that the gradients can be differentiated.
        targets: the only places whose gradients are wanted; they are returned. None: all leaves accumulate.
        accumulate: nothing is returned: leaves among the targets accumulate into `.grad`, other nodes run.
        tensors: run the rules on tensors though nothing is recorded: for batches, and for tangents to flow.

    Returns:
        The gradients captured at the targets: arrays, or tensors if `create`.
    """
    if _current.get() is not _admitted.get():
        return _nested(roots, cotangents, retain=retain, create=create, targets=targets, accumulate=accumulate,
                       tensors=tensors)
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            tensors, tracer.ran_backward = True, True
    tensors = tensors or create
    if targets is None and not tensors and not (LeafHooks.found and LeafHooks.any()) and not (
            special[0] and (Anomaly.enabled or recording() is not None or observers())):
        _run_plainly(roots, cotangents, retain)
        return {}
    watchers = observers() if special[0] else ()
    for observer in watchers:
        observer.begins(roots, cotangents)
    run = _run_to_do(roots, retain, tensors)
    run.captured = {}
    order, run.waiting = _reachable(roots)
    if targets is not None:
        run.targets = {}
        ends: set[Node] = set()
        for node, output in targets:
            ends.add(node)
            if not accumulate:
                run.targets.setdefault(node, []).append(output)
        run.wanted = _wanted(order, ends)
        if accumulate:
            run.wanted |= ends
    for (node, output), g in zip(roots, cotangents, strict=True):
        run.deliver(node, output, g if tensors else g._array)
    grad, around = grad_mode.get(), _current.get()
    token = set_state(IGNORE)
    try:  # a signal may come at any moment
        grad_mode.set(create)
        run.entered = _current.set(run)
        run.quick = not tensors and not special[0] and type(run) is _Run
        for node, left in list(run.waiting.items()):
            if not left:
                run.leaf(node)
        for node in order:
            run.step(node)
        if run.callbacks:
            _call_back(run)
    finally:
        grad_mode.set(grad)
        _current.set(around)
        reset_state(token)
        for observer in watchers:
            observer.ends()
    return run.captured


def _nested(*args: Any, **kwargs: Any) -> dict[Edge, Any]:
    """A pass that was asked for within another."""
    from .reentrant import nested

    def begin() -> dict[Edge, Any]:
        admitted = _admitted.set(_current.get())
        try:
            return run_backward(*args, **kwargs)
        finally:
            _admitted.reset(admitted)

    return nested(begin)


def _finish(run: _Run) -> None:
    """Call what was to be called when the pass is done, with the pass for the current one and grad mode off."""
    grad, around = grad_mode.get(), _current.get()
    try:
        grad_mode.set(False)
        _current.set(run)
        _call_back(run)
    finally:
        grad_mode.set(grad)
        _current.set(around)


def _call_back(run: _Run) -> None:
    for callback in run.callbacks or ():  # which may grow meanwhile
        callback()


def run_node(node: Node, cotangents: Sequence[Any]) -> list[Any]:
    """Run one node on tensors, as when a user calls it: recorded if grad mode is on."""
    several = node.outputs is not None
    expected = len(node.outputs) if node.outputs is not None else 1
    if len(cotangents) != expected:
        raise TypeError(f"{node.name()} expected {expected} arguments, got {len(cotangents)} instead")
    run = _Run((), True, True)
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


# ----- what hooks may ask of the pass that calls them ------------------------------------


_current: ContextVar[_Run | None] = ContextVar("backward_pass", default=None)
_admitted: ContextVar[_Run | None] = ContextVar("pass_around_this_one", default=None)
_next_pass = count().__next__


def current_pass() -> int:
    """The number of the backward pass that runs in this thread; -1 where none does."""
    run = _current.get()
    if run is None:
        return -1
    if not run.number:
        run.number = 1 + _next_pass()
    return run.number


def queue_callback(callback: Callable[[], Any]) -> None:
    """Have something called when the backward pass that runs in this thread is done.

    Raises:
        RuntimeError: none does.
    """
    run = _current.get()
    if run is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    if run.callbacks is None:
        run.callbacks = []
    run.callbacks.append(callback)


def executes(node: Node) -> bool:
    """Whether the backward pass that runs in this thread runs a node.

    Raises:
        RuntimeError: none does.
    """
    run = _current.get()
    if run is None:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    return run.executes(node)


def reaches_all_leaves() -> bool:
    """Whether no backward pass that runs in this thread was asked for certain tensors' gradients only."""
    run = _current.get()
    while isinstance(run, _Run):
        if run.wanted is not None:
            return False
        run = None if run.entered is None else run.entered.old_value
    return True
