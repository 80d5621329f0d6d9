"""Registration of classes as containers of pytrees: with key paths, names in JSON, as dataclasses and as constants."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ...trees import LEAF, TreeSpec, deregister, registered, tree_unflatten
from ...trees import register as _register
from .paths import GetAttrKey, keyed_flattens
from .serialization import SerializedNode, serialized


class NodeDef(NamedTuple):
    """A registered class and its functions."""

    type: type[Any]
    flatten_fn: Callable[[Any], Any]
    unflatten_fn: Callable[..., Any]
    flatten_with_keys_fn: Callable[[Any], Any] | None


class _Nodes(Mapping[type, NodeDef]):
    """The registered classes."""

    def __getitem__(self, cls: type) -> NodeDef:
        flatten, unflatten = registered()[cls]
        return NodeDef(cls, flatten, unflatten, keyed_flattens.get(cls))

    def __iter__(self) -> Iterator[type]:
        return iter(registered())

    def __len__(self) -> int:
        return len(registered())


SUPPORTED_NODES: Mapping[type, NodeDef] = _Nodes()
CONSTANT_NODES: set[type] = set()


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
        serialized_type_name: its name in JSON.
        to_dumpable_context: returns the context in JSON's types.
        from_dumpable_context: its inverse.
        flatten_with_keys_fn: returns ([(key, child), ...], context).

    Raises:
        ValueError: the class is registered already, or only one of the two context functions is given.
    """
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    _register(cls, flatten_fn, unflatten_fn)
    if flatten_with_keys_fn is not None:
        keyed_flattens[cls] = flatten_with_keys_fn
    serialized[cls] = SerializedNode(serialized_type_name or "", to_dumpable_context, from_dumpable_context)


def _register_pytree_node(cls: type[Any], flatten_fn: Any, unflatten_fn: Any, to_str_fn: Any = None,
                          maybe_from_str_fn: Any = None, **options: Any) -> None:
    warnings.warn("`torch.utils._pytree._register_pytree_node` is deprecated. Please use "
                  "`torch.utils._pytree.register_pytree_node` instead.", FutureWarning, stacklevel=2)
    if to_str_fn is not None or maybe_from_str_fn is not None:
        warnings.warn("`to_str_fn` and `maybe_from_str_fn` is deprecated. Please use `to_dumpable_context` and "
                      "`from_dumpable_context` instead.", FutureWarning, stacklevel=2)
    if cls in SUPPORTED_NODES:
        warnings.warn(f"{cls} is already registered as pytree node. Overwriting the previous registration.",
                      UserWarning, stacklevel=2)
        _deregister_pytree_node(cls)
    register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _deregister_pytree_node(cls: type[Any]) -> None:
    deregister(cls)
    keyed_flattens.pop(cls, None)
    serialized.pop(cls, None)
    CONSTANT_NODES.discard(cls)


def _register_namedtuple(cls: type[Any], *, serialized_type_name: str) -> None:
    """Give a named tuple class a name in JSON."""
    serialized[cls] = SerializedNode(serialized_type_name)


def register_dataclass(cls: type[Any], *, field_names: list[str] | None = None,
                       drop_field_names: list[str] | None = None, serialized_type_name: str | None = None) -> None:
    """Register a dataclass as a container of its fields.

    Args:
        cls: the class; it is constructed from its fields by name.
        field_names: the fields that are children; default: all that `__init__` takes.
        drop_field_names: fields that are not part of the tree.
        serialized_type_name: its name in JSON.

    Raises:
        ValueError: the names are not those of all fields.

    >>> from dataclasses import dataclass
    >>> from flambeau.utils import _pytree as pytree
    >>> @dataclass
    ... class Point:
    ...     x: int
    ...     y: int
    >>> pytree.register_dataclass(Point)
    >>> pytree.tree_leaves(Point(1, 2))
    [1, 2]
    """
    if not dataclasses.is_dataclass(cls):
        if field_names is None:
            raise ValueError("field_names must be specified with a list of all fields used to initialize "
                             f"{cls}, as it is not a dataclass.")
    else:
        fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
        if field_names is None:
            field_names = list(fields)
        else:
            expected = set(fields) - set(drop_field_names or ())
            missing, unexpected = expected - set(field_names), set(field_names) - expected
            if missing or unexpected:
                text = "field_names does not include all dataclass fields.\n"
                if missing:
                    text += (f"Missing fields in `field_names`: {missing}. If you want to include these fields in the "
                             "pytree, please add them to `field_names`, otherwise please add them to "
                             "`drop_field_names`.\n")
                if unexpected:
                    text += (f"Unexpected fields in `field_names`: {unexpected}. Please remove these fields, or add "
                             "them to `drop_field_names`.\n")
                raise ValueError(text)
    names: list[str] = field_names

    def flatten(x: Any) -> tuple[list[Any], Any]:
        present = [name for name in names if getattr(x, name) is not None]
        return [getattr(x, name) for name in present], [present, [name for name in names if name not in present]]

    def flatten_with_keys(x: Any) -> tuple[list[Any], Any]:
        children, (present, _) = flatten(x)
        return [(GetAttrKey(name), child) for name, child in zip(present, children, strict=True)], present

    def unflatten(children: Iterable[Any], context: Any) -> Any:
        present, absent = context
        return cls(**dict(zip(present, children, strict=True)), **dict.fromkeys(absent))

    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name,
                         flatten_with_keys_fn=flatten_with_keys)


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """The context of a constant: the constant."""

    value: Any


def register_constant(cls: type[Any]) -> None:
    """Register a class whose instances have no leaves; they are part of the structure.

    Raises:
        TypeError: it has no `__eq__` or `__hash__` of its own.
    """
    if cls.__eq__ is object.__eq__:  # type: ignore[comparison-overlap]
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is None:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__hash__` implementation.")
    register_pytree_node(cls, lambda x: ([], ConstantNode(x)), lambda _, context: context.value,
                         flatten_with_keys_fn=lambda x: ([], ConstantNode(x)))
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type[Any]) -> bool:
    """Whether a class was registered by `register_constant`."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


def _is_constant_holder(spec: TreeSpec) -> bool:
    return isinstance(spec.context, ConstantNode)


def _retrieve_constant(spec: TreeSpec) -> Any:
    if not _is_constant_holder(spec):
        raise AssertionError("spec does not correspond to a registered constant pytree")
    return tree_unflatten([], spec)


# ----- structures made by hand -----

def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The structure of a tuple of the given structures.

    Raises:
        ValueError: an item is no structure.
    """
    children = list(iterable)
    if any(not isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The structure of a dictionary of the given structures.

    Raises:
        ValueError: a value is no structure.
    """
    items = dict(mapping, **kwargs)
    if any(not isinstance(child, TreeSpec) for child in items.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {items!r}.")
    return TreeSpec(dict, list(items), list(items.values()))


class _LeafSpecType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        warnings.warn("`isinstance(treespec, LeafSpec)` is deprecated, use `isinstance(treespec, TreeSpec) and "
                      "treespec.is_leaf()` instead.", FutureWarning, stacklevel=2)
        return isinstance(instance, TreeSpec) and instance.is_leaf()

    def __call__(cls, *args: Any) -> Any:
        warnings.warn("`isinstance(treespec, LeafSpec)` is deprecated, use `isinstance(treespec, TreeSpec) and "
                      "treespec.is_leaf()` instead.", FutureWarning, stacklevel=2)
        return LEAF


class LeafSpec(TreeSpec, metaclass=_LeafSpecType):
    """Deprecated: the structure of a leaf."""


__all__ = ["CONSTANT_NODES", "SUPPORTED_NODES", "ConstantNode", "LeafSpec", "NodeDef", "is_constant_class",
           "register_constant", "register_dataclass", "register_pytree_node", "treespec_dict", "treespec_tuple"]
