"""Functions of `torch._C._nn` that `torch.nn.functional` has under other names or with other arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from .._tensor.neural.padding import refused
from ..nn import functional as F
from ..nn.functionals.resample import upsampled
from ..nn.ntuple import ntuple

#: the modes of `_pad_enum`, by number
_PADDING_MODES = ("reflect", "replicate", "circular", "constant")


def _written(result: Tensor, out: Tensor | None) -> Tensor:
    return result if out is None else out.resize_(result.shape).copy_(result)


def _padding(mode: str, rank: int) -> Callable[..., Tensor]:
    def pad(input: Tensor, padding: Any, *, out: Tensor | None = None) -> Tensor:
        if len(padding) != 2 * rank:
            found = f", but got: {len(padding)}" if mode == "reflect" else ""
            raise RuntimeError(f"padding size is expected to be {2 * rank}{found}")
        if input.dim() not in (rank + 1, rank + 2):
            raise refused(input, rank)
        return _written(F.pad(input, padding, mode), out)

    return pad


def _pad_circular(input: Tensor, pad: Any) -> Tensor:
    return F.pad(input, pad, "circular")


def _pad_enum(input: Tensor, pad: Any, mode: int, value: float | None = None) -> Tensor:
    return F.pad(input, pad, _PADDING_MODES[mode], value)


def _upsampling(mode: str, rank: int, antialias: bool) -> Callable[..., Tensor]:
    """`upsample_*`: the output size, for linear and cubic modes `align_corners`, then the scales or nothing."""
    takes_corners = not mode.startswith("nearest")

    def upsample(input: Tensor, output_size: Any, *args: Any, align_corners: bool | None = None,
                 scale_factors: Any = None, out: Tensor | None = None, **scales: Any) -> Tensor:
        rest = list(args)
        if takes_corners and align_corners is None:
            align_corners = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], (tuple, list))) and len(rest) == 1:
            scale_factors = rest.pop()
        if scale_factors is None:
            names = ("scales_d", "scales_h", "scales_w")[-rank:] if rank > 1 else ("scales",)
            factors = [*rest, *(scales.get(name) for name in names[len(rest):])]
        else:
            factors = list(scale_factors)
        sizes = None if output_size is None else list(output_size)
        if sizes is None:
            sizes = [int(n * factor) for n, factor in zip(input.shape[2:], factors, strict=True)]
        return _written(upsampled(input, sizes, factors, mode, bool(align_corners), antialias), out)

    return upsample


def im2col(input: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any, *,
           out: Tensor | None = None) -> Tensor:
    """`nn.functional.unfold`."""
    return _written(F.unfold(input, kernel_size, dilation, padding, stride), out)


def col2im(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any, *,
           out: Tensor | None = None) -> Tensor:
    """`nn.functional.fold`."""
    return _written(F.fold(input, output_size, kernel_size, dilation, padding, stride), out)


def cross_entropy_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 0,
                       ignore_index: int = -100, label_smoothing: float = 0.0) -> Tensor:
    """`nn.functional.cross_entropy`, with the reduction as a number."""
    return F.cross_entropy(input, target, weight, ignore_index=ignore_index,
                           reduction=("none", "mean", "sum")[reduction], label_smoothing=label_smoothing)


def nll_loss_nd(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 0,
                ignore_index: int = -100) -> Tensor:
    """`nn.functional.nll_loss`, with the reduction as a number."""
    return F.nll_loss(input, target, weight, ignore_index=ignore_index, reduction=("none", "mean", "sum")[reduction])


def nll_loss2d(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 0,
               ignore_index: int = -100) -> Tensor:
    """`nn.functional.nll_loss` of images, with the reduction as a number."""
    return nll_loss_nd(input, target, weight, reduction, ignore_index)


def _check_kernel(name: str, weight: Tensor, kernel_size: Any, rank: int) -> None:
    if tuple(weight.shape[2:]) != ntuple(kernel_size, rank) and weight.dim() == rank + 2:
        raise RuntimeError(f"{name}: weight of shape {list(weight.shape)} has not the kernel size {kernel_size}")


def _convolution(name: str, rank: int, depthwise: bool) -> Callable[..., Tensor]:
    def convolve(input: Tensor, weight: Tensor, kernel_size: Any, bias: Tensor | None = None, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, *, out: Tensor | None = None) -> Tensor:
        _check_kernel(name, weight, kernel_size, rank)
        groups = input.shape[-rank - 1] if depthwise else 1
        return _written(getattr(F, f"conv{rank}d")(input, weight, bias, stride, padding, dilation, groups), out)

    return convolve


def _transposed_convolution(name: str, rank: int) -> Callable[..., Tensor]:
    def convolve(input: Tensor, weight: Tensor, kernel_size: Any, bias: Tensor | None = None, stride: Any = 1,
                 padding: Any = 0, output_padding: Any = 0, dilation: Any = 1, *, out: Tensor | None = None) -> Tensor:
        _check_kernel(name, weight, kernel_size, rank)
        return _written(getattr(F, f"conv_transpose{rank}d")(
            input, weight, bias, stride, padding, output_padding, 1, dilation), out)

    return convolve


def _elu_(input: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    result: Tensor = fn.elu_(input, alpha, scale, input_scale)
    return result


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "_pad_circular": _pad_circular, "_pad_enum": _pad_enum, "im2col": im2col, "col2im": col2im, "elu_": _elu_,
    "cross_entropy_loss": cross_entropy_loss, "nll_loss_nd": nll_loss_nd, "nll_loss2d": nll_loss2d,
    "slow_conv3d": _convolution("slow_conv3d", 3, False), "thnn_conv2d": _convolution("thnn_conv2d", 2, False),
    "slow_conv_dilated2d": _convolution("slow_conv_dilated2d", 2, False),
    "slow_conv_dilated3d": _convolution("slow_conv_dilated3d", 3, False),
    "_conv_depthwise2d": _convolution("_conv_depthwise2d", 2, True),
    "conv_depthwise3d": _convolution("conv_depthwise3d", 3, True),
    "slow_conv_transpose2d": _transposed_convolution("slow_conv_transpose2d", 2),
    "slow_conv_transpose3d": _transposed_convolution("slow_conv_transpose3d", 3),
    **{f"{prefix}_pad{rank}d": _padding(mode, rank) for rank in (1, 2, 3)
       for prefix, mode in (("reflection", "reflect"), ("replication", "replicate"))},
    **{f"upsample_nearest{rank}d": _upsampling("nearest", rank, False) for rank in (1, 2, 3)},
    **{f"_upsample_nearest_exact{rank}d": _upsampling("nearest-exact", rank, False) for rank in (1, 2, 3)},
    **{f"upsample_{mode}{rank}d": _upsampling(mode, rank, False) for mode, rank in (
        ("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2))},
    **{f"_upsample_{mode}2d_aa": _upsampling(mode, 2, True) for mode in ("bilinear", "bicubic", "lanczos")},
}
for _name, _function in FUNCTIONS.items():
    _function.__name__ = _function.__qualname__ = _name

__all__ = ["FUNCTIONS"]
