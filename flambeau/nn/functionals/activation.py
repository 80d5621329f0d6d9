"""Activation functions with `inplace`, and the softmax family."""

from __future__ import annotations

import warnings

from ..._tensor import Tensor
from ..._tensor import functions as fn

__all__ = [
    "celu", "elu", "elu_", "glu", "gumbel_softmax", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
    "leaky_relu_", "log_softmax", "mish", "relu", "relu6", "rrelu", "selu", "sigmoid", "silu", "softmax",
    "softmin", "softsign", "tanh", "tanhshrink", "threshold", "threshold_",
]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x)."""
    return fn.relu_(input) if inplace else fn.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6)."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x limited to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (fn.hardtanh_ if inplace else fn.hardtanh)(input, min_val, max_val)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, else value."""
    return (fn.threshold_ if inplace else fn.threshold)(input, threshold, value)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold`, in place."""
    return fn.threshold_(input, threshold, value)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, else negative_slope · x."""
    return (fn.leaky_relu_ if inplace else fn.leaky_relu)(input, negative_slope)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu`, in place."""
    return fn.leaky_relu_(input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha · (eˣ - 1)."""
    return (fn.elu_ if inplace else fn.elu)(input, alpha)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu`, in place."""
    return fn.elu_(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale · (max(0, x) + min(0, alpha · (eˣ - 1))), the scale and alpha of self-normalizing networks."""
    return (fn.selu_ if inplace else fn.selu)(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha · (e^(x / alpha) - 1))."""
    return (fn.celu_ if inplace else fn.celu)(input, alpha)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
          inplace: bool = False) -> Tensor:
    """leaky_relu with a slope drawn from [lower, upper] for each element; their mean in evaluation."""
    return (fn.rrelu_ if inplace else fn.rrelu)(input, lower, upper, training)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x + 3), 6) / 6."""
    return (fn.hardsigmoid_ if inplace else fn.hardsigmoid)(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · hardsigmoid(x)."""
    return (fn.hardswish_ if inplace else fn.hardswish)(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x · sigmoid(x)."""
    return (fn.silu_ if inplace else fn.silu)(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · tanh(softplus(x))."""
    return (fn.mish_ if inplace else fn.mish)(input)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanh(input: Tensor) -> Tensor:
    """tanh(x)."""
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + e⁻ˣ)."""
    return input.sigmoid()


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a · sigmoid(b), where a and b are the halves of x along `dim`."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return fn.glu(input, dim)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. "
                  "Change the call to include dim=X as an argument.", stacklevel=stacklevel)
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: object = None) -> Tensor:
    """eˣ / Σ eˣ along `dim`, computed in `dtype` if it is given.

    >>> import flambeau as torch
    >>> torch.nn.functional.softmax(torch.zeros(4), dim=0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: object = None) -> Tensor:
    """log(softmax(x)) along `dim`, computed without overflow."""
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: object = None) -> Tensor:
    """softmax(-x) along `dim`."""
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10,
                   dim: int = -1) -> Tensor:
    """A differentiable draw from the categorical distribution: softmax((logits + gumbel noise) / tau).

    Args:
        hard: return the one-hot draw, with the gradient of the soft one.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -fn.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    drawn = fn.zeros_like(logits).scatter_(dim, index, 1.0)
    return drawn - soft.detach() + soft
