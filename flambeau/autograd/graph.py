"""`torch.autograd.graph`: nodes and edges by hand."""

from __future__ import annotations

from typing import Any

from .interface import GradientEdge, edge
from .node import Node, layer


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Where in the graph a tensor's gradient is computed: its node and output number.

    Raises:
        RuntimeError: the tensor does not require grad.

    >>> import flambeau as torch
    >>> x = torch.tensor(2., requires_grad=True)
    >>> torch.autograd.graph.get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node, number = edge(tensor)
    return GradientEdge(node, number)


def increment_version(tensor: Any) -> None:
    """Count a write that autograd did not see."""
    for x in (tensor,) if isinstance(tensor, layer.tensor_class) else tensor:
        x._bump_version()


__all__ = ["GradientEdge", "Node", "get_gradient_edge", "increment_version"]
