"""Constraints made of others: of events along more dimensions, of components, of sections, of slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from .base import Constraint


def _all_of_event(valid: Tensor, ndims: int) -> Tensor:
    """Whether all of the last `ndims` dimensions are valid."""
    reduced: Tensor = valid.reshape((*valid.shape[:valid.dim() - ndims], -1)).all(-1)
    return reduced


class _IndependentConstraint(Constraint):
    """Events of another constraint along the last dimensions, all of which must be valid.

    >>> import flambeau as torch
    >>> from flambeau.distributions import constraints
    >>> constraints.independent(constraints.positive, 1).check(torch.tensor([1., -1.]))
    tensor(False)
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"base_constraint must be a Constraint, got {type(base_constraint).__name__}")
        if not isinstance(reinterpreted_batch_ndims, int):
            raise AssertionError("reinterpreted_batch_ndims must be an int, got "
                                 f"{type(reinterpreted_batch_ndims).__name__}")
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}")
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> Any:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> Any:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        valid = self.base_constraint.check(value)
        if valid.dim() < self.reinterpreted_batch_ndims:
            expected = self.base_constraint.event_dim + self.reinterpreted_batch_ndims
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        return _all_of_event(valid, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """Values that are valid in every component of a mixture.

    Args:
        base_constraint: the support of the components; its batch shape ends with the dimension of components.

    >>> import flambeau as torch
    >>> constraints = torch.distributions.constraints
    >>> constraints.MixtureSameFamilyConstraint(constraints.positive).check(torch.tensor([1., -1.]))
    tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"base_constraint must be a Constraint, got {type(base_constraint).__name__}")
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> Any:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> Any:
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        valid = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        kept: Tensor = valid.reshape((*valid.shape[:value.dim() - self.event_dim], -1)).all(-1)
        return kept

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


def _check_parts(cseq: Sequence[Any]) -> list[Constraint]:
    if not all(isinstance(c, Constraint) for c in cseq):
        raise AssertionError("All elements of cseq must be Constraint instances")
    return list(cseq)


def _check_dim(value: Tensor, dim: int) -> None:
    if not -value.dim() <= dim < value.dim():
        raise AssertionError(f"dim {dim} out of range for value with {value.dim()} dimensions")


class _Cat(Constraint):
    """Constraints of sections along a dimension.

    Args:
        cseq: the constraints.
        dim: the dimension that is divided.
        lengths: the length of each section. Default: 1.

    >>> import flambeau as torch
    >>> from flambeau.distributions import constraints
    >>> constraints.cat([constraints.positive, constraints.real]).check(torch.tensor([-1., -1.]))
    tensor([False,  True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq = _check_parts(cseq)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")
        self.dim = dim

    @property
    def is_discrete(self) -> Any:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> Any:
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        _check_dim(value, self.dim)
        checks, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths, strict=True):
            checks.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        joined: Tensor = fn.cat(checks, self.dim)
        return joined


class _Stack(Constraint):
    """Constraints of the slices along a dimension.

    Args:
        cseq: the constraints, one for each slice.
        dim: the dimension.

    >>> import flambeau as torch
    >>> from flambeau.distributions import constraints
    >>> constraints.stack([constraints.positive, constraints.real]).check(torch.tensor([[-1.], [-1.]]))
    tensor([[False],
            [ True]])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq = _check_parts(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> Any:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> Any:
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        _check_dim(value, self.dim)
        slices = [value.select(self.dim, i) for i in range(value.size(self.dim))]
        stacked: Tensor = fn.stack([c.check(v) for v, c in zip(slices, self.cseq, strict=False)], self.dim)
        return stacked
