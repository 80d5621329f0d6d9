"""Sliding windows as columns, and back: `Unfold`, `Fold`."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["Fold", "Unfold"]


class Fold(Module):
    """The sum of columns at their windows, the transpose of `Unfold`.

    Args:
        output_size: (H, W) of the images.
        kernel_size: the window size, an int or one int per dimension.
        dilation: the distance between the elements of a window.
        padding: zeros around the images.
        stride: the distance between windows.

    Shape:
        Input (N, C · kernel, windows) or (C · kernel, windows); output (N, C, H, W) or (C, H, W).

    >>> import flambeau as torch
    >>> torch.nn.Fold((2, 3), 2)(torch.ones(1, 4, 2))
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """

    __constants__ = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
                 stride: Any = 1) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
                f"padding={self.padding}, stride={self.stride}")


class Unfold(Module):
    """The sliding windows of images as columns.

    Args:
        kernel_size: the window size, an int or one int per dimension.
        dilation: the distance between the elements of a window.
        padding: zeros around the images.
        stride: the distance between windows.

    Shape:
        Input (N, C, H, W) or (C, H, W); output (N, C · kernel, windows) or (C · kernel, windows).

    >>> import flambeau as torch
    >>> torch.nn.Unfold(2)(torch.arange(6.).reshape(1, 1, 2, 3))
    tensor([[[0., 1.],
             [1., 2.],
             [3., 4.],
             [4., 5.]]])
    """

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
                f"stride={self.stride}")
