"""Packing what operators save: the tensors among a node's saved values go through the saved-tensor hooks.

Inputs are packed before the operator runs, so that a hook that raises stops it; outputs after
they have their history, which the hook may look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...engine.grad_mode import grad_mode
from ...engine.nodes.op_node import OpNode
from ...engine.rules.inlined_rules import plan_of
from ...engine.saved.saved_tensors import Packed, innermost_hooks
from ...ops.declare import Op
from ..tensor import Tensor


def pack_inputs(op: Op, inputs: Sequence[Any], original: Tensor | None = None) -> dict[int, Packed] | None:
    """The inputs that an application of `op` saves, packed, by their numbers; None where nothing is to be packed.

    Args:
        original: what is saved instead of the first input, which is about to be overwritten.
    """
    hooks = innermost_hooks()
    if hooks is None or not op.differentiable or not grad_mode.get():
        return None
    mask = sum(1 << i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x._requires_grad)
    if not mask:
        return None
    packed = {}
    names = op.inputs
    last = len(names) - 1

    def pytorchs(i: int) -> str:  # it saves in the order of the names
        name = names[min(i, last)]
        return "self" if name == "input" else name

    for i in sorted(plan_of(op, mask, len(inputs)).saved_inputs, key=pytorchs):
        x = original if i == 0 and original is not None else inputs[i]
        if isinstance(x, Tensor):
            packed[i] = Packed(x, hooks)
    return packed


def hold_packed(node: OpNode, inputs: Sequence[Any], outs: Sequence[Tensor], packed: dict[int, Packed] | None,
                original: Tensor | None = None) -> None:
    """Let a node that was just made hold packed values only.

    Args:
        packed: the inputs, if they were packed before the operator ran.
    """
    hooks = innermost_hooks()
    if hooks is None:
        return
    plan = node.plan
    if packed is None:
        packed = pack_inputs(node.op, inputs, original) or {}
    places = {place: packed[i] for place, i in enumerate(plan.saved_inputs) if i in packed}
    for place, k in enumerate(plan.saved_outputs, len(plan.saved_inputs)):
        places[place] = Packed(outs[k], hooks, is_output=True)
    if places:
        node.replace_saved(places)


__all__ = ["hold_packed", "pack_inputs"]
