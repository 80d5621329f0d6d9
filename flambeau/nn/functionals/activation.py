"""Activation functions with `inplace`, and the softmax family."""

from __future__ import annotations

import warnings

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.fastpath.repeated_calls import launched
from ...devices import contiguous_format

__all__ = [
    "celu", "elu", "elu_", "glu", "gumbel_softmax", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
    "leaky_relu_", "log_softmax", "mish", "relu", "relu6", "rrelu", "selu", "sigmoid", "silu", "softmax",
    "softmin", "softsign", "tanh", "tanhshrink", "threshold", "threshold_",
]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Rectified linear unit: max(0, x).

    Args:
        input: float tensor of any shape.
        inplace: write the result into the input.

    >>> import flambeau as torch
    >>> torch.nn.functional.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return fn.relu_(input) if inplace else fn.relu(input)


@launched
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """ReLU with upper bound 6: min(max(0, x), 6).

    Args:
        input: float tensor of any shape.
        inplace: write the result into the input.

    >>> import flambeau as torch
    >>> torch.nn.functional.relu6(torch.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """
    return hardtanh(input, 0, 6, inplace) if inplace else fn.relu6(input)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Hard tanh: x clamped to [min_val, max_val].

    Args:
        input: float tensor of any shape.
        min_val: the lower bound.
        max_val: the upper bound.
        inplace: write the result into the input.

    Raises:
        ValueError: `min_val` is greater than `max_val`.

    >>> import flambeau as torch
    >>> torch.nn.functional.hardtanh(torch.tensor([-3.0, 0.5, 4.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (fn.hardtanh_ if inplace else fn.hardtanh)(input, min_val, max_val)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Threshold: x where x > threshold, else value.

    Args:
        input: float tensor of any shape.
        threshold: the largest input that is replaced.
        value: the replacement.
        inplace: write the result into the input.

    >>> import flambeau as torch
    >>> torch.nn.functional.threshold(torch.tensor([0.0, 2.0]), 0.1, 20.0)
    tensor([20.,  2.])
    """
    return (fn.threshold_ if inplace else fn.threshold)(input, threshold, value)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """In-place `threshold`.

    Args:
        input: float tensor of any shape.
        threshold: the largest input that is replaced.
        value: the replacement.

    >>> import flambeau as torch
    >>> torch.nn.functional.threshold_(torch.tensor([0.0, 2.0]), 0.1, 20.0)
    tensor([20.,  2.])
    """
    return fn.threshold_(input, threshold, value)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Leaky ReLU: x where x > 0, else negative_slope · x.

    Args:
        input: float tensor of any shape.
        negative_slope: the slope for negative inputs.
        inplace: write the result into the input.

    >>> import flambeau as torch
    >>> torch.nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]))
    tensor([-0.0100,  2.0000])
    """
    return (fn.leaky_relu_ if inplace else fn.leaky_relu)(input, negative_slope)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """In-place `leaky_relu`.

    Args:
        input: float tensor of any shape.
        negative_slope: the slope for negative inputs.

    >>> import flambeau as torch
    >>> torch.nn.functional.leaky_relu_(torch.tensor([-1.0, 2.0]))
    tensor([-0.0100,  2.0000])
    """
    return fn.leaky_relu_(input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Exponential linear unit: x where x > 0, else alpha · (eˣ - 1).

    Args:
        input: float tensor of any shape.
        alpha: minus the limit at -inf.
        inplace: write the result into the input.

    >>> import flambeau as torch
    >>> torch.nn.functional.elu(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return (fn.elu_ if inplace else fn.elu)(input, alpha)


def elu_(input: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """In-place `elu`.

    Args:
        input: float tensor of any shape.
        alpha: minus the limit at -inf.
        scale: the factor of the result.
        input_scale: the factor of the input in the exponential function.

    >>> import flambeau as torch
    >>> torch.nn.functional.elu_(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return fn.elu_(input, alpha) if scale == input_scale == 1 else fn.elu_(input, alpha, scale, input_scale)


@launched
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Scaled ELU: scale · (max(0, x) + min(0, alpha · (eˣ - 1))), scale = 1.0507, alpha = 1.6733.

    Args:
        input: float tensor of any shape.
        inplace: write the result into the input.

    >>> import flambeau as torch
    >>> torch.nn.functional.selu(torch.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return (fn.selu_ if inplace else fn.selu)(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Continuously differentiable ELU: max(0, x) + min(0, alpha · (e^(x / alpha) - 1)).

    Args:
        input: float tensor of any shape.
        alpha: minus the limit at -inf.
        inplace: write the result into the input.

    >>> import flambeau as torch
    >>> torch.nn.functional.celu(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return (fn.celu_ if inplace else fn.celu)(input, alpha)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
          inplace: bool = False) -> Tensor:
    """Randomized leaky ReLU: x where x >= 0, else slope · x, the slope drawn from U(lower, upper) per element.

    Args:
        input: float tensor of any shape.
        lower: the smallest slope.
        upper: the largest slope.
        training: draw the slopes; else use (lower + upper) / 2.
        inplace: write the result into the input.

    >>> import flambeau as torch
    >>> torch.nn.functional.rrelu(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    return (fn.rrelu_ if inplace else fn.rrelu)(input, lower, upper, training)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Piecewise linear sigmoid: min(max(0, x + 3), 6) / 6.

    Args:
        input: float tensor of any shape.
        inplace: write the result into the input.

    >>> import flambeau as torch
    >>> torch.nn.functional.hardsigmoid(torch.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """
    return (fn.hardsigmoid_ if inplace else fn.hardsigmoid)(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Piecewise quadratic swish: x · min(max(0, x + 3), 6) / 6.

    Args:
        input: float tensor of any shape.
        inplace: write the result into the input.

    >>> import flambeau as torch
    >>> torch.nn.functional.hardswish(torch.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """
    return (fn.hardswish_ if inplace else fn.hardswish)(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Sigmoid linear unit (swish): x · sigmoid(x).

    Args:
        input: float tensor of any shape.
        inplace: write the result into the input.

    >>> import flambeau as torch
    >>> torch.nn.functional.silu(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    return (fn.silu_ if inplace else fn.silu)(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Mish: x · tanh(softplus(x)).

    Args:
        input: float tensor of any shape.
        inplace: write the result into the input.

    >>> import flambeau as torch
    >>> torch.nn.functional.mish(torch.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """
    return (fn.mish_ if inplace else fn.mish)(input)


def tanhshrink(input: Tensor) -> Tensor:
    """Tanh shrinkage: x - tanh(x).

    Args:
        input: float tensor of any shape.

    >>> import flambeau as torch
    >>> torch.nn.functional.tanhshrink(torch.tensor([-1.0, 2.0]))
    tensor([-0.2384,  1.0360])
    """
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    """Softsign: x / (1 + |x|).

    Args:
        input: float tensor of any shape.

    >>> import flambeau as torch
    >>> torch.nn.functional.softsign(torch.tensor([-1.0, 2.0]))
    tensor([-0.5000,  0.6667])
    """
    return input / (input.abs() + 1)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent: tanh(x).

    Args:
        input: float tensor of any shape.

    >>> import flambeau as torch
    >>> torch.nn.functional.tanh(torch.tensor([-1.0, 2.0]))
    tensor([-0.7616,  0.9640])
    """
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """Logistic function: 1 / (1 + e⁻ˣ).

    Args:
        input: float tensor of any shape.

    >>> import flambeau as torch
    >>> torch.nn.functional.sigmoid(torch.tensor([-1.0, 2.0]))
    tensor([0.2689, 0.8808])
    """
    return input.sigmoid()


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Gated linear unit: a · sigmoid(b), where a and b are the halves of the input along `dim`.

    Args:
        input: float tensor of any shape.
        dim: the dimension to halve, of even size.

    Raises:
        RuntimeError: the size along `dim` is odd, or the input is 0-D.

    >>> import flambeau as torch
    >>> torch.nn.functional.glu(torch.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return fn.glu(input, dim)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. "
                  "Change the call to include dim=X as an argument.", stacklevel=stacklevel)
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: object = None) -> Tensor:
    """Softmax: eˣ / Σ eˣ along `dim`.

    Args:
        input: float tensor of any shape.
        dim: the dimension of the sum; None (deprecated) chooses 0 or 1 by rank, with a warning.
        dtype: cast the input to this dtype first.

    >>> import flambeau as torch
    >>> torch.nn.functional.softmax(torch.zeros(4), dim=0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: object = None) -> Tensor:
    """Logarithm of the softmax: x - log Σ eˣ along `dim`, computed without overflow.

    Args:
        input: float tensor of any shape.
        dim: the dimension of the sum; None (deprecated) chooses 0 or 1 by rank, with a warning.
        dtype: cast the input to this dtype first.

    >>> import flambeau as torch
    >>> torch.nn.functional.log_softmax(torch.zeros(2), dim=0)
    tensor([-0.6931, -0.6931])
    """
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


@launched
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: object = None) -> Tensor:
    """Softmin: softmax(-x) along `dim`.

    Args:
        input: float tensor of any shape.
        dim: the dimension of the sum; None (deprecated) chooses 0 or 1 by rank, with a warning.
        dtype: cast the input to this dtype first.

    >>> import flambeau as torch
    >>> torch.nn.functional.softmin(torch.tensor([0.0, 1.0]), dim=0)
    tensor([0.7311, 0.2689])
    """
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10,
                   dim: int = -1) -> Tensor:
    """Sample from the Gumbel-softmax distribution: softmax((logits + g) / tau), g drawn from Gumbel(0, 1).

    Args:
        logits: unnormalized log-probabilities, (..., C) for the default `dim`.
        tau: the temperature.
        hard: return one-hot samples, with the gradient of the soft sample (straight-through estimator).
        eps: deprecated, without effect.
        dim: the dimension of the classes.

    >>> import flambeau as torch
    >>> sample = torch.nn.functional.gumbel_softmax(torch.zeros(2, 3), hard=True)
    >>> sample.sum(-1)
    tensor([1., 1.])
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -fn.empty_like(logits, memory_format=contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    drawn = fn.zeros_like(logits, memory_format=contiguous_format).scatter_(dim, index, 1.0)
    return drawn - soft.detach() + soft
