"""Stub for PyTorch's node classes: those a program can write itself, and the accumulating node's."""

from __future__ import annotations

from typing import Any

import torch

from ..placeholder import Placeholder


def _accumulate_grad() -> type:
    leaf = torch.zeros((), requires_grad=True)
    return type(leaf.view_as(leaf).grad_fn.next_functions[0][0])


class DelayedError:
    """Passes tensors on, and raises when a gradient comes back."""

    def __init__(self, text: str, count: int) -> None:
        class DelayedErrorBackward(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *tensors: Any) -> Any:
                made = tuple(t.view_as(t) for t in tensors)
                return made[0] if len(made) == 1 else made

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                raise RuntimeError(text)

        self.apply = DelayedErrorBackward.apply

    def __call__(self, *tensors: Any) -> Any:
        return self.apply(*tensors)


class UndefinedGrad:
    """Passes a tensor on, and no gradient back."""

    def __call__(self, tensor: Any) -> Any:
        class UndefinedGradBackward(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x.view_as(x)

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return None

        return UndefinedGradBackward.apply(tensor)


def __getattr__(name: str) -> Any:
    if name == "AccumulateGrad":
        return _accumulate_grad()
    if name.startswith("__"):
        raise AttributeError(name)
    return Placeholder(f"torch._C._functions.{name}", internal=True)
