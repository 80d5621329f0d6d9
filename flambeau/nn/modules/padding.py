"""Padding layers: zero, constant, reflection, replication, circular."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from ..ntuple import ntuple
from .base.own_methods import OwnMethods
from .module import Module

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]


class _Pad(OwnMethods, Module, shares=("__init__",)):
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


class _ConstantPadNd(_Pad, shares=("__init__",)):
    value: float

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pad the last dimension with `value`.

    Args:
        padding: an int, or (left, right); negative widths crop.
        value: the padding value.

    Shape:
        Input (N, C, L) or (C, L), output the same with L + left + right.

    >>> import flambeau as torch
    >>> torch.nn.ConstantPad1d(1, 9.0)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[9., 1., 2., 3., 9.]])
    """

    __constants__ = ["padding", "value"]

    _rank = 1


class ConstantPad2d(_ConstantPadNd):
    """Pad the last 2 dimensions with `value`.

    Args:
        padding: an int, or (left, right, top, bottom); negative widths crop.
        value: the padding value.

    Shape:
        Input (N, C, H, W) or (C, H, W), output with the padded H and W.

    >>> import flambeau as torch
    >>> torch.nn.ConstantPad2d(1, 9.0)(torch.arange(4.0).reshape(1, 2, 2))
    tensor([[[9., 9., 9., 9.],
             [9., 0., 1., 9.],
             [9., 2., 3., 9.],
             [9., 9., 9., 9.]]])
    """

    __constants__ = ["padding", "value"]

    _rank = 2


class ConstantPad3d(_ConstantPadNd):
    """Pad the last 3 dimensions with `value`.

    Args:
        padding: an int, or (left, right, top, bottom, front, back); negative widths crop.
        value: the padding value.

    Shape:
        Input (N, C, D, H, W) or (C, D, H, W), output with the padded D, H and W.

    >>> import flambeau as torch
    >>> torch.nn.ConstantPad3d(1, 9.0)(torch.ones(1, 2, 2, 2)).shape
    flambeau.Size([1, 4, 4, 4])
    """

    __constants__ = ["padding", "value"]

    _rank = 3


class ZeroPad1d(ConstantPad1d):
    """Pad the last dimension with zeros.

    Args:
        padding: an int, or (left, right); negative widths crop.

    Shape:
        Input (N, C, L) or (C, L), output the same with L + left + right.

    >>> import flambeau as torch
    >>> torch.nn.ZeroPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[0., 1., 2., 3., 0.]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pad the last 2 dimensions with zeros.

    Args:
        padding: an int, or (left, right, top, bottom); negative widths crop.

    Shape:
        Input (N, C, H, W) or (C, H, W), output with the padded H and W.

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
    """Pad the last 3 dimensions with zeros.

    Args:
        padding: an int, or (left, right, top, bottom, front, back); negative widths crop.

    Shape:
        Input (N, C, D, H, W) or (C, D, H, W), output with the padded D, H and W.

    >>> import flambeau as torch
    >>> torch.nn.ZeroPad3d(1)(torch.ones(1, 2, 2, 2)).shape
    flambeau.Size([1, 4, 4, 4])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPadNd(_Pad, own=("forward",)):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pad the last dimension by reflection at the edges, without repeating the edge element.

    Args:
        padding: an int, or (left, right); negative widths crop.

    Shape:
        Input (N, C, L) or (C, L), output the same with L + left + right.

    Raises:
        RuntimeError: a padding width is not smaller than the padded dimension.

    >>> import flambeau as torch
    >>> torch.nn.ReflectionPad1d(2)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    __constants__ = ["padding"]

    _rank = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pad the last 2 dimensions by reflection at the edges, without repeating the edge element.

    Args:
        padding: an int, or (left, right, top, bottom); negative widths crop.

    Shape:
        Input (N, C, H, W) or (C, H, W), output with the padded H and W.

    Raises:
        RuntimeError: a padding width is not smaller than the padded dimension.

    >>> import flambeau as torch
    >>> torch.nn.ReflectionPad2d(1)(torch.arange(4.0).reshape(1, 2, 2))
    tensor([[[3., 2., 3., 2.],
             [1., 0., 1., 0.],
             [3., 2., 3., 2.],
             [1., 0., 1., 0.]]])
    """

    __constants__ = ["padding"]

    _rank = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pad the last 3 dimensions by reflection at the edges, without repeating the edge element.

    Args:
        padding: an int, or (left, right, top, bottom, front, back); negative widths crop.

    Shape:
        Input (N, C, D, H, W) or (C, D, H, W), output with the padded D, H and W.

    Raises:
        RuntimeError: a padding width is not smaller than the padded dimension.

    >>> import flambeau as torch
    >>> torch.nn.ReflectionPad3d(1)(torch.ones(1, 2, 2, 2)).shape
    flambeau.Size([1, 4, 4, 4])
    """

    __constants__ = ["padding"]

    _rank = 3


class _ReplicationPadNd(_Pad, own=("forward",)):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pad the last dimension by repeating the edge elements.

    Args:
        padding: an int, or (left, right); negative widths crop.

    Shape:
        Input (N, C, L) or (C, L), output the same with L + left + right.

    >>> import flambeau as torch
    >>> torch.nn.ReplicationPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 2., 3., 3.]])
    """

    __constants__ = ["padding"]

    _rank = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pad the last 2 dimensions by repeating the edge elements.

    Args:
        padding: an int, or (left, right, top, bottom); negative widths crop.

    Shape:
        Input (N, C, H, W) or (C, H, W), output with the padded H and W.

    >>> import flambeau as torch
    >>> torch.nn.ReplicationPad2d(1)(torch.arange(4.0).reshape(1, 2, 2))
    tensor([[[0., 0., 1., 1.],
             [0., 0., 1., 1.],
             [2., 2., 3., 3.],
             [2., 2., 3., 3.]]])
    """

    __constants__ = ["padding"]

    _rank = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pad the last 3 dimensions by repeating the edge elements.

    Args:
        padding: an int, or (left, right, top, bottom, front, back); negative widths crop.

    Shape:
        Input (N, C, D, H, W) or (C, D, H, W), output with the padded D, H and W.

    >>> import flambeau as torch
    >>> torch.nn.ReplicationPad3d(1)(torch.ones(1, 2, 2, 2)).shape
    flambeau.Size([1, 4, 4, 4])
    """

    __constants__ = ["padding"]

    _rank = 3


class _CircularPadNd(_Pad, own=("forward",)):
    _mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        allowed = (self._rank + 1, self._rank + 2)
        if input.dim() not in allowed:
            raise ValueError(f"expected {allowed[0]}D or {allowed[1]}D input (got {input.dim()}D input)")


class CircularPad1d(_CircularPadNd):
    """Pad the last dimension periodically.

    Args:
        padding: an int, or (left, right); negative widths crop.

    Shape:
        Input (N, C, L) or (C, L), output the same with L + left + right.

    Raises:
        ValueError: the input is neither 2-D nor 3-D.
        RuntimeError: a padding width exceeds the padded dimension.

    >>> import flambeau as torch
    >>> torch.nn.CircularPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """

    __constants__ = ["padding"]

    _rank = 1


class CircularPad2d(_CircularPadNd):
    """Pad the last 2 dimensions periodically.

    Args:
        padding: an int, or (left, right, top, bottom); negative widths crop.

    Shape:
        Input (N, C, H, W) or (C, H, W), output with the padded H and W.

    Raises:
        ValueError: the input is neither 3-D nor 4-D.
        RuntimeError: a padding width exceeds the padded dimension.

    >>> import flambeau as torch
    >>> torch.nn.CircularPad2d(1)(torch.arange(4.0).reshape(1, 2, 2))
    tensor([[[3., 2., 3., 2.],
             [1., 0., 1., 0.],
             [3., 2., 3., 2.],
             [1., 0., 1., 0.]]])
    """

    __constants__ = ["padding"]

    _rank = 2


class CircularPad3d(_CircularPadNd):
    """Pad the last 3 dimensions periodically.

    Args:
        padding: an int, or (left, right, top, bottom, front, back); negative widths crop.

    Shape:
        Input (N, C, D, H, W) or (C, D, H, W), output with the padded D, H and W.

    Raises:
        ValueError: the input is neither 4-D nor 5-D.
        RuntimeError: a padding width exceeds the padded dimension.

    >>> import flambeau as torch
    >>> torch.nn.CircularPad3d(1)(torch.ones(1, 2, 2, 2)).shape
    flambeau.Size([1, 4, 4, 4])
    """

    __constants__ = ["padding"]

    _rank = 3
