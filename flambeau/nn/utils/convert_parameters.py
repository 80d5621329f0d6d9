"""Conversion between parameters and one vector."""

from __future__ import annotations

from collections.abc import Iterable

from ..._tensor import Tensor
from ..._tensor import functions as fn


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters, one after the other.

    >>> import flambeau as torch
    >>> torch.nn.utils.parameters_to_vector(torch.nn.Linear(2, 3).parameters()).shape
    flambeau.Size([9])
    """
    return fn.cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make slices of a vector the data of the parameters, one after the other.

    Raises:
        TypeError: `vec` is no tensor.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for p in parameters:
        stop = start + p.numel()
        p.data = vec[start:stop].view_as(p).data
        start = stop
