"""Different transforms for sections or slices of a dimension."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from .. import constraints
from ..constraints import Constraint
from ..utils import _sum_rightmost, lazy_property
from .transform import Transform, check_transforms

__all__ = ["CatTransform", "StackTransform"]


def _check_dim(z: Tensor, dim: int, name: str = "tensor") -> None:
    if not -z.dim() <= dim < z.dim():
        raise AssertionError(f"dim {dim} out of range for {name} with {z.dim()} dimensions")


class CatTransform(Transform):
    """Transforms of sections along a dimension, as `torch.cat` joins them.

    Args:
        tseq: the transforms.
        dim: the dimension that is divided.
        lengths: the length of each section. Default: 1.
        cache_size: the cache size.

    >>> import flambeau as torch
    >>> from flambeau.distributions import CatTransform, ExpTransform, identity_transform
    >>> CatTransform([ExpTransform(), identity_transform], lengths=[1, 2])(torch.zeros(3))
    tensor([1., 0., 0.])
    """

    transforms: list[Transform]

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None,
                 cache_size: int = 0) -> None:
        self.transforms = check_transforms(tseq, cache_size)
        super().__init__(cache_size=cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")
        self.dim = dim

    @lazy_property
    def event_dim(self) -> int:
        """The largest number of dimensions of an event of the parts."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The length of the dimension."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _check(self, z: Tensor, letter: str, name: str = "tensor") -> None:
        _check_dim(z, self.dim, name)
        if z.size(self.dim) != self.length:
            raise AssertionError(f"{letter}.size({self.dim}) = {z.size(self.dim)} must equal length {self.length}")

    def _sections(self, z: Tensor) -> Iterator[Tensor]:
        start = 0
        for length in self.lengths:
            yield z.narrow(self.dim, start, length)
            start += length

    def _call(self, x: Tensor) -> Tensor:
        self._check(x, "x")
        y: Tensor = fn.cat([t(section) for t, section in zip(self.transforms, self._sections(x), strict=True)],
                           dim=self.dim)
        return y

    def _inverse(self, y: Tensor) -> Tensor:
        self._check(y, "y")
        x: Tensor = fn.cat([t.inv(section) for t, section in zip(self.transforms, self._sections(y), strict=True)],
                           dim=self.dim)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        self._check(x, "x", "x")
        self._check(y, "y", "y")
        terms = []
        for t, before, after in zip(self.transforms, self._sections(x), self._sections(y), strict=True):
            term = t.log_abs_det_jacobian(before, after)
            if t.event_dim < self.event_dim:
                term = _sum_rightmost(term, self.event_dim - t.event_dim)
            terms.append(term)
        dim = (self.dim if self.dim < 0 else self.dim - x.dim()) + self.event_dim
        result: Any = fn.cat(terms, dim=dim) if dim < 0 else sum(terms)
        total: Tensor = result
        return total

    @property
    def bijective(self) -> Any:
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(Transform):
    """Transforms of the slices along a dimension, as `torch.stack` joins them.

    Args:
        tseq: the transforms, as many as the dimension's size.
        dim: the dimension.
        cache_size: the cache size.

    >>> import flambeau as torch
    >>> from flambeau.distributions import ExpTransform, StackTransform, identity_transform
    >>> StackTransform([ExpTransform(), identity_transform], dim=-1)(torch.zeros(2))
    tensor([1., 0.])
    """

    transforms: list[Transform]

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        self.transforms = check_transforms(tseq, cache_size)
        super().__init__(cache_size=cache_size)
        self.dim = dim

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _slice(self, z: Tensor) -> list[Tensor]:
        return [z.select(self.dim, i) for i in range(z.size(self.dim))]

    def _check(self, z: Tensor, letter: str, name: str = "tensor") -> None:
        _check_dim(z, self.dim, name)
        if z.size(self.dim) != len(self.transforms):
            raise AssertionError(f"{letter}.size({self.dim}) = {z.size(self.dim)} must equal len(transforms) "
                                 f"{len(self.transforms)}")

    def _call(self, x: Tensor) -> Tensor:
        self._check(x, "x")
        y: Tensor = fn.stack([t(part) for part, t in zip(self._slice(x), self.transforms, strict=True)], dim=self.dim)
        return y

    def _inverse(self, y: Tensor) -> Tensor:
        self._check(y, "y")
        x: Tensor = fn.stack([t.inv(part) for part, t in zip(self._slice(y), self.transforms, strict=True)],
                             dim=self.dim)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        self._check(x, "x", "x")
        self._check(y, "y", "y")
        result: Tensor = fn.stack(
            [t.log_abs_det_jacobian(before, after)
             for before, after, t in zip(self._slice(x), self._slice(y), self.transforms, strict=True)], dim=self.dim)
        return result

    @property
    def bijective(self) -> Any:
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
