"""Provenance of nodes: source line, module and output shapes, in weak dictionaries keyed by node."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from ..._tensor.tensor import Tensor
from ...engine.nodes.node import Node

_TRACEBACK = "traceback_"  # the metadata key under which anomaly mode stores a traceback


class SourceLine(NamedTuple):
    """A line of user code."""

    file: str
    line: int
    function: str

    @property
    def code(self) -> str:
        """The line's text; empty if its file cannot be read."""
        return linecache.getline(self.file, self.line).strip()


class Origin(NamedTuple):
    """The innermost source line outside this library, the module, and the output shapes of a node."""

    place: SourceLine | None
    module: str | None
    outputs: tuple[tuple[tuple[int, ...], str], ...]


_origins: weakref.WeakKeyDictionary[Node, Origin] = weakref.WeakKeyDictionary()
#: id of a parameter -> weak reference, name (tensors compare elementwise, so they cannot be keys)
_labels: dict[int, tuple[weakref.ref[Tensor], str]] = {}
#: dotted path of a module -> its class
_module_classes: dict[str, str] = {}


def origin_of(node: Any) -> Origin | None:
    """The provenance that `watching` or anomaly mode recorded for a node."""
    origin = _origins.get(node)
    if origin is not None:
        return origin
    extra = getattr(node, "extra", None)
    lines = None if extra is None or extra.metadata is None else extra.metadata.get(_TRACEBACK)
    return Origin(_parse_traceback_entry(lines[-1]), None, ()) if lines else None


def has_origin(node: Any) -> bool:
    """Whether a node's provenance was recorded."""
    return node in _origins


def record_origin(node: Any, origin: Origin) -> None:
    """Record a node's provenance."""
    _origins[node] = origin


def label_of(leaf: Any) -> str | None:
    """The recorded name of a parameter."""
    entry = _labels.get(id(leaf))
    return entry[1] if entry is not None and entry[0]() is leaf else None


def record_label(parameter: Any, name: str) -> None:
    """Record a parameter's name, unless it has one."""
    if label_of(parameter) is None:
        key = id(parameter)
        _labels[key] = weakref.ref(parameter, _removal_callback(key)), name


def record_module_class(module: str, class_name: str) -> None:
    """Record the class of the module at a dotted path."""
    _module_classes[module] = class_name


def class_of_module(module: str) -> str | None:
    """The recorded class of the module at a dotted path."""
    return _module_classes.get(module)


def _parse_traceback_entry(entry: str) -> SourceLine | None:
    """The source line that a formatted traceback entry names."""
    head = entry.strip().partition("\n")[0]
    file, _, rest = head.removeprefix('File "').partition('", line ')
    line, _, function = rest.partition(", in ")
    return SourceLine(file, int(line), function) if line.isdigit() else None


def _removal_callback(key: int) -> Callable[[object], None]:
    def remove(reference: object) -> None:
        if key in _labels and _labels[key][0] is reference:
            del _labels[key]

    return remove


__all__ = [
    "Origin",
    "SourceLine",
    "class_of_module",
    "has_origin",
    "label_of",
    "origin_of",
    "record_label",
    "record_module_class",
    "record_origin",
]
