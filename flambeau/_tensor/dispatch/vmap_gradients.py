"""Gradients where `vmap` hides dimensions: of batched tensors, and with batches of cotangents.

The graph belongs to the values. What the cotangent of an output has hidden beyond the output's
own levels stays hidden while the rules run, and comes out in the gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...engine.api import gradients_of
from ...engine.tensor_interface import layer
from .batched_tensor import BatchedTensor, Level, absolute, batched, is_batched, level_of, relative
from .forward_mode import any_level


def batched_gradients(outputs: Sequence[Any], inputs: Sequence[Any], cotangents: Sequence[Any], retain: bool,
                      create: bool, allow_unused: bool, materialize: bool) -> tuple[Any, ...]:
    """`autograd.grad`, where outputs, inputs or cotangents may be batched."""
    found = gradients_of([_value(x) for x in outputs], [_value(x) for x in inputs],
                         [None if g is None else relative(g, x) for x, g in zip(outputs, cotangents, strict=True)],
                         retain, create, allow_unused, materialize)
    return tuple(None if g is None else absolute(g, x) for x, g in zip(inputs, found, strict=True))


def _value(x: Any) -> Any:
    return x._value if type(x) is BatchedTensor else x


def mapped(function: Callable[..., tuple[Any, ...]], cotangents: Sequence[Any]) -> tuple[Any, ...]:
    """`function` of cotangents whose first dimension is hidden; the same dimension comes first in what it gives."""
    size = next(g._array.shape[0] for g in cotangents if g is not None)
    with level_of(size, "never") as level:
        given = [None if g is None else hidden(g, level) for g in cotangents]
        found = function(*given)
        results: list[Any] = []
        for g in found:
            if g is None:
                results.append(None)
            elif type(g) is BatchedTensor and g._levels[-1] is level:
                results.append(batched(g._value, g._levels[:-1]))
            else:
                results.append(layer.functions.expand(layer.functions.unsqueeze(g, 0), (size, *g._array.shape)))
    return tuple(results)


def hidden(x: Any, level: Level) -> Any:
    """`x` with its first dimension hidden in a level: the innermost that is running."""
    if type(x) is BatchedTensor:
        return batched(x._value, (*x._levels, level))
    return batched(x, (level,))


def carried(outputs: Sequence[Any], cotangents: Sequence[Any]) -> bool:
    """Whether gradients must be made of tensors though nothing is recorded."""
    return any_level() or is_batched(*cotangents)


layer.is_batched, layer.batched_gradients = is_batched, batched_gradients
layer.vmap_cotangents, layer.has_tangents = mapped, carried
