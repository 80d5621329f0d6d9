"""Annotations of items of tuples and lists."""

from __future__ import annotations

import operator
import typing
from typing import Any


def annotate_getitem_nodes(graph: Any) -> None:
    """Annotate the nodes that take an item of an annotated tuple, named tuple or list."""
    for node in graph.nodes:
        if node.target is not operator.getitem:
            continue
        source, index = node.args
        if not getattr(source, "type", None):
            continue
        kinds = typing.get_args(source.type)
        origin = typing.get_origin(source.type)
        if origin is tuple and len(kinds) > 1:
            if isinstance(index, int) and ... not in kinds:
                node.type = kinds[index]
            elif kinds[1] is ...:
                node.type = kinds[0]
        elif origin is list and kinds:
            node.type = kinds[0]
        elif hasattr(source.type, "_fields") and isinstance(index, int):
            node.type = typing.get_type_hints(source.type).get(source.type._fields[index])
