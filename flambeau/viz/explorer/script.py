"""`flambeau graph script.py`: runs a script under `watching`, and writes the explorer page of its graphs."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path

from ..._tensor.tensor import Tensor
from ..graph.graph import Graph
from ..graph.recording import watching
from ..training.statistics import statistics
from .document import Step, forward_events, recorded_document
from .page import open_page, write_page

_MOST_NODES = 20_000  # of the graphs that are alive at the end


def explore_script(run: Callable[[], int], script: str, out: Path | None, open_browser: bool) -> int:
    """Run a script under `watching`, and write the page of all graphs that had a backward pass or are alive.

    Args:
        run: runs the script and returns its exit status.
        script: its file, for the title.
        out: the page's file; None: in the current directory, named after the script.
        open_browser: whether to open the page.

    Returns:
        The script's exit status; 1 if it recorded no graph.
    """
    status = 0
    leaving: SystemExit | None = None
    with watching() as watch:
        try:
            status = run()
        except SystemExit as raised:  # the script called sys.exit; the page is written nevertheless
            leaving = raised
        also = _alive(watch)
    if not watch.graphs and not also:
        print(f"flambeau graph: {script} made no graph: nothing in it requires grad", file=sys.stderr)
        if leaving is not None:
            raise leaving
        return status or 1
    name = Path(script).name
    page = write_page(recorded_document(watch, name, also=also), out or Path(f"{Path(script).stem}-graph.html"))
    print(f"The graph of {name} is in {page}")
    if open_browser:
        open_page(page)
    if leaving is not None:
        raise leaving
    return status


def _alive(watch: watching) -> list[Step]:
    """The graphs of live tensors that had no backward pass."""
    recorded = {node["seq"] for entry in watch.graphs for node in entry["graph"]["nodes"]}
    ends = {}
    for thing in gc.get_objects():
        if issubclass(type(thing), Tensor) and thing._node is not None:  # isinstance may run code of proxies
            node = thing.grad_fn
            if node is not None and node.seq not in recorded:
                ends[node] = thing
    if not ends:
        return []
    graph = Graph(list(ends))
    inner = {target for node in graph for target, _, _ in node.edges}
    roots = [node for node in graph if node.id not in inner]
    graph = Graph([node.node for node in roots])
    if len(graph) > _MOST_NODES:
        graph = Graph([roots[0].node])
    made: dict[int, list[dict[str, object]]] = {}
    for event in watch.events:
        if event["kind"] == "forward":
            made.setdefault(event["seq"], []).append(event)
    described = graph.to_dict()
    values = {node.seq: statistics(node.variable._array) for node in graph if node.variable is not None}
    return [Step("alive at the end", described, forward_events(described, made), values,
                 "No backward pass went through this graph; a tensor that is still alive keeps it.")]


__all__ = ["explore_script"]
