"""Attention and convolution: examples and heads may be cut, and channels that no sum runs over."""

from __future__ import annotations

from typing import Any

from ...placement_types import Partial, Shard
from .strategy import OpCall, Strategy, rule


@rule("_flash_attention")
def attention(call: OpCall, size: int) -> list[Strategy]:
    """query, key and value (..., L, E): every leading dimension may be cut."""
    shape = call.shape(0)
    mask = 3 if len(call.inputs) > 3 and 3 in call.tensors() else None
    result = []
    for d in range(len(shape) - 2):
        inputs: dict[int, Any] = {i: Shard(d) for i in range(3)}
        if mask is not None:
            own = d - (len(shape) - len(call.shape(mask)))
            if own >= 0 and call.shape(mask)[own] != 1:
                inputs[mask] = Shard(own)
        result.append(call.strategy(inputs, Shard(d)))
    return result


@rule("convolution")
def convolution(call: OpCall, size: int) -> list[Strategy]:
    """input (N, C, ...), weight (O, C, ...): examples, or output channels."""
    result = [call.strategy({0: Shard(0)}, Shard(0))]
    if call.params.get("groups", 1) == 1 and not call.params.get("transposed"):
        result.append(call.strategy({1: Shard(0), 2: Shard(0)}, Shard(1)))
    return result


@rule("_conv_output")
def conv_output(call: OpCall, size: int) -> list[Strategy]:
    """A convolution in a derivative: image (N, C, ...), weight (O, C, ...)."""
    return [call.strategy({0: Shard(0)}, Shard(0))]


@rule("_conv_image")
def conv_image(call: OpCall, size: int) -> list[Strategy]:
    """The gradient of the image, of that of the output."""
    return [call.strategy({0: Shard(0)}, Shard(0))]


@rule("_conv_weight")
def conv_weight(call: OpCall, size: int) -> list[Strategy]:
    """The gradient of the weight: a sum over examples."""
    return [call.strategy({0: Shard(0), 1: Shard(0)}, Partial("sum"))]


__all__ = ["attention", "convolution"]
