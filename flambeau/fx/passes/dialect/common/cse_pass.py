"""Common subexpressions: nodes that compute the same are computed once."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from .....utils._pytree import tree_flatten
from ...._compatibility import compatibility
from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node
from ...infra.pass_base import PassBase, PassResult

aten = torch.ops.aten

_RANDOM = ("dropout", "_fused_dropout", "_standard_gamma", "bernoulli", "multinomial", "native_dropout", "normal",
           "poisson", "binomial", "rrelu", "rand_like", "rand", "randint", "randn", "randperm")
_INPLACE = ("add_", "sub_", "mul_", "div_", "pow_", "lerp_", "relu_", "sigmoid_", "tanh_")
rand_ops = {getattr(aten, name) for name in _RANDOM if hasattr(aten, name)}
inplace_ops = {getattr(aten, name) for name in _INPLACE if hasattr(aten, name)}


@compatibility(is_backward_compatible=False)
def get_CSE_banned_ops() -> set[Any]:
    """The operators that draw random numbers or write to their arguments."""
    return rand_ops | inplace_ops


@compatibility(is_backward_compatible=False)
class CSEPass(PassBase):
    """Replaces nodes of the same function and arguments by one.

    Args:
        banned_ops: operators that are kept.
    """

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        self.banned_ops = banned_ops or set()
        super().__init__()

    def call(self, graph_module: GraphModule) -> PassResult:
        """A new module, or the given one if nothing is computed twice."""
        graph = Graph()
        copies: dict[Node, Node] = {}
        known: dict[Any, Node] = {}
        modified = False
        for node in graph_module.graph.nodes:
            target = getattr(node.target, "overloadpacket", node.target)
            key = None
            if node.op not in ("placeholder", "output", "get_attr") and target not in self.banned_ops:
                key = self._key(node, copies)
                if key in known:
                    modified = True
                    copies[node] = known[key]
                    continue
            copies[node] = graph.node_copy(node, lambda x: copies[x])
            if key is not None:
                known[key] = copies[node]
        return PassResult(GraphModule(graph_module, graph) if modified else graph_module, modified)

    def _key(self, node: Node, copies: dict[Node, Node]) -> Any:
        leaves, spec = tree_flatten((node.args, dict(node.kwargs)))
        values = tuple((type(leaf), copies[leaf] if isinstance(leaf, Node) else leaf) for leaf in leaves)
        return node.target, values, str(spec)
