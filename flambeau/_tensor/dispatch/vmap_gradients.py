"""Gradients of batched tensors, and with batched cotangents.

The graph belongs to the values. Levels that the cotangent of an output has beyond those of the output stay batched
while the rules run, and are levels of the gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...engine.api import gradients_of
from ...engine.tensor_interface import layer
from .batched_tensor import (
    BatchedTensor,
    Level,
    gradient_for_batched,
    gradient_for_value,
    is_batched,
    make_batched,
    vmap_level,
)
from .forward_mode import any_level_open


def batched_gradients(outputs: Sequence[Any], inputs: Sequence[Any], cotangents: Sequence[Any], retain: bool,
                      create: bool, allow_unused: bool, materialize: bool) -> tuple[Any, ...]:
    """`autograd.grad` with batched outputs, inputs or cotangents."""
    result = gradients_of([_value(x) for x in outputs], [_value(x) for x in inputs],
                          [None if g is None else gradient_for_value(g, x)
                           for x, g in zip(outputs, cotangents, strict=True)],
                          retain, create, allow_unused, materialize)
    return tuple(None if g is None else gradient_for_batched(g, x) for x, g in zip(inputs, result, strict=True))


def _value(x: Any) -> Any:
    return x._value if type(x) is BatchedTensor else x


def vmap_over_cotangents(function: Callable[..., tuple[Any, ...]], cotangents: Sequence[Any]) -> tuple[Any, ...]:
    """`function` mapped over the first dimension of the cotangents; it is the first dimension of the results."""
    size = next(g._array.shape[0] for g in cotangents if g is not None)
    with vmap_level(size, "never") as level:
        given = [None if g is None else hide_first_dim(g, level) for g in cotangents]
        result = function(*given)
        results: list[Any] = []
        for g in result:
            if g is None:
                results.append(None)
            elif type(g) is BatchedTensor and g._levels[-1] is level:
                results.append(make_batched(g._value, g._levels[:-1]))
            else:
                results.append(layer.functions.expand(layer.functions.unsqueeze(g, 0), (size, *g._array.shape)))
    return tuple(results)


def hide_first_dim(x: Any, level: Level) -> Any:
    """`x` with its first dimension as the batch dimension of `level`, the innermost active level."""
    if type(x) is BatchedTensor:
        return make_batched(x._value, (*x._levels, level))
    return make_batched(x, (level,))


def needs_tensor_rules(outputs: Sequence[Any], cotangents: Sequence[Any]) -> bool:
    """Whether backward must run on tensors, for their tangents or levels, even without `create_graph`."""
    return any_level_open() or is_batched(*cotangents)


layer.is_batched, layer.batched_gradients = is_batched, batched_gradients
layer.vmap_cotangents, layer.has_tangents = vmap_over_cotangents, needs_tensor_rules
