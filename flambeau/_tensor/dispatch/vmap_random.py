"""Random numbers inside `vmap`: which levels draw their own, which share, which refuse.

Under "different" a level's elements are drawn as one tensor with the level's size in front; under
"same" they share one draw. What follows is decided level by level, the innermost first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...ops.declare import REGISTRY
from ..tensor import Tensor
from .apply import apply
from .batched_tensor import BatchedTensor, Level, aligned, batched, levels_among, only, running
from .batching_rules import refuse_wider
from .inplace import write
from .write_checks import check_writable, is_tracked

_ERROR = ("vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
          "randomness flags on vmap or perform the randomness operation out of vmap")
# where it is not the user who maps, but `autograd.grad` over a batch of cotangents
_NEVER = ("vmap: We do not yet support calling random operations inside of vmap. Please perform random operations "
          "outside of vmap as a workaround")
_REFUSALS = {"error": _ERROR, "never": _NEVER}
_SAME = ("Vmap does not currently support same randomness with a batched tensor input. Please file an issue with "
         "functorch")
_UNBATCHED = ("vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
              "randomness. If this is necessary for your usage, please file an issue with functorch.")
_OUT = ("vmap: We do not support calling out variants of random operations inside of vmap. Please use non-out variants "
        "as a workaround")


def _levels(inputs: Sequence[Any] = (), out: Any = None) -> tuple[Level, ...]:
    """The levels whose elements differ in what is drawn.

    Raises:
        RuntimeError: a level forbids drawing, or would have to draw the same for elements of a batch.
    """
    if out is not None:
        raise RuntimeError(_OUT)
    mine = {level.number for level in levels_among(inputs)}
    for level in reversed(running()):
        if level.randomness in _REFUSALS:
            raise RuntimeError(_REFUSALS[level.randomness])
        if level.randomness == "same" and level.number in mine:
            raise RuntimeError(_SAME)
    return tuple(level for level in running() if level.randomness == "different")


def drawn(make: Callable[[tuple[int, ...]], Tensor], shape: Sequence[int], out: Any = None) -> Any:
    """A random tensor of a shape.

    Args:
        make: called with the shape, outside all levels.
    """
    levels = _levels(out=out)
    with only(()):
        return batched(make((*(level.size for level in levels), *shape)), levels)


def drawn_from(make: Callable[..., Tensor], inputs: Sequence[Any], out: Any = None) -> Any:
    """A random tensor that depends on tensors, which broadcast with each other.

    Args:
        make: called with the inputs, those with hidden dimensions given these in full, outside all levels.
    """
    levels = _levels(inputs, out)
    ndim = max(x._array.ndim for x in inputs if isinstance(x, Tensor))
    values = [_in_full(x, levels, ndim) if isinstance(x, Tensor) else x for x in inputs]
    with only(()):
        return batched(make(*values), levels)


def _in_full(x: Tensor, levels: tuple[Level, ...], ndim: int) -> Tensor:
    if not levels:
        return x
    value = aligned(x, levels, ndim)
    size = (*(level.size for level in levels), *value._array.shape[len(levels):])
    if value._array.shape == size:
        return value
    return apply(REGISTRY["expand"], [value], {"size": size}).contiguous()  # numbers are drawn in the order of memory


def fill(self: Tensor, key: str, draw: Callable[[int, bool], np.ndarray]) -> Tensor:
    """Fill a tensor, in place, with what `draw` gives for a number of elements.

    Raises:
        RuntimeError: a level forbids drawing, or asks for different numbers where the tensor has no room for them.
    """
    mine = {level.number for level in levels_among([self])}
    shared = False  # one draw serves all elements of an inner level: it has no room for those of an outer one
    for level in reversed(running()):
        if level.randomness in _REFUSALS:
            raise RuntimeError(_REFUSALS[level.randomness])
        if level.randomness == "different" and (shared or level.number not in mine):
            raise RuntimeError(_UNBATCHED)
        shared = shared or (level.randomness == "same" and level.number in mine)
    check_writable(self, is_tracked([self]))
    value = self._value if type(self) is BatchedTensor else self
    kept = levels_among([self])
    shape = self._array.shape
    front = tuple(level.size if level.randomness == "different" else 1 for level in kept)
    values = draw(prod(front) * prod(shape), True).reshape(*front, *shape)
    write(REGISTRY[key], [value], {"values": np.broadcast_to(values, value._array.shape)})
    return self


def fill_by(self: Tensor, other: Tensor, make: Callable[[Tensor], Tensor]) -> Tensor:
    """Fill a tensor, in place, with numbers that depend on another tensor.

    Args:
        make: the numbers, from the other tensor in the shape of `self`.
    """
    levels = _levels([other])
    mine = {level.number for level in levels_among([self])}
    refuse_wider(self, [other], "inplace bernoulli")
    if any(level.number not in mine for level in levels):
        raise RuntimeError(_UNBATCHED)
    return self.copy_(make(other.expand(self._array.shape)))


__all__ = ["drawn", "drawn_from", "fill", "fill_by"]
