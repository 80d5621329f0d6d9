"""Calls of the hooks around a node's derivative rules. Hooks always receive tensors.

With `create_graph` the cotangents of the pass are tensors and hooks are recorded; without it they are arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import resolve
from ...backends.sparse_array import as_array
from ...modes import device_memory
from ..tensor_interface import layer
from .hooks import NodeExtra


def call_tensor_hooks(node: Any, extra: NodeExtra, g: Any, create_graph: bool) -> Any:
    """The cotangents of a node's outputs after the hooks of those tensors, and after `retain_grad`."""
    several = node.outputs is not None
    values = (list(g) if g is not None else [None] * len(node.outputs or ())) if several else [g]
    for output, hooks in (extra.tensor_hooks or {}).items():
        for hook in list(hooks.values()):
            tensor = None if values[output] is None else as_tensor(values[output], create_graph)
            returned = hook(tensor)
            if returned is not None:
                _check_replacement(hook, tensor, returned)
                values[output] = returned if create_graph else resolve(returned._array)
            elif tensor is not None:
                values[output] = tensor if create_graph else resolve(tensor._array)
    for output, reference in (extra.retained or {}).items():
        tensor = reference()
        if tensor is not None and values[output] is not None:
            retained = as_tensor(values[output], create_graph)
            retained = retained.clone() if create_graph else layer.wrap(retained._array.copy())
            tensor._grad = retained if tensor._grad is None else tensor._grad + retained
    if several:
        return values if any(v is not None for v in values) else None
    return values[0]


def call_pre_hooks(node: Any, extra: NodeExtra, g: Any, create_graph: bool) -> Any:
    """The cotangents of a node's outputs after the node's pre-hooks."""
    several = node.outputs is not None
    positions = _differentiable_outputs(node) if several else (0,)
    given = [None if g is None else g[i] for i in positions] if several else (g,)
    grad_outputs = tuple(None if v is None else as_tensor(v, create_graph) for v in given)
    for hook in list((extra.pre_hooks or {}).values()):
        returned = hook(grad_outputs)
        if returned is not None:
            _check_replacements(hook, grad_outputs, returned)
            grad_outputs = returned
    values = [None if v is None else v if create_graph else resolve(v._array) for v in grad_outputs]
    if several:
        values = _scatter(values, positions, len(node.outputs or ()))
        return values if any(v is not None for v in values) else None
    return values[0]


def call_post_hooks(node: Any, extra: NodeExtra, grads: Any, g: Any, create_graph: bool) -> Any:
    """The cotangents of a node's inputs after the node's post-hooks.

    Args:
        grads: what the rules computed.
        g: the cotangents of the outputs.
    """
    several = node.outputs is not None
    edges = node.visible_edges()
    if node.materializes_undefined:  # a rule may have computed the gradient of an input that has no edge
        grads = [None if child is None else x for x, child in zip(grads, node.edges, strict=True)]
    grad_inputs = tuple(None if v is None else as_tensor(v, create_graph)
                        for v in (grads if edges is None else [grads[i] for i in edges]))
    outputs = ([g[i] for i in _differentiable_outputs(node)] if several else (g,)) if g is not None else (None,) * (
        len(_differentiable_outputs(node)) if several else 1)
    grad_outputs = tuple(None if v is None else as_tensor(v, create_graph) for v in outputs)
    for hook in list((extra.post_hooks or {}).values()):
        returned = hook(grad_inputs, grad_outputs)
        if returned is not None:
            _check_replacements(hook, grad_inputs, returned)
            grad_inputs = returned
    values = [None if v is None else v if create_graph else resolve(v._array) for v in grad_inputs]
    return values if edges is None else _scatter(values, edges, len(grads))


def materialize(node: Any, g: list[Any], tensors: bool) -> list[Any]:
    """The cotangents of a node with several outputs, with zeros for the undefined ones, unless its rule takes None."""
    if node.takes_undefined:
        return g
    full = []
    options = {}
    if tensors and device_memory.count:
        options["device"] = next((value._device for value in g if value is not None), None)
    for value, (shape, array_dtype) in zip(g, node.outputs, strict=True):
        if value is None:
            value = layer.functions.zeros(shape, dtype=dtypes.of(array_dtype), **options) if tensors else np.zeros(
                shape, array_dtype)
        full.append(value)
    return full


def as_tensor(value: Any, is_tensor: bool) -> Any:
    """A cotangent as a tensor, which it already is under `create_graph`."""
    return value if is_tensor else layer.wrap(as_array(value))


def _differentiable_outputs(node: Any) -> Sequence[int]:
    """The outputs whose cotangents hooks receive: integer outputs of a declared operator are left out."""
    return [i for i, output in enumerate(node.outputs)
            if not node.materializes_undefined or output is None or output[1].kind in "fcV"]


def _scatter(values: Sequence[Any], positions: Sequence[int], count: int) -> list[Any]:
    """A list of `count` elements with the values at their positions, and None elsewhere."""
    full = [None] * count
    for i, value in zip(positions, values, strict=True):
        full[i] = value
    return full


def _check_replacements(hook: Any, before: Sequence[Any], returned: Any) -> None:
    """Check that a node's hook returned as many cotangents as it was given, of their dtypes and shapes, or None."""
    if not isinstance(returned, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(returned).__name__}'")
    if len(returned) != len(before):
        raise RuntimeError(f"hook '{getattr(hook, '__name__', '<unknown>')}' has returned an incorrect number "
                           f"of values (got {len(returned)}, but expected {len(before)})")
    for old, new in zip(before, returned, strict=True):
        if new is not None:
            _check_replacement(hook, old, new)


def _check_replacement(hook: Any, before: Any, returned: Any) -> None:
    """Check that the cotangent that a hook returned is a tensor of the dtype and shape of the one it replaces."""
    if before is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(returned, layer.tensor_class):
        raise TypeError(f"expected Variable, but hook returned '{type(returned).__name__}'")
    name = getattr(hook, "__name__", "<unknown>")
    if returned._array.dtype != before._array.dtype:
        raise RuntimeError(f"hook '{name}' has changed the type of value (was {before.type()} got {returned.type()})")
    if returned._array.shape != before._array.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")


__all__ = ["as_tensor", "call_post_hooks", "call_pre_hooks", "call_tensor_hooks", "materialize"]
