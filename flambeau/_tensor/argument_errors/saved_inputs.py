"""The errors of inputs that may not be saved or differentiated: PyTorch records a call before the operator looks at it.

Nothing here runs before a call has failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...modes import grad_mode
from ...ops.declare import COMPOSITE, Op
from ..tensor import Tensor

#: inputs that PyTorch refuses if they require grad; others without derivative, such as indices, have none to refuse
_WITHOUT_DERIVATIVE = frozenset(("weight", "pos_weight", "pivots"))


def refused_saving(op: Op, inputs: Sequence[Any]) -> RuntimeError | None:
    """The error of a call that failed, where recording it would have failed before; None if it would not.

    Args:
        inputs: the operator's, tensors and other values.
    """
    if op.kind == COMPOSITE or not op.differentiable or not grad_mode.get():
        return None
    mask = sum(1 << i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x._requires_grad)
    if not mask:
        return None
    names = op.input_names(len(inputs))
    for i, name in enumerate(names):
        if mask >> i & 1 and name in _WITHOUT_DERIVATIVE and name in op.nondifferentiable_inputs:
            return RuntimeError(f"The function '{op.name}' is not differentiable with respect to argument '{name}'. "
                                "This input cannot have requires_grad True.")
    for i in op.backward_plan(mask, len(inputs)).saved_inputs:
        x = inputs[i]
        if isinstance(x, Tensor) and x._inference and x._counter is not None:
            try:
                bool(x._counter[0])
            except RuntimeError as error:
                return error
    return None


__all__ = ["refused_saving"]
