"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..shapes import Size
from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Matrices (..., n, m) times vectors (..., m), whose batch shapes broadcast."""
    product: Tensor = fn.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)
    return product


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """xᵀ M⁻¹ x for M = L Lᵀ, with one triangular solve for each matrix L.

    Args:
        bL: (b₁, ..., n, n), lower triangular.
        bx: (..., c₁, ..., n), each cᵢ a multiple of bᵢ.

    Returns:
        (..., c₁, ...).
    """
    n = bx.size(-1)
    shape = bx.shape[:-1]
    matrix_dims = bL.dim() - 2
    outer = len(shape) - matrix_dims
    # (..., c₁ / b₁, b₁, ..., n), then the divided parts to the front
    divided = bx.shape[:outer]
    for of_matrix, of_vector in zip(bL.shape[:-2], bx.shape[outer:-1], strict=True):
        divided += (of_vector // of_matrix, of_matrix)
    last = outer + 2 * matrix_dims
    bx = bx.reshape((*divided, n)).permute(
        [*range(outer), *range(outer, last, 2), *range(outer + 1, last, 2), last])
    flat_L = bL.reshape(-1, n, n)  # (b, n, n)
    flat_x = bx.reshape(-1, flat_L.size(0), n)  # (c, b, n)
    solved = fn.linalg_solve_triangular(flat_L, flat_x.permute(1, 2, 0), upper=False)  # (b, n, c)
    result = solved.pow(2).sum(-2).t().reshape(bx.shape[:-1])
    back = [*range(outer)]
    for i in range(matrix_dims):
        back += [outer + i, outer + matrix_dims + i]
    together: Tensor = result.permute(back).reshape(shape)
    return together


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """The Cholesky factor of P⁻¹: the inverse of the factor of P with rows and columns reversed."""
    factor = fn.linalg_cholesky(fn.flip(P, (-2, -1)))
    inverse = fn.transpose(fn.flip(factor, (-2, -1)), -2, -1)
    identity = fn.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    L: Tensor = fn.linalg_solve_triangular(inverse, identity, upper=False)
    return L


class MultivariateNormal(Distribution):
    """The multivariate normal distribution, of density exp(-(x - μ)ᵀ Σ⁻¹ (x - μ) / 2) / √(det 2πΣ).

    Args:
        loc: the mean μ, (..., n).
        covariance_matrix: Σ, (..., n, n), positive definite.
        precision_matrix: Σ⁻¹, in place of Σ.
        scale_tril: the lower Cholesky factor of Σ, in place of Σ; the form that all others are converted to.
        validate_args: whether to validate.

    Raises:
        ValueError: not exactly one of the three matrices is given, or a tensor has too few dimensions.

    >>> import flambeau as torch
    >>> torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, covariance_matrix: Any = None, precision_matrix: Any = None,
                 scale_tril: Any = None, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {name: matrix for name, matrix in (
            ("scale_tril", scale_tril), ("covariance_matrix", covariance_matrix),
            ("precision_matrix", precision_matrix)) if matrix is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name.replace('tril', 'tril matrix')} must be at least two-dimensional, with optional "
                             "leading batch dimensions")
        batch_shape = fn.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(Size(batch_shape), self.loc.shape[-1:], validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = fn.linalg_cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(MultivariateNormal, _instance)
        batch_shape = Size(batch_shape)
        new.loc = self.loc.expand(batch_shape + self.event_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(batch_shape + self.event_shape + self.event_shape))
        self._initialize_expanded(new, batch_shape)
        return new

    def _expanded(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance matrix."""
        return self._expanded(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        factor = self._unbroadcasted_scale_tril
        return self._expanded(fn.matmul(factor, factor.mT))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        return self._expanded(fn.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, drawn)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> Tensor:
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
