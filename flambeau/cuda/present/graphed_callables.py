"""`make_graphed_callables`: functions and modules whose passes are CUDA graphs over static tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor.dispatch.gradient_edge import gradient_edge
from ..._tensor.tensor import wrap
from ...amp import state as autocast
from ...backends.cuda_devices import current_runtime
from ...engine.api import gradients_of
from ...engine.grad_mode import grad_mode, no_grad
from ...engine.nodes.node import Node, next_number
from ...trees import tree_flatten, tree_unflatten
from .graphs import CUDAGraph, graph, graph_pool_handle
from .streams import Stream, current_stream, stream


def _gradients(outputs: Sequence[Any], inputs: Sequence[Any], seeds: Sequence[Any], allow_unused: bool) -> Any:
    return gradients_of(outputs, inputs, seeds, False, False, allow_unused, False)


class GraphedBackward(Node):
    """The node of a graphed callable: its backward pass is a replay."""

    __slots__ = ("graphed",)

    def __init__(self, graphed: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.edges = tuple([gradient_edge(x) if x._requires_grad else None for x in inputs])
        numbers = tuple([x._output_nr for x in inputs])
        self.edge_outputs = numbers if any(numbers) else None
        self.outputs = None if len(outputs) == 1 else tuple([(x._array.shape, x._array.dtype) for x in outputs])
        self.extra = self.run = None
        self.seq = next_number()
        self.graphed = graphed

    def vjp(self, cotangents: Any, tensors: bool, wanted: Any = None) -> Any:
        """The gradients of arguments and parameters, from a replay on the cotangents."""
        graphed = self.graphed
        given = list(cotangents) if self.outputs is not None else [cotangents]
        with no_grad():
            for seed, g in zip(graphed.seeds, given, strict=True):
                if seed is None or g is None:
                    if seed is not None:
                        seed.zero_()
                    continue
                g = g if isinstance(g, Tensor) else wrap(g)
                if seed.data_ptr() != g.data_ptr():
                    seed.copy_(g)
        graphed.backward_graph.replay()
        found = [None if g is None else g.detach() for g in graphed.gradients]
        return found if tensors else [None if g is None else g._array for g in found]


class _Graphed:
    """A callable's forward and backward passes as graphs over static tensors."""

    def __init__(self, function: Callable[..., Any], sample: tuple[Any, ...], pool: Any) -> None:
        self.parameters = tuple(function.parameters()) if hasattr(function, "parameters") else ()
        leaves, self.tree = tree_flatten(sample)
        self.inputs = (*leaves, *self.parameters)
        self.count, self.function, self.pool = len(leaves), function, pool
        self.forward_graph, self.backward_graph = CUDAGraph(), CUDAGraph()

    def warm_up(self, iterations: int, sample: tuple[Any, ...], allow_unused: bool) -> None:
        """Run both passes, so that kernels are loaded."""
        wanted = [x for x in self.inputs if x.requires_grad]
        for _ in range(iterations):
            outputs = [x for x in tree_flatten(self.function(*sample))[0] if x.requires_grad]
            if outputs:
                _gradients(outputs, wanted, [x.new_ones(x.shape) for x in outputs], allow_unused)

    def capture_forward(self, sample: tuple[Any, ...]) -> None:
        """Capture the forward pass."""
        with graph(self.forward_graph, pool=self.pool):
            outputs, self.output_tree = tree_flatten(self.function(*sample))
        self.outputs = tuple(outputs)

    def capture_backward(self, allow_unused: bool) -> None:
        """Capture the backward pass."""
        differentiable = [x for x in self.outputs if x.requires_grad]
        self.seeds = tuple(x.new_empty(x.shape) if x.requires_grad else None for x in self.outputs)
        wanted = [x for x in self.inputs if x.requires_grad]
        found: Any = ()
        if differentiable:
            with graph(self.backward_graph, pool=self.pool):
                found = _gradients(differentiable, wanted, [x for x in self.seeds if x is not None], allow_unused)
        remaining = iter(found)
        self.gradients = tuple(next(remaining, None) if x.requires_grad else None for x in self.inputs)

    def __call__(self, *args: Any) -> Any:
        """Copy the arguments, replay the forward pass; the results are those of one node of the autograd graph."""
        given = [*tree_flatten(args)[0], *self.parameters]
        with no_grad():
            for static, x in zip(self.inputs, given[:self.count], strict=False):
                if static.data_ptr() != x.data_ptr():
                    static.detach().copy_(x)
        self.forward_graph.replay()
        outputs = [x.detach() for x in self.outputs]
        if grad_mode.get() and any(x.requires_grad for x in given):
            node = GraphedBackward(self, given, outputs)
            for number, (out, static) in enumerate(zip(outputs, self.outputs, strict=True)):
                if static.requires_grad:
                    out._requires_grad, out._node, out._output_nr = True, node, number
        return tree_unflatten(outputs, self.output_tree)


def make_graphed_callables(callables: Any, sample_args: Any, num_warmup_iters: int = 3,
                           allow_unused_input: bool = False, pool: Any = None) -> Any:
    """Functions or modules whose forward and backward passes are CUDA graphs.

    Args:
        callables: a function or module, or a tuple of them.
        sample_args: tensors like the later arguments; a tuple of such tuples for several callables.
        num_warmup_iters: how often each runs before it is captured.
        allow_unused_input: whether inputs may be unused.
        pool: the memory that the graphs share.

    Raises:
        RuntimeError: autocast with its cache is active.
        AssertionError: an argument is no tensor, or a module has hooks or trainable buffers (PyTorch's texts).
    """
    if autocast.casts_to() is not None and autocast.is_autocast_cache_enabled():
        raise RuntimeError("make_graphed_callables does not support the autocast caching. Please set "
                           "`cache_enabled=False`.")
    single = not isinstance(callables, tuple)
    functions = (callables,) if single else callables
    samples = (sample_args,) if single else sample_args
    for function, sample in zip(functions, samples, strict=True):
        _check(function, sample)
    pool = graph_pool_handle() if pool is None else pool
    made = [_Graphed(function, sample, pool) for function, sample in zip(functions, samples, strict=True)]
    runtime = current_runtime()
    runtime.synchronize(runtime.current_device(), None)
    side = Stream()
    side.wait_stream(current_stream())
    with stream(side):
        for each, sample in zip(made, samples, strict=True):
            each.warm_up(num_warmup_iters, sample, allow_unused_input)
    runtime.synchronize(runtime.current_device(), None)
    for each, sample in zip(made, samples, strict=True):
        each.capture_forward(sample)
    for each in reversed(made):
        each.capture_backward(allow_unused_input)
    results = [_replaced(function, each) for function, each in zip(functions, made, strict=True)]
    return results[0] if single else tuple(results)


def _check(function: Any, sample: tuple[Any, ...]) -> None:
    """Check a callable and its sample.

    Raises:
        AssertionError: a module with hooks or trainable buffers, or an argument that is no tensor.
    """
    if hasattr(function, "_forward_hooks"):
        if function._backward_hooks or function._forward_hooks or function._forward_pre_hooks:
            raise AssertionError("Modules must not have hooks registered at the time they are passed. However, "
                                 "registering hooks on modules after passing them through make_graphed_callables is "
                                 "allowed.")
        if any(each.requires_grad for each in function.buffers()):
            raise AssertionError("In any :class:`~torch.nn.Module` passed to :func:`~make_graphed_callables`, only "
                                 "parameters may be trainable. All buffers must have ``requires_grad=False``.")
    if not all(isinstance(x, Tensor) for x in tree_flatten(sample)[0]):
        raise AssertionError("In the beta API, sample_args for each callable must contain only Tensors. Other types "
                             "are not allowed.")


def _replaced(function: Any, graphed: _Graphed) -> Any:
    """A module whose `forward` is the graphed one in the mode of the capture; a function in place of a function."""
    if not hasattr(function, "parameters"):
        return graphed
    mode, original = function.training, function.forward
    function.forward = lambda *args: graphed(*args) if function.training == mode else original(*args)
    return function


NAMES: dict[str, Any] = {"make_graphed_callables": make_graphed_callables}

__all__ = ["NAMES", "GraphedBackward", "make_graphed_callables"]
