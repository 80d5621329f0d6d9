"""Gradient edges: the node of the graph that a tensor's cotangent flows to."""

from __future__ import annotations

import threading
import weakref

from ...engine.execution.accumulate_grad import AccumulateGrad
from ...engine.nodes.node import Node
from ...engine.tensor_interface import layer
from ..tensor import Tensor


def gradient_edge(x: Tensor) -> Node:
    """The node that a cotangent of `x` goes to: the one that made it, or its accumulator.

    None for a view that requires grad only because its base does: made where nothing was recorded.
    """
    node = x._node
    if node is not None:
        return x.grad_fn if x._base is not None else node  # type: ignore[return-value]
    reference = x._accumulator
    node = None if reference is None else reference()
    if node is None:
        if x._base is not None:
            node = x.grad_fn
            if node is not None or not x._own:
                return node  # type: ignore[return-value]
        with _accumulating:
            reference = x._accumulator
            node = None if reference is None else reference()
            if node is None:
                node = AccumulateGrad(x)
                x._accumulator = weakref.ref(node)
                if x._hooks:
                    node.register_tensor_hook(0, x._hooks)
    return node


#: a leaf has one accumulator, whichever threads ask for it at the same time; the collector may ask in between
_accumulating = threading.RLock()


layer.gradient_edge = gradient_edge
