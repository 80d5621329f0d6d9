"""Values and adjoints of a graph that was not recorded: from saved tensors, and from a separate backward pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._tensor.tensor import Tensor
from ...engine.nodes.op_node import OpNode
from ...engine.nodes.saved_attributes import names_of_saved_tensors
from ...engine.observers import observers, without_observers
from ..graph.graph import Graph
from ..graph.recording import watching
from ..graph.saved_memory import saved_values
from ..training.statistics import statistics
from .document import BACKWARD, Step, backward_event, forward_events, recorded_steps

_FREED = ("backward() has freed the saved tensors of this graph. Run the program under flambeau.viz.watching() to "
          "see values and adjoints.")
_HOOKED = ("The graph has hooks, so no backward pass was run to compute adjoints. Run the program under "
           "flambeau.viz.watching() to see them.")
_SAVED = ("This graph was not recorded: values are its saved tensors, adjoints come from a separate backward pass "
          "that did not change any .grad.")


def probe(loss: Any, model: Any = None) -> tuple[list[Step], str]:
    """The steps to show for a tensor, several, or a `Graph`, and a title."""
    graph = loss if isinstance(loss, Graph) else Graph.of(loss, model)
    made: dict[int, list[dict[str, Any]]] = {}
    for observer in observers():
        if isinstance(observer, watching):
            for event in observer.events:
                if event["kind"] == "forward":
                    made.setdefault(event["seq"], []).append(event)
            for step in reversed(recorded_steps(observer)):
                if step.graph["nodes"] and _same(step.graph, graph):
                    return [step], ""
    watched = any(node.seq in made for node in graph)
    if not watched:
        made = _saved_values(graph)
    described = graph.to_dict()
    events = forward_events(described, made)
    if any(node.freed for node in graph):
        note = _FREED
    elif _hooked(graph):
        note = _HOOKED
    else:
        adjoints = without_observers(lambda: _adjoints(graph, _roots(loss)))
        _fill_in_shapes(described, adjoints)
        events += adjoints
        note = "" if watched else _SAVED
    values = {node.seq: statistics(node.variable._array) for node in graph if node.variable is not None}
    return [Step("graph", described, events, values, note, not watched)], ""


def _same(described: Mapping[str, Any], graph: Graph) -> bool:
    return [node["seq"] for node in described["nodes"]] == [node.seq for node in graph]


def _roots(loss: Any) -> list[Tensor]:
    if isinstance(loss, Graph):
        return []
    return [x for x in (loss if isinstance(loss, (list, tuple)) else [loss]) if x.grad_fn is not None]


def _hooked(graph: Graph) -> bool:
    for each in graph:
        extra = getattr(each.node, "extra", None)
        if extra is not None and (extra.tensor_hooks or extra.pre_hooks or extra.post_hooks or extra.retained):
            return True
        if each.variable is not None and each.variable._backward_hooks:
            return True
    return False


def _adjoints(graph: Graph, roots: list[Tensor]) -> list[Any]:
    """The events of a backward pass from the roots with cotangents of ones; `.grad` does not change."""
    from ..._tensor.creation.constants import ones_like
    from ...engine.api import grad

    leaves = [node.variable for node in graph if node.variable is not None]
    if not roots or not leaves:
        return []
    with watching(graphs=False) as watch:
        grad(roots, leaves, [ones_like(root) for root in roots], retain_graph=True, allow_unused=True)
    return [backward_event(event) for event in watch.events if event["kind"] in ("backward", "accumulate")]


def _fill_in_shapes(described: Mapping[str, Any], adjoints: list[Any]) -> None:
    """Set unknown shapes and dtypes of values to those of their adjoints."""
    shown = {seq: found for code, seq, found, _ in adjoints if code == BACKWARD and found is not None}
    for node in described["nodes"]:
        outputs = node["outputs"]
        if len(outputs) == 1 and node["seq"] in shown:
            for what in ("shape", "dtype"):
                if outputs[0][what] is None:
                    outputs[0][what] = shown[node["seq"]][what]


def _saved_values(graph: Graph) -> dict[int, list[dict[str, Any]]]:
    """Statistics of saved outputs and inputs: sequence number -> forward events."""
    found: dict[int, list[dict[str, Any]]] = {}
    for each in graph:
        node = each.node
        if not isinstance(node, OpNode) or node.saved is None:
            continue
        arrays_by_name = {saved.name: saved.array for saved in saved_values(node)}
        names = names_of_saved_tensors(node)
        arrays = [arrays_by_name.get(name) for name in names]
        drawn = node.visible_edges()
        for target, position, output in each.edges:
            place = position if drawn is None else drawn[position]
            if output == 0 and place in node.plan.saved_inputs and not graph.nodes[target].is_leaf:
                array = arrays[node.plan.saved_inputs.index(place)]
                if array is not None:
                    found.setdefault(graph.nodes[target].seq, [{"outputs": [statistics(array)]}])
        if 0 in node.plan.saved_outputs:
            array = arrays[len(arrays) - len(node.plan.saved_outputs) + node.plan.saved_outputs.index(0)]
            if array is not None:
                found[each.seq] = [{"outputs": [statistics(array)]}]
    return found


__all__ = ["probe"]
