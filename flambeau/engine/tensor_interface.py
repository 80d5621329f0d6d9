"""What the layer above lends this one: how to make tensors, and the operators on them.

The graph is below tensors and may not import them; they set the attributes of `layer`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class TensorLayer:
    """The tensor class, its makers and its operators."""

    arrays: Any = None  # the array namespace
    functions: Any = None  # the same operators on tensors
    wrap: Callable[[Any], Any]  # array -> tensor without history
    wrap_output: Callable[..., Any]  # array, node, output number, counter -> tensor with that history
    tensor_class: Any = None
    gradient_edge: Callable[[Any], Any]
    is_batched: Callable[..., bool]  # whether one of the values has dimensions hidden by `vmap`
    batched_gradients: Callable[..., tuple[Any, ...]]  # `grad`, where some of the values have
    mapped: Callable[..., tuple[Any, ...]]  # a function of cotangents under `vmap`; what it gives, unhidden
    carried: Callable[..., bool]  # whether tangents of forward mode flow, so that gradients must carry them too


layer = TensorLayer()

__all__ = ["TensorLayer", "layer"]
