"""`torch._prims.executor`: functions that run as graphs of operators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..fx.experimental.proxy_tensor import make_fx
from ..fx.graph_module import GraphModule

__all__ = ["execute", "make_traced"]


def execute(gm: GraphModule, *args: Any, executor: str = "aten", executor_parameters: Any = None) -> Any:
    """Run a graph.

    Raises:
        ValueError: another executor than "aten".
    """
    if executor != "aten":
        raise ValueError(f"Received unexpected value for 'executor': {executor}. Allowed values are: aten.")
    return gm.forward(*args)


def make_traced(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that traces another one at each call, and runs the graph.

    >>> import flambeau as torch
    >>> from flambeau._prims.executor import make_traced
    >>> make_traced(torch.add)(torch.ones(1), torch.ones(1))
    tensor([2.])
    """
    @functools.wraps(fn)
    def traced(*args: Any, **kwargs: Any) -> Any:
        executor = kwargs.pop("executor", "aten")
        graph = make_fx(lambda *inputs: fn(*inputs, **kwargs))(*args)
        return execute(graph, *args, executor=executor)

    return traced
