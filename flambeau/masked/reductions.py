"""Reductions of the elements that a mask selects."""

from __future__ import annotations

from typing import Any

from .. import devices, dtypes
from .._tensor import Tensor
from .._tensor import functions as fn
from .masking import _canonical_dim, _input_mask, combined
from .sparse_layouts import LAYOUTS, reduce_sparse

_SMALL_INTEGERS = ("uint8", "bool", "int8", "int16", "int32")


def _sum_type(input: Tensor, dtype: Any) -> Any:
    if dtype is not None:
        return dtype
    return dtypes.int64 if input.dtype.name in _SMALL_INTEGERS else input.dtype


def sum(input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None,
        mask: Tensor | None = None) -> Tensor:
    """The sum; 0 where all elements are masked out.

    Args:
        dim: the dimensions, all by default.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.sum(x, mask=mask)
    tensor(5.)
    """
    dtype = _sum_type(input, dtype)
    dims = _canonical_dim(dim, input.ndim)
    selected = combined("sum", input, mask, layouts=LAYOUTS)
    if selected.layout != devices.strided:
        return reduce_sparse(fn.sum, "sum", selected, dims, bool(keepdim), dtype)
    return fn.sum(selected, dims, bool(keepdim), dtype=dtype)


def _explicit(name: str, selected: Tensor, mask: Tensor | None) -> None:
    """Raise if a sparse input has no mask: what elements it does not specify count depends on the reduction."""
    if mask is None:
        layout = str(selected.layout).rpartition(".")[2]
        raise ValueError(f"masked {name} expects explicit mask for {layout} tensor input")


def prod(input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
    """The product; 1 where all elements are masked out.

    Args:
        dim: the dimensions, all by default.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.prod(x, mask=mask)
    tensor(4.)
    """
    selected, dtype = combined("prod", input, mask, layouts=LAYOUTS), _sum_type(input, dtype)
    dims = _canonical_dim(dim, input.ndim)
    if selected.layout != devices.strided:
        _explicit("prod", selected, mask)
        return reduce_sparse(fn.prod, "prod", selected, dims, bool(keepdim), dtype)
    result = selected.to(dtype)
    for d in reversed(dims):
        result = result.prod(dim=d, keepdim=bool(keepdim))
    return result


def amax(input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
    """The largest element; the least value of the dtype where all elements are masked out.

    Args:
        dim: the dimensions, all by default.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.amax(x, mask=mask)
    tensor(4.)
    """
    selected = combined("amax", input, mask, layouts=LAYOUTS)
    dims = _canonical_dim(dim, selected.ndim)
    if selected.layout != devices.strided:
        _explicit("amax", selected, mask)
        return reduce_sparse(fn.amax, "amax", selected, dims, bool(keepdim), dtype)
    result = fn.amax(selected, dims, bool(keepdim))
    return result.to(input.dtype if dtype is None else dtype)


def amin(input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
    """The smallest element; the greatest value of the dtype where all elements are masked out.

    Args:
        dim: the dimensions, all by default.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.amin(x, mask=mask)
    tensor(1.)
    """
    selected = combined("amin", input, mask, layouts=LAYOUTS)
    dims = _canonical_dim(dim, selected.ndim)
    if selected.layout != devices.strided:
        _explicit("amin", selected, mask)
        return reduce_sparse(fn.amin, "amin", selected, dims, bool(keepdim), dtype)
    result = fn.amin(selected, dims, bool(keepdim))
    return result.to(input.dtype if dtype is None else dtype)


def argmax(input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None,
           mask: Tensor | None = None) -> Tensor:
    """The index of the largest element.

    Args:
        dim: the dimension; the flattened input by default.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.argmax(x, mask=mask)
    tensor(2.)
    """
    return fn.argmax(combined("argmax", input, mask), dim, bool(keepdim)).to(input.dtype if dtype is None else dtype)


def argmin(input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None,
           mask: Tensor | None = None) -> Tensor:
    """The index of the smallest element.

    Args:
        dim: the dimension; the flattened input by default.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.argmin(x, mask=mask)
    tensor(0.)
    """
    return fn.argmin(combined("argmin", input, mask), dim, bool(keepdim)).to(input.dtype if dtype is None else dtype)


def mean(input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
    """The mean; nan where all elements are masked out.

    Args:
        dim: the dimensions, all by default.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.mean(x, mask=mask)
    tensor(2.5000)
    """
    source = "Input" if dtype is None else "Optional"
    dtype = input.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or "
                         f"complex dtype. Got: {dtype}")
    dims = _canonical_dim(dim, input.ndim)
    if input.layout == devices.sparse_csr:
        selected = combined("mean", input, mask, layouts=LAYOUTS)
        _explicit("mean", selected, mask)
        return reduce_sparse(fn.mean, "mean", selected, dims, bool(keepdim), dtype)
    selected = combined("sum", input, mask, function="mean", layouts=(devices.strided, devices.sparse_csr))
    total = fn.sum(selected, dims, bool(keepdim), dtype=dtype)
    return total / _count(input, dims, bool(keepdim), mask)


def _count(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Tensor | None) -> Tensor:
    """The number of elements that are not masked out."""
    if mask is None:
        return fn.sum(fn.ones(input.shape, dtype=dtypes.bool_, device=input.device), dims, keepdim)
    return fn.sum(_input_mask(input, mask=mask), dims, keepdim)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None,
           mask: Tensor | None = None) -> Tensor:
    """The median, the lower one of two; nan where all elements are masked out.

    Args:
        dim: the dimension.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.median(x, mask=mask)
    tensor(1.)
    """
    dtype = input.dtype if dtype is None else dtype
    d = _canonical_dim(dim, input.ndim)[0]
    floating = input.dtype.is_floating_point
    x = input if floating else input.to(dtypes.float32)
    result = fn.nanmedian(combined("median", x, mask), d, keepdim).values
    if floating:
        return result
    if fn.isnan(result).any().item():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return result.to(dtype)


def logsumexp(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
              mask: Tensor | None = None) -> Tensor:
    """The logarithm of the sum of exponentials; -inf where all elements are masked out.

    Args:
        dim: the dimensions, all by default.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.logsumexp(x, 0, mask=mask)
    tensor(4.0486)
    """
    dims = _canonical_dim(dim, input.ndim)
    result = fn.logsumexp(combined("logsumexp", input, mask), dims, keepdim=keepdim)
    return result.to(input.dtype if dtype is None else dtype)


def norm(input: Tensor, ord: float | None = 2.0, dim: Any = None, *, keepdim: bool | None = False,
         dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The norm of order `ord`; 0, or inf of order -inf, where all elements are masked out.

    Args:
        dim: the dimensions, all by default.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.norm(x, 1., mask=mask)
    tensor(5.)
    """
    dtype = input.dtype if dtype is None else dtype
    selected = combined("norm", input, mask, ord)
    return fn.linalg_vector_norm(selected, ord, _canonical_dim(dim, input.ndim), bool(keepdim), dtype=dtype)


def _variance(name: str, input: Tensor, dim: Any, unbiased: bool | None, correction: float | None, keepdim: bool,
              dtype: Any, mask: Tensor | None) -> Tensor:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    subtracted = float(correction) if correction is not None else 0.0 if unbiased is False else 1.0
    if dtype is None:
        dtype = input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else dtypes.float32
    compute = dtype if dtype.is_floating_point or dtype.is_complex else dtypes.float32
    selected = combined("sum", input, mask, function="std_var")
    dims = _canonical_dim(dim, input.ndim)
    count = _count(input, dims, True, mask)
    x = input - fn.sum(selected, dims, True, dtype=dtype) / count
    total = fn.sum(combined("sum", x * x.conj(), mask), dims, keepdim, dtype=compute)
    if not keepdim:
        count = count.reshape(total.shape)
    if subtracted != 0:
        count = count.to(compute.to_real()) - subtracted
        count = fn.maximum(count, count.new_zeros([]))
    return (total / count).to(dtype)


def var(input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None,
        keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The variance; nan where all elements are masked out.

    Args:
        dim: the dimensions, all by default.
        unbiased: whether the divisor is one less than the number of elements, the default.
        correction: what is subtracted from the number of elements.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.var(x, mask=mask)
    tensor(4.5000)
    """
    return _variance("var", input, dim, unbiased, correction, bool(keepdim), dtype, mask)


def std(input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None,
        keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The standard deviation; nan where all elements are masked out.

    Args:
        dim: the dimensions, all by default.
        unbiased: whether the divisor is one less than the number of elements, the default.
        correction: what is subtracted from the number of elements.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.std(x, mask=mask)
    tensor(2.1213)
    """
    return fn.sqrt(_variance("std", input, dim, unbiased, correction, bool(keepdim), dtype, mask))
