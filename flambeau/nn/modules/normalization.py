"""Normalization layers independent of the batch: layer, RMS, group and local response norm."""

from __future__ import annotations

import numbers
from typing import Any

from ..._tensor import Parameter, Tensor
from ..._tensor import functions as fn
from .. import functional as F
from .. import init
from . import _functions
from .module import Module

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


def _as_tuple(normalized_shape: Any) -> tuple[int, ...]:
    if isinstance(normalized_shape, numbers.Integral):
        return (normalized_shape,)  # type: ignore[return-value]
    return tuple(normalized_shape)


class CrossMapLRN2d(Module):
    """Local response normalization over channels: x / (k + alpha / size · Σ x²)^beta, with PyTorch's legacy gradient.

    Args:
        size: number of channels in the sum.
        alpha: factor of the sum.
        beta: exponent.
        k: added to the sum.

    Shape:
        Input and output: (N, C, H, W).

    Raises:
        ValueError: the input is not 4-D.

    >>> import flambeau as torch
    >>> torch.nn.CrossMapLRN2d(2)(torch.ones(1, 3, 1, 1)).shape
    flambeau.Size([1, 3, 1, 1])
    """

    size: int
    alpha: float
    beta: float
    k: float

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return _functions.CrossMapLRN2d.apply(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LayerNorm(Module):
    """Layer normalization: (x - mean) / √(var + eps) · weight + bias over the last dimensions.

    Mean and (biased) variance are taken over the dimensions of `normalized_shape`. `weight` starts at 1, `bias` at 0.

    Args:
        normalized_shape: an int, or the sizes of the last dimensions.
        eps: added to the variance.
        elementwise_affine: whether there are weight and bias, of shape `normalized_shape`.
        bias: whether there is a bias.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        Input and output: (..., *normalized_shape).

    >>> import flambeau as torch
    >>> torch.nn.LayerNorm(2)(torch.tensor([[0.0, 2.0]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    normalized_shape: tuple[int, ...]
    eps: float
    elementwise_affine: bool
    weight: Tensor | None
    bias: Tensor | None

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.normalized_shape = _as_tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(fn.empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        if elementwise_affine and bias:
            self.bias = Parameter(fn.empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weight to 1 and bias to 0."""
        if self.elementwise_affine:
            assert self.weight is not None
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
                f"bias={self.bias is not None}")


class RMSNorm(Module):
    """Root mean square normalization: x / √(mean(x²) + eps) · weight over the last dimensions.

    Args:
        normalized_shape: an int, or the sizes of the last dimensions.
        eps: added to the mean square; None for the machine epsilon of the input's dtype.
        elementwise_affine: whether there is a weight, of shape `normalized_shape`; it starts at 1.
        device: device of the weight.
        dtype: dtype of the weight.

    Shape:
        Input and output: (..., *normalized_shape).

    >>> import flambeau as torch
    >>> torch.nn.RMSNorm(2)(torch.tensor([[3.0, 3.0]])).detach()
    tensor([[1., 1.]])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    normalized_shape: tuple[int, ...]
    eps: float | None
    elementwise_affine: bool
    weight: Tensor | None

    def __init__(self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.normalized_shape = _as_tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(fn.empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weight to 1."""
        if self.elementwise_affine:
            assert self.weight is not None
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return fn.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Group normalization: (x - mean) / √(var + eps) · weight + bias, with statistics per sample and group of channels.

    Args:
        num_groups: the number of groups.
        num_channels: C.
        eps: added to the variance.
        affine: whether there are weight and bias, of shape (C,).
        device: device of the parameters.
        dtype: dtype of the parameters.
        bias: whether there is a bias.

    Shape:
        Input and output: (N, C, ...).

    Raises:
        ValueError: `num_groups` does not divide `num_channels`.

    >>> import flambeau as torch
    >>> torch.nn.GroupNorm(3, 6)(torch.ones(20, 6, 10, 10)).shape
    flambeau.Size([20, 6, 10, 10])
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    num_groups: int
    num_channels: int
    eps: float
    affine: bool
    weight: Tensor | None
    bias: Tensor | None

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 device: Any = None, dtype: Any = None, *, bias: bool = True) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        if affine:
            self.weight = Parameter(fn.empty(num_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        if affine and bias:
            self.bias = Parameter(fn.empty(num_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weight to 1 and bias to 0."""
        if self.affine:
            assert self.weight is not None
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
                f"bias={self.bias is not None}")


class LocalResponseNorm(Module):
    """Local response normalization: x / (k + alpha · mean(x²))^beta, the mean over `size` neighboring channels.

    Args:
        size: the number of channels.
        alpha: factor of the mean.
        beta: the exponent.
        k: the additive constant.

    Shape:
        Input and output: (N, C, ...), at least 3-D.

    >>> import flambeau as torch
    >>> torch.nn.LocalResponseNorm(1, alpha=1.0, beta=1.0)(torch.ones(1, 2, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
