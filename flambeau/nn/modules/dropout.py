"""Dropout layers: active in training mode, identity in evaluation mode."""

from __future__ import annotations

from ..._tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Dropout: in training mode, zero each element with probability `p` and scale the others by 1 / (1 - p).

    Args:
        p: dropout probability.
        inplace: write the result into the input.

    Shape:
        Input and output: the same shape, any number of dimensions.

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as torch
    >>> torch.nn.Dropout(p=0.2).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Channel dropout: in training mode, zero each channel with probability `p` and scale the others by 1 / (1 - p).

    Args:
        p: dropout probability.
        inplace: write the result into the input.

    Shape:
        Input and output: (N, C, L) or (C, L).

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as torch
    >>> torch.nn.Dropout1d(p=1.0)(torch.ones(1, 2, 3)).sum()
    tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Channel dropout: in training mode, zero each channel with probability `p` and scale the others by 1 / (1 - p).

    Args:
        p: dropout probability.
        inplace: write the result into the input.

    Shape:
        Input and output: (N, C, H, W); a 3-D input is (N, C, L), with a warning.

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as torch
    >>> torch.nn.Dropout2d(p=1.0)(torch.ones(1, 2, 3, 3)).sum()
    tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Channel dropout: in training mode, zero each channel with probability `p` and scale the others by 1 / (1 - p).

    Args:
        p: dropout probability.
        inplace: write the result into the input.

    Shape:
        Input and output: (N, C, D, H, W) or (C, D, H, W).

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as torch
    >>> torch.nn.Dropout3d(p=1.0)(torch.ones(1, 2, 3, 3, 3)).sum()
    tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout for `SELU` networks: dropped elements become SELU's limit at -inf; mean and variance are preserved.

    Args:
        p: dropout probability.
        inplace: not used.

    Shape:
        Input and output: the same shape, any number of dimensions.

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as torch
    >>> torch.nn.AlphaDropout(p=0.2).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of entire channels.

    Args:
        p: dropout probability.
        inplace: not used.

    Shape:
        Input and output: (N, C, ...).

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as torch
    >>> torch.nn.FeatureAlphaDropout(p=0.2).eval()(torch.ones(1, 3))
    tensor([[1., 1., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
