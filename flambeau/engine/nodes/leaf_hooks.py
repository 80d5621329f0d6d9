"""Registry of the leaves that have hooks: while there are any, leaves accumulate as soon as they are complete."""

from __future__ import annotations

import weakref
from typing import Any

from .node import Node


class LeafHooks:
    """Registry of the leaves that have hooks."""

    #: weak references to leaf tensors and to their nodes, by identity
    registered: dict[int, weakref.ref[Any]] = {}  # noqa: RUF012

    @classmethod
    def register(cls, leaf: Any) -> None:
        """Register a leaf tensor, or its node, that has hooks."""
        key = id(leaf)
        cls.registered[key] = weakref.ref(leaf, lambda _: cls.registered.pop(key, None))

    @classmethod
    def any(cls) -> bool:
        """Whether a live leaf has hooks; leaves whose hooks were removed leave the registry."""
        # copied in one step: building a list of pairs may run the garbage collector, whose callbacks remove entries
        for key, reference in cls.registered.copy().items():
            leaf = reference()
            if leaf is not None and _has_hooks(leaf):
                return True
            if cls.registered.get(key) is reference:
                cls.registered.pop(key, None)
        return False


def _has_hooks(leaf: Any) -> bool:
    if isinstance(leaf, Node):
        extra = leaf.extra
        return extra is not None and bool(extra.pre_hooks or extra.post_hooks or extra.retained or extra.metadata
                                          or any((extra.tensor_hooks or {}).values()))
    return bool(leaf._hooks or leaf._post_accumulate_hooks) or leaf._grad_type != ()


__all__ = ["LeafHooks"]
