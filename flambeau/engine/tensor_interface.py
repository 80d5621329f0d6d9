"""The engine's interface to tensors: their class, constructors and operators.

The engine does not import tensors (a higher layer): `_tensor` sets the attributes of `layer` when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..lazy_modules.registration import LateRegistration


class TensorLayer(LateRegistration):
    """The tensor class, its constructors and its operators."""

    arrays: Any = None  # the operators on arrays
    functions: Any = None  # the operators on tensors
    wrap: Callable[[Any], Any]  # array -> tensor without history
    wrap_output: Callable[..., Any]  # array, node, output number, counter -> tensor with that history
    tensor_class: Any = None
    gradient_edge: Callable[[Any], Any]
    is_batched: Callable[..., bool]  # whether one of the values is batched by `vmap`
    batched_gradients: Callable[..., tuple[Any, ...]]  # `grad` where some values are batched
    vmap_cotangents: Callable[..., tuple[Any, ...]]  # `vmap` of a function of cotangents
    is_handled: Callable[[Any], bool]  # whether handlers of `__torch_dispatch__` see operators on a tensor
    # a rule, whose constants are made on the device of the gradient; None while there is no device
    rule_on_device: Callable[..., Any] | None = None
    make_writable: Callable[[Any], None]  # gives the storage of an array memory of its own if it is shared lazily
    note_foreign: Callable[[type], bool]  # counts a class with `__torch_function__`; whether it was not counted before
    run_without_overrides: Callable[..., Any]  # a call during which no `__torch_function__` is asked
    has_tangents: Callable[..., bool]  # whether forward-mode tangents propagate, so that gradients need them too


layer = TensorLayer()

__all__ = ["TensorLayer", "layer"]
