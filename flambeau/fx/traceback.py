"""What new nodes inherit from the node that is being executed: stack, annotations, origin."""

from __future__ import annotations

import copy
import functools
import threading
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from ._compatibility import compatibility

__all__ = ["NodeSource", "NodeSourceAction", "annotate", "annotate_fn", "format_stack", "get_current_meta",
           "get_current_replay_node", "get_graph_provenance_json", "has_preserved_node_meta", "preserve_node_meta",
           "reset_grad_fn_seq_nr", "set_current_meta", "set_current_replay_node", "set_grad_fn_seq_nr",
           "set_stack_trace"]

GRADIENT_ACC_SPECIAL_STACK = "Gradient addition node due to multiple use of tensor around:"
MEMORY_BUDGET_ANNOTATION_KEY = "_region_activation_memory_budget"

current_meta: dict[str, Any] = {}
current_replay_node: Any = None
should_preserve_node_meta = False
_should_preserve_node_meta = False
_FX_METADATA_REGISTRY: dict[str, dict[str, Any]] = {}
_subgraph_name = threading.local()
#: (file, function) of functions whose frames recorded stacks keep
_STACK_TRACE_ANCHORS: set[tuple[str, str]] = set()


def _register_fx_metadata(module_name: str, metadata: dict[str, Any]) -> None:
    _FX_METADATA_REGISTRY[module_name] = metadata


def _register_stack_trace_anchor(fn: Callable[..., Any]) -> None:
    code = getattr(fn, "__code__", None)
    if code is not None:
        _STACK_TRACE_ANCHORS.add((code.co_filename, code.co_name))


@compatibility(is_backward_compatible=False)
class NodeSourceAction(Enum):
    """What a pass did to make a node."""

    CREATE = "create"
    REPLACE = "replace"


@compatibility(is_backward_compatible=False)
class NodeSource:
    """The node that another one was made from.

    Attributes:
        node_info: its name, its target as text, and the id of its graph; None if it is not known.
        from_node: the sources of that node.
        pass_name: the pass that made the new node.
        action: what the pass did.
    """

    class NodeInfo:
        """Name, target and graph of a node."""

        def __init__(self, name: str, target: str, graph_id: int) -> None:
            self.name, self.target, self.graph_id = name, target, graph_id

    def __init__(self, node: Any, pass_name: str = "", action: Any = None) -> None:
        actions = [] if action is None else action if isinstance(action, list) else [action]
        for each in actions:
            if not isinstance(each, NodeSourceAction):
                raise AssertionError(f"Expected NodeSourceAction, got {type(each)}")
        self.pass_name, self.action = pass_name, actions
        self.node_info: Any = None
        self.from_node: list[NodeSource] = []
        if node:
            self.node_info = self.NodeInfo(name=node.name, target=str(node.target), graph_id=id(node.graph))
            self.from_node = copy.deepcopy(node.meta.get("from_node", []))

    @property
    def name(self) -> str:
        """The node's name, or ""."""
        return self.node_info.name if self.node_info else ""

    @property
    def target(self) -> str:
        """The node's target as text, or ""."""
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self) -> int:
        """The id of the node's graph, or -1."""
        return self.node_info.graph_id if self.node_info else -1

    def _get_action_string(self) -> str:
        return "+".join(each.name.lower() for each in self.action)

    def __repr__(self) -> str:
        return self.print_readable()

    def print_readable(self, indent: int = 0) -> str:
        """The source and its sources as indented text."""
        if indent > 9:
            return ""
        head = (f"{' ' * (indent * 4)}(name={self.name}, pass_name={self.pass_name}, "
                f"action={self._get_action_string()}, graph_id={self.graph_id})\n")
        return head + "".join(item.print_readable(indent + 1) for item in self.from_node)

    def to_dict(self) -> dict[str, Any]:
        """The source as a dictionary of plain values."""
        return {"name": self.name, "target": self.target, "graph_id": self.graph_id, "pass_name": self.pass_name,
                "action": self._get_action_string(), "from_node": [node.to_dict() for node in self.from_node]}

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, NodeSource) else False

    def __hash__(self) -> int:
        return hash(_hashable(self.to_dict()))

    @classmethod
    def _from_dict(cls, d: dict[str, Any] | None) -> NodeSource | None:
        if d is None:
            return None
        if not isinstance(d, dict):
            raise AssertionError(f"Expected a dict, got {type(d)}")
        result = cls(None, d.get("pass_name", ""), [
            NodeSourceAction[word.upper()] for word in (d.get("action") or "").split("+") if word])
        if "name" in d and "target" in d and "graph_id" in d:
            result.node_info = cls.NodeInfo(d["name"], d["target"], d["graph_id"])
        result.from_node = [each for each in map(cls._from_dict, d.get("from_node") or []) if each is not None]
        return result


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(sorted((key, _hashable(item)) for key, item in value.items()))
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


@compatibility(is_backward_compatible=False)
@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Make new nodes inherit the data of the node that is being executed, in the block."""
    global should_preserve_node_meta, current_meta
    saved, saved_meta = should_preserve_node_meta, current_meta.copy()
    try:
        should_preserve_node_meta = enable
        yield
    finally:
        should_preserve_node_meta, current_meta = saved, saved_meta


@contextmanager
def _preserve_node_seq_nr(preserve_seq_nr: bool = True) -> Iterator[None]:
    global _should_preserve_node_meta
    saved = _should_preserve_node_meta
    try:
        _should_preserve_node_meta = preserve_seq_nr
        yield
    finally:
        _should_preserve_node_meta = saved


def _is_preserving_node_seq_nr() -> bool:
    return _should_preserve_node_meta


@compatibility(is_backward_compatible=False)
def has_preserved_node_meta() -> bool:
    """Whether new nodes inherit data."""
    return should_preserve_node_meta


@compatibility(is_backward_compatible=False)
def set_stack_trace(stack: list[str]) -> None:
    """Set the stack that new nodes inherit."""
    if should_preserve_node_meta:
        if stack:
            current_meta["stack_trace"] = "".join(stack)
        else:
            current_meta.pop("stack_trace", None)


@compatibility(is_backward_compatible=False)
@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Add entries to the annotations that new nodes inherit, in the block."""
    had = "custom" in current_meta
    former = copy.copy(current_meta.get("custom", {}))
    try:
        current_meta.setdefault("custom", {}).update(annotation_dict)
        yield
    finally:
        if had:
            current_meta["custom"] = former
        else:
            del current_meta["custom"]


@compatibility(is_backward_compatible=False)
def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that adds entries to the annotations of all nodes that a function makes."""
    def decorator(func: Callable[..., Any]) -> Callable[..., Any]:
        _register_stack_trace_anchor(func)

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return func(*args, **kwargs)

        return wrapper

    return decorator


@compatibility(is_backward_compatible=False)
def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Enter a node of the backward pass with a sequence number."""
    if should_preserve_node_meta:
        current_meta["grad_fn_seq_nr"] = [*current_meta.get("grad_fn_seq_nr", []), seq_nr]
        current_meta["in_grad_fn"] = current_meta.get("in_grad_fn", 0) + 1


@compatibility(is_backward_compatible=False)
def reset_grad_fn_seq_nr() -> None:
    """Leave a node of the backward pass."""
    if should_preserve_node_meta:
        level = current_meta.get("in_grad_fn", 0)
        if level <= 0:
            raise AssertionError(f"Expected current_level > 0, got {level}")
        if level == 1:
            del current_meta["in_grad_fn"], current_meta["grad_fn_seq_nr"]
        else:
            current_meta["in_grad_fn"] = level - 1
            current_meta["grad_fn_seq_nr"] = current_meta["grad_fn_seq_nr"][:-1]


@compatibility(is_backward_compatible=False)
def format_stack() -> list[str]:
    """The stack that new nodes inherit; the Python stack if they inherit none."""
    if should_preserve_node_meta:
        return [current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@compatibility(is_backward_compatible=False)
@contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """Make new nodes inherit the data of a node, in the block."""
    global current_meta
    if not (should_preserve_node_meta and node.meta):
        yield
        return
    saved = current_meta
    try:
        current_meta = node.meta.copy()
        current_meta["from_node"] = [NodeSource(node, pass_name, NodeSourceAction.CREATE)]
        yield
    finally:
        current_meta = saved


@compatibility(is_backward_compatible=False)
def get_current_meta() -> dict[str, Any]:
    """The data that new nodes inherit."""
    return current_meta


@compatibility(is_backward_compatible=False)
@contextmanager
def set_current_replay_node(node: Any) -> Iterator[None]:
    """Set the node that is being made again, in the block."""
    global current_replay_node
    saved = current_replay_node
    try:
        current_replay_node = node
        yield
    finally:
        current_replay_node = saved


@compatibility(is_backward_compatible=False)
def get_current_replay_node() -> Any:
    """The node that is being made again."""
    return current_replay_node


@compatibility(is_backward_compatible=False)
def get_graph_provenance_json(graph: Any) -> dict[str, Any]:
    """Name of each function call of a graph -> its sources as dictionaries."""
    return {node.name: [source.to_dict() for source in node.meta.get("from_node", [])]
            for node in graph.nodes if node.op == "call_function"}


def _get_ordered_seq_nr_groups(gm: Any) -> list[list[str]]:
    groups: dict[int, list[str]] = defaultdict(list)
    for module in gm if isinstance(gm, list) else [gm]:
        for node in module.graph.nodes:
            if node.op == "call_function" and node.meta.get("seq_nr") is not None:
                groups[node.meta["seq_nr"]].append(node.name)
    return [sorted(groups[key]) for key in sorted(groups)]
