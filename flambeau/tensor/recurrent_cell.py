"""A step of a plain recurrent network: three operators, recorded as such, and computed in one pass.

What lies between them, the product and the sum, nobody sees: neither is saved for backward.
"""

from __future__ import annotations

from typing import Any

from ..autograd.kernel_runs import by_kernel
from ..autograd.modes import grad_mode, inference
from ..autograd.node import OpNode, next_number
from ..autograd.runs import plan_of
from ..backends.compiled import products as kernels
from ..modes import special, transforms
from ..ops.declare import REGISTRY
from .products import edge_of, fresh, linear_node, plain
from .tensor import Tensor

__all__ = ["rnn_cell"]

_add_plans = (plan_of(REGISTRY["add"], 1, 2), plan_of(REGISTRY["add"], 3, 2))
_plans = {name: plan_of(REGISTRY[name], 1, 1) for name in ("tanh", "relu")}


def rnn_cell(x: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None, nonlinearity: str) -> Tensor | None:
    """f(h @ weightᵀ + bias + x), with the nodes of `linear`, `add` and f.

    Args:
        x: (N, out), the share of the input.
        h: (N, in), the state before.
        weight: (out, in).
        bias: (out).
        nonlinearity: "tanh" or "relu".

    Returns:
        The new state (N, out); None where the operators are to be called one by one.
    """
    if special[0] or transforms[0] or bias is None:
        return None
    a, w, b, c = h._array, weight._array, bias._array, x._array
    if not plain(a, w.T) or c.dtype is not a.dtype or b.dtype is not a.dtype or b.shape != w.shape[:1] or (
            c.shape != (a.shape[0], w.shape[0])) or a.size + w.size <= kernels.LEAST[0]:
        return None
    mask = (1 if bias._requires_grad else 0) + (2 if h._requires_grad else 0) + (4 if weight._requires_grad else 0)
    records = grad_mode.get()
    if inference.get() or (records and mask not in (5, 7)):
        return None
    array = kernels.cell(a, w.T, b, c, nonlinearity)
    if array is None:
        return None
    result: Any = fresh(array)
    if not records:
        return result
    product = linear_node(h, weight, bias, mask, a, w, b)
    total = OpNode()
    total.seq = next_number()
    total.edge0, total.edge1, total.n_edges = product, edge_of(x) if x._requires_grad else None, 2
    total.plan = _add_plans[x._requires_grad]
    total.run = total.plan.run
    node = OpNode()
    node.seq = next_number()
    node.edge0, node.edge1, node.n_edges = total, None, 1
    node.plan, node.run = _plans[nonlinearity], by_kernel
    total.edge_outputs = node.edge_outputs = None
    for each in (total, node):
        each.extra = each.outputs = each.fix = each.versions = each.saved0 = each.saved1 = None
        each.consts = ()
    if x._output_nr:
        total.edge_outputs = (0, x._output_nr)
    result._counter = node.saved1 = [0]
    node.saved0 = array
    result._requires_grad = True
    result._node = node
    return result
