"""`torch.autograd.Variable`: what tensors were called before they were one class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ..engine.engine import queue_callback, reaches_all_leaves


class Engine:
    """What runs backward, as programs that reach for it know it."""

    @staticmethod
    def queue_callback(callback: Callable[[], Any]) -> None:
        """Have something called when the backward pass that runs is done; only within one."""
        queue_callback(callback)

    @staticmethod
    def is_checkpoint_valid() -> bool:
        """Whether the pass that runs was asked for all leaves' gradients."""
        return reaches_all_leaves()


class _VariableType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableType):
    """A tensor: `Variable(data, requires_grad)` gives one, and every tensor is a Variable.

    >>> import flambeau as torch
    >>> torch.autograd.Variable(torch.ones(1), requires_grad=True)
    tensor([1.], requires_grad=True)
    """

    _execution_engine = Engine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False) -> Any:
        from .._tensor import functions

        made = functions.empty(0) if data is None else data.detach()
        return made.requires_grad_(requires_grad)


__all__ = ["Variable"]
