"""`grad_fn._saved_*` and `_raw_saved_*`: the values that a node saved, under PyTorch's names.

The names are those that the operator's declaration states (`ops/saved_attributes.py`), or those of what its derivative
formulas request.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from ...ops.saved_attributes import (
    INTS,
    ITEM,
    LITERAL,
    NDIM,
    NUMEL,
    SIZE,
    SIZES_OR_ZERO,
    STRIDES,
    WHOLE,
    SavedAttribute,
)
from ..saved.saved_tensors import saved_tensor_of
from ..tensor_interface import layer
from .node import FREED_MESSAGE

#: nodes that have `_saved_alpha`, the factor of their second operand, even if it is 1
_SCALED = frozenset(("AddBackward0", "SubBackward0"))

#: parameters that are scalars in PyTorch; its ints are shown as unsigned numbers
_SCALARS = frozenset(("alpha", "beta", "exponent", "input_scale", "lambd", "max", "max_val", "min", "min_val",
                      "negative_slope", "ord", "other", "p", "scale", "threshold", "value", "weight"))

#: PyTorch saves the number of a reduction of losses
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def names_of_saved_tensors(node: Any) -> list[str]:
    """The names of the inputs and outputs that a node saved, by position."""
    sources = _sources(node)
    declared = node.op.saved_attributes
    if declared is None:
        return ["self" if source == "input" else "result" if source == "out" else source for source in sources]
    names = {each.source: each.name for each in declared if each.part == WHOLE}
    return [names.get(source, source) for source in sources]


def _sources(node: Any) -> list[str]:
    """The names in the declaration of the inputs and outputs that a node saved, by position."""
    op, plan = node.op, node.plan
    last = len(op.inputs) - 1
    outputs = op.output_names()
    return [op.inputs[min(i, last)] for i in plan.saved_inputs] + [  # the tensors of a variadic input share its name
        outputs[k] for k in plan.saved_outputs]


def saved_attribute(node: Any, attribute: str) -> Any:
    """The value of an attribute `_saved_<name>` or `_raw_saved_<name>`.

    Raises:
        AttributeError: the node has none of this name.
        RuntimeError: it was freed, or modified in place since.
    """
    raw = attribute.startswith("_raw")
    name = attribute.removeprefix("_raw").removeprefix("_saved_")
    declared = node.op.saved_attributes
    if declared is not None:
        for each in declared:
            if each.name == name and (not raw or _holds_tensor(node, each)):
                return _declared_value(node, each, raw)
    else:
        positions = [position for position, saved in enumerate(names_of_saved_tensors(node)) if saved == name]
        if positions:
            return _tensors_at(node, positions, raw)
        for (what, which), value in zip(node.plan.consts, node.consts, strict=True):
            if what == "param" and which == name and type(value) is not list:
                return _as_shown(which, value)
            if what == "shape" and which == 0 and name == "self_sym_sizes":
                return tuple(value)
        if name == "alpha" and node.op.node in _SCALED:
            return 1
        if name in _names_without_value(node):
            return None
    raise AttributeError(f"'{type(node).__name__}' object has no attribute '{attribute}'")


def saved_attribute_names(node: Any) -> list[str]:
    """The names of all attributes that `saved_attribute` has a value for."""
    declared = node.op.saved_attributes
    if declared is not None:
        return ["_saved_" + each.name for each in declared] + [
            "_raw_saved_" + each.name for each in declared if _holds_tensor(node, each)]
    names = ["_saved_" + name for name in dict.fromkeys(names_of_saved_tensors(node))]
    names += ["_raw" + name for name in names]
    for (what, which), value in zip(node.plan.consts, node.consts, strict=True):
        if what == "param" and type(value) is not list:  # a list is private to the operator and its rule
            names.append("_saved_" + which)
        elif what == "shape" and which == 0:
            names.append("_saved_self_sym_sizes")
    names += ["_saved_" + name for name in _names_without_value(node)]
    if node.op.node in _SCALED and "_saved_alpha" not in names:
        names.append("_saved_alpha")
    return names


def _names_without_value(node: Any) -> list[str]:
    """Names of values that only rules of inputs without gradients use: their `_saved_*` attributes are None."""
    op = node.op
    if op.variadic or op.joint_vjp_rule is not None:
        return []
    saved = set(names_of_saved_tensors(node))
    used = {name for rule in op.vjp_rules.values() if rule for name in rule.names}
    return [name for name in ("self" if name == "input" else name for name in op.inputs
                              if name in used) if name not in saved]


def _tensors_at(node: Any, positions: list[int], raw: bool) -> Any:
    read = functools.partial(saved_tensor_of, node) if raw else node.tensor_at
    if node.op.variadic and _sources(node)[positions[0]] == node.op.inputs[-1]:
        return tuple(map(read, positions))
    return read(positions[0])


# ----- attributes that the declaration states ----------------------------------------------


def _positions(node: Any, source: str) -> list[int]:
    return [position for position, saved in enumerate(_sources(node)) if saved == source]


def _holds_tensor(node: Any, attribute: SavedAttribute) -> bool:
    return attribute.part == WHOLE and bool(_positions(node, attribute.source))


def _declared_value(node: Any, attribute: SavedAttribute, raw: bool) -> Any:
    if attribute.part == LITERAL:
        return attribute.which
    if attribute.is_of_geometry:
        return _geometry(node, attribute)
    source = attribute.source
    positions = _positions(node, source)
    if positions:
        return _tensors_at(node, positions, raw)
    if source not in node.op.params:
        return None  # saved for the gradient of another input only
    value = node.consts[node.plan.consts.index(("param", source))]
    if attribute.part == ITEM:
        if node.plan.saves_tensors and node.saved is None:
            raise RuntimeError(FREED_MESSAGE)
        value = value[attribute.which] if len(value) > attribute.which else None
    elif attribute.part == INTS and value is not None and not isinstance(value, (tuple, list)):
        value = (value,)
    return _as_shown(source, value)


def _geometry(node: Any, attribute: SavedAttribute) -> Any:
    """What an attribute says of the shape or strides of an input or output."""
    part, plan = attribute.part, node.plan
    positions = _positions(node, attribute.source)
    if positions:
        saved = node.saved
        if saved is None:
            raise RuntimeError(FREED_MESSAGE)
        tensor = saved[positions[0]]
        if part == STRIDES:
            return tuple(tensor.stride())
        shape = tuple(getattr(tensor[0] if tensor.__class__ is tuple else tensor, "shape", ()))
    else:
        at = node.op.inputs.index(attribute.source)
        if part == STRIDES:  # another input has the same dtype, and is saved
            itemsize = next((x._array.itemsize for x in node.saved or ()), 1)
            return tuple(step // itemsize for step in node.consts[plan.consts.index(("strides", at))])
        shape = tuple(node.consts[plan.consts.index(("shape", at))]) if at < len(node.edges) else ()
    if part == NUMEL:
        return prod(shape)
    if part == SIZE:
        return shape[attribute.which]
    return len(shape) if part == NDIM else shape or ((0,) if part == SIZES_OR_ZERO else ())


def _as_shown(parameter: str, value: Any) -> Any:
    """A parameter as PyTorch shows it: arrays are tensors, negative ints unsigned, reductions of losses numbers."""
    if isinstance(value, np.ndarray):
        return layer.wrap(value)
    if isinstance(value, (tuple, list)):
        return tuple(_as_shown(parameter, x) for x in value)
    if parameter == "reduction" and isinstance(value, str):
        return _REDUCTIONS[value]
    if value.__class__ is int and value < 0 and parameter not in _SCALARS:
        return value + (1 << 64)
    return layer.wrap(np.asarray(value)) if isinstance(value, np.generic) else value


__all__ = ["names_of_saved_tensors", "saved_attribute", "saved_attribute_names"]
