"""Structures of values that hold tensors: nested containers with their identities, and the leaves in them.

Containers are tuples, lists, dictionaries, deques, sets of constants, and *records*: objects of user classes that are
nothing but their attributes.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...config import module_of
from ...shapes import Size, as_size
from ..guards.object_kinds import CONSTANT_TYPES, HEAP_TYPE_FLAG, is_stable_module

#: containers that are changed in place, beside records; what is neither one of them nor a tuple is a leaf
MUTABLE = frozenset({list, dict, OrderedDict, defaultdict, deque, set})
_DICTIONARIES = frozenset({dict, OrderedDict, defaultdict})
#: the largest number of leaves and containers
MAX_NODES = 256
NEW = -1
#: modules of Python's library whose classes have no state
_INTERFACES = frozenset({"abc", "typing", "collections.abc", "_collections_abc"})


class Again:
    """The class of nodes that stand for a container which an earlier node is."""


@functools.lru_cache(1024)
def is_record_class(cls: type) -> bool:
    """Whether objects of a class are nothing but their attributes: a user's class without slots or a finalizer."""
    if any(getattr(cls, name) is not getattr(object, name) for name in ("__new__", "__getattribute__")) or (
            hasattr(cls, "__del__") or not cls.__dictoffset__):
        return False
    return all(each.__flags__ & HEAP_TYPE_FLAG and not each.__dict__.get("__slots__") and (
        not is_stable_module(module := module_of(each)) or module in _INTERFACES) for each in cls.__mro__[:-1])


def is_record(x: Any) -> bool:
    """Whether an object is a record that has attributes; one without any is known by its identity."""
    return is_record_class(x.__class__) and type(x) is x.__class__ and bool(x.__dict__)


def is_mutable(x: Any) -> bool:
    """Whether a value is a container that is changed in place."""
    return x.__class__ in MUTABLE or is_record(x)


class NoStructure(ValueError):
    """A value whose containers are shared, too many, or have keys that are no constants."""


class Node(NamedTuple):
    """A container.

    Attributes:
        cls: its class.
        context: keys of a dictionary, with the factory of a defaultdict; the length limit of a deque; the entries of a
            set; the attributes of a record.
        identity: the number of the container among those at the beginning of a call; `NEW` if it is none of them. Of
            `Again`, the number among those of these values.
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
        are_shared: whether a container may come several times.

    Attributes:
        structure: of each value, a `Node`, or None for a leaf; hashable.
        leaves: the leaves of all values, in order.
        containers: mutable containers, in order.

    Raises:
        NoStructure: there is none.
    """

    def __init__(self, values: Sequence[Any], before: Flattened | None = None, are_shared: bool = False) -> None:
        self.leaves: list[Any] = []
        self.containers: list[Any] = []
        self._seen: dict[int, int] = {}  # numbers of containers
        self._are_shared = are_shared
        self._known = None if before is None else {id(x): i for i, x in enumerate(before.containers)}
        self.structure = tuple([self._flatten(x) for x in values])

    def _flatten(self, x: Any) -> Node | None:
        cls = x.__class__
        changes = is_mutable(x)
        if not changes and cls is not tuple and cls is not Size and not (
                isinstance(x, tuple) and hasattr(cls, "_make")):
            self.leaves.append(x)
            return None
        if len(self.leaves) + len(self._seen) > MAX_NODES:
            raise NoStructure(f"state of more than {MAX_NODES} values")
        context: Any = None
        identity = NEW
        children: Any = x
        if changes:
            if id(x) in self._seen:
                if not self._are_shared:
                    raise NoStructure("a container that two places hold")
                return Node(Again, None, self._seen[id(x)], ())
            self._seen[id(x)] = len(self.containers)
            identity = len(self.containers) if self._known is None else self._known.get(id(x), NEW)
            self.containers.append(x)
            if cls is deque:
                context = x.maxlen
            elif cls is set:
                if any(each.__class__ not in CONSTANT_TYPES for each in x):
                    raise NoStructure("a set of objects that are no constants")
                context, children = tuple([(each.__class__, each) for each in x]), ()
            elif cls is not list:
                own = x if cls in _DICTIONARIES else x.__dict__
                children = own.values()
                if any(key.__class__ not in CONSTANT_TYPES for key in own):
                    raise NoStructure("a dictionary with keys that are no constants")
                context = tuple([(key.__class__, key) for key in own])
                if cls is defaultdict:
                    context = x.default_factory, context
        return Node(cls, context, identity, tuple([self._flatten(each) for each in children]))


def rebuilt(structure: Sequence[Node | None], leaves: Sequence[Any], containers: Sequence[Any] | None) -> list[Any]:
    """Return values of this structure.

    Args:
        structure: of each value.
        leaves: the leaves.
        containers: containers that have numbers, which are filled; None: all are new.
    """
    remaining, made = iter(leaves), list[Any]()
    return [_rebuilt(each, remaining, containers, made) for each in structure]


def _rebuilt(node: Node | None, leaves: Iterator[Any], containers: Sequence[Any] | None, made: list[Any]) -> Any:
    if node is None:
        return next(leaves)
    cls = node.cls
    if cls is Again:
        return made[node.identity]
    if cls in MUTABLE or is_record_class(cls):
        container = _empty(node) if containers is None or node.identity == NEW else containers[node.identity]
        made.append(container)  # before its entries, which may hold it
        _fill(container, node, [_rebuilt(each, leaves, containers, made) for each in node.children])
        return container
    children = [_rebuilt(each, leaves, containers, made) for each in node.children]
    return tuple(children) if cls is tuple else as_size(children) if cls is Size else cls._make(children)


def _empty(node: Node) -> Any:
    """Return a new container of a node's class."""
    cls = node.cls
    if cls is deque:
        return deque(maxlen=node.context)
    if cls is defaultdict:
        return defaultdict(node.context[0])
    return cls() if cls in MUTABLE else object.__new__(cls)


def _fill(container: Any, node: Node, children: list[Any]) -> None:
    """Give a container the entries of a node, unless it has them."""
    cls = node.cls
    if cls is list or cls is deque:
        if len(container) != len(children) or any(a is not b for a, b in zip(container, children, strict=True)):
            container.clear()
            container.extend(children)
    elif cls is set:
        entries = [each for _, each in node.context]
        if [*container] != entries:
            container.clear()
            container.update(entries)
    else:
        own = container if cls in _DICTIONARIES else container.__dict__
        keys = [key for _, key in (node.context[1] if cls is defaultdict else node.context)]
        if [*own] != keys:
            own.clear()
        own.update(zip(keys, children, strict=True))


def count_leaves(node: Node | None) -> int:
    """Return the number of leaves in a container; 1 for a leaf."""
    return 1 if node is None else sum(map(count_leaves, node.children))


__all__ = ["MUTABLE", "NEW", "Flattened", "NoStructure", "Node", "count_leaves", "is_mutable", "is_record",
           "is_record_class", "rebuilt"]
