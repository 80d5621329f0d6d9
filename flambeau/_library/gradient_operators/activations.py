"""Gradients of activations as operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor, functions
from .vector_jacobian import gradient_of, vector_jacobian


def _leaky_relu(grad_output: Tensor, self: Tensor, negative_slope: Any, self_is_result: bool) -> Tensor:
    """The slope where the input, or a result of the same sign, is not positive."""
    if self_is_result and negative_slope < 0:
        raise RuntimeError("In-place leakyReLu backward calculation is triggered with a negative slope which is not "
                           "supported. This is caused by calling in-place forward function with a negative slope, "
                           "please call out-of-place version instead.")
    return functions.where(self > 0, grad_output, grad_output * negative_slope)


def _elu(grad_output: Tensor, alpha: Any, scale: Any, input_scale: Any, is_result: bool,
         self_or_result: Tensor) -> Tensor:
    if is_result and alpha < 0:
        raise RuntimeError("In-place elu backward calculation is triggered with a negative slope which is not "
                           "supported. This is caused by calling in-place forward function with a negative slope, "
                           "please call out-of-place version instead.")
    x = self_or_result
    if is_result:
        below = grad_output * input_scale * (x + alpha * scale)
    else:
        below = grad_output * (input_scale * alpha * scale) * functions.exp(x * input_scale)
    return functions.where(x <= 0, below, grad_output * scale)


def _log_sigmoid(grad_output: Tensor, self: Tensor, buffer: Tensor) -> Tensor:
    """The gradient from `buffer`, exp(-|x|), which is computed where it is empty."""
    power = buffer if buffer.numel() or not self.numel() else functions.exp(-functions.abs(self))
    share = power / (1 + power)
    return grad_output * functions.where(self < 0, 1 - share, share)


def _sigmoid(grad_output: Tensor, output: Tensor) -> Tensor:
    return grad_output * (output * (1 - output)).conj()


def _tanh(grad_output: Tensor, output: Tensor) -> Tensor:
    return grad_output * (1 - output * output).conj()


def _gelu(grad_output: Tensor, self: Tensor, *, approximate: str = "none") -> Tensor:
    grad_output, self = functions.broadcast_tensors(grad_output, self)
    return vector_jacobian(lambda x: functions.gelu(x, approximate=approximate), [self], (grad_output,))[0]


def _rrelu_with_noise(grad_output: Tensor, self: Tensor, noise: Tensor, lower: Any, upper: Any, training: bool,
                      self_is_result: bool) -> Tensor:
    if training:
        return grad_output * noise
    return _leaky_relu(grad_output, self, (lower + upper) / 2, self_is_result)


def _prelu_kernel(grad_output: Tensor, self: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    """The gradients of both, as large as the result: that of a weight is not summed."""
    grad_output, self, weight = functions.broadcast_tensors(grad_output, self, weight)
    positive = self > 0
    return (functions.where(positive, grad_output, grad_output * weight),
            functions.where(positive, functions.zeros_like(self), grad_output * self))



#: "aten.name.overload" -> kernel
KERNELS: dict[str, Callable[..., Any]] = {
    **{f"aten.{name}_backward.default": gradient_of(f"{name}_backward", name, broadcast=True) for name in (
        "hardtanh", "hardsigmoid", "hardswish", "mish", "softplus", "softshrink", "hardshrink", "logit",
        "silu")},
    "aten.log_sigmoid_backward.default": _log_sigmoid, "aten.sigmoid_backward.default": _sigmoid,
    "aten.tanh_backward.default": _tanh, "aten.gelu_backward.default": _gelu,
    "aten.glu_backward.default": gradient_of("glu_backward", "glu"),
    "aten.leaky_relu_backward.default": _leaky_relu, "aten.elu_backward.default": _elu,
    "aten.rrelu_with_noise_backward.default": _rrelu_with_noise,
    "aten._prelu_kernel_backward.default": _prelu_kernel,
}

__all__ = ["KERNELS"]
