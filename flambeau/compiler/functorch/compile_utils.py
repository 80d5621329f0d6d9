"""`torch._functorch.compile_utils`: graphs of operators, changed and read by compilers."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from ...fx.graph import Graph
from ...fx.graph_module import GraphModule


def get_aten_target(node: Any) -> Any:
    """What a node calls: of an overload the packet of all overloads.

    >>> from types import SimpleNamespace
    >>> get_aten_target(SimpleNamespace(target=torch.ops.aten.add.Tensor))
    <OpOverloadPacket(op='aten.add')>
    """
    return getattr(node.target, "overloadpacket", node.target)


def strip_overloads(gm: GraphModule) -> None:
    """Let the nodes of a graph call packets instead of overloads, and generate its code anew.

    >>> from flambeau.fx.experimental.proxy_tensor import make_fx
    >>> graph = make_fx(lambda x: x + 1)(torch.ones(2))
    >>> strip_overloads(graph)
    >>> [node.target for node in graph.graph.nodes if node.op == "call_function"]
    [<OpOverloadPacket(op='aten.add')>]
    """
    for node in gm.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload):
            node.target = node.target.overloadpacket
    gm.recompile()


def get_placeholders(graph: Graph) -> list[Any]:
    """The nodes of a graph's inputs."""
    return [node for node in graph.nodes if node.op == "placeholder"]


def get_outputs(graph: Graph) -> list[Any]:
    """What a graph returns, flattened."""
    for node in graph.nodes:
        if node.op == "output":
            return list(torch.utils._pytree.tree_leaves(node.args[0]))
    raise AssertionError("No output node found")


__all__ = ["get_aten_target", "get_outputs", "get_placeholders", "strip_overloads"]
