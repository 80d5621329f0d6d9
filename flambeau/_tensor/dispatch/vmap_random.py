"""Random operators inside `vmap`: the randomness modes "error", "same" and "different".

With "different" all examples are drawn as one tensor with a leading batch dimension; with "same" they share one draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...ops.declare import REGISTRY
from ..tensor import Tensor
from .apply import apply
from .batched_tensor import BatchedTensor, Level, active_levels, align_levels, make_batched, set_levels, vmap_levels
from .batching_rules import check_vmap_write
from .inplace import apply_inplace
from .write_checks import check_writable, is_tracked

_ERROR = ("vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
          "randomness flags on vmap or perform the randomness operation out of vmap")
# the mode of the level that `autograd.grad` opens for batched cotangents
_NEVER = ("vmap: We do not yet support calling random operations inside of vmap. Please perform random operations "
          "outside of vmap as a workaround")
_RANDOMNESS_ERRORS = {"error": _ERROR, "never": _NEVER}
_SAME = ("Vmap does not currently support same randomness with a batched tensor input. Please file an issue with "
         "functorch")
_UNBATCHED = ("vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
              "randomness. If this is necessary for your usage, please file an issue with functorch.")
_OUT = ("vmap: We do not support calling out variants of random operations inside of vmap. Please use non-out variants "
        "as a workaround")


def _independent_levels(inputs: Sequence[Any] = (), out: Any = None) -> tuple[Level, ...]:
    """The levels with independent draws for each example.

    Raises:
        RuntimeError: a level forbids random operators, or has the mode "same" and a batched input.
    """
    if out is not None:
        raise RuntimeError(_OUT)
    own_levels = {level.number for level in vmap_levels(inputs)}
    for level in reversed(active_levels()):
        if level.randomness in _RANDOMNESS_ERRORS:
            raise RuntimeError(_RANDOMNESS_ERRORS[level.randomness])
        if level.randomness == "same" and level.number in own_levels:
            raise RuntimeError(_SAME)
    return tuple(level for level in active_levels() if level.randomness == "different")


def draw_batched(sampler: Callable[[tuple[int, ...]], Tensor], shape: Sequence[int], out: Any = None) -> Any:
    """A random tensor of a shape.

    Args:
        sampler: called with the shape including batch dimensions, outside all levels.
    """
    levels = _independent_levels(out=out)
    with set_levels(()):
        return make_batched(sampler((*(level.size for level in levels), *shape)), levels)


def draw_batched_from(sampler: Callable[..., Tensor], inputs: Sequence[Any], out: Any = None) -> Any:
    """A random tensor whose distribution depends on tensors, which broadcast with each other.

    Args:
        sampler: called with the values of the inputs, expanded to the batch dimensions, outside all levels.
    """
    levels = _independent_levels(inputs, out)
    ndim = max(x._array.ndim for x in inputs if isinstance(x, Tensor))
    values = [_expand_for_draw(x, levels, ndim) if isinstance(x, Tensor) else x for x in inputs]
    with set_levels(()):
        return make_batched(sampler(*values), levels)


def _expand_for_draw(x: Tensor, levels: tuple[Level, ...], ndim: int) -> Tensor:
    if not levels:
        return x
    value = align_levels(x, levels, ndim)
    size = (*(level.size for level in levels), *value._array.shape[len(levels):])
    if value._array.shape == size:
        return value
    return apply(REGISTRY["expand"], [value], {"size": size}).contiguous()  # samples are drawn in memory order


def fill_batched(self: Tensor, key: str, draw: Callable[[int, bool], np.ndarray]) -> Tensor:
    """Fill a tensor, in place, with `draw(count, contiguous)`.

    Raises:
        RuntimeError: a level forbids random operators, or has the mode "different" and the tensor is not batched there.
    """
    own_levels = {level.number for level in vmap_levels([self])}
    shared = False  # an inner level shares one draw, so an outer level cannot have independent ones
    for level in reversed(active_levels()):
        if level.randomness in _RANDOMNESS_ERRORS:
            raise RuntimeError(_RANDOMNESS_ERRORS[level.randomness])
        if level.randomness == "different" and (shared or level.number not in own_levels):
            raise RuntimeError(_UNBATCHED)
        shared = shared or (level.randomness == "same" and level.number in own_levels)
    check_writable(self, is_tracked([self]))
    value = self._value if type(self) is BatchedTensor else self
    tensor_levels = vmap_levels([self])
    shape = self._array.shape
    front = tuple(level.size if level.randomness == "different" else 1 for level in tensor_levels)
    values = draw(prod(front) * prod(shape), True).reshape(*front, *shape)
    apply_inplace(REGISTRY[key], [value], {"values": np.broadcast_to(values, value._array.shape)})
    return self


def fill_batched_from(self: Tensor, other: Tensor, sampler: Callable[[Tensor], Tensor]) -> Tensor:
    """Fill a tensor, in place, with samples whose distribution depends on another tensor.

    Args:
        sampler: draws the samples, from the other tensor expanded to the shape of `self`.
    """
    levels = _independent_levels([other])
    own_levels = {level.number for level in vmap_levels([self])}
    check_vmap_write(self, [other], "inplace bernoulli")
    if any(level.number not in own_levels for level in levels):
        raise RuntimeError(_UNBATCHED)
    return self.copy_(sampler(other.expand(self._array.shape)))


__all__ = ["draw_batched", "draw_batched_from", "fill_batched", "fill_batched_from"]
