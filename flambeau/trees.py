"""Nested containers taken apart into leaves and put together again.

Tuples, lists, dictionaries, named tuples, OrderedDict, defaultdict and deque are containers,
and what `register` adds; anything else is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

#: type -> (what takes a container apart into children and context, what makes it from children and context)
_CONTAINERS: dict[Any, tuple[Callable[[Any], tuple[list[Any], Any]], Callable[[list[Any], Any], Any]]] = {
    tuple: (lambda t: (list(t), None), lambda children, _: tuple(children)),
    list: (lambda t: (list(t), None), lambda children, _: list(children)),
    dict: (lambda t: (list(t.values()), list(t)), lambda children, keys: dict(zip(keys, children, strict=True))),
    OrderedDict: (lambda t: (list(t.values()), list(t)),
                  lambda children, keys: OrderedDict(zip(keys, children, strict=True))),
    defaultdict: (lambda t: (list(t.values()), [t.default_factory, list(t)]),
                  lambda children, context: defaultdict(context[0], zip(context[1], children, strict=True))),
    deque: (lambda t: (list(t), t.maxlen), lambda children, maxlen: deque(children, maxlen)),
}
_NAMED = (lambda t: (list(t), type(t)),
          lambda children, cls: cls._make(children) if hasattr(cls, "_make") else cls(children))

_STANDARD = frozenset(_CONTAINERS)
_DICTIONARIES = frozenset({dict, OrderedDict, defaultdict})


def register(cls: type, take_apart: Callable[[Any], tuple[list[Any], Any]],
             make: Callable[[list[Any], Any], Any]) -> None:
    """Let a class be a container.

    Args:
        take_apart: gives the children, and what else is needed to make the container again.
        make: makes it again, from both.
    """
    if cls in _CONTAINERS:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _CONTAINERS[cls] = (take_apart, make)


def _is_named(tree: Any) -> bool:
    return isinstance(tree, tuple) and hasattr(tree, "_fields") and type(tree) is not tuple


def _container(tree: Any) -> Any:
    found = _CONTAINERS.get(type(tree))
    return _NAMED if found is None and _is_named(tree) else found


def is_container(tree: Any) -> bool:
    """Whether something is a container, whose children are a tree's.

    >>> is_container([1]), is_container(1)
    (True, False)
    """
    return _container(tree) is not None


class TreeSpec:
    """What a tree is without its leaves.

    >>> from flambeau.trees import tree_flatten
    >>> tree_flatten((1, [2, 3]))
    ([1, 2, 3], TreeSpec(tuple, None, [*,
      TreeSpec(list, None, [*,
        *])]))
    """

    __slots__ = ("_children", "context", "make", "num_leaves", "type")

    def __init__(self, type_: Any, context: Any, children: list[TreeSpec], make: Any) -> None:
        self.type = type_
        self.context = context
        self._children = children
        self.make = make
        self.num_leaves: int = 1 if type_ is None else sum(child.num_leaves for child in children)

    def is_leaf(self) -> bool:
        """Whether it is one leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """What its branches are, without their leaves."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """What a branch is, without its leaves."""
        return self._children[index]

    @property
    def num_children(self) -> int:
        """How many branches it has."""
        return len(self._children)

    @property
    def num_nodes(self) -> int:
        """How many containers and leaves there are in it, itself included."""
        return 1 + sum(child.num_nodes for child in self._children)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type is other.type and self.context == other.context and self._children == other._children)

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        indent += 2
        inner = [child.__repr__(indent) for child in self._children]
        joined = (",\n" + " " * indent).join(inner)
        name, context = self.type.__name__, self.context
        if self.make is _NAMED[1]:
            name, context = ("namedtuple", self.type) if hasattr(self.type, "_make") else (name, None)
        return f"TreeSpec({name}, {context}, [{joined}])"

    def drawn(self) -> str:
        """The tree with `*` for its leaves, as `(*, [*])`."""
        return "*" if self.type is None else repr(self.build([_Star()] * self.num_leaves))

    def build(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves.

        Raises:
            ValueError: there are more or fewer of them.
        """
        found = list(leaves)
        if len(found) != self.num_leaves:
            raise ValueError(f"treespec.unflatten(leaves): `leaves` has length {len(found)} but the spec refers to a "
                             f"pytree that holds {self.num_leaves} items ({self}).")
        return self._build(iter(found))

    unflatten = build

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees that stand where this has leaves.

        Raises:
            ValueError: a container is of another type, length, or has other keys.
        """
        if self.type is None:
            return [tree]
        return [leaf for child, sub in zip(self._children, self._branches(tree), strict=True)
                for leaf in child.flatten_up_to(sub)]

    def _branches(self, tree: Any) -> list[Any]:
        """A like container's children, in this one's order."""
        standard = self.type in _STANDARD or self.make is _NAMED[1]
        container = _container(tree)
        if container is None or not (type(tree) is self.type or self.make is container[1] is _NAMED[1]
                                     or {self.type, type(tree)} <= _DICTIONARIES):
            kind = "Node type" if standard else "Type"
            raise ValueError(f"{kind} mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = container[0](tree)
        if len(children) != len(self._children):
            raise ValueError(f"Node arity mismatch; expected {len(self._children)}, but got {len(children)}.")
        if self.type in _DICTIONARIES:
            keys = self.context[1] if self.type is defaultdict else self.context
            missing, extra = set(keys) - set(tree), set(tree) - set(keys)
            if missing or extra:
                raise ValueError(f"Node keys mismatch; missing key(s): {missing}; extra key(s): {extra}.")
            return [tree[key] for key in keys]
        if self.type is not deque and context != self.context:
            if standard:
                raise ValueError(f"Node context mismatch for node type {self.type!r}; expected {self.context!r}, but "
                                 f"got {context!r}.")
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        return children

    def _build(self, leaves: Any) -> Any:
        if self.type is None:
            return next(leaves)
        return self.make([child._build(leaves) for child in self._children], self.context)


class _Star:
    def __repr__(self) -> str:
        return "*"


LEAF = TreeSpec(None, None, [], None)


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """A tree's leaves, in order, and what it is without them."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    container = None if is_leaf is not None and is_leaf(tree) else _container(tree)
    if container is None:
        leaves.append(tree)
        return LEAF
    children, context = container[0](tree)
    return TreeSpec(type(tree), context, [_flatten(child, leaves, is_leaf) for child in children], container[1])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of these leaves.

    Raises:
        TypeError: `treespec` is none.
        ValueError: there are more or fewer leaves than it has.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError("Expected `treespec` to be an instance of PyTreeSpec but got item of type "
                        f"{type(treespec)}.")
    return treespec.build(leaves)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any,
             is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree with `func` applied to each leaf (and to the leaves at its place in `rests`)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.build(func(*values) for values in zip(leaves, *others, strict=True))


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """A tree's leaves, in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """What a tree is without its leaves."""
    return tree_flatten(tree, is_leaf)[1]


def broadcast_to(tree: Any, spec: TreeSpec) -> list[Any] | None:
    """The leaves of a tree that may end sooner than `spec`: a leaf stands for a whole subtree.

    None if it does not fit.
    """
    if _container(tree) is None:
        return [tree] * spec.num_leaves
    if spec.type is None:
        return None
    try:
        children = spec._branches(tree)
    except ValueError:
        return None
    found: list[Any] = []
    for child, sub in zip(children, spec._children, strict=True):
        part = broadcast_to(child, sub)
        if part is None:
            return None
        found += part
    return found
