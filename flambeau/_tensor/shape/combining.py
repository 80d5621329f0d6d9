"""Block diagonal matrices, grids, products and combinations of tensors."""

from __future__ import annotations

from itertools import combinations as _combinations
from itertools import combinations_with_replacement as _with_replacement
from typing import Any

import numpy as np

from ... import dtypes
from ...ops.declare import REGISTRY
from ...warning_location import user_stacklevel
from ..argument_errors.type_names import check_tensors, type_name
from ..dispatch.apply import apply
from ..dispatch.public_functions import public_function
from ..stream_printing import stream_text
from ..tensor import Tensor, wrap
from .reshaping import expand, reshape, view

__all__ = ["block_diag", "cartesian_prod", "combinations", "meshgrid"]

def _as_list(tensors: tuple[Any, ...]) -> list[Tensor]:
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return list(tensors[0])
    return list(tensors)


def _separate(tensors: tuple[Any, ...]) -> list[Tensor]:
    """Tensors that are passed one by one.

    Raises:
        TypeError: one of them is not a tensor.
    """
    check_tensors(tensors)
    return list(tensors)


def block_diag(*tensors: Any) -> Tensor:
    """A block diagonal matrix.

    >>> import flambeau as torch
    >>> torch.block_diag(torch.tensor([[1]]), torch.tensor([[2, 3]]))
    tensor([[1, 0, 0],
            [0, 2, 3]])
    """
    inputs = _separate(tensors)
    if not inputs:
        return wrap(np.zeros((1, 0), dtypes.get_default_dtype().numpy))
    return apply(REGISTRY["_block_diag"], inputs)


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of a grid: each vector, expanded to the shape of the grid.

    >>> import flambeau as torch
    >>> torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3]), indexing="ij")
    (tensor([[1],
            [2]]), tensor([[3],
            [3]]))
    """
    inputs = _as_list(tensors)
    if not inputs:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is not None and not isinstance(indexing, str):
        raise TypeError(f"meshgrid(): argument 'indexing' must be str, not {type_name(indexing)}")
    check_tensors(inputs)
    if indexing is None:
        import warnings

        warnings.warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
                      UserWarning, stacklevel=user_stacklevel())
        indexing = "ij"
    dtype, device = inputs[0]._array.dtype, inputs[0]._device
    for x in inputs:
        if x._array.dtype != dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    for x in inputs:
        if x._device is not device and x.device != inputs[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swapped = indexing == "xy" and len(inputs) >= 2
    if swapped:
        inputs[0], inputs[1] = inputs[1], inputs[0]
    for x in inputs:
        if x._array.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                               f"{stream_text(x)}")
    shape = tuple(max(1, x._array.size) if not x._array.ndim else x._array.size for x in inputs)
    n = len(shape)
    ones = (1,) * n
    grids = [expand(view(x, *ones[:i], -1 if x._array.size else 0, *ones[i + 1:]), *shape)
             for i, x in enumerate(inputs)]
    if swapped:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors: Any) -> Tensor:
    """The Cartesian product of vectors, one row for each combination.

    >>> import flambeau as torch
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3]))
    tensor([[1, 3],
            [2, 3]])
    """
    inputs = _separate(tensors)
    for x in inputs:
        if x._array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(x._array.shape)}")
    if len(inputs) == 1:
        return inputs[0]
    grids = meshgrid(*inputs, indexing="ij")
    flat = [reshape(x, -1) for x in grids]
    return public_function(REGISTRY["stack"])(flat, dim=1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """The combinations of `r` elements of a vector, one row each.

    >>> import flambeau as torch
    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if input._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return wrap(np.zeros(0, input._array.dtype))
    n = input._array.size
    mask = np.zeros((n,) * r, np.bool_)
    chosen = list((_with_replacement if with_replacement else _combinations)(range(n), r))
    if chosen:
        mask[tuple(np.array(chosen).T)] = True
    grids = meshgrid(*[input] * r, indexing="ij")
    select = public_function(REGISTRY["masked_select"])
    return public_function(REGISTRY["stack"])([select(x, wrap(mask)) for x in grids], dim=1)
