"""Nodes that cannot be run: a gradient that reaches one is an error, said only then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ..tensor_interface import layer
from .node import Node, next_number


class Error(Node):
    """Raises a message when a gradient arrives; until then its outputs are like any others."""

    __slots__ = ("message",)

    def __init__(self, message: str, inputs: Sequence[Any]) -> None:
        """Point to the inputs that are tensors and require grad.

        Args:
            message: of the error.
            inputs: tensors, or None.
        """
        self.message = message
        wanted = [x is not None and x._requires_grad for x in inputs]
        self.edges = tuple(layer.gradient_edge(x) if want else None for x, want in zip(inputs, wanted, strict=True))
        numbers = tuple(x._output_nr if want else 0 for x, want in zip(inputs, wanted, strict=True))
        self.edge_outputs = numbers if any(numbers) else None
        self.extra = self.run = self.outputs = None
        self.seq = next_number()

    def vjp(self, cotangents: Any, tensors: bool) -> NoReturn:
        raise RuntimeError(self.message)

    def name(self) -> str:
        return f"torch::autograd::{type(self).__name__}"


class NotImplemented(Error):
    """The history of what an operator without a derivative made."""


def delayed_error(message: str, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The same tensors, with a history that cannot be run.

    Args:
        message: of the error that a gradient raises.
        inputs: tensors that require grad, or None, which is handed back.
    """
    live = [x for x in inputs if x is not None]
    node = Error(message, inputs)
    node.outputs = None if len(inputs) == 1 else tuple(
        ((), live[0]._array.dtype) if x is None else (x._array.shape, x._array.dtype) for x in inputs)
    found = []
    for number, x in enumerate(inputs):
        out = None
        if x is not None:
            out = layer.wrap(x._array)
            out._requires_grad, out._node, out._output_nr = True, node, number
        found.append(out)
    return tuple(found)


__all__ = ["Error", "NotImplemented", "delayed_error"]
