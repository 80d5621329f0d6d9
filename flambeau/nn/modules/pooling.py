"""Pooling layers: max, average, LP, and their adaptive forms."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from .. import functional as F
from ..ntuple import ntuple
from .base.own_methods import OwnMethods
from .layers.unpooling import FractionalMaxPool2d, FractionalMaxPool3d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d
from .module import Module

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPoolNd(OwnMethods, Module, shares=("forward",)):
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]
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
    """Maximum of each window of the last dimension.

    Args:
        kernel_size: the window size, an int (for every dimension) or one int per dimension.
        stride: the distance between windows; `kernel_size` by default.
        padding: elements of -inf added on both sides; at most half the window.
        dilation: the distance between the elements of a window.
        return_indices: also return the flat index of each maximum within its plane (int64).
        ceil_mode: round the output size up instead of down.

    Shape:
        Input (N, C, L) or (C, L);
        output (N, C, L_out) or (C, L_out), where
        L_out = ⌊(L + 2 · padding - dilation · (kernel_size - 1) - 1) / stride⌋ + 1.

    >>> import flambeau as torch
    >>> torch.nn.MaxPool1d(2)(torch.tensor([[1.0, 2.0, 3.0, 0.0]]))
    tensor([[2., 3.]])
    """

    _rank = 1


class MaxPool2d(_MaxPoolNd):
    """Maximum of each window of the last 2 dimensions; see `MaxPool1d` for the arguments and the output size.

    Shape:
        Input (N, C, H, W) or (C, H, W);
        output (N, C, H_out, W_out) or (C, H_out, W_out).

    >>> import flambeau as torch
    >>> torch.nn.MaxPool2d(3, stride=2)(torch.ones(20, 16, 50, 32)).shape
    flambeau.Size([20, 16, 24, 15])
    """

    _rank = 2


class MaxPool3d(_MaxPoolNd):
    """Maximum of each window of the last 3 dimensions; see `MaxPool1d` for the arguments and the output size.

    Shape:
        Input (N, C, D, H, W) or (C, D, H, W);
        output (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out).

    >>> import flambeau as torch
    >>> torch.nn.MaxPool3d(2)(torch.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """

    _rank = 3


class _AvgPoolNd(OwnMethods, Module, shares=("forward",)):
    """What the mean poolings have in common."""

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    kernel_size: Any
    stride: Any
    padding: Any

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """Mean of each window of the last dimension.

    Args:
        kernel_size: the window size.
        stride: the distance between windows; `kernel_size` by default.
        padding: zeros added on both sides; at most half the window.
        ceil_mode: round the output size up instead of down.
        count_include_pad: whether the padding counts in the divisor.

    Shape:
        Input (N, C, L) or (C, L);
        output (N, C, L_out) or (C, L_out), where
        L_out = ⌊(L + 2 · padding - kernel_size) / stride⌋ + 1.

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


class AvgPool2d(_AvgPoolNd):
    """Mean of each window of the last 2 dimensions; see `AvgPool1d` for the other arguments.

    Args:
        divisor_override: divide the sums by this instead of the window's number of elements.

    Shape:
        Input (N, C, H, W) or (C, H, W);
        output (N, C, H_out, W_out) or (C, H_out, W_out).

    >>> import flambeau as torch
    >>> torch.nn.AvgPool2d(2)(torch.arange(16.0).reshape(1, 4, 4))
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"]

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


class AvgPool3d(AvgPool2d, own=("__init__", "forward")):
    """Mean of each window of the last 3 dimensions; see `AvgPool1d` for the other arguments.

    Args:
        divisor_override: divide the sums by this instead of the window's number of elements.

    Shape:
        Input (N, C, D, H, W) or (C, D, H, W);
        output (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out).

    >>> import flambeau as torch
    >>> torch.nn.AvgPool3d(2)(torch.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[3.5000]]]])
    """

    _rank = 3


class _LPPoolNd(OwnMethods, Module, shares=("forward",)):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]
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
    """p-norm of each window of the last dimension: (Σ xᵖ)^(1/p).

    Args:
        norm_type: p.
        kernel_size: the window size, an int or one int per dimension.
        stride: the distance between windows; `kernel_size` by default.
        ceil_mode: round the output size up instead of down.

    Shape:
        Input (N, C, L) or (C, L);
        output (N, C, L_out) or (C, L_out).

    >>> import flambeau as torch
    >>> torch.nn.LPPool1d(2, 2)(torch.ones(1, 4))
    tensor([[1.4142, 1.4142]])
    """

    _rank = 1


class LPPool2d(_LPPoolNd):
    """p-norm of each window of the last 2 dimensions: (Σ xᵖ)^(1/p).

    Args:
        norm_type: p.
        kernel_size: the window size, an int or one int per dimension.
        stride: the distance between windows; `kernel_size` by default.
        ceil_mode: round the output size up instead of down.

    Shape:
        Input (N, C, H, W) or (C, H, W);
        output (N, C, H_out, W_out) or (C, H_out, W_out).

    >>> import flambeau as torch
    >>> torch.nn.LPPool2d(2, 2)(torch.ones(1, 4, 4))
    tensor([[[2., 2.],
             [2., 2.]]])
    """

    _rank = 2


class LPPool3d(_LPPoolNd):
    """p-norm of each window of the last 3 dimensions: (Σ xᵖ)^(1/p).

    Args:
        norm_type: p.
        kernel_size: the window size, an int or one int per dimension.
        stride: the distance between windows; `kernel_size` by default.
        ceil_mode: round the output size up instead of down.

    Shape:
        Input (N, C, D, H, W) or (C, D, H, W);
        output (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out).

    >>> import flambeau as torch
    >>> torch.nn.LPPool3d(2, 2)(torch.ones(1, 2, 2, 2))
    tensor([[[[2.8284]]]])
    """

    _rank = 3


class _AdaptiveMaxPoolNd(OwnMethods, Module, shares=("forward",)):
    __constants__ = ["output_size", "return_indices"]
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
    """Maximum of windows that divide the last dimension into `output_size` parts.

    Window i covers the indices ⌊i · L / L_out⌋ to ⌈(i + 1) · L / L_out⌉ - 1.

    Args:
        output_size: an int.
        return_indices: also return the flat index of each maximum within its plane (int64).

    Shape:
        Input (N, C, L) or (C, L);
        output (N, C, L_out) or (C, L_out).

    >>> import flambeau as torch
    >>> torch.nn.AdaptiveMaxPool1d(2)(torch.tensor([[1.0, 2.0, 3.0, 0.0]]))
    tensor([[2., 3.]])
    """

    _rank = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maximum of windows that divide the last 2 dimensions into `output_size` parts.

    Window i covers the indices ⌊i · L / L_out⌋ to ⌈(i + 1) · L / L_out⌉ - 1.

    Args:
        output_size: an int or (H_out, W_out); None keeps the input size.
        return_indices: also return the flat index of each maximum within its plane (int64).

    Shape:
        Input (N, C, H, W) or (C, H, W);
        output (N, C, H_out, W_out) or (C, H_out, W_out).

    >>> import flambeau as torch
    >>> torch.nn.AdaptiveMaxPool2d((1, None))(torch.arange(16.0).reshape(1, 4, 4))
    tensor([[[12., 13., 14., 15.]]])
    """

    _rank = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maximum of windows that divide the last 3 dimensions into `output_size` parts.

    Window i covers the indices ⌊i · L / L_out⌋ to ⌈(i + 1) · L / L_out⌉ - 1.

    Args:
        output_size: an int or (D_out, H_out, W_out); None keeps the input size.
        return_indices: also return the flat index of each maximum within its plane (int64).

    Shape:
        Input (N, C, D, H, W) or (C, D, H, W);
        output (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out).

    >>> import flambeau as torch
    >>> torch.nn.AdaptiveMaxPool3d(1)(torch.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """

    _rank = 3


class _AdaptiveAvgPoolNd(OwnMethods, Module, shares=("forward",)):
    __constants__ = ["output_size"]
    _rank: int

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, f"adaptive_avg_pool{self._rank}d")(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Mean of windows that divide the last dimension into `output_size` parts.

    Window i covers the indices ⌊i · L / L_out⌋ to ⌈(i + 1) · L / L_out⌉ - 1.

    Args:
        output_size: an int.

    Shape:
        Input (N, C, L) or (C, L);
        output (N, C, L_out) or (C, L_out).

    >>> import flambeau as torch
    >>> torch.nn.AdaptiveAvgPool1d(2)(torch.tensor([[1.0, 2.0, 3.0, 0.0]]))
    tensor([[1.5000, 1.5000]])
    """

    _rank = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Mean of windows that divide the last 2 dimensions into `output_size` parts.

    Window i covers the indices ⌊i · L / L_out⌋ to ⌈(i + 1) · L / L_out⌉ - 1.

    Args:
        output_size: an int or (H_out, W_out); None keeps the input size.

    Shape:
        Input (N, C, H, W) or (C, H, W);
        output (N, C, H_out, W_out) or (C, H_out, W_out).

    >>> import flambeau as torch
    >>> torch.nn.AdaptiveAvgPool2d((5, None))(torch.ones(1, 64, 10, 9)).shape
    flambeau.Size([1, 64, 5, 9])
    """

    _rank = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Mean of windows that divide the last 3 dimensions into `output_size` parts.

    Window i covers the indices ⌊i · L / L_out⌋ to ⌈(i + 1) · L / L_out⌉ - 1.

    Args:
        output_size: an int or (D_out, H_out, W_out); None keeps the input size.

    Shape:
        Input (N, C, D, H, W) or (C, D, H, W);
        output (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out).

    >>> import flambeau as torch
    >>> torch.nn.AdaptiveAvgPool3d(1)(torch.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[3.5000]]]])
    """

    _rank = 3
