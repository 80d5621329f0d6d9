"""Reductions of sparse tensors: sums, norms, `any`, and softmax over the stored elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...backends.sparse_array import CompressedArray, CooArray, not_implemented
from ...devices import sparse_csr
from ...engine.tensor_interface import layer
from ...kernels.sparse import compress, decompress, flatten_indices, group_starts, sort_order, sum_groups
from ..tensor import Tensor, wrap
from .conversion import coalesced, layout_name
from .gathering import values_at
from .recording import is_coo, is_sparse, make, record
from .shape import wrap_dim


def _dims(dim: Any, ndim: int) -> list[int]:
    dims = [dim] if isinstance(dim, (int, np.integer)) else list(dim)
    return [wrap_dim(int(d), ndim) for d in dims]


def sum_all(x: Tensor, dtype: Any = None) -> Tensor:
    """The sum of all elements."""
    a: Any = x._array
    total = layer.functions.sum(wrap(a.values), dtype=dtype)
    shape, d = a.shape, x.dtype
    return record(total, "SumBackward0", (x,), lambda g: ((g.to_dense() if is_sparse(g) else g).expand(shape).to(d),))


def _result_dtype(x: Tensor, dtype: Any) -> Any:
    if dtype is not None:
        return dtype
    return dtypes.int64 if x._array.dtype.kind in "iub" else x.dtype


def sum_dims(x: Tensor, dim: Any, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """`Tensor.sum` over dimensions."""
    a: Any = x._array
    d = _result_dtype(x, dtype)
    if isinstance(a, CompressedArray):
        return _sum_csr(x, dim, keepdim, d)
    dims = sorted(set(_dims(dim, a.ndim))) if dim is not None and dim != () else list(range(a.ndim))
    source = x if x.dtype is d else make(a.with_values(dtypes.cast(a.values, d.numpy)))
    if dims == list(range(a.ndim)) and not keepdim:
        return sum_all(x, dtype)
    summed: Any = source._array
    out: Any = _sum_coo(summed, dims)
    if keepdim:
        out = _with_kept_dims(out, dims, a)
    shape = a.shape
    kept = tuple(1 if k in dims else n for k, n in enumerate(shape))

    def rule(g: Tensor) -> tuple[Any]:
        dense = g.to_dense() if is_sparse(g) else g
        return (dense.reshape(kept).expand(shape),)

    return record(make(out), "SumBackward1", (x,), rule)


def _with_kept_dims(out: Any, dims: list[int], a: CooArray) -> CooArray:
    """A sum with its dimensions kept as dimensions of size 1; sparse ones stay sparse."""
    if not isinstance(out, CooArray):
        out = CooArray(np.zeros((0, 1), np.int64), out[None], out.shape, True)
    indices, values = out.indices, out.values
    for d in dims:
        if d < a.sparse_dim:
            indices = np.insert(indices, d, 0, 0)
        else:
            values = np.expand_dims(values, d - a.sparse_dim + 1)
    shape = tuple(1 if k in dims else n for k, n in enumerate(a.shape))
    return CooArray(indices, values, shape, out.coalesced)


def _sum_coo(a: CooArray, dims: list[int]) -> Any:
    """The sum over dimensions: sparse unless all sparse dimensions are summed."""
    dense_dims = tuple(d - a.sparse_dim + 1 for d in dims if d >= a.sparse_dim)
    sparse_dims = [d for d in dims if d < a.sparse_dim]
    values = a.values
    if dense_dims:
        values = values.sum(dense_dims, dtype=values.dtype) if values.dtype.kind != "V" else dtypes.cast(
            dtypes.widen(values).sum(dense_dims), values.dtype)
    if len(sparse_dims) == a.sparse_dim:
        return values.sum(0, dtype=values.dtype) if values.dtype.kind != "V" else dtypes.cast(
            dtypes.widen(values).sum(0), values.dtype)
    shape = tuple(n for k, n in enumerate(a.shape) if k not in dims)
    if not sparse_dims:
        return CooArray(a.indices.copy(), values, shape, a.coalesced)
    indices = np.delete(a.indices, sparse_dims, 0)
    return coalesced(CooArray(indices, values, shape, False))


def _sum_csr(x: Tensor, dim: Any, keepdim: bool, d: Any) -> Tensor:
    a: Any = x._array
    if a.layout is not sparse_csr:
        raise RuntimeError("Currently the only compressed sparse format supported for sum.dim_IntList is CSR, but got "
                           f"layout {layout_name(a)}")
    dims = _dims(dim, a.ndim) if dim is not None else []
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    values = dtypes.cast(a.values, d.numpy)
    if sorted(dims) == [0, 1] or not dims:
        total = values.sum(dtype=values.dtype)
        out = CompressedArray(sparse_csr, np.array([0, min(a.nnz, 1)], a.plain.dtype),
                              np.zeros(min(a.nnz, 1), a.plain.dtype), np.array([total])[: min(a.nnz, 1)], (1, 1))
    elif dims == [0]:
        columns = np.unique(a.plain)
        order = np.argsort(a.plain, kind="stable")
        sums = sum_groups(values[order], group_starts(a.plain[order][None]))
        out = CompressedArray(sparse_csr, np.array([0, columns.size], a.plain.dtype), columns, sums, (1, a.shape[1]))
    else:
        rows = decompress(a.compressed)
        filled = np.flatnonzero(np.diff(a.compressed))
        sums = sum_groups(values, a.compressed[filled])
        out = CompressedArray(sparse_csr, compress(np.unique(rows), a.shape[0], a.plain.dtype),
                              np.zeros(filled.size, a.plain.dtype), sums, (a.shape[0], 1))
    shape = a.shape
    return record(make(out), "SumBackward1", (x,),
                  lambda g: ((g.to_dense() if is_sparse(g) else g).expand(shape),))


# ----- torch.sparse.sum --------------------------------------------------------------------------


def sparse_sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum over dimensions of a COO tensor; its gradient has the places of the input.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.sum.html

    Args:
        dim: dimensions; default: all.
        dtype: of the result.

    Returns:
        A sparse tensor, or a dense one where all sparse dimensions are summed.

    >>> import flambeau as torch
    >>> x = torch.tensor([[0., 2.], [0., 3.]]).to_sparse()
    >>> torch.sparse.sum(x, 0).to_dense()
    tensor([0., 5.])
    >>> torch.sparse.sum(x)
    tensor(5.)
    """
    if dim is None:
        return layer.functions.sum(input.coalesce().values(), dtype=dtype)
    if dtype is not None and dtype is not input.dtype:
        input = input.to(dtype)
    a: Any = input._array
    if not is_coo(input):
        raise not_implemented("_indices", input.layout)
    dims = _dims(dim, a.ndim)
    if len(set(dims)) != len(dims):
        repeated = next(d for d in dims if dims.count(d) > 1)
        raise RuntimeError(f"dim {repeated} appears multiple times in the list of dims")
    dims.sort()
    out: Any = _sum_coo(a if len([d for d in dims if d < a.sparse_dim]) else coalesced(a), dims)
    if not isinstance(out, CooArray):
        out = np.asarray(out)
    return record(make(out), "SparseSumBackward0", (input,), lambda g: (_sum_gradient(g, input, dims),), (input,))


def _sum_gradient(g: Tensor, x: Tensor, dims: list[int]) -> Tensor:
    """The gradient of a sum at the places of the input."""
    a = coalesced(x._array)  # type: ignore[arg-type]
    n = a.sparse_dim
    sparse_dims = [d for d in dims if d < n]
    fn: Any = layer.functions
    for d in (d for d in dims if d >= n):  # dense dimensions come back with size 1
        if is_sparse(g):
            array: Any = g._array
            at = d - len(sparse_dims)
            shape = (*array.shape[:at], 1, *array.shape[at:])
            expanded = np.expand_dims(array.values, d - n + 1)
            g = make(CooArray(array.indices, expanded, shape, array.coalesced))
        else:
            g = g.unsqueeze(d - len(sparse_dims))
    if len(sparse_dims) == n:
        rows = (g.to_dense() if is_sparse(g) else g).expand((a.nnz, *a.values.shape[1:]))
    else:
        if not is_sparse(g):
            raise RuntimeError("_sparse_sum_backward_cpu: expected grad_ Tensor to be sparse, but got dense")
        places = np.delete(a.indices, sparse_dims, 0)
        rows = values_at(g, places, ()).expand((a.nnz, *a.values.shape[1:]))
    from .constructors import coo

    return coo(wrap(a.indices), fn.clone(rows), a.shape, coalesced=True)


# ----- softmax -----------------------------------------------------------------------------------


def _softmax(name: str, logarithm: bool) -> Any:
    """`torch.sparse.softmax` or `log_softmax`."""
    node = "SparseLogSoftmaxBackward0" if logarithm else "SparseSoftmaxBackward0"

    def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
        if dtype is not None and dtype is not input.dtype:
            input = input.to(dtype)
        a: Any = input._array
        if not is_coo(input):
            raise not_implemented(f"_sparse_{name}", input.layout) if is_sparse(input) else RuntimeError(
                "Expected input_.is_sparse() to be true, but got false.")
        if a.dtype.kind not in "fV":
            raise NotImplementedError(f"\"softmax\" not implemented for '{input.dtype.scalar_name}'")
        d = wrap_dim(dim, a.ndim)
        c = coalesced(a)
        groups = _Groups(c, d)
        out = make(c.with_values(groups.softmax(c.values, logarithm)))
        result = out._array.values

        def rule(g: Tensor) -> tuple[Any]:
            gradient = values_at(g.detach(), c.indices, c.shape)._array
            if logarithm:
                total = groups.spread(gradient)
                values = gradient - np.exp(result) * total
            else:
                total = groups.spread(gradient * result)
                values = result * (gradient - total)
            return (make(c.with_values(values.astype(c.values.dtype, copy=False))),)

        return record(out, node, (input,), rule)

    softmax.__name__ = softmax.__qualname__ = name
    formula = "The logarithm of the softmax" if logarithm else "The softmax"
    values = "[-1.3133, -0.3133]" if logarithm else "[0.2689, 0.7311]"
    softmax.__doc__ = f"""{formula} over the stored elements; the others count as minus infinity.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.{name}.html

    Args:
        dim: the dimension along which elements sum to 1.
        dtype: the input is first converted to it.

    >>> import flambeau as torch
    >>> torch.sparse.{name}(torch.tensor([[1., 2.]]).to_sparse(), 1).values()
    tensor({values})
    """
    return softmax


class _Groups:
    """The elements of a coalesced COO array that differ only in one dimension."""

    def __init__(self, a: CooArray, dim: int) -> None:
        self.axis = dim - a.sparse_dim + 1 if dim >= a.sparse_dim else None
        if self.axis is None:
            others = np.delete(a.indices, dim, 0)
            sizes = [n for k, n in enumerate(a.shape[: a.sparse_dim]) if k != dim]
            self.order = sort_order(others, sizes) if len(sizes) else np.arange(a.nnz)
            keys = flatten_indices(others, sizes)[self.order] if len(sizes) else np.zeros(a.nnz, np.int64)
            self.starts = group_starts(keys[None])
            self.sizes = np.diff(np.append(self.starts, a.nnz))

    def _reduce(self, ufunc: Any, values: np.ndarray) -> np.ndarray:
        """The reduction of each group, at every member."""
        if self.axis is not None:
            return ufunc.reduce(values, axis=self.axis, keepdims=True)
        if not values.shape[0]:
            return values
        reduced = ufunc.reduceat(values[self.order], self.starts, axis=0)
        result = np.empty_like(values)
        result[self.order] = np.repeat(reduced, self.sizes, axis=0)
        return result

    def spread(self, values: np.ndarray) -> np.ndarray:
        """The sum of each group, at every member."""
        return self._reduce(np.add, values)

    def softmax(self, values: np.ndarray, logarithm: bool) -> np.ndarray:
        """The softmax of each group, or its logarithm."""
        wide = dtypes.widen(values)
        if not wide.size:
            return values.copy()
        with np.errstate(all="ignore"):
            shifted = wide - self._reduce(np.maximum, wide)
            powers = np.exp(shifted)
            total = self.spread(powers)
            return dtypes.cast(shifted - np.log(total) if logarithm else powers / total, values.dtype)


sparse_softmax = _softmax("softmax", False)
sparse_log_softmax = _softmax("log_softmax", True)


# ----- norm, any ---------------------------------------------------------------------------------


def norm(x: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The norm of the elements of a COO tensor."""
    a: Any = x._array
    if isinstance(a, CompressedArray):
        raise not_implemented("norm.out", a.layout)
    if dim is not None and dim != () and sorted(_dims(dim, a.ndim)) != list(range(a.ndim)):
        raise RuntimeError("norm_sparse currently only supports full reductions, so 'dim' must either be empty or "
                           "contain all dimensions of the input")
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    if dtype is not None:
        raise RuntimeError("norm_sparse currently does not support 'dtype' argument")
    c = coalesced(a)
    order = 2 if p in ("fro", None) else p
    out = layer.functions.norm(wrap(c.values.reshape(-1)), order)
    result = out.detach()

    def rule(g: Tensor) -> tuple[Any]:
        if order == 2:
            return (x * (g / result),)
        raise not_implemented("norm_backward", x.layout)

    return record(out, "NormBackward1", (x,), rule, (x,))


def any_all(x: Tensor) -> Tensor:
    """Whether an element is not zero."""
    if isinstance(x._array, CompressedArray):
        raise not_implemented("any.all_out", x.layout)
    a: Any = x._array
    values = a.values
    return layer.functions.any(wrap(values))


__all__ = ["any_all", "norm", "sparse_log_softmax", "sparse_softmax", "sparse_sum", "sum_all", "sum_dims"]
