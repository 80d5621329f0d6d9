"""The explorer's document: the JSON data of a page, with deduplicated kinds of nodes, steps, and their events.

"kinds" has the attributes that nodes share between iterations of a loop and training steps. A step's "nodes" are
[kind, edges, value], oldest first; its "events" are [code, node, statistics, more].
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from ...engine.profiler_events import trace_metadata
from ...version import __version__

if TYPE_CHECKING:
    from ..graph.recording import watching

FORWARD, BACKWARD, ACCUMULATE, FREE = range(4)
MOST_STEPS = 200
FULL_STATISTICS = 60_000  # events; beyond, only some steps have histograms

_FIGURES = ("min", "max", "mean", "std")
_FAMILIES = {"elementwise": "elementwise", "linear": "linear", "view": "view", "op": "op", "composite": "op"}

Event = tuple[int, int, Any, dict[str, Any]]  # code, seq of the node, statistics or None, more


@dataclass
class Step:
    """One graph and its events.

    Attributes:
        name: "step 3".
        graph: the result of `Graph.to_dict()`.
        events: (code, seq of the node, statistics or None, more), in order.
        values: seq of a leaf -> statistics of its value.
        note: a remark that the page shows.
        derived: whether the forward pass was not recorded.
    """

    name: str
    graph: dict[str, Any]
    events: list[Event]
    values: Mapping[int, Any] = field(default_factory=dict)
    note: str = ""
    derived: bool = False


def document_of(steps: Sequence[Step], title: str = "", subtitle: str = "") -> dict[str, Any]:
    """The document of some steps; of more than 200, 200 evenly spaced ones."""
    if not steps:
        raise RuntimeError("there is no graph to explore: no backward pass was recorded")
    total = len(steps)
    if total > MOST_STEPS:
        steps = [steps[round(k * (total - 1) / (MOST_STEPS - 1))] for k in range(MOST_STEPS)]
    kinds = _Kinds()
    events = sum(len(step.events) for step in steps)
    stride = math.ceil(events / FULL_STATISTICS)
    written = [_step(step, kinds, number % stride == 0) for number, step in enumerate(steps)]
    modules: dict[str, str] = {}
    for step in steps:
        modules |= step.graph.get("modules", {})
    return {"format": 1, "version": __version__, "title": (title or _title(steps[-1])) + _rank(), "subtitle": subtitle,
            "total": total, "kinds": kinds.written, "modules": modules, "steps": written}


def recorded_document(watch: watching, title: str = "", subtitle: str = "",
                      also: Iterable[Step] = ()) -> dict[str, Any]:
    """The document of a recording: each backward pass is a step.

    Args:
        watch: the recording.
        title, subtitle: of the page.
        also: more steps, of graphs without a backward pass.
    """
    return document_of([*recorded_steps(watch), *also], title, subtitle)


def recorded_steps(watch: watching) -> list[Step]:
    """One step for each recorded backward pass."""
    made: dict[int, list[dict[str, Any]]] = {}
    passes: dict[int, list[dict[str, Any]]] = {}
    for event in watch.events:
        if event["kind"] == "forward":
            made.setdefault(event["seq"], []).append(event)
        elif "pass" in event:
            passes.setdefault(event["pass"], []).append(event)
    several = len({entry["step"] for entry in watch.graphs}) > 1
    passes_of: dict[int, int] = {}
    for entry in watch.graphs:
        passes_of[entry["step"]] = passes_of.get(entry["step"], 0) + 1
    count: dict[int, int] = {}
    steps = []
    for entry in watch.graphs:
        graph, number = entry["graph"], entry["step"]
        turn = count[number] = count.get(number, 0) + 1
        name = f"step {number + 1}" if several else f"pass {turn}"
        if several and passes_of[number] > 1:
            name += f", pass {turn}"
        events = forward_events(graph, made)
        for event in passes.get(entry["pass"], ()):
            events.append(backward_event(event))
        unseen = sum(not node["is_leaf"] and node["seq"] not in made for node in graph["nodes"])
        note = (f"{unseen} of the nodes were created before the recording: their values are unknown."
                if unseen else "")
        steps.append(Step(name, graph, events, entry.get("values", {}), note))
    return steps


def forward_events(graph: Mapping[str, Any], made: Mapping[int, Sequence[Mapping[str, Any]]]
                   ) -> list[Event]:
    """The forward events of a graph: its nodes oldest first, with recorded statistics."""
    events: list[Event] = []
    for node in reversed(graph["nodes"]):
        if node["is_leaf"]:
            continue
        for event in made.get(node["seq"], ({},)):
            outputs = [shown for shown in event.get("outputs", ()) if shown is not None]
            events.append((FORWARD, node["seq"], outputs[0] if outputs else None, {}))
    return events


def backward_event(event: Mapping[str, Any]) -> Event:
    """An event of the backward pass: code, seq, statistics, more."""
    if event["kind"] == "backward":
        return BACKWARD, event["seq"], next((g for g in event["cotangents"] if g is not None), None), {}
    if event["kind"] == "free":
        return FREE, event["seq"], None, {"bytes": event["bytes"]}
    return ACCUMULATE, event["seq"], event["gradient"], {"grad": event["grad"], "captured": event["captured"]}


# ----- writing -----

class _Kinds:
    """The deduplicated kinds of nodes."""

    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []
        self._indices: dict[str, int] = {}

    def index_of(self, kind: dict[str, Any]) -> int:
        text = json.dumps(kind)
        if text not in self._indices:
            self._indices[text] = len(self.written)
            self.written.append(kind)
        return self._indices[text]


def _step(step: Step, kinds: _Kinds, full: bool) -> dict[str, Any]:
    oldest_first = in_order_of_use(step.graph["nodes"])
    index = {node["id"]: number for number, node in enumerate(oldest_first)}
    number_of = {node["seq"]: number for number, node in enumerate(oldest_first)}
    modules_by_prefix = _unique_modules(step.graph.get("modules", {}))
    nodes = []
    for node in oldest_first:
        edges = [value for target, place, output in node["edges"] for value in (index[target], place, output)]
        kind = kinds.index_of(_kind(node, modules_by_prefix))
        nodes.append([kind, edges, *_value(step.values.get(node["seq"]), full)])
    events = []
    for code, seq, shown, more in step.events:
        if seq not in number_of:
            continue
        extra = {name: _statistics(value, full) if name == "grad" else value for name, value in more.items() if value}
        events.append(_trimmed([code, number_of[seq], _statistics(shown, full), extra or None]))
    written: dict[str, Any] = {"name": step.name, "nodes": nodes, "events": events}
    if step.note:
        written["note"] = step.note
    if step.derived:
        written["derived"] = True
    loss = _scalar(step)
    if loss is not None:
        written["loss"] = loss
    return written


def in_order_of_use(newest_first: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Nodes oldest first, but each leaf directly before its first user."""
    place = {node["id"]: float(number) for number, node in enumerate(reversed(newest_first))}
    first: dict[int, float] = {}
    for node in newest_first:
        for target, _, _ in node["edges"]:
            first[target] = place[node["id"]] - 0.5
    oldest_first = newest_first[::-1]
    return sorted(oldest_first, key=lambda node: first.get(node["id"], place[node["id"]]) if node["is_leaf"]
                  else place[node["id"]])


def _value(shown: Any, full: bool) -> list[Any]:
    return [] if shown is None else [_statistics(shown, full)]


def _trimmed(event: list[Any]) -> list[Any]:
    while event[-1] is None:
        event.pop()
    return event


def _scalar(step: Step) -> float | None:
    """The value of the graph's result, if it is a recorded scalar."""
    roots = step.graph["roots"]
    if len(roots) != 1:
        return None
    seq = next(node["seq"] for node in step.graph["nodes"] if node["id"] == roots[0])
    shown = [found for code, which, found, _ in step.events if code == FORWARD and which == seq and found is not None]
    if not shown or "mean" not in shown[-1] or math.prod(shown[-1]["shape"]) != 1 or shown[-1]["mean"] is None:
        return None
    return float(_short(shown[-1]["mean"]))


def _kind(node: Mapping[str, Any], modules_by_prefix: Mapping[str, str]) -> dict[str, Any]:
    kind: dict[str, Any] = {
        "name": node["name"], "operator": node["operator"], "family": _family(node), "formula": node["formula"],
        "pullbacks": node["pullbacks"], "outputs": [[shown["shape"], shown["dtype"]] for shown in node["outputs"]],
        "saved": [{name: value for name, value in saved.items() if name != "shared" or value}
                  for saved in node["saved"]],
        "bytes": node["bytes"],
    }
    module = node["module"]
    if node["is_leaf"]:
        kind["leaf"] = True
        kind["label"] = node["label"] or ""
        if node["label"]:
            module = module or modules_by_prefix.get(node["label"].rpartition(".")[0])
    if module:
        kind["module"] = module
    if node["source"]:
        file, kind["line"], kind["code"] = node["source"]
        kind["file"] = _relative_path(file)
    if node["freed"]:
        kind["freed"] = True
    for saved in kind["saved"]:
        if saved.get("shared", "").startswith("node "):  # the page does not show ids
            saved["shared"] = "another node"
    return kind


def _relative_path(file: str) -> str:
    """A file's path relative to the current directory, if it is in it."""
    folder = os.path.join(os.getcwd(), "")
    return file.removeprefix(folder)


def _unique_modules(modules: Iterable[str]) -> dict[str, str]:
    """Prefix of a parameter's name ("encoder.0") -> the module's path, where it is unambiguous."""
    found: dict[str, str] = {}
    for path in modules:
        _, _, within = path.partition(".")
        found[within] = "" if within in found else path
    return {within: path for within, path in found.items() if path}


def _family(node: Mapping[str, Any]) -> str:
    if node["is_leaf"]:
        return "leaf"
    return _operator_families().get(node["name"], "op" if node["name"].endswith("0") else "custom")


@cache
def _operator_families() -> dict[str, str]:
    """Node name -> the kind of its operator's declaration."""
    from ...ops.declare import REGISTRY

    return {op.node: _FAMILIES[op.kind] for op in REGISTRY.values()}


def _statistics(shown: Mapping[str, Any] | None, full: bool) -> dict[str, Any] | None:
    """Statistics with rounded numbers."""
    if shown is None or "mean" not in shown:
        return None
    count = math.prod(shown["shape"])
    found: dict[str, Any] = {"count": count, "shape": shown["shape"], "dtype": shown["dtype"]}
    found |= {name: _short(shown[name]) for name in _FIGURES}
    found |= {name: shown[name] for name in ("nan", "inf", "zeros") if shown[name]}
    if full or count == 1:
        found["values"] = _short(shown["values"])
    if full and count > 1:
        found["bins"] = shown["bins"]
    return found


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(item) for item in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def _rank() -> str:
    """Which process of a group writes the page, if it is in one."""
    for describe in trace_metadata:
        info = describe().get("distributedInfo")
        if info:
            return f" on rank {info['rank']} of {info['world_size']}"
    return ""


def _title(step: Step) -> str:
    """The source line of the result, or its operator."""
    root = next(node for node in step.graph["nodes"] if node["id"] == step.graph["roots"][0])
    source = root["source"]
    return source[2] if source and source[2] else f"the graph of {root['operator']}"


__all__ = ["Step", "backward_event", "document_of", "forward_events", "recorded_document", "recorded_steps"]
