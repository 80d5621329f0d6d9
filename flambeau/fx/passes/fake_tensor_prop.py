"""Fake values of a graph, found by running it on fake tensors."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from ..._subclasses.fake_tensor import FakeTensorMode
from ...utils._pytree import tree_leaves
from .._compatibility import compatibility
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["FakeTensorProp"]


@compatibility(is_backward_compatible=False)
class FakeTensorProp(Interpreter):
    """Runs a graph on fake tensors and stores each value in `Node.meta["val"]`; nothing is computed.

    Args:
        module: the module.
        mode: the mode of fake tensors; default: a new one.

    >>> import flambeau as torch
    >>> from flambeau._subclasses.fake_tensor import FakeTensorMode
    >>> from flambeau.fx.passes.fake_tensor_prop import FakeTensorProp
    >>> gm = torch.fx.symbolic_trace(torch.nn.Linear(2, 3))
    >>> FakeTensorProp(gm, FakeTensorMode(allow_non_fake_inputs=True)).propagate(torch.ones(4, 2))
    FakeTensor(..., size=(4, 3), grad_fn=<AddmmBackward0>)
    """

    def __init__(self, module: GraphModule, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode() if mode is None else mode

    def run_node(self, n: Node) -> Any:
        """Execute a node, and store its value."""
        result = super().run_node(n)
        known = [x for x in tree_leaves(result) if isinstance(x, (torch.Tensor, int, float, bool))]
        if known:
            n.meta["val"] = map_aggregate(result, lambda x: x)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the module with arguments, whose tensors are replaced by fake ones; the result."""
        return self.propagate_dont_convert_inputs(*(
            self._mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for x in args))

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run the module with fake arguments; the result."""
        with self._mode:
            return super().run(*args)
