"""`torch._functorch.compilers`: what programs pass to AOTAutograd as compilers of its graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import flambeau as torch

from ..._subclasses.fake_tensor import FakeTensor
from ...fx.graph_module import GraphModule
from ...fx.interpreter import Interpreter
from .aot_autograd import aot_function, aot_module, make_boxed_compiler
from .compile_utils import strip_overloads
from .partitioners import draw_graph, min_cut_rematerialization_partition

#: decompositions of `memory_efficient_fusion`: operators are taken apart when they are compiled
default_decompositions: dict[Any, Callable[..., Any]] = {}


@make_boxed_compiler
def nop(fx_g: GraphModule, _: Sequence[Any]) -> GraphModule:
    """Return the graph: its operators run one by one.

    >>> import flambeau as torch
    >>> from flambeau.compiler.functorch import aot_autograd, compilers
    >>> aot_autograd.aot_function(lambda x: x * 2, compilers.nop)(torch.ones(2))
    tensor([2., 2.])
    """
    return fx_g


@make_boxed_compiler
def print_compile(fx_g: GraphModule, _: Sequence[Any]) -> GraphModule:
    """Print the graph's code and return the graph."""
    print(fx_g.code)
    return fx_g


class DebugInterpreter(Interpreter):
    """Runs a graph and compares size, strides, dtype and device of each result with what the trace noted."""

    def run_node(self, n: Any) -> Any:
        """The result of a node.

        Raises:
            AssertionError: it has other metadata than when it was traced.
        """
        result = super().run_node(n)
        expected = n.meta.get("val")
        if isinstance(result, torch.Tensor) and isinstance(expected, torch.Tensor):
            for name in ("shape", "dtype"):
                if getattr(result, name) != getattr(expected, name):
                    raise AssertionError(f"{n.name}: {name} is {getattr(result, name)}, "
                                         f"was {getattr(expected, name)} when it was traced")
        return result


@make_boxed_compiler
def debug_nop(fx_g: GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
    """Run the graph with checks of each result's metadata (`DebugInterpreter`)."""
    return DebugInterpreter(fx_g).run


@make_boxed_compiler
def debug_compile(fx_g: GraphModule, inps: Sequence[Any]) -> Callable[..., Any]:
    """Print the graph and its inputs, and run it with checks (`debug_nop`)."""
    print(f"graph of {len(inps)} inputs: {[(x.shape, x.dtype) if isinstance(x, torch.Tensor) else x for x in inps]}")
    print(fx_g.code)
    return DebugInterpreter(fx_g).run


@make_boxed_compiler
def ts_compile(fx_g: GraphModule, inps: Sequence[Any]) -> Any:
    """A graph as a frozen scripted module, which runs once where all inputs are tensors with elements.

    Args:
        fx_g: the graph, whose overloads become operators.
        inps: its inputs.

    >>> import flambeau as torch
    >>> from flambeau.compiler.functorch import aot_autograd, compilers
    >>> aot_autograd.aot_function(lambda x: x.sin() * 2, compilers.ts_compile)(torch.zeros(2))
    tensor([0., 0.])
    """
    strip_overloads(fx_g)
    for node in fx_g.graph.nodes:
        if node.target is torch.ops.aten._to_copy and len(node.args) == 1 and [*node.kwargs] == ["dtype"]:
            node.target = torch.ops.aten.to
        node.kwargs = {name: value.type if isinstance(value, torch.device) else value
                       for name, value in node.kwargs.items()}
    fx_g.graph.lint()
    fx_g.recompile()
    scripted = torch.jit.freeze(torch.jit.script(fx_g).eval())
    if all(isinstance(x, torch.Tensor) and not isinstance(x, FakeTensor) for x in inps):
        scripted(*inps)
    return scripted


def simple_ts_compile(fx_g: GraphModule, _: Sequence[Any]) -> Any:
    """A graph as a frozen scripted module (`ts_compile`), which does not run yet."""
    strip_overloads(fx_g)
    return torch.jit.freeze(torch.jit.script(fx_g).eval())


def draw_graph_compile(name: str) -> Callable[..., Any]:
    """A compiler that draws the graph to a file (`partitioners.draw_graph`) and returns the graph."""
    return make_boxed_compiler(partial(_draw, name))


def _draw(name: str, fx_g: GraphModule, inps: Sequence[Any]) -> GraphModule:
    print(fx_g.code)
    draw_graph(fx_g, name)
    return fx_g


@make_boxed_compiler
def _fused(fx_g: GraphModule, inps: Sequence[Any]) -> Callable[..., Any]:
    compiled: Callable[..., Any] = torch.compile(fx_g)
    return compiled


def memory_efficient_fusion(fn: Callable[..., Any] | torch.nn.Module, **kwargs: Any) -> Any:
    """A function or module whose graphs are compiled and whose backward pass recomputes what is cheap.

    Args:
        fn: the function or module.
        kwargs: arguments of `aot_function` that replace these.

    >>> import flambeau as torch
    >>> from flambeau.compiler.functorch.compilers import memory_efficient_fusion
    >>> x = torch.zeros(2, requires_grad=True)
    >>> memory_efficient_fusion(lambda x: x.exp().sin())(x).sum().backward()
    >>> x.grad
    tensor([0.5403, 0.5403])
    """
    config = {"fw_compiler": _fused, "bw_compiler": _fused, "partition_fn": min_cut_rematerialization_partition,
              "decompositions": default_decompositions, **kwargs}
    return aot_module(fn, **config) if isinstance(fn, torch.nn.Module) else aot_function(fn, **config)


__all__ = ["DebugInterpreter", "debug_compile", "debug_nop", "default_decompositions", "draw_graph_compile",
           "memory_efficient_fusion", "nop", "print_compile", "simple_ts_compile", "ts_compile"]
