"""What is recorded of an operator of a program's that has no derivative: a node that warns in backward.

An operator whose kernel computes without recording would have results without history. In mode "warn" they get a node
that passes no gradients on and warns; results that require grad, as the kernel's own operators recorded them, warn too.
"""

from __future__ import annotations

import warnings
from contextvars import ContextVar
from typing import Any

from .._tensor import Tensor
from .._tensor.custom_functions.function import Function
from ..trees import tree_leaves

_mode: ContextVar[str] = ContextVar("autograd_fallback_mode", default="warn")


def get_autograd_fallback_mode() -> str:
    """What is done about operators without a derivative: "warn" or "nothing"."""
    return _mode.get()


def set_autograd_fallback_mode(mode: str) -> None:
    """Set what is done about operators without a derivative.

    Raises:
        RuntimeError: the mode is neither "warn" nor "nothing".
    """
    if mode not in ("warn", "nothing"):
        raise RuntimeError(f"Unsupported AutogradFallbackMode: {mode}")
    _mode.set(mode)


def _warn(operator: str) -> None:
    warnings.warn(
        f"{operator}: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop "
        "through it. This may lead to silently incorrect behavior. This behavior is deprecated and will be removed in "
        "a future version of PyTorch. If your operator is differentiable, please ensure you have registered an "
        "autograd kernel to the correct Autograd key (e.g. DispatchKey::Autograd, "
        "DispatchKey::CompositeImplicitAutograd). If your operator is not differentiable, or to squash this warning "
        "and use the previous behavior, please register torch::CppFunction::makeFallthrough() to "
        "DispatchKey::Autograd.", UserWarning, stacklevel=2)


class WarnNotImplemented(Function):
    """The node of results of an operator without a derivative."""

    @staticmethod
    def forward(ctx: Any, operator: str, results: list[Tensor], *inputs: Tensor) -> Any:
        ctx.operator = operator
        ctx.count = len(inputs)
        ctx.set_materialize_grads(False)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        _warn(ctx.operator)
        return (None,) * (2 + ctx.count)


def record(overload: Any, inputs: list[Tensor], result: Any) -> Any:
    """Give the results of an operator's kernel a history that warns.

    Args:
        inputs: the tensors among the arguments, of which one requires grad, while gradients are recorded.
        result: what the kernel returned, which is returned.
    """
    if _mode.get() == "nothing":
        return result
    operator = overload.name().partition(".")[0]
    fresh: list[Tensor] = []
    known = {id(x) for x in inputs}
    for x in tree_leaves(result):
        if not isinstance(x, Tensor) or not (x.is_floating_point() or x.is_complex()):
            continue
        if x.requires_grad:
            x.register_hook(lambda grad: _warn(operator))
            if id(x) in known and x._is_view() and x._base is not None and x._base.requires_grad:
                x._base.register_hook(lambda grad: _warn(operator))
        elif id(x) not in known:  # what was written keeps the history that it has
            fresh.append(x)
    if fresh:
        WarnNotImplemented.apply(operator, fresh, *inputs)
    return result


__all__ = ["get_autograd_fallback_mode", "record", "set_autograd_fallback_mode"]
