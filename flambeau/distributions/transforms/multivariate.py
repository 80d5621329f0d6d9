"""Transforms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ...dtypes import finfo
from ...nn.functional import pad
from ...shapes import Size
from .. import constraints
from ..constraints import Constraint
from ..utils import tril_matrix_to_vec, vec_to_tril_matrix
from .transform import Transform, require_dims
from .univariate import clipped_sigmoid

__all__ = ["CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "ReshapeTransform",
           "SoftmaxTransform", "StickBreakingTransform"]


class ReshapeTransform(Transform):
    """The last dimensions of x in another shape, of Jacobian 1.

    Args:
        in_shape, out_shape: shapes of one event, of as many elements.
        cache_size: the cache size.

    Raises:
        ValueError: the shapes have different numbers of elements.

    >>> import flambeau as torch
    >>> torch.distributions.ReshapeTransform((2, 1), (2,))(torch.ones(3, 2, 1)).tolist()
    [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _replace_event(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _replace_event(shape, self.out_shape, self.in_shape)


def _replace_event(shape: Any, old: Any, new: Any) -> Any:
    require_dims(len(shape), len(old))
    cut = len(shape) - len(old)
    if shape[cut:] != old:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return shape[:cut] + new


class SoftmaxTransform(Transform):
    """y = softmax(x), with the inverse log y. No bijection: use it for optimization.

    >>> import flambeau as torch
    >>> torch.distributions.SoftmaxTransform()(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    def _call(self, x: Tensor) -> Tensor:
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        require_dims(len(shape), 1)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        require_dims(len(shape), 1)
        return shape


class StickBreakingTransform(Transform):
    """A bijection from vectors of k numbers to the simplex of k + 1.

    Element i takes the share sigmoid(xᵢ - log(k - i)) of what its predecessors leave; x = 0 gives equal parts.

    >>> import flambeau as torch
    >>> torch.distributions.StickBreakingTransform()(torch.zeros(2))
    tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    def _call(self, x: Tensor) -> Tensor:
        share = clipped_sigmoid(x - _parts_left(x, x.shape[-1] + 1, x.shape[-1]).log())
        left = (1 - share).cumprod(-1)
        y: Tensor = pad(share, [0, 1], value=1) * pad(left, [1, 0], value=1)
        return y

    def _inverse(self, y: Tensor) -> Tensor:
        parts = y[..., :-1]
        left = fn.clamp(1 - parts.cumsum(-1), min=finfo(y.dtype).tiny)
        x: Tensor = parts.log() - left.log() + _parts_left(y, y.shape[-1], parts.shape[-1]).log()
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - _parts_left(x, x.shape[-1] + 1, x.shape[-1]).log()
        result: Tensor = (-x + fn.logsigmoid(x) + y[..., :-1].log()).sum(-1)
        return result

    def forward_shape(self, shape: Any) -> Any:
        require_dims(len(shape), 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        require_dims(len(shape), 1)
        return Size((*shape[:-1], shape[-1] - 1))


def _parts_left(like: Tensor, parts: int, count: int) -> Tensor:
    """parts - 1, parts - 2, ..., parts - count."""
    left: Tensor = parts - like.new_ones(count).cumsum(-1)
    return left


class CorrCholeskyTransform(Transform):
    """A bijection from vectors of d (d - 1) / 2 numbers to Cholesky factors of d x d correlation matrices.

    tanh(x) are partial correlations, row by row; each row of the factor has norm 1.

    >>> import flambeau as torch
    >>> torch.distributions.CorrCholeskyTransform()(torch.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype).eps
        r = vec_to_tril_matrix(fn.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r ** 2).sqrt().cumprod(-1)
        r = r + fn.eye(r.shape[-1], dtype=r.dtype, device=r.device)  # the diagonal takes what is left
        y: Tensor = r * pad(left[..., :-1], [1, 0], value=1)
        return y

    def _inverse(self, y: Tensor) -> Tensor:
        left = 1 - fn.cumsum(y * y, dim=-1)
        before = pad(left[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(before, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2  # atanh

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        # Stan Reference Manual, "Cholesky factors of correlation matrices": the diagonal's factor is 1, so that the
        # rows' remainders count from the second subdiagonal on
        left = 1 - (y * y).cumsum(dim=-1)
        sticks = 0.5 * tril_matrix_to_vec(left, diag=-2).log().sum(-1)
        tanh = -2 * (x + fn.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        result: Tensor = sticks + tanh
        return result

    def forward_shape(self, shape: Any) -> Any:
        require_dims(len(shape), 1)
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], size, size))

    def inverse_shape(self, shape: Any) -> Any:
        require_dims(len(shape), 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class LowerCholeskyTransform(Transform):
    """Lower triangles of matrices, of which the diagonal is exponentiated.

    >>> import flambeau as torch
    >>> torch.distributions.LowerCholeskyTransform()(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """y = L Lᵀ, L the lower triangle of x with its diagonal exponentiated.

    >>> import flambeau as torch
    >>> torch.distributions.PositiveDefiniteTransform()(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        x: Tensor = LowerCholeskyTransform().inv(fn.linalg_cholesky(y))
        return x
