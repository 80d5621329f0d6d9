"""Masked tensors of data and a mask: as leaves, or with the history of the data."""

from __future__ import annotations

from typing import Any

from .core import MaskedTensor


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor that is a leaf.

    Args:
        data: a tensor.
        mask: a bool tensor of its shape and layout; True: the element is there.
        requires_grad: whether to compute gradients.

    Raises:
        TypeError, ValueError: as `MaskedTensor`.

    >>> import flambeau as torch
    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> torch.masked.masked_tensor(torch.tensor([1., 2.]), torch.tensor([True, False])).sum()
    MaskedTensor(  1.0000, True)
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """A masked tensor with the history of the data.

    Args:
        data: a tensor.
        mask: a bool tensor of its shape and layout; True: the element is there.

    Raises:
        TypeError, ValueError: as `MaskedTensor`.

    >>> import flambeau as torch
    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> torch.masked.as_masked_tensor(x, torch.tensor([True, False])).is_leaf
    False
    """
    result: MaskedTensor = MaskedTensor._from_values(data, mask)
    return result


__all__ = ["as_masked_tensor", "masked_tensor"]
