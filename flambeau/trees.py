"""Pytrees: nested containers, flattened to leaves and unflattened.

Tuples, lists, dictionaries, named tuples, OrderedDict, defaultdict, deque, `Size` and registered classes are
containers. Anything else is a leaf. A `Size` is unflattened to a tuple, as in PyTorch: its leaves may not be ints.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any

from .shapes import Size

#: type -> (flatten: container -> children, context; unflatten: children, context -> container)
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
_CONTAINERS[Size] = _CONTAINERS[tuple]
_DICTIONARIES = frozenset({dict, OrderedDict, defaultdict})


def register(cls: type, flatten: Callable[[Any], tuple[list[Any], Any]],
             unflatten: Callable[[list[Any], Any], Any]) -> None:
    """Register a class as a container.

    Args:
        flatten: container -> (children, context).
        unflatten: (children, context) -> container.

    Raises:
        ValueError: the class is registered already.
    """
    if cls in _CONTAINERS:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _CONTAINERS[cls] = (flatten, unflatten)


def deregister(cls: type) -> None:
    """Undo the registration of a class."""
    del _CONTAINERS[cls]


def registered() -> dict[Any, tuple[Callable[[Any], tuple[list[Any], Any]], Callable[[list[Any], Any], Any]]]:
    """Registered class -> (flatten, unflatten)."""
    return _CONTAINERS


def container_functions(cls: Any) -> tuple[Callable[[Any], tuple[list[Any], Any]], Callable[[list[Any], Any], Any]]:
    """The flatten and unflatten functions of a class; of `collections.namedtuple`: those of all named tuples."""
    return _NAMED if cls is namedtuple else _CONTAINERS[cls]


def _is_named(tree: Any) -> bool:
    return isinstance(tree, tuple) and hasattr(tree, "_fields") and type(tree) is not tuple


def _container(tree: Any) -> Any:
    registered = _CONTAINERS.get(type(tree))
    return _NAMED if registered is None and _is_named(tree) else registered


def is_container(tree: Any) -> bool:
    """Whether an object is a container.

    >>> is_container([1]), is_container(1)
    (True, False)
    """
    return _container(tree) is not None


class TreeSpec:
    """The structure of a pytree: container types, lengths and keys, without leaves.

    >>> from flambeau.trees import tree_flatten
    >>> tree_flatten((1, [2, 3]))
    ([1, 2, 3], TreeSpec(tuple, None, [*,
      TreeSpec(list, None, [*,
        *])]))
    """

    __slots__ = ("_children", "context", "make", "num_leaves", "type")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec], make: Any = None) -> None:
        if type is namedtuple:  # PyTorch's name of the kind, whose class is the context
            type = context
        if make is None and type is not None:
            container = _CONTAINERS.get(type)
            make = container[1] if container is not None else _NAMED[1] if hasattr(type, "_fields") else None
        self.type = type
        self.context = context
        self._children = children_specs
        self.make = make
        self.num_leaves: int = 1 if type is None else sum([child.num_leaves for child in children_specs])

    def __reduce__(self) -> Any:
        return TreeSpec, (self.type, self.context, self._children)

    def is_leaf(self) -> bool:
        """Whether the structure is a single leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The structures of its children."""
        return list(self._children)

    @property
    def children_specs(self) -> list[TreeSpec]:
        """Deprecated: the structures of its children."""
        import warnings

        warnings.warn("`treespec.children_specs` is deprecated. Use `treespec.child(index)` to access a single child, "
                      "or `treespec.children()` to get all children.", FutureWarning, stacklevel=2)
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The structure of one child."""
        return self._children[index]

    @property
    def num_children(self) -> int:
        """The number of children."""
        return len(self._children)

    @property
    def num_nodes(self) -> int:
        """The number of containers and leaves, itself included."""
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

    def describe(self) -> str:
        """The tree with `*` for each leaf, such as `(*, [*])`."""
        return "*" if self.type is None else repr(self.unflatten([_Star()] * self.num_leaves))

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure with the given leaves.

        Raises:
            ValueError: the number of leaves differs from `num_leaves`.
        """
        items = list(leaves)
        if len(items) != self.num_leaves:
            raise ValueError(f"treespec.unflatten(leaves): `leaves` has length {len(items)} but the spec refers to a "
                             f"pytree that holds {self.num_leaves} items ({self}).")
        return items[0] if self.type is None else self._unflatten(iter(items))

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of `tree` at the positions of this structure's leaves.

        Raises:
            ValueError: a container has another type, length or keys.
        """
        if self.type is None:
            return [tree]
        return [leaf for child, sub in zip(self._children, self._branches(tree), strict=True)
                for leaf in child.flatten_up_to(sub)]

    def _branches(self, tree: Any) -> list[Any]:
        """The children of a container of the same type, in this structure's order."""
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

    def _unflatten(self, leaves: Any) -> Any:
        if self.type is None:
            return next(leaves)
        return self.make([next(leaves) if child.type is None else child._unflatten(leaves)
                          for child in self._children], self.context)


class _Star:
    def __repr__(self) -> str:
        return "*"


LEAF = TreeSpec(None, None, [], None)


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree, in order, and its structure."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    container = None if is_leaf is not None and is_leaf(tree) else _container(tree)
    if container is None:
        leaves.append(tree)
        return LEAF
    children, context = container[0](tree)
    specs = []
    for child in children:
        if is_leaf is None and type(child) not in _CONTAINERS and not isinstance(child, tuple):
            leaves.append(child)
            specs.append(LEAF)
        else:
            specs.append(_flatten(child, leaves, is_leaf))
    return TreeSpec(type(tree), context, specs, container[1])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of the structure `treespec` with the given leaves.

    Raises:
        TypeError: `treespec` is not a TreeSpec.
        ValueError: the number of leaves differs from `treespec.num_leaves`.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError("Expected `treespec` to be an instance of PyTreeSpec but got item of type "
                        f"{type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any,
             is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree with `func` applied to each leaf, and to the subtrees of `rests` at its position."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(func(*values) for values in zip(leaves, *others, strict=True))


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree, in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def broadcast_to(tree: Any, spec: TreeSpec) -> list[Any] | None:
    """The leaves of `tree`, a prefix of `spec`: a leaf of `tree` is repeated for each leaf of its subtree in `spec`.

    None if `tree` is not a prefix.
    """
    if _container(tree) is None:
        return [tree] * spec.num_leaves
    if spec.type is None:
        return None
    try:
        children = spec._branches(tree)
    except ValueError:
        return None
    leaves: list[Any] = []
    for child, sub in zip(children, spec._children, strict=True):
        sub_leaves = broadcast_to(child, sub)
        if sub_leaves is None:
            return None
        leaves += sub_leaves
    return leaves
