"""Gradient edges: the graph node that a tensor's gradient flows to."""

from __future__ import annotations

import threading
from weakref import ref

from ...engine.execution.accumulate_grad import AccumulateGrad
from ...engine.nodes.node import Node
from ...engine.tensor_interface import layer
from ..tensor import Tensor


def gradient_edge(x: Tensor) -> Node:
    """The node that the gradient of `x` flows to: its `grad_fn`, or for a leaf its AccumulateGrad.

    None for a view made under `no_grad` that requires grad only because its base does.
    """
    node = x._node
    if node is not None:
        return x.grad_fn if x._base is not None else node  # type: ignore[return-value]
    reference = x._accumulator
    node = None if reference is None else reference()
    return create_gradient_edge(x) if node is None else node


def create_gradient_edge(x: Tensor) -> Node:
    """`gradient_edge(x)` where the caller saw neither a `grad_fn` nor a live AccumulateGrad of `x`."""
    if x._base is not None:
        node = x.grad_fn
        if node is not None or not x._own_requires_grad:
            return node  # type: ignore[return-value]
    with _accumulating:  # another thread may have created it since
        reference = x._accumulator
        node = None if reference is None else reference()
        if node is None:
            node = AccumulateGrad(x)
            x._accumulator = ref(node)
            if x._hooks:
                node.register_tensor_hook(0, x._hooks)
    return node


#: a leaf has one AccumulateGrad, even if several threads request it; reentrant, since a finalizer may request one
_accumulating = threading.RLock()


layer.gradient_edge = gradient_edge
