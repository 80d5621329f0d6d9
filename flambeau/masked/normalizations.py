"""Normalizations and cumulative reductions of the elements that a mask selects, and `logaddexp`."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from .masking import _canonical_dim, combined
from .reductions import norm


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The cumulative sum, to which masked-out elements add nothing.

    Args:
        dim: the dimension.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.cumsum(x, 0, mask=mask)
    tensor([1., 1., 5.])
    """
    dtype = input.dtype if dtype is None else dtype
    d = _canonical_dim(dim, input.ndim)[0]
    return fn.cumsum(combined("sum", input, mask, function="cumsum"), d, dtype=dtype).to(dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The cumulative product, which masked-out elements do not change.

    Args:
        dim: the dimension.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.cumprod(x, 0, mask=mask)
    tensor([1., 1., 4.])
    """
    dtype = input.dtype if dtype is None else dtype
    d = _canonical_dim(dim, input.ndim)[0]
    return fn.cumprod(combined("prod", input, mask, function="cumprod"), d, dtype=dtype).to(dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The softmax; 0 at masked-out elements.

    Args:
        dim: the dimension.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.softmax(x, 0, mask=mask)
    tensor([0.0474, 0.0000, 0.9526])
    """
    dtype = input.dtype if dtype is None else dtype
    d = _canonical_dim(dim, input.ndim)[0]
    return fn.softmax(combined("amax", input, mask, function="softmax"), d, dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of the softmax; -inf at masked-out elements.

    Args:
        dim: the dimension.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.log_softmax(x, 0, mask=mask)
    tensor([-3.0486,    -inf, -0.0486])
    """
    dtype = input.dtype if dtype is None else dtype
    d = _canonical_dim(dim, input.ndim)[0]
    return fn.log_softmax(combined("amax", input, mask, function="log_softmax"), d, dtype=dtype)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The softmax of the negative input; 0 at masked-out elements.

    Args:
        dim: the dimension.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.softmin(x, 0, mask=mask)
    tensor([0.9526, 0.0000, 0.0474])
    """
    dtype = input.dtype if dtype is None else dtype
    d = _canonical_dim(dim, input.ndim)[0]
    return fn.softmax(-combined("amin", input, mask, function="softmin"), d, dtype=dtype)


def normalize(input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None,
              mask: Tensor | None = None) -> Tensor:
    """The input divided by its norm, or by `eps` if that is larger; 0 at masked-out elements.

    Args:
        ord: the order of the norm.
        dim: the dimension.
        dtype: the dtype of the result.
        mask: the elements that count; broadcast to the input.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2., 4.]), torch.tensor([True, False, True])
    >>> torch.masked.normalize(x, 1., 0, mask=mask)
    tensor([0.2000, 0.0000, 0.8000])
    """
    dtype = input.dtype if dtype is None else dtype
    selected = combined("sum", input, mask, function="normalize")
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return selected / fn.maximum(size, size.new_full([], eps))


def logaddexp(input: Tensor, other: Tensor, *, dtype: Any = None, input_mask: Tensor | None = None,
              other_mask: Tensor | None = None) -> Tensor:
    """log(exp(input) + exp(other)), where masked-out elements count as -inf.

    Args:
        dtype: the dtype of the result.
        input_mask, other_mask: the elements that count; broadcast to the tensors.

    >>> import flambeau as torch
    >>> x, mask = torch.tensor([1., 2.]), torch.tensor([True, False])
    >>> torch.masked.logaddexp(x, x, other_mask=mask)
    tensor([1.6931, 2.0000])
    """
    first = combined("logaddexp", input, input_mask)
    second = combined("logaddexp", other, other_mask)
    return fn.logaddexp(first, second).to(input.dtype if dtype is None else dtype)
