"""The history that PyTorch's fused backward operators give to all the gradients which they return.

PyTorch computes the gradients of a convolution, a batch or a layer normalization by one operator, which is recorded
under `create_graph` if one of its own arguments requires grad. Then every gradient requires grad, that of the bias too,
though it depends on the cotangent alone. Here each gradient has a formula of its own; where that leaves a gradient
without a history, it gets a node whose gradients are undefined.
"""

from __future__ import annotations

from typing import Any

from ...modes import special
from ..grad_mode import grad_mode
from ..tensor_interface import layer
from .node import Node, NodeType, next_number

#: node -> the arguments of PyTorch's backward operator that are inputs of the forward, counted from the first
FUSED = {"ConvolutionBackward0": 2, "NativeBatchNormBackward0": 2, "NativeLayerNormBackward0": 3}


class _Undefined(Node):
    """A node whose gradients are all undefined."""

    __slots__ = ()

    def __init__(self, node: Node, count: int) -> None:
        self.edges = node.edges[:count]
        numbers = node.edge_outputs
        self.edge_outputs = None if numbers is None else numbers[:count]
        self.extra = self.run = self.outputs = None
        self.seq = next_number()

    def vjp(self, cotangents: Any, tensors: bool) -> list[None]:
        return [None] * self.n_edges


_NODES = {name: NodeType(name.replace("Backward0", "BackwardBackward0"), (_Undefined,), {"__slots__": ()})
          for name in FUSED}


def with_history(node: Node, name: str, gradients: list[Any]) -> None:
    """Give a history to the gradients that have none, in place, if PyTorch's backward operator would be recorded.

    Args:
        node: whose gradients they are.
        name: of the node.
        gradients: tensors or None.
    """
    if special[0] or not grad_mode.get() or not any(edge is not None for edge in node.edges[: FUSED[name]]):
        return
    for i, g in enumerate(gradients):
        if g is not None and not g._requires_grad:
            gradients[i] = out = layer.wrap(g._array)
            out._requires_grad, out._node, out._output_nr = True, _NODES[name](node, FUSED[name]), 0


__all__ = ["FUSED", "with_history"]
