"""Resampling of images and shuffles of their channels and pixels, with their gradients as operators.

Upsampling proceeds dimension by dimension. `steps` holds, for each one that changes, `(dim, size, positions, weights)`:
the dimension counted from the end, its size in the input, and for each tap the input positions and their weights, one
for each output element; `weights` is None for a single tap of weight 1.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ...devices import contiguous_format
from ..declare import linear
from .upsampling_modes import UPSAMPLING

_IMAGE: dict[str, Any] = {"expose": (), "batching_rule": "trailing"}


def _declare_upsampling(key: str, node: str, mode: str, rank: int) -> None:
    """Declare a kind of upsampling, and its gradient as an operator.

    `output_size`, `align_corners` and `scales` are what the steps were made from.
    """
    def forward(xp, input, *, steps, output_size=None, align_corners=None, scales=None):
        for step in steps:
            input = xp.resample(input, *step)
        return input if steps else xp.clone(input)

    def backward(xp, grad_output, *, steps):
        for step in reversed(steps):
            grad_output = xp.resample_backward(grad_output, *step)
        return grad_output if steps else xp.clone(grad_output)

    forward.__name__, backward.__name__ = key, f"{key}_backward"
    forward.__doc__, backward.__doc__ = f"Upsampling, `{node}`.", f"The transpose of `{key}`."
    scales = "scales=scales[0]" if rank == 1 else " ".join(
        f"scales_{axis}=scales[{i}]" for i, axis in enumerate("dhw"[3 - rank:]))
    saved = f"{'' if mode.startswith('nearest') else 'align_corners'} output_size self_sym_sizes {scales}"
    up = linear(forward, key=key, name=key, node=f"{node}Backward0", saved=saved, **_IMAGE)
    back = linear(backward, key=f"{key}_backward", name=f"{key}_backward", node=f"{node}BackwardBackward0", **_IMAGE)
    up.vjp(input=lambda xp, g, steps: getattr(xp, f"{key}_backward")(g, steps=steps))
    back.vjp(grad_output=lambda xp, g, steps: getattr(xp, key)(g, steps=steps))


for (_mode, _rank, _antialias), _key in UPSAMPLING.items():
    _name = "".join(word.capitalize() for word in _mode.split("-"))
    _declare_upsampling(_key, f"Upsample{_name}{_rank}D{'Aa' if _antialias else ''}", _mode, _rank)


# ----- shuffles --------------------------------------------------------------------------


@linear(key="_pixel_shuffle", node="PixelShuffleBackward0", saved="upscale_factor=factor", **_IMAGE)
def pixel_shuffle(xp, input, *, factor):
    """Channels as pixels: (..., C·r², H, W) to (..., C, H·r, W·r)."""
    *batch, channels, height, width = input.shape
    k, inner = len(batch), channels // (factor * factor)
    split = xp.reshape(input, (*batch, inner, factor, factor, height, width))
    moved = xp.permute(split, (*range(k), k, k + 3, k + 1, k + 4, k + 2))
    return xp.reshape(xp.clone(moved, contiguous_format), (*batch, inner, height * factor, width * factor))


@linear(key="_pixel_unshuffle", node="PixelUnshuffleBackward0", saved="downscale_factor=factor", **_IMAGE)
def pixel_unshuffle(xp, input, *, factor):
    """Pixels as channels: (..., C, H·r, W·r) to (..., C·r², H, W)."""
    *batch, channels, height, width = input.shape
    k = len(batch)
    split = xp.reshape(input, (*batch, channels, height // factor, factor, width // factor, factor))
    moved = xp.permute(split, (*range(k), k, k + 2, k + 4, k + 1, k + 3))
    shape = *batch, channels * factor * factor, height // factor, width // factor
    return xp.reshape(xp.clone(moved, contiguous_format), shape)


pixel_shuffle.vjp(input=lambda xp, g, factor: xp._pixel_unshuffle(g, factor=factor))
pixel_unshuffle.vjp(input=lambda xp, g, factor: xp._pixel_shuffle(g, factor=factor))


@linear(key="_channel_shuffle", node="ChannelShuffleBackward0", expose=())
def channel_shuffle(xp, input, *, groups):
    """The channels of (N, C, ...) as (groups, C / groups), transposed."""
    batch, channels, *space = input.shape
    split = xp.reshape(input, (batch, groups, channels // groups, prod(space)))
    return xp.reshape(xp.clone(xp.permute(split, (0, 2, 1, 3)), contiguous_format), (batch, channels, *space))


@channel_shuffle.vmap
def _channel_shuffle_vmap(xp, batch, input, *, groups):
    k = batch.k
    samples = xp.reshape(input, (prod(input.shape[:k + 1]), *input.shape[k + 1:]))
    return xp.reshape(xp._channel_shuffle(samples, groups=groups), input.shape)


channel_shuffle.vjp(input=lambda xp, g, groups: xp._channel_shuffle(g, groups=g.shape[1] // groups))
