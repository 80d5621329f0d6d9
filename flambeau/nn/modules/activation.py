"""Activation layers."""

from __future__ import annotations

import warnings
from typing import Any

from ..._tensor import Parameter, Tensor
from ..._tensor import functions as fn
from .. import functional as F
from .. import init as initial
from .base.own_methods import OwnMethods
from .layers.multihead_attention import MultiheadAttention
from .module import Module

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU",
    "Sigmoid", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink",
    "Threshold",
]


class _InplaceActivation(OwnMethods, Module, shares=("__init__",)):
    """Base of activations with an `inplace` option."""

    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_InplaceActivation):
    """Rectified linear unit: max(0, x).

    Args:
        inplace: write the result into the input.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    __constants__ = ["inplace"]

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class SiLU(_InplaceActivation):
    """Sigmoid linear unit (swish): x · sigmoid(x).

    Args:
        inplace: write the result into the input.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.SiLU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    __constants__ = ["inplace"]

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_InplaceActivation):
    """Mish: x · tanh(softplus(x)).

    Args:
        inplace: write the result into the input.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.Mish()(torch.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """

    __constants__ = ["inplace"]

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class SELU(_InplaceActivation):
    """Scaled ELU: scale · (max(0, x) + min(0, alpha · (eˣ - 1))), scale = 1.0507, alpha = 1.6733.

    Args:
        inplace: write the result into the input.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.SELU()(torch.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    __constants__ = ["inplace"]

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class Hardsigmoid(_InplaceActivation):
    """Piecewise linear sigmoid: min(max(0, x + 3), 6) / 6.

    Args:
        inplace: write the result into the input.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.Hardsigmoid()(torch.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """

    __constants__ = ["inplace"]

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_InplaceActivation):
    """Piecewise quadratic swish: x · min(max(0, x + 3), 6) / 6.

    Args:
        inplace: write the result into the input.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.Hardswish()(torch.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """

    __constants__ = ["inplace"]

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class LeakyReLU(Module):
    """Leaky ReLU: x where x > 0, else negative_slope · x.

    Args:
        negative_slope: the slope for negative inputs.
        inplace: write the result into the input.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.LeakyReLU(0.1)(torch.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class ELU(Module):
    """Exponential linear unit: x where x > 0, else alpha · (eˣ - 1).

    Args:
        alpha: minus the limit at -inf.
        inplace: write the result into the input.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.ELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(Module):
    """Continuously differentiable ELU: max(0, x) + min(0, alpha · (e^(x / alpha) - 1)).

    Args:
        alpha: minus the limit at -inf.
        inplace: write the result into the input.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.CELU(2.0)(torch.tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class Threshold(Module):
    """Threshold: x where x > threshold, else value.

    Args:
        threshold: the largest input that is replaced.
        value: the replacement.
        inplace: write the result into the input.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.Threshold(0.1, 20.0)(torch.tensor([0.0, 2.0]))
    tensor([20.,  2.])
    """

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class RReLU(Module):
    """Randomized leaky ReLU: x where x >= 0, else slope · x.

    In training mode the slope is drawn from U(lower, upper) for each element; in evaluation mode it is
    (lower + upper) / 2.

    Args:
        lower: the smallest slope.
        upper: the largest slope.
        inplace: write the result into the input.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.RReLU(0.1, 0.3).eval()(torch.tensor([-1.0, 2.0]))
    tensor([-0.2000,  2.0000])
    """

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Hardtanh(Module):
    """Hard tanh: x clamped to [min_val, max_val].

    Args:
        min_val: the lower bound.
        max_val: the upper bound.
        inplace: write the result into the input.
        min_value: deprecated name of `min_val`.
        max_value: deprecated name of `max_val`.

    Shape:
        Input and output: the same shape, any number of dimensions.

    Raises:
        AssertionError: `max_val` is not greater than `min_val`.

    >>> import flambeau as torch
    >>> torch.nn.Hardtanh(-2, 2)(torch.tensor([-3.0, 1.0, 4.0]))
    tensor([-2.,  1.,  2.])
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False,
                 min_value: float | None = None, max_value: float | None = None) -> None:
        super().__init__()
        if min_value is not None:
            warnings.warn("keyword argument `min_value` is deprecated and renamed to `min_val`",
                          FutureWarning, stacklevel=2)
            min_val = min_value
        if max_value is not None:
            warnings.warn("keyword argument `max_value` is deprecated and renamed to `max_val`",
                          FutureWarning, stacklevel=2)
            max_val = max_value
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace
        if not max_val > min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """ReLU with upper bound 6: min(max(0, x), 6).

    Args:
        inplace: write the result into the input.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.ReLU6()(torch.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """Logistic function: 1 / (1 + e⁻ˣ).

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.Sigmoid()(torch.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        return fn.sigmoid(input)


class Tanh(Module):
    """Hyperbolic tangent: tanh(x).

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.Tanh()(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return fn.tanh(input)


class LogSigmoid(Module):
    """Logarithm of the sigmoid: log(1 / (1 + e⁻ˣ)), computed without overflow.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.LogSigmoid()(torch.tensor([0.0, -200.0]))
    tensor([  -0.6931, -200.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return fn.logsigmoid(input)


class Softsign(Module):
    """Softsign: x / (1 + |x|).

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.Softsign()(torch.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """Tanh shrinkage: x - tanh(x).

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.Tanhshrink()(torch.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class GELU(Module):
    """Gaussian error linear unit: x · Φ(x), where Φ is the CDF of N(0, 1).

    Args:
        approximate: "none", or "tanh" for x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))).

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.GELU()(torch.tensor([1.0]))
    tensor([0.8413])
    """

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return fn.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """Softplus: log(1 + e^(beta · x)) / beta, and x where beta · x > threshold.

    Args:
        beta: the sharpness.
        threshold: above it the function is linear, for numerical stability.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.Softplus()(torch.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return fn.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softshrink(Module):
    """Soft shrinkage: x - lambd where x > lambd, x + lambd where x < -lambd, else 0.

    Args:
        lambd: the threshold, non-negative.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.Softshrink()(torch.tensor([-1.0, 0.2, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return fn.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(Module):
    """Hard shrinkage: x where |x| > lambd, else 0.

    Args:
        lambd: the threshold.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.Hardshrink()(torch.tensor([-1.0, 0.2, 2.0]))
    tensor([-1.,  0.,  2.])
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return fn.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class PReLU(Module):
    """Parametric ReLU: x where x >= 0, else weight · x, with a learnable weight.

    Args:
        num_parameters: 1, or C for one weight per channel (dimension 1).
        init: the initial weight.
        device: device of the weight.
        dtype: dtype of the weight.

    Shape:
        Input and output: the same shape, (N, C, ...) if `num_parameters` is C. `weight`: (num_parameters,).

    >>> import flambeau as torch
    >>> torch.nn.PReLU()(torch.tensor([-1.0, 2.0])).detach()
    tensor([-0.2500,  2.0000])
    """

    __constants__ = ["num_parameters"]

    num_parameters: int

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(fn.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weights to `init`."""
        initial.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return fn.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class GLU(Module):
    """Gated linear unit: a · sigmoid(b), where a and b are the halves of the input along `dim`.

    Args:
        dim: the dimension to halve.

    Shape:
        Input (..., 2n, ...), output (..., n, ...).

    Raises:
        RuntimeError: the size along `dim` is odd, or the input is 0-D.

    >>> import flambeau as torch
    >>> torch.nn.GLU()(torch.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class _Softmax(OwnMethods, Module, shares=("__init__",)):
    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_Softmax):
    """Softmax: eˣ / Σ eˣ along `dim`.

    Args:
        dim: the dimension of the sum; None (deprecated) chooses 0 or 1 by rank, with a warning.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.Softmax(dim=0)(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    __constants__ = ["dim"]

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_Softmax):
    """Logarithm of the softmax: x - log Σ eˣ along `dim`, computed without overflow.

    Args:
        dim: the dimension of the sum; None (deprecated) chooses 0 or 1 by rank, with a warning.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.LogSoftmax(dim=0)(torch.zeros(2))
    tensor([-0.6931, -0.6931])
    """

    __constants__ = ["dim"]

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmin(_Softmax):
    """Softmin: softmax(-x) along `dim`.

    Args:
        dim: the dimension of the sum; None (deprecated) chooses 0 or 1 by rank, with a warning.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.Softmin(dim=0)(torch.tensor([0.0, 1.0]))
    tensor([0.7311, 0.2689])
    """

    __constants__ = ["dim"]

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of each pixel.

    Shape:
        Input and output: (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: the input is neither 3-D nor 4-D.

    >>> import flambeau as torch
    >>> torch.nn.Softmax2d()(torch.zeros(2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)
