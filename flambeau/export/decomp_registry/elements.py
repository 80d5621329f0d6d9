"""Decompositions of elementwise operators and their gradients."""

from __future__ import annotations

import math
from typing import Any

import flambeau as torch

from ..._tensor import Tensor
from ...dtypes import NARROW, float32
from .entries import decomposes, in_float32


@decomposes("addcmul")
@in_float32
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """A tensor and a multiple of a product."""
    product = tensor1 * tensor2
    return self + (product if value == 1 else product * value)


@decomposes("rsub.Scalar")
@in_float32
def rsub(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    """A number less a multiple of a tensor."""
    return other + self * -alpha


@decomposes("relu6")
def relu6(self: Tensor) -> Tensor:
    """Values between 0 and 6."""
    return torch.clamp(self, 0, 6)


@decomposes("hardtanh")
def hardtanh(self: Tensor, min_val: Any = -1, max_val: Any = 1) -> Tensor:
    """Values between two numbers; integers stay integers."""
    if not self.is_floating_point():
        min_val, max_val = int(min_val), int(max_val)
    return torch.clamp(self, min_val, max_val)


@decomposes("clamp_min")
def clamp_min(self: Tensor, min: Any) -> Tensor:
    """Values not below a number."""
    return torch.clamp(self, min=min)


@decomposes("clamp_max")
def clamp_max(self: Tensor, max: Any) -> Tensor:
    """Values not above a number."""
    return torch.clamp(self, max=max)


@decomposes("hardsigmoid")
@in_float32
def hardsigmoid(self: Tensor) -> Tensor:
    """`relu6(x + 3) / 6`."""
    return torch.clamp(self + 3, 0, 6) / 6


@decomposes("hardswish")
@in_float32
def hardswish(self: Tensor) -> Tensor:
    """`x relu6(x + 3) / 6`."""
    return self * torch.clamp(self + 3, 0, 6) / 6


@decomposes("sigmoid_backward")
@in_float32
def sigmoid_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    """The gradient of the logistic function, by its result."""
    return grad_output * torch.conj_physical(output * (1 - output))


@decomposes("tanh_backward")
@in_float32
def tanh_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    """The gradient of the hyperbolic tangent, by its result."""
    return grad_output * torch.conj_physical(1 - output * output)


@decomposes("elu_backward")
@in_float32
def elu_backward(grad_output: Tensor, alpha: float, scale: float, input_scale: float, is_result: bool,
                 self_or_result: Tensor) -> Tensor:
    """The gradient of the exponential linear unit, by its input or its result."""
    factor, x = alpha * scale, self_or_result
    below = x + factor if is_result else torch.exp(x * input_scale) * factor
    return torch.where(x <= 0, grad_output * input_scale * below, grad_output * scale)


@decomposes("clamp.Tensor")
def clamp(self: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """Values between two tensors."""
    result = self if min is None else torch.maximum(self, min)
    return result if max is None else torch.minimum(result, max)


@decomposes("div.Tensor_mode")
def div(self: Tensor, other: Any, *, rounding_mode: str | None) -> Tensor:
    """A quotient, rounded as the mode says."""
    if rounding_mode is None:
        return torch.true_divide(self, other)
    if rounding_mode == "floor":
        return torch.floor_divide(self, other)
    whole = torch.result_type(self, other)
    if whole.is_floating_point:
        return torch.trunc(torch.true_divide(self.to(float32) if whole.numpy in NARROW else self, other)).to(whole)
    rest = torch.fmod(self, other)
    return torch.floor_divide(self - rest, other)


@decomposes("threshold_backward")
def threshold_backward(grad_output: Tensor, self: Tensor, threshold: Any) -> Tensor:
    """The gradient of `threshold`: 0 where the input was not above it."""
    return torch.where(self <= threshold, torch.scalar_tensor(0, dtype=grad_output.dtype), grad_output)


@decomposes("threshold")
def threshold(self: Tensor, threshold: Any, value: Any) -> Tensor:
    """Values above a threshold, a number for the others."""
    return torch.where(self <= threshold, torch.scalar_tensor(value, dtype=self.dtype), self)


@decomposes("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A number where a mask is True."""
    filled = value.to(self.dtype) if isinstance(value, Tensor) else torch.scalar_tensor(value, dtype=self.dtype)
    return torch.where(mask, filled, self)


@decomposes("nan_to_num")
def nan_to_num(self: Tensor, nan: float | None = None, posinf: float | None = None,
               neginf: float | None = None) -> Tensor:
    """Finite numbers for NaN and infinities."""
    if not (self.is_floating_point() or self.is_complex()):
        return self.clone()
    if self.is_complex():
        return torch.complex(nan_to_num(self.real, nan, posinf, neginf), nan_to_num(self.imag, nan, posinf, neginf))
    limits = torch.finfo(self.dtype)
    highest, lowest = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    result = torch.where(torch.isnan(self), torch.scalar_tensor(nan or 0.0, dtype=self.dtype), self)
    result = torch.where(self == math.inf, torch.scalar_tensor(highest, dtype=self.dtype), result)
    return torch.where(self == -math.inf, torch.scalar_tensor(lowest, dtype=self.dtype), result)


@decomposes("lerp.Scalar", "lerp.Tensor")
@in_float32
def lerp(self: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Between two tensors, from the nearer of them."""
    distance = end - self
    if not isinstance(weight, Tensor):
        weight = torch.scalar_tensor(weight, dtype=self.dtype)
    near = torch.abs(weight) < 0.5
    return torch.where(near, weight, weight - 1) * distance + torch.where(near, self, end)


@decomposes("special_entr")
@in_float32
def special_entr(self: Tensor) -> Tensor:
    """`-x log(x)`; 0 at 0, minus infinity below."""
    if not self.is_floating_point():
        self = self.to(torch.get_default_dtype())
    inner = torch.where(self > 0, -self * torch.log(self), torch.where(self == 0, 0.0, -math.inf))
    return torch.where(torch.isnan(self), self, inner).to(self.dtype)
