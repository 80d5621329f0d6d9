"""Conversion between parameters and one vector."""

from __future__ import annotations

from collections.abc import Iterable

from ..._tensor import Tensor
from ..._tensor import functions as fn


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate all parameters, flattened.

    Args:
        parameters: an iterable of tensors.

    Returns:
        A 1-D tensor.

    >>> import flambeau as torch
    >>> torch.nn.utils.parameters_to_vector(torch.nn.Linear(2, 3).parameters()).shape
    flambeau.Size([9])
    """
    return fn.cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set the data of the parameters to consecutive slices of a vector, as views.

    Args:
        vec: a 1-D tensor; the inverse of `parameters_to_vector`.
        parameters: an iterable of tensors.

    Raises:
        TypeError: `vec` is not a tensor.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.zeros(2))
    >>> torch.nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0]), [p])
    >>> p.detach()
    tensor([1., 2.])
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for p in parameters:
        stop = start + p.numel()
        p.data = vec[start:stop].view_as(p).data
        start = stop
