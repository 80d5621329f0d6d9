"""Pooling layers: max, average, LP, and their adaptive forms."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from .. import functional as F
from ..ntuple import ntuple
from .module import Module

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d", "LPPool2d", "LPPool3d",
    "MaxPool1d", "MaxPool2d", "MaxPool3d",
]


class _MaxPoolNd(Module):
    _rank: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                 return_indices: bool = False, ceil_mode: bool = False) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, f"max_pool{self._rank}d")
        return pool(input, self.kernel_size, self.stride, self.padding, self.dilation,
                    ceil_mode=self.ceil_mode, return_indices=self.return_indices)

    def extra_repr(self) -> str:
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
                f"dilation={self.dilation}, ceil_mode={self.ceil_mode}")


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of an (N, C, L) or (C, L) input.

    Args:
        kernel_size: the window's size.
        stride: from window to window; the window's size by default.
        padding: how much -inf to add on both sides.
        dilation: from element to element of a window.
        return_indices: return also where the maxima lie.
        ceil_mode: let windows run over the end.

    >>> import flambeau as torch
    >>> torch.nn.MaxPool1d(2)(torch.tensor([[1.0, 2.0, 3.0, 0.0]]))
    tensor([[2., 3.]])
    """

    _rank = 1


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of an (N, C, H, W) or (C, H, W) input; arguments as of `MaxPool1d`.

    >>> import flambeau as torch
    >>> torch.nn.MaxPool2d(3, stride=2)(torch.ones(20, 16, 50, 32)).shape
    flambeau.Size([20, 16, 24, 15])
    """

    _rank = 2


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of an (N, C, D, H, W) or (C, D, H, W) input; arguments as of `MaxPool1d`."""

    _rank = 3


class AvgPool1d(Module):
    """The mean of each window of an (N, C, L) or (C, L) input.

    Args:
        kernel_size, stride, padding, ceil_mode: as in `MaxPool1d`, the padding being zeros.
        count_include_pad: whether the padding counts as elements.

    >>> import flambeau as torch
    >>> torch.nn.AvgPool1d(2)(torch.tensor([[1.0, 2.0, 3.0, 0.0]]))
    tensor([[1.5000, 1.5000]])
    """

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        super().__init__()
        self.kernel_size = ntuple(kernel_size, 1)
        self.stride = ntuple(stride if stride is not None else kernel_size, 1)
        self.padding = ntuple(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return fn.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                             self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of each window of an (N, C, H, W) or (C, H, W) input; arguments as of `AvgPool1d`.

    Args:
        divisor_override: divide the sums by this instead of the window's size.
    """

    _rank = 2

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        pool = getattr(fn, f"avg_pool{self._rank}d")
        return pool(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
                    self.divisor_override)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool3d(AvgPool2d):
    """The mean of each window of an (N, C, D, H, W) or (C, D, H, W) input; arguments as of `AvgPool2d`."""

    _rank = 3


class _LPPoolNd(Module):
    _rank: int

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        pool = getattr(F, f"lp_pool{self._rank}d")
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
                f"ceil_mode={self.ceil_mode}")


class LPPool1d(_LPPoolNd):
    """The p-norm of each window of an (N, C, L) or (C, L) input."""

    _rank = 1


class LPPool2d(_LPPoolNd):
    """The p-norm of each window of an (N, C, H, W) or (C, H, W) input."""

    _rank = 2


class LPPool3d(_LPPoolNd):
    """The p-norm of each window of an (N, C, D, H, W) or (C, D, H, W) input."""

    _rank = 3


class _AdaptiveMaxPoolNd(Module):
    _rank: int

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, f"adaptive_max_pool{self._rank}d")
        return pool(input, self.output_size, return_indices=self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The maximum of each of `output_size` windows that cover the last dimension evenly."""

    _rank = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The maximum of each of `output_size` windows that cover the last 2 dimensions evenly; None: the input's."""

    _rank = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The maximum of each of `output_size` windows that cover the last 3 dimensions evenly; None: the input's."""

    _rank = 3


class _AdaptiveAvgPoolNd(Module):
    _rank: int

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, f"adaptive_avg_pool{self._rank}d")(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The mean of each of `output_size` windows that cover the last dimension evenly."""

    _rank = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The mean of each of `output_size` windows that cover the last 2 dimensions evenly; None: the input's.

    >>> import flambeau as torch
    >>> torch.nn.AdaptiveAvgPool2d((5, None))(torch.ones(1, 64, 10, 9)).shape
    flambeau.Size([1, 64, 5, 9])
    """

    _rank = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The mean of each of `output_size` windows that cover the last 3 dimensions evenly; None: the input's."""

    _rank = 3
