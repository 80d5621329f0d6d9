"""Nested containers of tensors, flattened and put together again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor


def flatten(tree: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """The leaves of nested tuples, lists and dicts, and what builds the same nest from other leaves."""
    make: Callable[[list[Any]], Any]
    if isinstance(tree, dict):
        keys = list(tree)
        parts = [flatten(tree[k]) for k in keys]
        kind: Any = type(tree)
        make = lambda values: kind(zip(keys, values, strict=True))
    elif isinstance(tree, (tuple, list)):
        parts = [flatten(x) for x in tree]
        if hasattr(tree, "_fields"):
            kind = type(tree)
            make = lambda values: kind(*values)
        else:
            kind = list if isinstance(tree, list) else tuple
            make = kind
    else:
        return [tree], lambda leaves: leaves[0]
    counts = [len(leaves) for leaves, _ in parts]

    def build(leaves: list[Any]) -> Any:
        values, at = [], 0
        for (_, rebuild), n in zip(parts, counts, strict=True):
            values.append(rebuild(leaves[at: at + n]))
            at += n
        return make(values)

    return [leaf for leaves, _ in parts for leaf in leaves], build


def tensors_only(leaves: list[Any], what: str) -> None:
    """Refuse leaves that are no tensors.

    Raises:
        RuntimeError: one is something else.
    """
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{what}: expected only tensors, got {type(x)}")
