"""gradcheck of functions of sparse tensors: it checks the function of their values, which are dense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.sparse.constructors import coo, sparse_compressed_tensor
from ...backends.sparse_array import CompressedArray, CooArray, SparseArray


def is_sparse(x: Any) -> bool:
    """Whether a value is a sparse tensor."""
    return isinstance(x, Tensor) and isinstance(x._array, SparseArray)


class _Structure:
    """The places of a sparse tensor, which make one of values."""

    def __init__(self, x: Tensor) -> None:
        self.array: Any = x._array

    def tensor(self, values: Tensor) -> Tensor:
        """The sparse tensor with these values at the places."""
        a = self.array
        if isinstance(a, CooArray):
            return coo(fn.from_numpy(a.indices), values, a.shape, coalesced=a.coalesced)
        assert isinstance(a, CompressedArray)
        return sparse_compressed_tensor(fn.from_numpy(a.compressed), fn.from_numpy(a.plain), values, a.shape,
                                        layout=a.layout, check_invariants=False)


def _with_all_places(x: Tensor) -> Tensor:
    """A sparse tensor with the same elements, in which zeros are stored, too."""
    a: Any = x._array
    block = a.block_shape if isinstance(a, CompressedArray) and a.has_blocks else None
    ones = fn.ones(a.shape, dtype=x.dtype)
    if isinstance(a, CooArray):
        mask = ones.to_sparse(a.sparse_dim)
    else:
        mask = ones.to_sparse(layout=a.layout, blocksize=block, dense_dim=a.dense_dim)
    return x.detach().to_dense().sparse_mask(mask)


def _values_of(x: Tensor) -> Any:
    a: Any = x._array
    return fn.from_numpy(a.values)


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """A gradcheck that accepts functions of sparse tensors.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.as_sparse_gradcheck.html

    Args:
        gradcheck: `torch.autograd.gradcheck`, or a partial function of it.

    Returns:
        A function with the same arguments and `masked`: whether only stored elements are varied.

    >>> import flambeau as torch
    >>> gradcheck = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    >>> x = torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_()
    >>> gradcheck(lambda x: x.to_dense(), x, masked=True)
    True
    """
    def check(func: Callable[..., Any], inputs: Any, **kwargs: Any) -> bool:
        masked = kwargs.pop("masked", False)
        function, values = on_values(func, inputs, masked)
        return gradcheck(lambda *args: _dense_results(function(*args), masked), values, **kwargs)

    return check


def on_values(func: Callable[..., Any], inputs: Any, masked: bool) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of dense tensors, the values of sparse inputs that require grad, and its inputs.

    Args:
        masked: whether only stored elements are varied; else zeros are stored, too.
    """
    structures: list[_Structure | None] = []
    values: list[Any] = []
    for x in inputs if isinstance(inputs, (list, tuple)) else (inputs,):
        if is_sparse(x) and x.requires_grad:
            x = x.detach() if masked else _with_all_places(x)
            structures.append(_Structure(x))
            values.append(_values_of(x).detach().clone().requires_grad_())
        else:
            structures.append(None)
            values.append(x)

    def function(*args: Any) -> Any:
        return func(*(v if s is None else s.tensor(v) for s, v in zip(structures, args, strict=True)))

    return function, tuple(values)


def _dense_results(results: Any, masked: bool) -> Any:
    """The results of a function, sparse ones by their values."""
    def values(x: Any) -> Any:
        if not is_sparse(x) or not x.requires_grad:
            return x.to_dense() if is_sparse(x) else x
        if not masked:
            return x.to_dense(masked_grad=False)
        a: Any = x._array
        return (x.coalesce() if isinstance(a, CooArray) else x).values()

    if isinstance(results, Sequence) and not isinstance(results, Tensor):
        return tuple(map(values, results))
    return values(results)


__all__ = ["as_sparse_gradcheck", "is_sparse"]
