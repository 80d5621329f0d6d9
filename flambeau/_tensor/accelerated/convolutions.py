"""Convolutions on a device by cuDNN: whether programs use it, and how `torch.backends.cudnn` is set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ...backends.cuda_devices.convolutions import Convolution, ConvolutionLibrary
from ...backends.pytorch import cudnn, generic
from ...kernels.memory_format import is_channels_last
from ...modes import determinism
from ..shape.inference import Metadata

#: the operators whose programs depend on the settings
OPERATORS = frozenset(("convolution", "_conv_output", "_conv_image", "_conv_weight"))


def settings() -> tuple[bool, ...]:
    """The settings of cuDNN that a program of convolutions depends on: enabled, tf32, deterministic, benchmark."""
    return (bool(cudnn.enabled), _takes_tf32(), bool(cudnn.deterministic or determinism[0]),
            bool(cudnn.benchmark))


def _takes_tf32() -> bool:
    """Whether convolutions of float32 may round factors to TF32: the setting for convolutions, else the wider ones."""
    if not cudnn.allow_tf32:
        return False
    for wanted in (cudnn.conv.fp32_precision, cudnn.fp32_precision, generic.fp32_precision):
        if wanted != "none":
            return bool(wanted == "tf32")
    return False


def in_memory_format(metas: Sequence[Metadata], inputs: Sequence[Any]) -> list[Metadata]:
    """The metadata of a convolution's result, or a gradient: channels-last if one of its two operands is.

    Args:
        metas: that of the result, in a list.
        inputs: the operator's.
    """
    arrays = [x._array for x in inputs[:2]]
    if not any(is_channels_last(a.shape, a.strides) for a in arrays):
        return [each._replace(strides=None) for each in metas]
    return [each._replace(strides=_last(each.shape)) for each in metas]


def _last(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [0] * len(shape), 1
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def convolution_library(runtime: Any, device: int) -> ConvolutionLibrary | None:
    """The library of convolutions as it is set now, loaded by its first convolution; None where it is switched off.

    Args:
        runtime: the runtime.
        device: the device's index.
    """
    enabled, tf32, deterministic, benchmark = settings()
    return ConvolutionLibrary(partial(_workspace, runtime, device), tf32, deterministic, benchmark) if enabled else None


def _workspace(runtime: Any, device: int, convolution: Convolution) -> int | None:
    library = runtime.convolutions
    return None if library is None else library.workspace(device, convolution)


__all__ = ["OPERATORS", "convolution_library", "in_memory_format", "settings"]
