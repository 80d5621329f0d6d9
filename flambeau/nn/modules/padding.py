"""Padding layers: zero, constant, reflection, replication, circular."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from ..ntuple import ntuple
from .module import Module

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]


class _Pad(Module):
    """Base of padding layers over the last `_rank` dimensions; `padding` is an int or pairs, last dimension first."""

    _rank: int
    _mode: str
    padding: tuple[int, ...]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = ntuple(padding, 2 * self._rank)

    def _check_input_dim(self, input: Tensor) -> None:
        pass

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    value: float

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """A border of `value` around the last dimension."""

    _rank = 1


class ConstantPad2d(_ConstantPad):
    """A border of `value` around the last 2 dimensions."""

    _rank = 2


class ConstantPad3d(_ConstantPad):
    """A border of `value` around the last 3 dimensions."""

    _rank = 3


class ZeroPad1d(ConstantPad1d):
    """A border of zeros around the last dimension."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """A border of zeros around the last 2 dimensions.

    >>> import flambeau as torch
    >>> torch.nn.ZeroPad2d(1)(torch.ones(1, 1, 1))
    tensor([[[0., 0., 0.],
             [0., 1., 0.],
             [0., 0., 0.]]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """A border of zeros around the last 3 dimensions."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ReflectionPad1d(_Pad):
    """A border of the input mirrored at its edges, around the last dimension."""

    _rank, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """A border of the input mirrored at its edges, around the last 2 dimensions."""

    _rank, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """A border of the input mirrored at its edges, around the last 3 dimensions."""

    _rank, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """A border of the input's edges repeated, around the last dimension."""

    _rank, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """A border of the input's edges repeated, around the last 2 dimensions."""

    _rank, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """A border of the input's edges repeated, around the last 3 dimensions."""

    _rank, _mode = 3, "replicate"


class _CircularPad(_Pad):
    _mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        allowed = (self._rank + 1, self._rank + 2)
        if input.dim() not in allowed:
            raise ValueError(f"expected {allowed[0]}D or {allowed[1]}D input (got {input.dim()}D input)")


class CircularPad1d(_CircularPad):
    """A border of the input wrapped around, around the last dimension."""

    _rank = 1


class CircularPad2d(_CircularPad):
    """A border of the input wrapped around, around the last 2 dimensions."""

    _rank = 2


class CircularPad3d(_CircularPad):
    """A border of the input wrapped around, around the last 3 dimensions."""

    _rank = 3
