"""Scopes: values of scalar IR nodes in nested blocks of statements; an inner block sees what the outer ones know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import TypeVar

from ..scalar.scalar_ir import Node

V = TypeVar("V")


def known_value(scopes: Sequence[Mapping[Node, V]], node: Node) -> V | None:
    """The value of a node in the innermost scope that has one; None if no scope has."""
    for scope in reversed(scopes):
        found = scope.get(node)
        if found is not None:
            return found
    return None


def value_in(scopes: Sequence[MutableMapping[Node, V]], root: Node, make: Callable[[Node, list[V]], V]) -> V:
    """The value of a node, with those of its operands that no scope has, put into the innermost scope.

    Args:
        make: makes the value of a node of those of its operands.
    """
    found = known_value(scopes, root)
    if found is not None:
        return found
    stack, scope = [root], scopes[-1]
    while stack:  # no recursion: expressions may be deep
        node = stack[-1]
        if known_value(scopes, node) is not None:
            stack.pop()
            continue
        values = [known_value(scopes, arg) for arg in node.args]
        missing = [arg for arg, value in zip(node.args, values, strict=True) if value is None]
        if missing:
            stack.extend(missing)
            continue
        scope[node] = make(node, [value for value in values if value is not None])
        stack.pop()
    return scope[root]


__all__ = ["known_value", "value_in"]
