"""Stand-in for PyTorch's private module on nested containers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any


class TreeSpec:
    """The shape of a nest: a kind of container, what it takes to make it again, and the specs of its children."""

    def __init__(self, kind: Any, context: Any, children: list[TreeSpec]) -> None:
        self.type, self.context, self.children_specs = kind, context, children
        self.num_leaves = sum(c.num_leaves for c in children) if kind is not None else 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and (self.type, self.context, self.children_specs) == (
            other.type, other.context, other.children_specs)

    __hash__ = None  # type: ignore[assignment]


def tree_flatten(tree: Any) -> tuple[list[Any], TreeSpec]:
    """The leaves, and the spec that puts them together again."""
    if isinstance(tree, (dict, OrderedDict)):
        parts, context = list(tree.values()), list(tree)
    elif isinstance(tree, (list, tuple)):
        parts, context = list(tree), None
    else:
        return [tree], TreeSpec(None, None, [])
    leaves, specs = [], []
    for part in parts:
        below, spec = tree_flatten(part)
        leaves += below
        specs.append(spec)
    return leaves, TreeSpec(type(tree), context, specs)


def tree_unflatten(leaves: Any, spec: TreeSpec) -> Any:
    """The nest of a spec, with these leaves."""
    leaves = list(leaves)
    if spec.type is None:
        return leaves[0]
    parts, at = [], 0
    for child in spec.children_specs:
        parts.append(tree_unflatten(leaves[at: at + child.num_leaves], child))
        at += child.num_leaves
    if spec.context is not None:
        return spec.type(zip(spec.context, parts, strict=True))
    return spec.type(*parts) if hasattr(spec.type, "_fields") else spec.type(parts)


def tree_map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The function of each leaf."""
    leaves, spec = tree_flatten(tree)
    columns = [tree_flatten(other)[0] for other in others]
    return tree_unflatten([function(*row) for row in zip(leaves, *columns, strict=True)], spec)


def tree_map_only(kind: Any, function: Callable[..., Any], tree: Any) -> Any:
    """The function of each leaf of a type, the others as they are."""
    return tree_map(lambda leaf: function(leaf) if isinstance(leaf, kind) else leaf, tree)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves."""
    return tree_flatten(tree)[0]
