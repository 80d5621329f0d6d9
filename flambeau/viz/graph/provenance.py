"""Where nodes come from: the line of code, the module, the shapes; noted beside each node for as long as it lives."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from ..._tensor.tensor import Tensor
from ...engine.nodes.node import Node

_TRACEBACK = "traceback_"  # where anomaly mode keeps the callers of an operator


class Place(NamedTuple):
    """A line of somebody's code."""

    file: str
    line: int
    function: str

    @property
    def code(self) -> str:
        """The line's text; empty where its file cannot be read."""
        return linecache.getline(self.file, self.line).strip()


class Origin(NamedTuple):
    """Where a node comes from: the innermost line outside this library, the module, and the shapes of its outputs."""

    place: Place | None
    module: str | None
    outputs: tuple[tuple[tuple[int, ...], str], ...]


_origins: weakref.WeakKeyDictionary[Node, Origin] = weakref.WeakKeyDictionary()
#: identity of a parameter -> itself, weakly, and its name; tensors compare by elements, so they can be no keys
_labels: dict[int, tuple[weakref.ref[Tensor], str]] = {}
#: dotted path of a module -> its class
_kinds: dict[str, str] = {}


def origin_of(node: Any) -> Origin | None:
    """What `watching`, or else anomaly mode, noted of a node when it was made."""
    found = _origins.get(node)
    if found is not None:
        return found
    extra = getattr(node, "extra", None)
    lines = None if extra is None or extra.metadata is None else extra.metadata.get(_TRACEBACK)
    return Origin(_place_in(lines[-1]), None, ()) if lines else None


def was_noted(node: Any) -> bool:
    """Whether it is known where a node comes from."""
    return node in _origins


def note_origin(node: Any, origin: Origin) -> None:
    """Note where a node comes from."""
    _origins[node] = origin


def label_of(leaf: Any) -> str | None:
    """The name of a parameter of a model that was watched."""
    held = _labels.get(id(leaf))
    return held[1] if held is not None and held[0]() is leaf else None


def note_label(parameter: Any, name: str) -> None:
    """Name a parameter, unless it has a name."""
    if label_of(parameter) is None:
        key = id(parameter)
        _labels[key] = weakref.ref(parameter, _forgetting(key)), name


def note_kind(module: str, kind: str) -> None:
    """Note the class of the module at a path."""
    _kinds[module] = kind


def kind_of(module: str) -> str | None:
    """The class of a module, by the path that `watching` gave it."""
    return _kinds.get(module)


def _place_in(entry: str) -> Place | None:
    """The place that a formatted entry of a traceback names."""
    head = entry.strip().partition("\n")[0]
    file, _, rest = head.removeprefix('File "').partition('", line ')
    line, _, function = rest.partition(", in ")
    return Place(file, int(line), function) if line.isdigit() else None


def _forgetting(key: int) -> Callable[[object], None]:
    def forget(reference: object) -> None:
        if key in _labels and _labels[key][0] is reference:
            del _labels[key]

    return forget


__all__ = ["Origin", "Place", "kind_of", "label_of", "note_kind", "note_label", "note_origin", "origin_of",
           "was_noted"]
