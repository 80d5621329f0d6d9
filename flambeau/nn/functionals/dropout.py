"""Dropout of elements and of channels."""

from __future__ import annotations

import warnings

from ..._tensor import Tensor
from ..._tensor import functions as fn

__all__ = [
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
]


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout: zero each element with probability `p` and scale the others by 1 / (1 - p).

    Args:
        input: any shape.
        p: dropout probability.
        training: apply dropout; else return the input.
        inplace: write the result into the input.

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as torch
    >>> torch.nn.functional.dropout(torch.ones(3), p=0.0)
    tensor([1., 1., 1.])
    """
    _check_probability(p)
    return (fn.dropout_ if inplace else fn.dropout)(input, p, training)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout for SELU networks: dropped elements become SELU's limit at -inf; mean and variance are preserved.

    Args:
        input: any shape.
        p: dropout probability.
        training: apply dropout; else return the input.
        inplace: write the result into the input.

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as torch
    >>> torch.nn.functional.alpha_dropout(torch.ones(3), p=0.2, training=False)
    tensor([1., 1., 1.])
    """
    _check_probability(p)
    return (fn.alpha_dropout_ if inplace else fn.alpha_dropout)(input, p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False,
                          inplace: bool = False) -> Tensor:
    """`alpha_dropout` of entire channels.

    Args:
        input: (N, C, ...).
        p: dropout probability.
        training: apply dropout; else return the input.
        inplace: write the result into the input.

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as torch
    >>> torch.nn.functional.feature_alpha_dropout(torch.ones(1, 3), p=0.2, training=False)
    tensor([[1., 1., 1.]])
    """
    _check_probability(p)
    return (fn.feature_alpha_dropout_ if inplace else fn.feature_alpha_dropout)(input, p, training)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channel dropout: zero each channel with probability `p` and scale the others by 1 / (1 - p).

    Args:
        input: (N, C, L) or (C, L).
        p: dropout probability.
        training: apply dropout; else return the input.
        inplace: write the result into the input.

    Raises:
        ValueError: `p` is not in [0, 1].
        RuntimeError: the input is neither 2-D nor 3-D.

    >>> import flambeau as torch
    >>> torch.nn.functional.dropout1d(torch.ones(1, 2, 3), p=1.0).sum()
    tensor(0.)
    """
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. "
            "Note that dropout1d exists to provide channel-wise dropout on inputs with 1 "
            "spatial dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs).")
    return _drop_channels(input, p, training, inplace, batched=input.dim() == 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channel dropout: zero each channel with probability `p` and scale the others by 1 / (1 - p).

    Args:
        input: (N, C, H, W); a 3-D input is (N, C, L), with a warning.
        p: dropout probability.
        training: apply dropout; else return the input.
        inplace: write the result into the input.

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as torch
    >>> torch.nn.functional.dropout2d(torch.ones(1, 2, 3, 3), p=1.0).sum()
    tensor(0.)
    """
    _check_probability(p)
    dimensions = input.dim()
    if dimensions not in (3, 4):
        warnings.warn(_rank_warning("dropout2d", dimensions, 2), stacklevel=2)
    if dimensions == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise "
            "1D dropout behavior is desired - input is interpreted as shape (N, C, L), where C "
            "is the channel dim. This behavior will change in a future release to interpret the "
            "input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
            "channel-wise dropout behavior, please switch to using dropout1d instead.", stacklevel=2)
    return (fn.feature_dropout_ if inplace else fn.feature_dropout)(input, p, training)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channel dropout: zero each channel with probability `p` and scale the others by 1 / (1 - p).

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).
        p: dropout probability.
        training: apply dropout; else return the input.
        inplace: write the result into the input.

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import flambeau as torch
    >>> torch.nn.functional.dropout3d(torch.ones(1, 2, 3, 3, 3), p=1.0).sum()
    tensor(0.)
    """
    _check_probability(p)
    dimensions = input.dim()
    if dimensions not in (4, 5):
        warnings.warn(_rank_warning("dropout3d", dimensions, 3), stacklevel=2)
    return _drop_channels(input, p, training, inplace, batched=dimensions == 5)


def _rank_warning(name: str, dimensions: int, spatial: int) -> str:
    return (f"{name}: Received a {dimensions}-D input to {name}, which is deprecated "
            "and will result in an error in a future release. To retain the behavior "
            f"and silence this warning, please use dropout instead. Note that {name} "
            f"exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, "
            "a channel dimension, and an optional batch dimension "
            f"(i.e. {'3D or 4D' if spatial == 2 else '4D or 5D'} inputs).")


def _drop_channels(input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    drop = fn.feature_dropout_ if inplace else fn.feature_dropout
    if batched:
        return drop(input, p, training)
    # unbatched: add a batch dimension for the call
    if inplace:
        return drop(input.unsqueeze_(0), p, training).squeeze_(0)
    return drop(input.unsqueeze(0), p, training).squeeze(0)
