"""Views, quickly: what shares memory gets its base, its version and its node in one short function.

It does what `apply` does for a view operator, once the array is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.modes import grad_mode, inference
from ..autograd.node import OpNode, next_number
from ..autograd.runs import plan_of
from ..ops.declare import REGISTRY
from .apply import _fix, gradient_edge
from .tensor import Tensor, wrap

_enabled, _inferring = grad_mode.get, inference.get
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)


def viewing(key: str, *names: str) -> Callable[..., Tensor]:
    """What makes views of one operator: called with the source, the array, and what the node keeps.

    Args:
        key: the operator's.
        names: what its rule keeps, in order: `input_shape` and parameters.
    """
    op = REGISTRY[key]
    plan = plan_of(op, 1, 1)
    kept = tuple("input_shape" if what == "shape" else which for what, which in plan.consts)
    assert kept == names, f"{key} keeps {kept}"

    def make(source: Tensor, array: np.ndarray, *consts: Any) -> Tensor:
        out: Tensor = wrap(array)
        counter = source._counter
        if counter is None:
            counter = source._counter = [0]
        out._counter = counter
        if counter[0]:
            out._view_version = counter[0]
        base = source._base
        out._base = source if base is None else base
        if _enabled():
            if base is not None and source._creation is not None:
                out._creation = source._creation
            if source._requires_grad:
                node = OpNode()
                edge = source._node
                if edge is None or base is not None:
                    edge = gradient_edge(source)
                number = source._output_nr
                node.edges = (edge,)
                node.edge_outputs = (number,) if number else None
                node.extra = node.outputs = node.versions = None
                node.plan = plan
                node.saved0 = node.saved1 = None
                node.consts = consts
                node.seq = next_number()
                dt = array.dtype
                if dt is _F32 or dt is _F64:
                    node.fix = None
                    node.run = plan.run
                else:
                    fix = node.fix = _fix(op, (source,), array)
                    node.run = plan.run if fix is None else None
                out._requires_grad = True
                out._node = node
        elif _inferring():
            out._creation = "inference"
            out._inference = True
        else:
            out._creation = "no_grad"
        return out

    return make
