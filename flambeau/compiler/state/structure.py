"""Structures of values that hold tensors: nested containers with their identities, and the leaves in them."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...shapes import Size, as_size
from ..guards.object_kinds import CONSTANT_TYPES

#: containers that are changed in place; what is neither one of them nor a tuple is a leaf
MUTABLE = frozenset({list, dict, OrderedDict, defaultdict, deque})
_DICTIONARIES = frozenset({dict, OrderedDict, defaultdict})
#: the largest number of leaves and containers
MAX_NODES = 256
NEW = -1


class NoStructure(ValueError):
    """A value whose containers are shared, too many, or have keys that are no constants."""


class Node(NamedTuple):
    """A container.

    Attributes:
        cls: its class.
        context: keys of a dictionary, with the factory of a defaultdict; the length limit of a deque.
        identity: the number of the container among those at the beginning of a call; `NEW` if it is none of them.
        children: nodes, and None for leaves.
    """

    cls: Any
    context: Any
    identity: int
    children: tuple[Any, ...]


class Flattened:
    """Values as structures and leaves.

    Args:
        values: the values.
        before: what was there at the beginning of the call: containers that are still there keep their numbers.

    Attributes:
        structure: of each value, a `Node`, or None for a leaf; hashable.
        leaves: the leaves of all values, in order.
        containers: mutable containers, in order.

    Raises:
        NoStructure: there is none.
    """

    def __init__(self, values: Sequence[Any], before: Flattened | None = None) -> None:
        self.leaves: list[Any] = []
        self.containers: list[Any] = []
        self._seen: set[int] = set()
        self._known = None if before is None else {id(x): i for i, x in enumerate(before.containers)}
        self.structure = tuple([self._flatten(x) for x in values])

    def _flatten(self, x: Any) -> Node | None:
        cls = x.__class__
        is_mutable = cls in MUTABLE
        if not is_mutable and cls is not tuple and cls is not Size and not (
                isinstance(x, tuple) and hasattr(cls, "_make")):
            self.leaves.append(x)
            return None
        if len(self.leaves) + len(self._seen) > MAX_NODES:
            raise NoStructure(f"state of more than {MAX_NODES} values")
        context: Any = None
        identity = NEW
        if is_mutable:
            if id(x) in self._seen:
                raise NoStructure("a container that two places hold")
            self._seen.add(id(x))
            identity = len(self.containers) if self._known is None else self._known.get(id(x), NEW)
            self.containers.append(x)
            if cls is deque:
                context = x.maxlen
            elif cls in _DICTIONARIES:
                if any(key.__class__ not in CONSTANT_TYPES for key in x):
                    raise NoStructure("a dictionary with keys that are no constants")
                context = tuple([(key.__class__, key) for key in x])
                if cls is defaultdict:
                    context = x.default_factory, context
        children = x.values() if cls in _DICTIONARIES else x
        return Node(cls, context, identity, tuple([self._flatten(each) for each in children]))


def rebuilt(structure: Sequence[Node | None], leaves: Sequence[Any], containers: Sequence[Any] | None) -> list[Any]:
    """Return values of this structure.

    Args:
        structure: of each value.
        leaves: the leaves.
        containers: containers that have numbers, which are filled; None: all are new.
    """
    remaining = iter(leaves)
    return [_rebuilt(each, remaining, containers) for each in structure]


def _rebuilt(node: Node | None, leaves: Iterator[Any], containers: Sequence[Any] | None) -> Any:
    if node is None:
        return next(leaves)
    children = [_rebuilt(each, leaves, containers) for each in node.children]
    cls = node.cls
    if cls is tuple:
        return tuple(children)
    if cls is Size:
        return as_size(children)
    if cls not in MUTABLE:
        return cls._make(children)
    existing = None if containers is None or node.identity == NEW else containers[node.identity]
    if cls is list:
        return children if existing is None else _filled(existing, children)
    if cls is deque:
        return deque(children, node.context) if existing is None else _filled(existing, children)
    keys = node.context[1] if cls is defaultdict else node.context
    items = [(key, child) for (_, key), child in zip(keys, children, strict=True)]
    if existing is None:
        return defaultdict(node.context[0], items) if cls is defaultdict else cls(items)
    if len(existing) != len(items) or any(
            a is not c and a != c for a, (c, _) in zip(existing, items, strict=True)):
        existing.clear()
    for key, child in items:
        existing[key] = child
    return existing


def count_leaves(node: Node | None) -> int:
    """Return the number of leaves in a container; 1 for a leaf."""
    return 1 if node is None else sum(map(count_leaves, node.children))


def _filled(existing: Any, children: list[Any]) -> Any:
    if len(existing) != len(children) or any(a is not b for a, b in zip(existing, children, strict=True)):
        existing.clear()
        existing.extend(children)
    return existing


__all__ = ["MUTABLE", "NEW", "Flattened", "NoStructure", "Node", "count_leaves", "rebuilt"]
