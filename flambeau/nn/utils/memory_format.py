"""Memory formats of convolution weights."""

from __future__ import annotations

from typing import Any

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Any, kinds: tuple[type, ...], memory_format: Any) -> Any:
    convolutions: list[Any] = [each for each in module.modules() if isinstance(each, kinds)]
    for each in convolutions:
        data = each.weight.detach().clone(memory_format=memory_format)
        each.weight.data = data.resize_(data.size(), memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Convert the weights of all 2-D convolutions of a module to a memory format.

    Args:
        module: the module, which is changed and returned.
        memory_format: for example `torch.channels_last`.

    >>> import flambeau as torch
    >>> conv = torch.nn.utils.convert_conv2d_weight_memory_format(torch.nn.Conv2d(2, 3, 2), torch.channels_last)
    >>> conv.weight.is_contiguous(memory_format=torch.channels_last)
    True
    """
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Convert the weights of all 3-D convolutions of a module to a memory format.

    Args:
        module: the module, which is changed and returned.
        memory_format: for example `torch.channels_last_3d`.

    >>> import flambeau as torch
    >>> conv = torch.nn.utils.convert_conv3d_weight_memory_format(torch.nn.Conv3d(2, 3, 2), torch.channels_last_3d)
    >>> conv.weight.is_contiguous(memory_format=torch.channels_last_3d)
    True
    """
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
