"""Functions of trees as functions of their leaves, which graphs contain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..trees import TreeSpec, tree_flatten, tree_unflatten

__all__ = ["FlatFunction", "flat_operands"]


def flat_operands(operands: Any) -> tuple[tuple[Any, ...], TreeSpec]:
    """The leaves of a function's arguments, and their structure."""
    leaves, structure = tree_flatten(tuple(operands))
    return tuple(leaves), structure


class FlatFunction:
    """A function of the leaves of another one's arguments, whose result are its result's leaves.

    Args:
        function: the other one.
        structure: of the tuple of its arguments.
        collect: what the leaves are in, a tuple or a list; None: the result is one value, which stays as it is.
    """

    def __init__(self, function: Callable[..., Any], structure: TreeSpec,
                 collect: Callable[[list[Any]], Any] | None = tuple) -> None:
        self.function, self.structure, self.collect = function, structure, collect
        self.result_structure: TreeSpec | None = None

    def __call__(self, *leaves: Any) -> Any:
        result = self.function(*tree_unflatten(list(leaves), self.structure))
        if self.collect is None:
            return result
        flat, self.result_structure = tree_flatten(result)
        return self.collect(flat)

    def unflatten(self, leaves: Any) -> Any:
        """A result of the other function, of its leaves."""
        assert self.result_structure is not None
        return tree_unflatten(list(leaves), self.result_structure)
