"""Constraints of vectors and matrices."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor import functions as fn
from .base import Constraint

# ----- vectors -----

class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        is_boolean = (value == 0) | (value == 1)
        valid: Tensor = is_boolean.all(-1) & value.sum(-1).eq(1)
        return valid


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        valid: Tensor = fn.all(value >= 0, dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)
        return valid


class _Multinomial(Constraint):
    """Vectors of nonnegative counts whose sum is at most `upper_bound`.

    >>> import flambeau as torch
    >>> torch.distributions.constraints.multinomial(3).check(torch.tensor([1., 2.]))
    tensor(True)
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        valid: Tensor = (x >= 0).all(dim=-1) & (x.sum(dim=-1) <= self.upper_bound)
        return valid


# ----- matrices -----

class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        valid: Tensor = (value.tril() == value).view((*value.shape[:-2], -1)).min(-1)[0]
        return valid


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Tensor) -> Tensor:
        valid: Tensor = super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).min(-1)[0]
        return valid


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        tolerance = dtypes.finfo(value.dtype).eps * value.size(-1) * 10  # rounding errors grow with the rows
        row_norm = fn.linalg_norm(value.detach(), dim=-1)
        unit_rows = (row_norm - 1.0).abs().le(tolerance).all(dim=-1)
        valid: Tensor = _LowerCholesky().check(value) & unit_rows
        return valid


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        valid: Tensor = fn.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=dtypes.bool_,
                                device=value.device)
        return valid


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        is_square = super().check(value)
        if not is_square.all():
            return is_square
        valid: Tensor = fn.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)
        return valid


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        is_symmetric = super().check(value)
        if not is_symmetric.all():
            return is_symmetric
        valid: Tensor = fn.linalg_eigvalsh(value).ge(0).all(-1)
        return valid


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        is_symmetric = super().check(value)
        if not is_symmetric.all():
            return is_symmetric
        valid: Tensor = fn.linalg_cholesky_ex(value).info.eq(0)
        return valid
