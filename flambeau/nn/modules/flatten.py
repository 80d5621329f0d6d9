"""`Flatten` and `Unflatten` layers."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Flatten the dimensions from `start_dim` to `end_dim` into one.

    Args:
        start_dim: the first dimension.
        end_dim: the last dimension, inclusive.

    Shape:
        Input (*, S_start, ..., S_end, *), output (*, S_start · ... · S_end, *).

    >>> import flambeau as torch
    >>> torch.nn.Flatten()(torch.ones(32, 1, 5, 5)).shape
    flambeau.Size([32, 25])
    """

    __constants__ = ["start_dim", "end_dim"]

    start_dim: int
    end_dim: int

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split the dimension `dim` into dimensions of sizes `unflattened_size`.

    Args:
        dim: the dimension.
        unflattened_size: tuple or list of int; one may be -1 and is inferred.

    Shape:
        Input (*, S, *), output (*, U₁, ..., Uₙ, *) with S = U₁ · ... · Uₙ.

    Raises:
        TypeError: `unflattened_size` is not a tuple or list of int.

    >>> import flambeau as torch
    >>> torch.nn.Unflatten(1, (2, 5, 5))(torch.ones(2, 50)).shape
    flambeau.Size([2, 2, 5, 5])
    """

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, tuple | list):
            raise TypeError("unflattened_size must be a tuple of ints, but found type "
                            f"{type(unflattened_size).__name__}")
        for i, element in enumerate(unflattened_size):
            if not isinstance(element, int):
                raise TypeError("unflattened_size must be tuple of ints, but found element of type "
                                f"{type(element).__name__} at pos {i}")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
