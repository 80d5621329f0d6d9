"""`torch.autograd.Variable`: the deprecated name of tensors, and the engine's interface under it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ..engine.engine import queue_callback, reaches_all_leaves


class Engine:
    """`Variable._execution_engine`: the engine as PyTorch programs access it."""

    @staticmethod
    def queue_callback(callback: Callable[[], Any]) -> None:
        """Queue a callback for the end of the running backward pass."""
        queue_callback(callback)

    @staticmethod
    def is_checkpoint_valid() -> bool:
        """Whether the running pass computes the gradients of all leaves."""
        return reaches_all_leaves()


def _is_checkpoint_valid() -> bool:
    """Whether the running pass computes the gradients of all leaves, as reentrant checkpoints require."""
    return reaches_all_leaves()


class VariableMeta(type):
    """The class of `Variable`: every tensor is an instance."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """Deprecated: `Variable(data, requires_grad)` returns a tensor, and every tensor is an instance.

    >>> import flambeau as torch
    >>> torch.autograd.Variable(torch.ones(1), requires_grad=True)
    tensor([1.], requires_grad=True)
    """

    _execution_engine = Engine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False) -> Any:
        from .._tensor import functions

        tensor = functions.empty(0) if data is None else data.detach()
        return tensor.requires_grad_(requires_grad)


__all__ = ["Variable", "VariableMeta"]
