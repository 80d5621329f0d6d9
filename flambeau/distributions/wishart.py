"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..dtypes import finfo
from ..shapes import Size
from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import _precision_to_scale_tril
from .utils import _Number, lazy_property

__all__ = ["Wishart"]

_log_2 = math.log(2)


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The multivariate digamma function, the derivative of `mvlgamma`."""
    if not x.gt((p - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    offsets = fn.arange(p, dtype=x.dtype, device=x.device).div(2).expand((*x.shape, -1))
    total: Tensor = fn.digamma(x.unsqueeze(-1) - offsets).sum(-1)
    return total


def _clamp_above_eps(x: Tensor) -> Tensor:
    return x.clamp(min=finfo(x.dtype).eps)


class Wishart(ExponentialFamily):
    """The Wishart distribution: the scatter matrix of ν normal vectors of mean 0 and covariance Σ.

    Args:
        df: the degrees of freedom ν > p - 1, a tensor or a number.
        covariance_matrix: Σ, (..., p, p), positive definite.
        precision_matrix: Σ⁻¹, in place of Σ.
        scale_tril: the lower Cholesky factor of Σ, in place of Σ.
        validate_args: whether to validate.

    Raises:
        AssertionError: not exactly one of the three matrices is given.
        ValueError: the matrix has fewer than two dimensions, or `df` is too small.

    >>> import flambeau as torch
    >>> torch.distributions.Wishart(torch.tensor([3.]), torch.eye(2)).mean
    tensor([[[3., 0.],
             [0., 3.]]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> Any:
        return {"covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
                "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(self.event_shape[-1] - 1)}

    def __init__(self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
                 validate_args: bool | None = None) -> None:
        given = {name: matrix for name, matrix in (
            ("scale_tril", scale_tril), ("covariance_matrix", covariance_matrix),
            ("precision_matrix", precision_matrix)) if matrix is not None}
        if len(given) != 1:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, _Number):
            batch_shape = Size(matrix.shape[:-2])
            self.df = fn.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = Size(fn.broadcast_shapes(matrix.shape[:-2], df.shape))
            self.df = df.expand(batch_shape)
        event_shape = matrix.shape[-2:]
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}.")
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        if self.df.lt(event_shape[-1]).any():
            warnings.warn("Low df values detected. Singular samples are highly likely to occur for "
                          "ndim - 1 < df < ndim.", stacklevel=2)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._batch_dims = [-(x + 1) for x in range(len(self._batch_shape))]
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = fn.linalg_cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)
        self._dist_chi2 = _chi2_of_diagonal(self.df, event_shape[-1], self._unbroadcasted_scale_tril)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = Size(batch_shape)
        shape = batch_shape + self.event_shape
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(shape)
        new.df = self.df.expand(batch_shape)
        new._batch_dims = [-(x + 1) for x in range(len(batch_shape))]
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(shape))
        new._dist_chi2 = _chi2_of_diagonal(new.df, self.event_shape[-1], new._unbroadcasted_scale_tril)
        self._initialize_expanded(new, batch_shape)
        return new

    def _expanded(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance matrix."""
        return self._expanded(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix of the normal vectors."""
        factor = self._unbroadcasted_scale_tril
        return self._expanded(factor @ factor.transpose(-2, -1))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        factor = self._unbroadcasted_scale_tril
        identity = fn.eye(self._event_shape[-1], device=factor.device, dtype=factor.dtype)
        return self._expanded(fn.cholesky_solve(identity, factor))

    def _df_of_matrices(self, df: Tensor) -> Tensor:
        return df.view((*self._batch_shape, 1, 1))

    @property
    def mean(self) -> Tensor:
        return self._df_of_matrices(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor: Tensor = self.df - self.covariance_matrix.shape[-1] - 1
        factor[factor <= 0] = math.nan
        return self._df_of_matrices(factor) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        return self._df_of_matrices(self.df) * (
            V.pow(2) + fn.einsum("...i,...j->...ij", diagonal, diagonal))

    def _bartlett_sampling(self, sample_shape: Any = Size()) -> Tensor:
        """Samples by Bartlett's decomposition: chi-squared numbers on the diagonal, normal ones below."""
        p = self._event_shape[-1]
        noise = _clamp_above_eps(self._dist_chi2.rsample(sample_shape).sqrt()).diag_embed(dim1=-2, dim2=-1)
        i, j = fn.tril_indices(p, p, offset=-1)
        noise[..., i, j] = fn.randn((*Size(sample_shape), *self._batch_shape, p * (p - 1) // 2), dtype=noise.dtype,
                                    device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.transpose(-2, -1)

    def rsample(self, sample_shape: Any = Size(), max_try_correction: int | None = None) -> Tensor:
        """Samples that can be differentiated by the parameters.

        Args:
            sample_shape: the shape of draws.
            max_try_correction: how often samples that are not accepted are drawn again. Default: 10.
        """
        tries = 10 if max_try_correction is None else max_try_correction
        sample_shape = Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        # as in PyTorch, the first test is of valid samples: these are drawn again, once where all are valid
        again = self.support.check(sample)
        if self._batch_shape:
            again = again.amax(self._batch_dims)
        if again.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(tries):
                drawn = self._bartlett_sampling(again[again].shape)
                sample[again] = drawn
                singular = ~self.support.check(drawn)
                if self._batch_shape:
                    singular = singular.amax(self._batch_dims)
                again[again.clone()] = singular
                if not again.any():
                    break
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        return (-nu * (p * _log_2 / 2 + factor.diagonal(dim1=-2, dim2=-1).log().sum(-1))
                - fn.mvlgamma(nu / 2, p=p) + (nu - p - 1) / 2 * fn.linalg_slogdet(value).logabsdet
                - fn.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 2)

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        return ((p + 1) * (p * _log_2 / 2 + self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1))
                + fn.mvlgamma(nu / 2, p=p) - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p) + nu * p / 2)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._event_shape[-1]
        return ((y + (p + 1) / 2) * (-fn.linalg_slogdet(-2 * x).logabsdet + _log_2 * p)
                + fn.mvlgamma(y + (p + 1) / 2, p=p))


def _chi2_of_diagonal(df: Tensor, p: int, like: Tensor) -> Chi2:
    """The distribution of the squares on the diagonal of Bartlett's decomposition."""
    offsets = fn.arange(p, dtype=like.dtype, device=like.device)
    return Chi2(df=df.unsqueeze(-1) - offsets.expand((*df.shape, -1)))
