"""Arithmetic whose arguments no declaration can take: an `alpha`, a number on the left."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..autograd.node import layer
from ..ops.declare import REGISTRY
from .apply import apply
from .binding import functions_of
from .tensor import Tensor

__all__ = ["add", "number_pow_gradient", "pow", "sub", "subtract"]

_add, _sub, _pow = functions_of(REGISTRY["add"]), functions_of(REGISTRY["sub"]), functions_of(REGISTRY["pow"])


def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """input + alpha · other.

    >>> import flambeau as torch
    >>> torch.add(torch.ones(2), torch.ones(2), alpha=3)
    tensor([4., 4.])
    """
    if alpha != 1:
        return functions_of(REGISTRY["_add_scaled"])(input, other, alpha=alpha, out=out)
    return _add(input, other, out=out)


def sub(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """input - alpha · other.

    >>> import flambeau as torch
    >>> torch.sub(torch.ones(2), torch.ones(2), alpha=3)
    tensor([-2., -2.])
    """
    if alpha != 1:
        return functions_of(REGISTRY["_sub_scaled"])(input, other, alpha=alpha, out=out)
    return _sub(input, other, out=out)


subtract = sub


def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """input ** exponent, for tensors or a number on either side.

    >>> import flambeau as torch
    >>> torch.pow(2, torch.tensor([1., 2.]))
    tensor([2., 4.])
    """
    if not isinstance(input, Tensor) and isinstance(exponent, Tensor):
        return apply(REGISTRY["_number_pow"], [exponent], {"base": input})
    return _pow(input, exponent, out=out)


def number_pow_gradient(g: Tensor, exponent: Tensor, out: Tensor, base: Any) -> Tensor:
    """The gradient of base ** exponent by the exponent: g · out · log(base)."""
    functions = layer.functions
    if base == 0:
        return functions.where(exponent >= 0, functions.zeros_like(g), g * (out * -math.inf))  # type: ignore[no-any-return]
    if isinstance(base, complex) or base < 0:
        return g * (out * complex(np.log(complex(base))))  # type: ignore[operator]
    return g * (out * math.log(base))  # type: ignore[operator]


METHODS = {"add": add, "sub": sub, "subtract": sub, "pow": pow}
