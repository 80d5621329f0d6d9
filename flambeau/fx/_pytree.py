"""Flattening along a given structure: what generated code calls with the arguments of a function of containers."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from .._tensor import return_types
from ..utils._pytree import PyTree, TreeSpec, tree_flatten

FlattenFnSpec = Callable[[PyTree, TreeSpec], list[Any]]
FlattenFnExactMatchSpec = Callable[[PyTree, TreeSpec], bool]
FlattenFuncSpec, FlattenFuncExactMatchSpec = FlattenFnSpec, FlattenFnExactMatchSpec

#: class -> the function that lists the children which a structure names
SUPPORTED_NODES: dict[Any, FlattenFnSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[Any, FlattenFnExactMatchSpec | None] = {}


def register_pytree_flatten_spec(cls: type[Any], flatten_fn_spec: FlattenFnSpec,
                                 flatten_fn_exact_match_spec: FlattenFnExactMatchSpec | None = None) -> None:
    """Register how containers of a class are flattened along a structure."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls: type[Any]) -> None:
    del SUPPORTED_NODES[cls]
    del SUPPORTED_NODES_EXACT_MATCH[cls]


def tree_flatten_spec(pytree: PyTree, spec: TreeSpec) -> list[Any]:
    """The leaves of a tree, in the order of a structure.

    Raises:
        RuntimeError: a container of a class that is not registered here has another structure.
    """
    if spec.is_leaf():
        return [pytree]
    children = SUPPORTED_NODES.get(namedtuple if hasattr(spec.type, "_fields") else spec.type)
    if children is not None:
        leaves: list[Any] = []
        for child, child_spec in zip(children(pytree, spec), spec.children(), strict=False):
            leaves += tree_flatten_spec(child, child_spec)
        return leaves
    leaves, found = tree_flatten(pytree)
    if spec != found:
        raise RuntimeError(
            f"Real spec {found} of object {pytree} is different from expected spec {spec}. "
            "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml")
    return leaves


def _dict_flatten_spec(d: dict[Any, Any], spec: TreeSpec) -> list[Any]:
    return [d[key] for key in spec.context]


def _sequence_flatten_spec(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[i] for i in range(spec.num_children)]


def _same_length(d: Any, spec: TreeSpec) -> bool:
    return len(d) == spec.num_children


register_pytree_flatten_spec(dict, _dict_flatten_spec, _same_length)
for _cls in (list, tuple, namedtuple, *(value for value in vars(return_types).values()
                                        if isinstance(value, type) and issubclass(value, tuple))):
    register_pytree_flatten_spec(_cls, _sequence_flatten_spec, _same_length)  # type: ignore[arg-type]
