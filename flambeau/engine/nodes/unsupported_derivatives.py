"""Nodes without a derivative: they raise an error when a gradient reaches them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ..tensor_interface import layer
from .node import Node, next_number


class Error(Node):
    """A node that raises an error when it is evaluated."""

    __slots__ = ("message",)

    def __init__(self, message: str, inputs: Sequence[Any]) -> None:
        """Create edges to the inputs that require grad.

        Args:
            message: the error's message.
            inputs: tensors, or None.
        """
        self.message = message
        needs = [x is not None and x._requires_grad for x in inputs]
        self.edges = tuple(layer.gradient_edge(x) if need else None for x, need in zip(inputs, needs, strict=True))
        numbers = tuple(x._output_nr if need else 0 for x, need in zip(inputs, needs, strict=True))
        self.edge_outputs = numbers if any(numbers) else None
        self.extra = self.run = self.outputs = None
        self.seq = next_number()

    def vjp(self, cotangents: Any, tensors: bool) -> NoReturn:
        raise RuntimeError(self.message)

    def name(self) -> str:
        return f"torch::autograd::{type(self).__name__}"


class NotImplemented(Error):
    """The node of an operator without a derivative."""


def delayed_error(message: str, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Views of the tensors whose node raises an error.

    Args:
        message: the error's message.
        inputs: tensors that require grad, or None, which is returned as it is.
    """
    live = [x for x in inputs if x is not None]
    node = Error(message, inputs)
    node.outputs = None if len(inputs) == 1 else tuple(
        ((), live[0]._array.dtype) if x is None else (x._array.shape, x._array.dtype) for x in inputs)
    outputs = []
    for number, x in enumerate(inputs):
        out = None
        if x is not None:
            out = layer.wrap(x._array)
            out._requires_grad, out._node, out._output_nr = True, node, number
        outputs.append(out)
    return tuple(outputs)


__all__ = ["Error", "NotImplemented", "delayed_error"]
