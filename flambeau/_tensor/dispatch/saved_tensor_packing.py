"""Saved-tensor hooks on operators: packs the tensors that a node saves.

Inputs are packed before the operator runs, so that an exception in a hook prevents the call; outputs after recording,
since the hook may read their `grad_fn`.
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
    """The packed inputs that a call of `op` saves, by input number; None where nothing is packed.

    Args:
        original: the copy that is saved instead of the first input, for an in-place operator.
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

    def pytorch_name(i: int) -> str:  # PyTorch packs in the order of its names
        name = names[min(i, last)]
        return "self" if name == "input" else name

    for i in sorted(plan_of(op, mask, len(inputs)).saved_inputs, key=pytorch_name):
        x = original if i == 0 and original is not None else inputs[i]
        if isinstance(x, Tensor):
            packed[i] = Packed(x, hooks)
    return packed


def replace_saved_with_packed(node: OpNode, inputs: Sequence[Any], outs: Sequence[Tensor],
                              packed: dict[int, Packed] | None, original: Tensor | None = None) -> None:
    """Replace the saved tensors of a new node with packed values.

    What a hook unpacks may have another shape or dtype than what was packed, so the node's gradients are brought to
    those of its inputs.

    Args:
        packed: the packed inputs, if they were packed before the operator ran.
    """
    hooks = innermost_hooks()
    if hooks is None:
        return
    plan = node.plan
    if packed is None:
        packed = pack_inputs(node.op, inputs, original) or {}
    places = {place: packed[i] for place, i in enumerate(plan.saved_inputs) if i in packed}
    names = node.op.output_names()
    for place, k in sorted(enumerate(plan.saved_outputs, len(plan.saved_inputs)), key=lambda each: names[each[1]]):
        places[place] = Packed(outs[k], hooks, is_output=True)
    if places:
        node.replace_saved(places)
        _, types, conjugate, widen = node.fix or (None, None, False, False)
        node.fix = (tuple([x._array.shape if isinstance(x, Tensor) else () for x in inputs]),
                    types or tuple([(x if isinstance(x, Tensor) else outs[0])._array.dtype for x in inputs]),
                    conjugate, widen)


__all__ = ["pack_inputs", "replace_saved_with_packed"]
