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

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any

from .._tensor.return_types import NamedResult
from ..trees import (
    LEAF,
    TreeSpec,
    container_functions,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
)
from ..trees import broadcast_to as _broadcast_to_and_flatten
from .pytrees.paths import (
    GetAttrKey,
    KeyPath,
    MappingKey,
    SequenceKey,
    key_get,
    keyed_children,
    keystr,
    tree_flatten_with_path,
    tree_leaves_with_path,
    tree_map_with_path,
)
from .pytrees.registration import (
    CONSTANT_NODES,
    SUPPORTED_NODES,
    ConstantNode,
    LeafSpec,
    NodeDef,
    _deregister_pytree_node,
    _is_constant_holder,
    _register_namedtuple,
    _register_pytree_node,
    _retrieve_constant,
    is_constant_class,
    register_constant,
    register_dataclass,
    register_pytree_node,
    treespec_dict,
    treespec_tuple,
)
from .pytrees.serialization import (
    DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL,
    EnumEncoder,
    enum_object_hook,
    treespec_dumps,
    treespec_loads,
    treespec_pprint,
)

PyTreeSpec = TreeSpec
KeyEntry = Any
BUILTIN_TYPES = frozenset((tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque))
STANDARD_DICT_TYPES = frozenset((dict, OrderedDict, defaultdict))
FlattenFn = FlattenFunc = Callable[[Any], tuple[list[Any], Any]]
UnflattenFn = UnflattenFunc = Callable[[Any, Any], Any]
FlattenWithKeysFn = FlattenWithKeysFunc = Callable[[Any], tuple[list[tuple[KeyEntry, Any]], Any]]
DumpableContext = Any
ToDumpableContextFn = FromDumpableContextFn = Callable[[Any], Any]
PyTree = Any
Context = Any
Leaf = Callable[[Any], bool] | None  # predicate: treat a container as a leaf
Kind = type[Any] | tuple[type[Any], ...] | UnionType


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


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of a call's arguments."""
    return [leaf for each in (*args, *kwargs.values()) for leaf in tree_iter(each)]


def is_structseq_class(cls: type) -> bool:
    """Whether a class is one of C's named tuples, such as `time.struct_time`, or a type of named results."""
    if isinstance(cls, type) and issubclass(cls, NamedResult):
        return cls is not NamedResult
    return (isinstance(cls, type) and cls.__bases__ == (tuple,)
            and all(isinstance(getattr(cls, name, None), int) for name in (
                "n_fields", "n_sequence_fields", "n_unnamed_fields"))
            and not cls.__flags__ & (1 << 10))  # Py_TPFLAGS_BASETYPE


def is_structseq_instance(obj: object) -> bool:
    """Whether an object is of such a class."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether an object is of such a class, or is such a class."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


_is_leaf, _is_namedtuple_instance, _LEAF_SPEC = tree_is_leaf, is_namedtuple_instance, LEAF


def _get_node_type(tree: Any) -> Any:
    """The class under which a tree is registered."""
    return namedtuple if is_namedtuple_instance(tree) and type(tree) not in SUPPORTED_NODES else type(tree)


#: the kinds of containers in the names of PyTorch's functions of one container: `_list_flatten`, `_dict_unflatten`
_KINDS: dict[str, Any] = {"tuple": tuple, "list": list, "dict": dict, "namedtuple": namedtuple, "deque": deque,
                          "odict": OrderedDict, "ordereddict": OrderedDict, "defaultdict": defaultdict}


def __getattr__(name: str) -> Any:
    kind, _, function = name[1:].partition("_")
    if name[:1] == "_" and kind in _KINDS:
        flatten, unflatten = container_functions(_KINDS[kind])
        if function == "unflatten":
            return unflatten
        if function == "flatten":
            return flatten
        if function == "flatten_with_keys":
            return lambda tree: (keyed_children(tree), flatten(tree)[1])
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = [
    "BUILTIN_TYPES",
    "CONSTANT_NODES",
    "DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL",
    "STANDARD_DICT_TYPES",
    "SUPPORTED_NODES",
    "ConstantNode",
    "Context",
    "DumpableContext",
    "EnumEncoder",
    "FlattenFn",
    "FlattenFunc",
    "FlattenWithKeysFn",
    "FlattenWithKeysFunc",
    "FromDumpableContextFn",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "PyTree",
    "PyTreeSpec",
    "SequenceKey",
    "ToDumpableContextFn",
    "TreeSpec",
    "UnflattenFn",
    "UnflattenFunc",
    "_broadcast_to_and_flatten",
    "_deregister_pytree_node",
    "_is_constant_holder",
    "_register_namedtuple",
    "_register_pytree_node",
    "_retrieve_constant",
    "arg_tree_leaves",
    "enum_object_hook",
    "is_constant_class",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "map_only",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dict",
    "treespec_dumps",
    "treespec_leaf",
    "treespec_loads",
    "treespec_pprint",
    "treespec_tuple",
]
