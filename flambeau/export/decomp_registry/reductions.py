"""Decompositions of products, reductions and normalization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flambeau as torch

from ..._tensor import Tensor
from ...dtypes import NARROW, dtype, float32
from ...ops import aten
from .entries import decomposes, dims_of, in_float32


def _weighted(self: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """`beta self + alpha product`; values of `self` do not matter where beta is 0."""
    if not (product.is_floating_point() or product.is_complex()):
        beta, alpha = int(beta), int(alpha)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return (self if beta == 1 else self * beta) + product


@decomposes("addmm")
@in_float32
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """A multiple of a matrix and one of a product of matrices."""
    return _weighted(self, torch.mm(mat1, mat2), beta, alpha)


@decomposes("addmv")
@in_float32
def addmv(self: Tensor, mat1: Tensor, vec: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """A multiple of a vector and one of a matrix times a vector."""
    return _weighted(self, torch.mv(mat1, vec), beta, alpha)


@decomposes("baddbmm")
@in_float32
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """A multiple of matrices and one of products of matrices."""
    return _weighted(self, torch.bmm(batch1, batch2), beta, alpha)


@decomposes("addr")
@in_float32
def addr(self: Tensor, vec1: Tensor, vec2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """A multiple of a matrix and one of an outer product."""
    if self.dtype is vec1.dtype is vec2.dtype is torch.bool:
        outer = torch.logical_and(vec1.unsqueeze(1), vec2) if alpha else torch.zeros_like(self)
        return torch.logical_or(self, outer) if beta else outer
    return _weighted(self, vec1.unsqueeze(1) * vec2, beta, alpha)


@decomposes("mv")
@in_float32
def mv(self: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    return (self * vec).sum(1, dtype=self.dtype)


@decomposes("dot")
@in_float32
def dot(self: Tensor, tensor: Tensor) -> Tensor:
    """The sum of products."""
    return (self * tensor).sum(dtype=self.dtype)


@decomposes("vdot")
@in_float32
def vdot(self: Tensor, other: Tensor) -> Tensor:
    """The sum of products with the first vector conjugated."""
    return (torch.conj_physical(self) * other).sum(dtype=self.dtype)


def _count(x: Tensor, dims: Sequence[int]) -> int:
    return math.prod(x.shape[d] for d in dims) if x.dim() else 1


@decomposes("mean.dim", "mean")
def mean(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    """The sum over the count."""
    made = dtype or self.dtype
    if made.numpy in NARROW:
        return mean(self, dim, keepdim, dtype=float32).to(made)
    dims = dims_of(self, dim)
    return torch.div(torch.sum(self, dims, keepdim, dtype=made), _count(self, dims))


@decomposes("var.correction", "var", "var.dim")
@in_float32
def var(self: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
        correction: Any = None) -> Tensor:
    """The mean square distance from the mean."""
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    dims = dims_of(self, dim)
    distances = self - torch.mean(self, dims, True)
    squares = torch.real(distances * torch.conj(distances)) if self.is_complex() else distances * distances
    count = _count(self, dims) - correction
    total = torch.sum(squares, dims, keepdim)
    return total / (count if count > 0 else 0.0)


@decomposes("std.correction", "std", "std.dim")
@in_float32
def std(self: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
        correction: Any = None) -> Tensor:
    """The root of the variance."""
    return torch.sqrt(var(self, dim, unbiased, keepdim, correction=correction))


@decomposes("var_mean.correction", "var_mean", "var_mean.dim")
@in_float32
def var_mean(self: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
             correction: Any = None) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""
    over = None if isinstance(dim, bool) else dim
    return var(self, dim, unbiased, keepdim, correction=correction), torch.mean(self, dims_of(self, over), keepdim)


@decomposes("std_mean.correction", "std_mean", "std_mean.dim")
@in_float32
def std_mean(self: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
             correction: Any = None) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean."""
    variance, average = var_mean(self, dim, unbiased, keepdim, correction=correction)
    return torch.sqrt(variance), average


@decomposes("sum.dim_IntList")
def sum_over(self: Tensor, dim: Any, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    """The sum over dimensions, by the primitive; 16-bit floats are added in float32."""
    made = dtype or self.dtype
    if not (made.is_floating_point or made.is_complex or dtype is not None):
        made = torch.int64
    dims = dims_of(self, dim)
    wide = self.to(float32 if made.numpy in NARROW else made)
    total = torch.ops.prims.sum(wide, dims if self.dim() else [], output_dtype=wide.dtype).to(made)
    for d in sorted(dims) if keepdim and self.dim() else ():
        total = total.unsqueeze(d)
    return total


@decomposes("sum")
def sum_of_all(self: Tensor, *, dtype: dtype | None = None) -> Tensor:
    """The sum of all elements."""
    return aten.sum.dim_IntList(self, [], dtype=dtype)


@decomposes("nansum")
def nansum(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    """The sum of what is not NaN."""
    return torch.sum(torch.where(torch.isnan(self), torch.scalar_tensor(0, dtype=self.dtype), self), dims_of(self, dim),
                     keepdim, dtype=dtype)


@decomposes("all")
def all_of(self: Tensor) -> Tensor:
    """Whether all elements are True."""
    result = torch.logical_not(torch.any(torch.logical_not(self)))
    return result.to(torch.uint8) if self.dtype is torch.uint8 else result


@decomposes("all.dim", "all.dims")
def all_over(self: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether all elements along dimensions are True."""
    if not self.dim():
        return all_of(self)
    over = dims_of(self, dim) if dim is None or isinstance(dim, int) else [d % self.dim() for d in dim]
    result = torch.logical_not(self)
    result = aten.any.dims(result, over, keepdim) if over else result
    return torch.logical_not(result).to(torch.uint8 if self.dtype is torch.uint8 else torch.bool)


@decomposes("count_nonzero.dim_IntList", "count_nonzero")
def count_nonzero(self: Tensor, dim: Any = None) -> Tensor:
    """How many elements are not 0."""
    return torch.sum(self != 0, dims_of(self, dim))


@decomposes("aminmax")
def aminmax(self: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The least and the greatest element."""
    over = dims_of(self, dim) if self.dim() else []
    return torch.amin(self, over, keepdim), torch.amax(self, over, keepdim)


@decomposes("logsumexp")
@in_float32
def logsumexp(self: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """The logarithm of a sum of exponentials, without overflow."""
    if not (self.is_floating_point() or self.is_complex()):
        self = self.to(torch.get_default_dtype())
    dims = dims_of(self, dim) if isinstance(dim, int) or len(dim) else list(range(self.dim()))
    if self.numel() == 0:
        return torch.log(torch.sum(torch.exp(self), dims, keepdim))
    highest = torch.amax(torch.real(self) if self.is_complex() else self, dims, True)
    highest = torch.where(torch.abs(highest) == math.inf, torch.zeros_like(highest), highest)
    total = torch.sum(torch.exp(self - highest), dims, keepdim)
    if not keepdim:
        for d in sorted(dims, reverse=True) if self.dim() else ():
            highest = highest.squeeze(d)
    return torch.log(total) + highest


@decomposes("_softmax")
def softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Exponentials over their sum."""
    made = float32 if half_to_float else self.dtype
    x = self.to(float32) if self.dtype.numpy in NARROW else self.contiguous()
    if x.numel():
        x = x - torch.amax(x, [dim], True)
    powers = torch.exp(x)
    return (powers / torch.sum(powers, [dim], True)).to(made)


@decomposes("_log_softmax")
def log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """The logarithm of softmax."""
    made = float32 if half_to_float else self.dtype
    x = self.to(float32) if self.dtype.numpy in NARROW else self.contiguous()
    if x.numel():
        x = x - torch.amax(x, [dim], True)
    return (x - torch.log(torch.sum(torch.exp(x), [dim], True))).to(made)


@decomposes("_safe_softmax")
def safe_softmax(self: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    """Softmax, 0 where all values along the dimension are minus infinity."""
    result = torch.softmax(self, dim, dtype=dtype)
    return torch.where(torch.all(self == -math.inf, dim, True), torch.zeros_like(result), result)


@decomposes("_softmax_backward_data")
def softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype: dtype) -> Tensor:
    """The gradient of softmax."""
    @in_float32
    def compute(g: Tensor, y: Tensor) -> Tensor:
        weighted = g * y
        return weighted - y * torch.sum(weighted, [dim], True)

    return compute(grad_output, output).to(input_dtype)


@decomposes("_log_softmax_backward_data")
def log_softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype: dtype) -> Tensor:
    """The gradient of log-softmax."""
    @in_float32
    def compute(g: Tensor, y: Tensor) -> Tensor:
        return g - torch.exp(y) * torch.sum(g, [dim], True)

    return compute(grad_output, output).to(input_dtype)
