"""`torch._functorch.partitioners`: a joint graph as one of the forward and one of the backward pass.

The joint graph takes `primals` and `tangents` and returns results and gradients. What the backward graph reads of the
forward pass becomes further results of the forward graph: all that it computed (`default_partition`), or the smallest
set from which the rest is cheap to compute again (`min_cut_rematerialization_partition`, Chen et al. 2016,
https://arxiv.org/abs/1604.06174, solved as a minimum cut).
"""

from __future__ import annotations

import collections
import itertools
import operator
import os
from collections.abc import Iterable, Sequence
from typing import Any

import flambeau as torch

from ...fx.graph import Graph
from ...fx.graph_module import GraphModule
from ...fx.node import Node
from ...utils._pytree import tree_leaves

#: operators that are computed once: products, convolutions, sorts, reductions of attention, and draws
_EXPENSIVE = frozenset((
    "mm", "bmm", "addmm", "baddbmm", "addmv", "mv", "dot", "matmul", "linear", "convolution", "convolution_backward",
    "_conv_weight", "_scaled_dot_product_attention", "scaled_dot_product_attention", "sort", "topk", "argsort",
    "native_batch_norm", "_native_batch_norm_legit_functional", "max_pool2d_with_indices", "upsample_bilinear2d",
    "_fft_c2c", "_fft_r2c", "_fft_c2r", "linalg_svd", "_linalg_svd", "linalg_qr", "cumsum", "einsum", "_embedding_bag"))
_RANDOM = ("rand", "bernoulli", "normal", "dropout", "uniform", "poisson", "multinomial", "exponential", "geometric",
           "cauchy", "binomial", "rrelu")


def _is_tangent(node: Node) -> bool:
    return node.op == "placeholder" and "tangents" in str(node.target)


def _name(node: Node) -> str:
    packet = getattr(node.target, "overloadpacket", None)
    return packet.__name__ if packet is not None else getattr(node.target, "__name__", str(node.target))


def _is_random(node: Node) -> bool:
    return node.op == "call_function" and any(word in _name(node) for word in _RANDOM)


def _has_effect(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return node.op == "call_function" and bool(getattr(schema, "is_mutable", False))


def _outputs(module: GraphModule, num_fwd_outputs: int) -> tuple[list[Any], list[Any]]:
    """Results and gradients of a joint graph."""
    flat = tree_leaves(next(n for n in module.graph.nodes if n.op == "output").args)
    return flat[:num_fwd_outputs], flat[num_fwd_outputs:]


def _after_tangents(module: GraphModule) -> set[Node]:
    """The nodes that depend on tangents."""
    found: set[Node] = set()
    for node in module.graph.nodes:
        if _is_tangent(node) or any(x in found for x in node.all_input_nodes):
            found.add(node)
    return found


def _extract(module: GraphModule, inputs: Sequence[Node], outputs: Sequence[Any], name: str) -> GraphModule:
    """The part of a graph that computes outputs from inputs."""
    needed: set[Node] = set()
    stops = set(inputs)
    pending = [x for x in outputs if isinstance(x, Node)]
    while pending:
        node = pending.pop()
        if node in needed:
            continue
        needed.add(node)
        if node not in stops:
            pending.extend(node.all_input_nodes)
    graph = Graph()
    made: dict[Node, Node] = {}
    for node in inputs:
        made[node] = graph.placeholder(node.name)
        made[node].meta = dict(node.meta)
    for node in module.graph.nodes:
        if node in needed and node not in made:
            if node.op == "placeholder":
                raise RuntimeError(f"{name}: {node} is needed, which is no input of this graph")
            made[node] = graph.node_copy(node, lambda n: made[n])
    graph.output(tuple(made[x] if isinstance(x, Node) else x for x in outputs))
    graph.lint()
    return GraphModule(module, graph, name)


def _parts(module: GraphModule, saved: Sequence[Node], num_fwd_outputs: int) -> tuple[GraphModule, GraphModule]:
    """The two graphs for a choice of what is saved."""
    results, gradients = _outputs(module, num_fwd_outputs)
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    primals = [n for n in placeholders if not _is_tangent(n)]
    tangents = [n for n in placeholders if _is_tangent(n)]
    forward = _extract(module, primals, [*results, *saved], "forward")
    return forward, _extract(module, [*saved, *tangents], gradients, "backward")


def _is_tensor(node: Node) -> bool:
    value = node.meta.get("val")
    return value is None or isinstance(value, torch.Tensor)


def default_partition(joint_module: GraphModule, _joint_inputs: Any, *, num_fwd_outputs: int,
                      static_lifetime_input_indices: Any = None, static_lifetime_input_nodes: Any = None
                      ) -> tuple[GraphModule, GraphModule]:
    """Divide a joint graph as eager mode does: the forward pass saves what the backward pass reads of it.

    Args:
        joint_module: the joint graph; placeholders with `tangents` in their names belong to the backward pass.
        num_fwd_outputs: how many of its results are those of the forward pass.
        static_lifetime_input_indices, static_lifetime_input_nodes: not used.

    Returns:
        The forward graph, of the primals, which returns the results and what is saved, and the backward graph, of what
        is saved and the tangents, which returns the gradients.
    """
    backward = _after_tangents(joint_module)
    results, _ = _outputs(joint_module, num_fwd_outputs)
    forward = _needed(results)
    saved = _boundary(joint_module, forward, backward, num_fwd_outputs)
    return _parts(joint_module, saved, num_fwd_outputs)


def _needed(outputs: Iterable[Any]) -> set[Node]:
    """The nodes that some nodes are computed from, and these."""
    found: set[Node] = set()
    pending = [x for x in outputs if isinstance(x, Node)]
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending.extend(node.all_input_nodes)
    return found


def _boundary(module: GraphModule, forward: set[Node], backward: set[Node], num_fwd_outputs: int) -> list[Node]:
    """The values of the forward pass that the backward pass reads; those of tuples one by one."""
    _, gradients = _outputs(module, num_fwd_outputs)
    reads = _needed(gradients)
    saved = []
    for node in module.graph.nodes:
        if node.op in ("output", "get_attr") or node in backward or node not in reads or not _is_tensor(node):
            continue
        if node not in forward and node.op != "placeholder" and not _is_random(node):
            continue  # computed in the backward pass, of what it reads
        later = [user for user in node.users if user in reads and (user in backward or user not in forward)]
        if later or node in gradients:
            saved.append(node)
    for node in module.graph.nodes:  # tuples of which a part is computed later
        if node in forward and not _is_tensor(node):
            saved += [user for user in node.users if user in reads and user not in forward and user not in backward
                      and user.target is operator.getitem and user not in saved]
    order = {node: i for i, node in enumerate(module.graph.nodes)}
    return sorted(saved, key=order.__getitem__)


def _bytes(node: Node) -> int:
    value = node.meta.get("val")
    return max(1, value.numel() * value.element_size()) if isinstance(value, torch.Tensor) else 1


def _is_recomputed(node: Node) -> bool:
    """Whether a value may be computed again in the backward pass."""
    return (node.op == "get_attr" or (node.op == "call_function" and not _is_random(node) and not _has_effect(node)
                                      and _name(node) not in _EXPENSIVE))


_INFINITE = 1 << 60


class _Flow:
    """A network of capacities, and its maximum flow by shortest augmenting paths."""

    def __init__(self) -> None:
        self.capacity: dict[Any, dict[Any, int]] = collections.defaultdict(dict)

    def add(self, a: Any, b: Any, capacity: int) -> None:
        """An edge."""
        self.capacity[a][b] = self.capacity[a].get(b, 0) + capacity
        self.capacity[b].setdefault(a, 0)

    def _levels(self, source: Any) -> dict[Any, int]:
        levels = {source: 0}
        queue = collections.deque([source])
        while queue:
            a = queue.popleft()
            for b, capacity in self.capacity[a].items():
                if capacity > 0 and b not in levels:
                    levels[b] = levels[a] + 1
                    queue.append(b)
        return levels

    def reachable(self, source: Any, sink: Any) -> set[Any]:
        """What the source reaches after a maximum flow: its side of a minimum cut."""
        while sink in (levels := self._levels(source)):
            left = {a: iter(list(edges)) for a, edges in self.capacity.items()}
            path = [source]
            while path:
                a = path[-1]
                if a == sink:
                    amount = min(self.capacity[x][y] for x, y in itertools.pairwise(path))
                    for x, y in itertools.pairwise(path):
                        self.capacity[x][y] -= amount
                        self.capacity[y][x] += amount
                    path = [source]
                    continue
                b = next((b for b in left[a] if self.capacity[a][b] > 0 and levels.get(b) == levels[a] + 1), None)
                if b is None:
                    path.pop()
                    if path:
                        levels.pop(a, None)
                else:
                    path.append(b)
                    left[a] = iter([b, *left[a]])  # an edge is left behind when it is full
        return set(levels)


def min_cut_rematerialization_partition(joint_module: GraphModule, _joint_inputs: Any, compiler: str = "inductor", *,
                                        num_fwd_outputs: int, static_lifetime_input_indices: Any = None
                                        ) -> tuple[GraphModule, GraphModule]:
    """Divide a joint graph so that the fewest bytes are saved; what is cheap is computed again.

    Every value costs its bytes to save. A value that is expensive or random is saved, or what is computed from it; a
    minimum cut between the primals and expensive values, and what the backward pass reads, is the choice.

    Args:
        joint_module, num_fwd_outputs: as for `default_partition`.
        compiler, static_lifetime_input_indices: not used.
    """
    backward = _after_tangents(joint_module)
    _, gradients = _outputs(joint_module, num_fwd_outputs)
    reads = _needed(gradients)
    flow = _Flow()
    candidates = [n for n in joint_module.graph.nodes if n in reads and n not in backward and n.op != "output"]
    for node in candidates:
        flow.add((node, "in"), (node, "out"), _bytes(node) if _is_tensor(node) and node.op != "get_attr" else _INFINITE)
        if node.op == "get_attr":
            continue  # read from the module by either graph
        tuple_part = node.target is operator.getitem and not _is_recomputed(node.all_input_nodes[0])
        if node.op == "placeholder" or (not _is_recomputed(node) and _is_tensor(node)) or tuple_part:
            flow.add("source", (node, "in"), _INFINITE)
        for user in node.users:
            if user in backward and user in reads:
                flow.add((node, "out"), "sink", _INFINITE)
            elif user in reads and user.op != "output" and not (
                    user.target is operator.getitem and not _is_recomputed(node)):
                flow.add((node, "out"), (user, "in"), _INFINITE)
        if node in gradients:
            flow.add((node, "out"), "sink", _INFINITE)
    side = flow.reachable("source", "sink")
    saved = [n for n in candidates if (n, "in") in side and (n, "out") not in side]
    return _parts(joint_module, saved, num_fwd_outputs)


def draw_graph(traced: Any, fname: str, figname: str = "fx_graph", clear_meta: bool = True, prog: Any = None,
               parse_stack_trace: bool = False, dot_graph_shape: str | None = None) -> None:
    """Draw a graph to a file, in the format of its ending, `.svg` without one.

    Args:
        traced: the module of the graph.
        fname: the file.
        clear_meta: not used: metadata are drawn.
        prog, parse_stack_trace, figname, dot_graph_shape: as for `fx.passes.graph_drawer.FxGraphDrawer`.
    """
    from ...fx.passes.graph_drawer import FxGraphDrawer

    base, ending = os.path.splitext(fname)
    ending = ending or ".svg"
    drawer = FxGraphDrawer(traced, figname, parse_stack_trace=parse_stack_trace, dot_graph_shape=dot_graph_shape)
    made = drawer.get_main_dot_graph()
    write = getattr(made, "write_" + ending.lstrip("."))
    write(f"{base}{ending}") if prog is None else write(f"{base}{ending}", prog=prog)


__all__ = ["default_partition", "draw_graph", "min_cut_rematerialization_partition"]
