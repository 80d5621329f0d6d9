"""The base of passes."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

from ..._compatibility import compatibility

__all__ = ["PassBase", "PassResult"]


@compatibility(is_backward_compatible=False)
class PassResult(NamedTuple):
    """The module that a pass returns, and whether it changed it."""

    graph_module: Any
    modified: bool


@compatibility(is_backward_compatible=False)
class PassBase(abc.ABC):
    """The base of passes, which are called with a module: `requires`, `call` and `ensures` run in this order."""

    def __call__(self, graph_module: Any) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: Any) -> PassResult | None:
        """Run the pass on a module."""

    def requires(self, graph_module: Any) -> None:  # noqa: B027
        """Check a module before the pass."""

    def ensures(self, graph_module: Any) -> None:  # noqa: B027
        """Check a module after the pass."""
