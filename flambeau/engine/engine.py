"""The engine: runs a backward pass from the roots of a graph to its leaves, or to requested inputs.

Arrays flow through the graph by default. Under `create_graph` tensors flow, and the operators of the derivative rules
are recorded: the rules are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from itertools import count
from typing import Any

from ..backends.bit_views import bits_used, resolve
from ..backends.elementless_array import any_without_elements, elementless_used
from ..errstate import IGNORE, reset_state, set_state
from ..modes import active_tracer, dispatch_in_use, level_count, special
from .anomaly_mode import Anomaly
from .execution.array_backward import run_array_backward
from .execution.graph_task import GraphTask, current_task
from .execution.topological_order import Edge, needed_nodes, reachable
from .grad_mode import grad_mode
from .nodes.leaf_hooks import LeafHooks
from .nodes.node import Node
from .observers import observers
from .profiler_events import active_timeline
from .tensor_interface import layer

#: the graph task from whose hooks or rules the current pass was started
_outer_task: ContextVar[GraphTask | None] = ContextVar("pass_around_this_one", default=None)
_next_task_id = count().__next__


def run_backward(roots: Sequence[Edge], cotangents: Sequence[Any], *, retain: bool, create: bool,
                 targets: Sequence[Edge] | None = None, accumulate: bool = False,
                 tensors: bool = False, stops_at_targets: bool = False) -> dict[Edge, Any]:
    """Propagate cotangents from the roots to the leaves.

    Args:
        roots: where the pass begins: (node, output number).
        cotangents: one tensor each.
        retain: keep the saved tensors.
        create: record the rules, so that the gradients can be differentiated.
        targets: the edges whose gradients are requested and returned. None: all leaves accumulate.
        accumulate: return nothing: leaves among the targets accumulate into `.grad`, other targets are evaluated.
        tensors: call the rules on tensors though nothing is recorded: for batches, and for tangents to propagate.
        stops_at_targets: treat the targets as independent, although one may have been computed from another.

    Returns:
        The gradients captured at the targets: arrays, or tensors if `create` or `tensors`.
    """
    if current_task.get() is not _outer_task.get():
        return _run_reentrant(roots, cotangents, retain=retain, create=create, targets=targets, accumulate=accumulate,
                              tensors=tensors, stops_at_targets=stops_at_targets)
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            tensors = True
            tracer.on_backward_begin()
        if dispatch_in_use[0]:
            tensors = True
    if elementless_used[0] and any_without_elements(cotangents):
        tensors = True  # whose operators infer metadata
    tensors = tensors or create
    if targets is None and not tensors and not (LeafHooks.registered and LeafHooks.any()) and not (
            special[0] and (Anomaly.enabled or active_timeline() is not None or observers())):
        if bits_used[0]:
            cotangents = [layer.wrap(resolve(g._array)) for g in cotangents]
        run_array_backward(roots, cotangents, retain)
        return {}
    notified = observers() if special[0] else ()
    for observer in notified:
        observer.on_backward_begin(roots, cotangents)
    task = _create_task(roots, retain, tensors)
    task.captured = {}
    order, task.dependencies = reachable(roots)
    if targets is not None:
        task.captures = {}
        ends: set[Node] = set()
        for node, output in targets:
            ends.add(node)
            if not accumulate:
                task.captures.setdefault(node, []).append(output)
        task.needed = needed_nodes(order, ends)
        if accumulate:
            task.needed |= ends
        elif stops_at_targets:
            task.needed, task.stops_at_captures = task.needed - ends, True
    for (node, output), g in zip(roots, cotangents, strict=True):
        task.deliver(node, output, g if tensors else resolve(g._array))
    grad, outer = grad_mode.get(), current_task.get()
    token = set_state(IGNORE)
    try:  # an interrupt may arrive at any moment
        grad_mode.set(create)
        task.entered = current_task.set(task)
        task.fast = not tensors and special[0] == level_count[0] and type(task) is GraphTask
        for node, left in list(task.dependencies.items()):
            if not left:
                task.finish_leaf(node)
        if task.fast and targets is None:
            task.run_to_leaves(order)
        else:
            for node in order:
                task.step(node)
        if stops_at_targets:  # edges below the targets deliver nothing
            for node in [leaf for leaf in task.dependencies if leaf in task.buffers]:
                task.finish_leaf(node)
        if task.final_callbacks:
            task.call_final_callbacks()
    finally:
        grad_mode.set(grad)
        current_task.set(outer)
        reset_state(token)
        for observer in notified:
            observer.on_backward_end()
        if special[0] and (tracer := active_tracer.get()) is not None:
            tracer.on_backward_end()
    return task.captured


def _create_task(roots: Sequence[Edge], keep_graph: bool, tensors: bool) -> GraphTask:
    if special[0] and observers():
        from .execution.instrumented_graph_task import InstrumentedGraphTask

        return InstrumentedGraphTask(roots, keep_graph, tensors)
    if active_timeline() is None:
        return GraphTask(roots, keep_graph, tensors)
    from .execution.profiled_graph_task import ProfiledGraphTask

    return ProfiledGraphTask(roots, keep_graph, tensors)


def _run_reentrant(*args: Any, **kwargs: Any) -> dict[Edge, Any]:
    """Run a pass that was started by another one."""
    from .execution.reentrant import run_reentrant

    def begin() -> dict[Edge, Any]:
        outer = _outer_task.set(current_task.get())
        try:
            return run_backward(*args, **kwargs)
        finally:
            _outer_task.reset(outer)

    return run_reentrant(begin)


# ----- queries of the running pass, for hooks ------------------------------------------------


def current_graph_task_id() -> int:
    """The identifier of the backward pass that runs in this thread; -1 if there is none."""
    task = current_task.get()
    if task is None:
        return -1
    if not task.task_id:
        task.task_id = 1 + _next_task_id()
    return task.task_id


def queue_callback(callback: Callable[[], Any]) -> None:
    """Queue a callback for the end of the backward pass that runs in this thread.

    Raises:
        RuntimeError: no pass runs.
    """
    task = current_task.get()
    if task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    if task.final_callbacks is None:
        task.final_callbacks = []
    task.final_callbacks.append(callback)


def will_execute(node: Node) -> bool:
    """Whether the backward pass that runs in this thread evaluates a node.

    Raises:
        RuntimeError: no pass runs.
    """
    task = current_task.get()
    if task is None:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    return task.will_execute(node)


def reaches_all_leaves() -> bool:
    """Whether no backward pass that runs in this thread is restricted to the gradients of certain inputs."""
    task = current_task.get()
    while isinstance(task, GraphTask):
        if task.needed is not None:
            return False
        task = None if task.entered is None else task.entered.old_value
    return True
