"""The elements of a tensor at the places of a sparse tensor, differentiable."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...engine.tensor_interface import layer
from ...kernels.sparse import flatten_indices
from ..tensor import Tensor, wrap
from .recording import is_compressed, is_coo


def dense_at(x: Tensor, indices: np.ndarray) -> Tensor:
    """The elements of a dense tensor at COO indices (sparse dimensions, n): (n, *dense dimensions)."""
    sparse_dim = indices.shape[0]
    sizes = x._array.shape[:sparse_dim]
    rows = layer.functions.reshape(x, (prod(sizes), *x._array.shape[sparse_dim:]))
    return layer.functions.index_select(rows, 0, wrap(flatten_indices(indices, sizes)))


def sparse_at(x: Tensor, indices: np.ndarray) -> Tensor:
    """The elements of a COO tensor at indices (sparse dimensions, n), zeros where it has none."""
    fn: Any = layer.functions
    x = x.coalesce()
    array: Any = x._array
    sizes = array.shape[: array.sparse_dim]
    own, wanted = flatten_indices(array.indices, sizes), flatten_indices(indices, sizes)
    if not own.size:
        return wrap(np.zeros((wanted.size, *array.values.shape[1:]), array.values.dtype))
    places = np.minimum(np.searchsorted(own, wanted), own.size - 1)
    found = own[places] == wanted
    values = fn.index_select(x.values(), 0, wrap(places))
    if found.all():
        return values
    mask = wrap(~found.reshape(-1, *(1,) * (values._array.ndim - 1)))
    return fn.masked_fill(values, mask, 0)


def values_at(g: Tensor, indices: Any, size: tuple[int, ...]) -> Tensor:
    """The elements of a gradient of any layout at COO indices."""
    places = indices._array if isinstance(indices, Tensor) else indices
    if is_compressed(g):
        g = g.to_sparse_coo()
    return sparse_at(g, places) if is_coo(g) else dense_at(g, places)


__all__ = ["dense_at", "sparse_at", "values_at"]
