"""Convolution and transposed convolution layers, 1-D to 3-D."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..._tensor import Parameter, Tensor
from ..._tensor import functions as fn
from .. import functional as F
from .. import init
from ..ntuple import ntuple
from ..parameter import UninitializedParameter
from .base.own_methods import OwnMethods
from .lazy import LazyModuleMixin
from .module import Module

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d",
           "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d"]

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def _format_choices(names: tuple[str, ...]) -> str:
    return "{" + ", ".join(repr(name) for name in names) + "}"


class _ConvNd(Module):
    __constants__ = ["stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels",
                     "out_channels", "kernel_size"]
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str | tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str
    weight: Tensor
    bias: Tensor | None

    def __init__(self, in_channels: int, out_channels: int, kernel_size: tuple, stride: tuple,
                 padding: Any, dilation: tuple, transposed: bool, output_padding: tuple, groups: int,
                 bias: bool, padding_mode: str, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, "
                                 f"should be one of {_format_choices(('same', 'valid'))}")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {_format_choices(PADDING_MODES)}, "
                             f"but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        # (before, after) from the last dimension to the first, as `pad` takes them
        self._reversed_padding_repeated_twice: Any
        if isinstance(padding, str):
            reversed_padding = [0, 0] * len(kernel_size)
            if padding == "same":
                for i, (step, size) in enumerate(zip(dilation, kernel_size, strict=False)):
                    total = step * (size - 1)
                    offset = 2 * (len(kernel_size) - 1 - i)
                    reversed_padding[offset:offset + 2] = total // 2, total - total // 2
            self._reversed_padding_repeated_twice = reversed_padding
        else:
            self._reversed_padding_repeated_twice = tuple(n for n in reversed(padding) for _ in (0, 1))
        channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(fn.empty((*channels, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(fn.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize weight and bias from U(-1/√fan_in, 1/√fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        zeros, ones = (0,) * len(self.padding), (1,) * len(self.dilation)
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != zeros:
            text += f", padding={self.padding}"
        if self.dilation != ones:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(OwnMethods, _ConvNd, shares=("__init__", "forward")):
    _rank: int

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device: Any = None, dtype: Any = None) -> None:
        n = self._rank
        super().__init__(in_channels, out_channels, ntuple(kernel_size, n), ntuple(stride, n),
                         padding if isinstance(padding, str) else ntuple(padding, n), ntuple(dilation, n),
                         False, (0,) * n, groups, bias, padding_mode, device, dtype)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        convolve = getattr(fn, f"conv{self._rank}d")
        if self.padding_mode != "zeros":
            padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            return convolve(padded, weight, bias, self.stride, (0,) * self._rank, self.dilation, self.groups)
        return convolve(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Convolution (cross-correlation) over the last dimension: out[n, k] = bias[k] + Σ_c weight[k, c] ⋆ input[n, c].

    Weight and bias are initialized from U(-1/√fan_in, 1/√fan_in), fan_in = C_in / groups · kernel size.

    Args:
        in_channels: C_in.
        out_channels: C_out.
        kernel_size: an int, or one int per dimension.
        stride: step of the window, an int or one per dimension.
        padding: an int or one per dimension, added on both sides; "valid" for none; "same" for the input's size.
        dilation: distance between kernel elements, an int or one per dimension.
        groups: number of independent groups of channels; divides C_in and C_out.
        bias: whether there is a bias.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        Input (N, C_in, L) or (C_in, L); output (N, C_out, L_out) or (C_out, L_out), where
        L_out = ⌊(L + 2 · padding - dilation · (kernel_size - 1) - 1) / stride⌋ + 1.
        `weight`: (C_out, C_in / groups, kernel_size); `bias`: (C_out,).

    Raises:
        ValueError: `groups`, `padding` or `padding_mode` is invalid.

    >>> import flambeau as torch
    >>> torch.nn.Conv1d(16, 33, 3, stride=2)(torch.ones(20, 16, 50)).shape
    flambeau.Size([20, 33, 24])
    """

    _rank = 1


class Conv2d(_Conv):
    """Convolution (cross-correlation) over the last 2 dimensions; see `Conv1d` for formula, arguments and output size.

    Shape:
        Input (N, C_in, H, W) or (C_in, H, W);
        output (N, C_out, H_out, W_out) or (C_out, H_out, W_out).
        `weight`: (C_out, C_in / groups, k_H, k_W); `bias`: (C_out,).

    >>> import flambeau as torch
    >>> torch.nn.Conv2d(16, 33, 3, stride=2)(torch.ones(20, 16, 50, 100)).shape
    flambeau.Size([20, 33, 24, 49])
    """

    _rank = 2


class Conv3d(_Conv):
    """Convolution (cross-correlation) over the last 3 dimensions; see `Conv1d` for formula, arguments and output size.

    Shape:
        Input (N, C_in, D, H, W) or (C_in, D, H, W);
        output (N, C_out, D_out, H_out, W_out) or (C_out, D_out, H_out, W_out).
        `weight`: (C_out, C_in / groups, k_D, k_H, k_W); `bias`: (C_out,).

    >>> import flambeau as torch
    >>> torch.nn.Conv3d(2, 3, 3)(torch.ones(1, 2, 5, 5, 5)).shape
    flambeau.Size([1, 3, 3, 3, 3])
    """

    _rank = 3


class _ConvTransposeNd(OwnMethods, _ConvNd, shares=("__init__", "forward")):
    _rank: int

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True,
                 dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None) -> None:
        n = self._rank
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(in_channels, out_channels, ntuple(kernel_size, n), ntuple(stride, n),
                         tuple(padding) if isinstance(padding, str) else ntuple(padding, n),
                         ntuple(dilation, n), True, ntuple(output_padding, n), groups, bias, padding_mode,
                         device, dtype)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        output_padding = self._output_padding(input, output_size)
        transpose = getattr(fn, f"conv_transpose{self._rank}d")
        return transpose(input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups,
                         self.dilation)

    def _output_padding(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """The output padding that yields `output_size`."""
        if output_size is None:
            return self.output_padding
        n = self._rank
        leading = 2 if input.dim() == n + 2 else 1
        requested = list(output_size)
        if len(requested) == n + leading:
            requested = requested[leading:]
        if len(requested) != n:
            raise ValueError(f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} "
                             f"or {leading + n} elements (got {len(requested)})")
        smallest = [(input.size(leading + i) - 1) * self.stride[i] - 2 * self.padding[i]
                    + self.dilation[i] * (self.kernel_size[i] - 1) + 1 for i in range(n)]
        largest = [low + step - 1 for low, step in zip(smallest, self.stride, strict=True)]
        if any(not low <= size <= high for low, size, high in zip(smallest, requested, largest, strict=True)):
            raise ValueError(f"requested an output size of {requested}, but valid sizes range "
                             f"from {smallest} to {largest} (for an input of {input.size()[2:]})")
        return tuple(size - low for size, low in zip(requested, smallest, strict=True))


class _ConvTransposeMixin(_ConvTransposeNd):
    """Deprecated: `_ConvTransposeNd` under its old name, a base of classes of programs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn("`_ConvTransposeMixin` is a deprecated internal class. Please consider using public APIs.",
                      FutureWarning, stacklevel=2)
        _ConvNd.__init__(self, *args, **kwargs)  # its arguments are those of `_ConvNd`


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution over the last dimension: the gradient of `Conv1d` with respect to its input.

    Args:
        in_channels: C_in.
        out_channels: C_out.
        kernel_size: an int, or one int per dimension.
        stride: stride of the corresponding convolution.
        padding: padding of the corresponding convolution; it crops the output.
        output_padding: added to one side of the output size, which is ambiguous if stride > 1.
        groups: number of independent groups of channels; divides C_in and C_out.
        bias: whether there is a bias.
        dilation: distance between kernel elements.
        padding_mode: "zeros" only.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        Input (N, C_in, L) or (C_in, L); output (N, C_out, L_out) or (C_out, L_out), where
        L_out = (L - 1) · stride - 2 · padding + dilation · (kernel_size - 1) + output_padding + 1.
        `weight`: (C_in, C_out / groups, kernel_size); `bias`: (C_out,).

    Raises:
        ValueError: `groups` or `padding_mode` is invalid, or `output_size` passed to the call is out of range.

    >>> import flambeau as torch
    >>> torch.nn.ConvTranspose1d(4, 2, 3, stride=2)(torch.ones(1, 4, 5)).shape
    flambeau.Size([1, 2, 11])
    """

    _rank = 1


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution over the last 2 dimensions; see `ConvTranspose1d` for arguments and output size.

    Shape:
        Input (N, C_in, H, W) or (C_in, H, W);
        output (N, C_out, H_out, W_out) or (C_out, H_out, W_out).
        `weight`: (C_in, C_out / groups, k_H, k_W); `bias`: (C_out,).

    >>> import flambeau as torch
    >>> torch.nn.ConvTranspose2d(4, 2, 3, stride=2)(torch.ones(1, 4, 5, 5)).shape
    flambeau.Size([1, 2, 11, 11])
    """

    _rank = 2


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution over the last 3 dimensions; see `ConvTranspose1d` for arguments and output size.

    Shape:
        Input (N, C_in, D, H, W) or (C_in, D, H, W);
        output (N, C_out, D_out, H_out, W_out) or (C_out, D_out, H_out, W_out).
        `weight`: (C_in, C_out / groups, k_D, k_H, k_W); `bias`: (C_out,).

    >>> import flambeau as torch
    >>> torch.nn.ConvTranspose3d(4, 2, 3)(torch.ones(1, 4, 5, 5, 5)).shape
    flambeau.Size([1, 2, 7, 7, 7])
    """

    _rank = 3


class _LazyConvMixin(LazyModuleMixin):
    """Base of the lazy convolutions: `in_channels` is taken from the first input."""

    _rank: int
    in_channels: int
    out_channels: int
    groups: int
    transposed: bool
    kernel_size: tuple[int, ...]
    weight: Any
    bias: Any

    def _defer(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Initialize weight and bias, once they have shapes."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Give weight and bias shapes, and values.

        Args:
            input: (N, in_channels, ...) or (in_channels, ...).
            args: ignored.
            kwargs: ignored.
        """
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        channels = ((self.in_channels, self.out_channels // self.groups) if self.transposed else
                    (self.out_channels, self.in_channels // self.groups))
        self.weight.materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_num_spatial_dims(self) -> int:
        return self._rank

    def _get_in_channels(self, input: Tensor) -> int:
        rank = self._get_num_spatial_dims() + 1
        if input.dim() not in (rank, rank + 1):
            raise RuntimeError(f"Expected {rank}D (unbatched) or {rank + 1}D (batched) input to {type(self).__name__}, "
                               f"but got input of size: {input.shape}")
        return input.shape[input.dim() - rank]


class _LazyConv(_LazyConvMixin, _Conv, shares=("__init__",)):
    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._defer(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvMixin, _ConvTransposeNd, shares=("__init__",)):
    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1,
                 padding_mode: str = "zeros", device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode,
                         device, dtype)
        self._defer(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A `Conv1d` whose `in_channels` is taken from the first input; the other arguments are the same.

    >>> import flambeau as torch
    >>> torch.nn.LazyConv1d(2, 3)(torch.ones(1, 4, 5)).shape
    flambeau.Size([1, 2, 3])
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A `Conv2d` whose `in_channels` is taken from the first input; the other arguments are the same.

    >>> import flambeau as torch
    >>> torch.nn.LazyConv2d(2, 3)(torch.ones(1, 4, 5, 5)).shape
    flambeau.Size([1, 2, 3, 3])
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A `Conv3d` whose `in_channels` is taken from the first input; the other arguments are the same.

    >>> import flambeau as torch
    >>> torch.nn.LazyConv3d(2, 3)(torch.ones(1, 4, 5, 5, 5)).shape
    flambeau.Size([1, 2, 3, 3, 3])
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A `ConvTranspose1d` whose `in_channels` is taken from the first input; the other arguments are the same.

    >>> import flambeau as torch
    >>> torch.nn.LazyConvTranspose1d(2, 3)(torch.ones(1, 4, 5)).shape
    flambeau.Size([1, 2, 7])
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A `ConvTranspose2d` whose `in_channels` is taken from the first input; the other arguments are the same.

    >>> import flambeau as torch
    >>> torch.nn.LazyConvTranspose2d(2, 3)(torch.ones(1, 4, 5, 5)).shape
    flambeau.Size([1, 2, 7, 7])
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A `ConvTranspose3d` whose `in_channels` is taken from the first input; the other arguments are the same.

    >>> import flambeau as torch
    >>> torch.nn.LazyConvTranspose3d(2, 3)(torch.ones(1, 4, 5, 5, 5)).shape
    flambeau.Size([1, 2, 7, 7, 7])
    """

    cls_to_become = ConvTranspose3d
