"""Key paths of pytrees: the keys and indices that lead to each leaf."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ...trees import TreeSpec, is_container, tree_structure


@dataclass(frozen=True)
class SequenceKey:
    """An index of a sequence, `[0]`."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The element."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A key of a mapping, `['a']`."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The value."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """The name of an attribute, `.a`."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The attribute."""
        return getattr(obj, self.name)


KeyPath = tuple[Any, ...]
Leaf = Callable[[Any], bool] | None

#: registered class -> function of a container: [(key, child), ...], context
keyed_flattens: dict[type, Callable[[Any], Any]] = {
    tuple: lambda t: ([(SequenceKey(i), x) for i, x in enumerate(t)], None),
    list: lambda t: ([(SequenceKey(i), x) for i, x in enumerate(t)], None),
    deque: lambda t: ([(SequenceKey(i), x) for i, x in enumerate(t)], t.maxlen),
    **dict.fromkeys((dict, OrderedDict, defaultdict), lambda t: ([(MappingKey(k), x) for k, x in t.items()], list(t))),
}


def keyed_children(tree: Any) -> list[tuple[Any, Any]]:
    """The children of a container with their keys.

    Raises:
        ValueError: its class was registered without `flatten_with_keys_fn`.
    """
    flatten = keyed_flattens.get(type(tree))
    if flatten is not None:
        return list(flatten(tree)[0])
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return [(GetAttrKey(name), getattr(tree, name)) for name in tree._fields]
    if isinstance(tree, tuple):
        return [(SequenceKey(i), x) for i, x in enumerate(tree)]
    raise ValueError("Did not find a flatten_with_keys_fn for type: "
                     f"{type(tree)}. Please pass a flatten_with_keys_fn argument to register_pytree_node.")


def _paths(tree: Any, path: KeyPath, is_leaf: Leaf) -> Iterable[tuple[KeyPath, Any]]:
    if (is_leaf is not None and is_leaf(tree)) or not is_container(tree):
        yield path, tree
        return
    for key, child in keyed_children(tree):
        yield from _paths(child, (*path, key), is_leaf)


def tree_flatten_with_path(tree: Any, is_leaf: Leaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves of a tree, each with its path, and the structure.

    >>> from flambeau.utils._pytree import tree_flatten_with_path
    >>> tree_flatten_with_path({"a": [1]})[0]
    [((MappingKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    return list(_paths(tree, (), is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: Leaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree, each with its path."""
    return list(_paths(tree, (), is_leaf))


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Leaf = None) -> Any:
    """The tree of `func(path, leaf, *the corresponding leaves of rests)`.

    >>> from flambeau.utils._pytree import keystr, tree_map_with_path
    >>> tree_map_with_path(lambda path, x: keystr(path) + str(x), {"a": [1]})
    {'a': ["['a'][0]1"]}
    """
    keyed, structure = tree_flatten_with_path(tree, is_leaf)
    others = [structure.flatten_up_to(each) for each in rests]
    return structure.unflatten(func(path, leaf, *more) for (path, leaf), *more in zip(keyed, *others, strict=True))


def keystr(kp: KeyPath) -> str:
    """A path as text, `['a'][0]`."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """The value at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


__all__ = ["GetAttrKey", "KeyPath", "MappingKey", "SequenceKey", "key_get", "keyed_flattens", "keystr",
           "tree_flatten_with_path", "tree_leaves_with_path", "tree_map_with_path"]
