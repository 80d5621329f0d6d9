"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The chi-squared distribution: the sum of the squares of ν standard normal numbers, Gamma(ν / 2, 1 / 2).

    Args:
        df: the degrees of freedom ν > 0, a tensor or a number.
        validate_args: whether to validate.

    >>> import flambeau as torch
    >>> torch.distributions.Chi2(torch.tensor([3.])).mean
    tensor([3.])
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(Chi2, _instance))

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        df: Tensor = self.concentration * 2
        return df
