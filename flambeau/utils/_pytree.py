"""Pytrees, with the names of `torch.utils._pytree`: flatten, unflatten and map nested containers.

The module is private in PyTorch, too, but programs use it.

    >>> from flambeau.utils._pytree import tree_flatten, tree_map_only, tree_unflatten
    >>> leaves, spec = tree_flatten({"a": 1, "b": (2.5, [3])})
    >>> leaves
    [1, 2.5, 3]
    >>> tree_map_only(int, lambda x: -x, tree_unflatten(leaves, spec))
    {'a': -1, 'b': (2.5, [-3])}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any

from ..trees import LEAF, TreeSpec, tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten
from ..trees import broadcast_to as _broadcast_to_and_flatten
from ..trees import register as _register

PyTree = Any
Context = Any
Leaf = Callable[[Any], bool] | None  # predicate: treat a container as a leaf
Kind = type[Any] | tuple[type[Any], ...] | UnionType


def register_pytree_node(cls: type[Any], flatten_fn: Callable[[Any], tuple[list[Any], Any]],
                         unflatten_fn: Callable[[Any, Any], Any], *, serialized_type_name: str | None = None,
                         to_dumpable_context: Callable[[Any], Any] | None = None,
                         from_dumpable_context: Callable[[Any], Any] | None = None,
                         flatten_with_keys_fn: Callable[[Any], Any] | None = None) -> None:
    """Register a class as a container.

    Args:
        cls: the class.
        flatten_fn: returns (children, context) of a container.
        unflatten_fn: `(children, context) -> container`.
        serialized_type_name: ignored: structures are not serialized.
        to_dumpable_context: ignored.
        from_dumpable_context: ignored.
        flatten_with_keys_fn: ignored: there are no key paths.

    Raises:
        ValueError: the class is registered already.
    """
    del serialized_type_name, to_dumpable_context, from_dumpable_context, flatten_with_keys_fn
    _register(cls, flatten_fn, unflatten_fn)


def tree_is_leaf(tree: PyTree, is_leaf: Leaf = None) -> bool:
    """Whether a tree is a leaf."""
    return tree_structure(tree, is_leaf).is_leaf()


def tree_iter(tree: PyTree, is_leaf: Leaf = None) -> Iterator[Any]:
    """An iterator over the leaves of a tree, in order."""
    return iter(tree_leaves(tree, is_leaf))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Leaf = None) -> PyTree:
    """Call `func` with each leaf (and the corresponding leaves of `rests`) for its side effects; return the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(type_or_types_or_pred: Kind | Callable[[Any], bool], /) -> Callable[[Callable[[Any], Any]], Any]:
    """A decorator: the function is applied to values of a type, or that satisfy a predicate; others are returned as is.

    >>> from flambeau.utils._pytree import map_only
    >>> map_only(int)(lambda x: x + 1)(1), map_only(int)(lambda x: x + 1)("1")
    (2, '1')

    Raises:
        TypeError: the argument is neither a type nor callable.
    """
    selector = type_or_types_or_pred
    is_type = isinstance(selector, (type, tuple, UnionType))
    if not (is_type or callable(selector)):
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def matches(x: Any) -> bool:
        return isinstance(x, selector) if is_type else selector(x)  # type: ignore[arg-type, operator]

    def decorator(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: func(x) if matches(x) else x

    return decorator


def tree_map_only(type_or_types_or_pred: Kind | Callable[[Any], bool], /, func: Callable[[Any], Any], tree: PyTree,
                  is_leaf: Leaf = None) -> PyTree:
    """The tree with `func` applied to the leaves of a type, or that satisfy a predicate."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Kind | Callable[[Any], bool], /, func: Callable[[Any], Any], tree: PyTree,
                   is_leaf: Leaf = None) -> PyTree:
    """Call `func` with the leaves of a type, or that satisfy a predicate; return the tree."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Leaf = None) -> bool:
    """Whether `pred` holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Leaf = None) -> bool:
    """Whether `pred` holds for any leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Kind, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: Leaf = None) -> bool:
    """Whether `pred` holds for all leaves of a type."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types: Kind, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: Leaf = None) -> bool:
    """Whether `pred` holds for any leaf of a type."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def treespec_leaf() -> TreeSpec:
    """The structure of a leaf."""
    return LEAF


def is_namedtuple_class(cls: object) -> bool:
    """Whether an object is a named tuple class."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_make") and hasattr(cls, "_fields")


def is_namedtuple_instance(obj: object) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Whether an object is a named tuple or a named tuple class."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


__all__ = ["Context", "PyTree", "TreeSpec", "_broadcast_to_and_flatten", "is_namedtuple", "is_namedtuple_class",
           "is_namedtuple_instance", "map_only", "register_pytree_node", "tree_all", "tree_all_only", "tree_any",
           "tree_any_only", "tree_flatten", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_map", "tree_map_",
           "tree_map_only", "tree_map_only_", "tree_structure", "tree_unflatten", "treespec_leaf"]
