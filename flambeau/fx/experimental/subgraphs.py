"""Nodes of operators of functions: each function is traced to a module of its own, which the node refers to.

A tensor that a function reads and does not compute is one more argument of all functions of the operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch

from ..._higher_order_ops.cond import cond_op
from ..._higher_order_ops.map import map_impl
from ..._higher_order_ops.out_dtype import out_dtype
from ..._higher_order_ops.scan import scan_op
from ..._higher_order_ops.while_loop import while_loop_op
from ...func.functional import Frame, frames
from ...ops.function_operators import HigherOrderOperator
from ...random import fork_rng
from .._lazy_graph_module import _make_graph_module

__all__ = ["Subgraphs", "record"]


class Subgraphs:
    """The functions of an operator as modules.

    Args:
        tracer: the tracer of the graph that contains the operator.
        trace: traces a function: (tracer, function, arguments) -> graph.
        functions: what to call each module -> the function.
        operands: the arguments of all functions.

    Attributes:
        lifted: the tensors that the functions read besides, their last arguments.
        modules: the modules, by name.
    """

    def __init__(self, tracer: Any, trace: Callable[..., Any], functions: dict[str, Callable[..., Any]],
                 operands: list[Any]) -> None:
        self.tracer, self.trace = tracer, trace
        number = 0
        while any(hasattr(tracer.root, f"{name}_{number}") for name in functions):
            number += 1
        self.lifted: list[Any] = []
        read = []
        for name, function in functions.items():  # to find what they read
            self.lifted = []
            self._module(name, function, operands)
            read.append(_sorted_by_name(self.lifted, function))
        self.lifted = _merged(read)
        self.modules = {}
        for name, function in functions.items():
            module = self._module(name, function, operands)
            setattr(tracer.root, f"{name}_{number}", module)
            self.modules[f"{name}_{number}"] = module

    def _module(self, name: str, function: Callable[..., Any], operands: list[Any]) -> Any:
        tracer = self.tracer.for_subgraph(name, [*operands, *self.lifted], self.lifted)
        count = len(operands)

        def on_operands(*values: Any) -> Any:
            return function(*values[:count])

        on_operands.__annotations__.clear()
        frames_before = frames[:]
        if frames:  # a functionalized call: the subgraph's writes are its own
            frames.append(Frame(frames[-1].copies))
        try:
            with fork_rng(devices=[]):
                graph = self.trace(tracer, on_operands, (*operands, *self.lifted))
        finally:
            frames[:] = frames_before
        return _make_graph_module(tracer.root, graph, name)

    def nodes(self) -> list[Any]:
        """A node for each module."""
        return [self.tracer.create_proxy("get_attr", name, (), {}) for name in self.modules]


def _sorted_by_name(tensors: list[Any], function: Any) -> list[Any]:
    """Tensors in the order of the names under which a function's closure has them; others are last."""
    function = getattr(function, "function", function)
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    order = {id(cell.cell_contents): name for name, cell in zip(names, getattr(function, "__closure__", None) or (),
                                                                strict=False)}
    return sorted(tensors, key=lambda x: (id(x) not in order, order.get(id(x), "")))


def _merged(read: list[list[Any]]) -> list[Any]:
    """What all functions read, then what is read by the first one only, by the second one only."""
    first, *others = read
    shared = [x for x in first if all(any(x is y for y in other) for other in others)]
    found = [*shared]
    for tensors in read:
        found.extend(x for x in tensors if not any(x is y for y in found))
    return found


def record(mode: Any, trace: Callable[..., Any], disabled: Callable[[], Any], op: HigherOrderOperator,
           args: tuple[Any, ...]) -> Any:
    """Make the node of an operator; its result.

    Args:
        mode: the mode that makes nodes.
        trace: traces a function.
        disabled: a context manager in which no nodes are made.

    Raises:
        NotImplementedError: an operator that has no rule here.
        RuntimeError: the branches' results differ in number, shape or dtype, or a function writes to its arguments.
    """
    tracer = mode.tracer
    if op is out_dtype:
        return _record_of_tensors(tracer, disabled, op, args)
    with disabled():
        if op is cond_op:
            pred, true_fn, false_fn, operands = args
            made = Subgraphs(tracer, trace, {"true_graph": true_fn, "false_graph": false_fn}, list(operands))
            _check_branches(*made.modules.values())
        elif op is while_loop_op:
            cond_fn, body_fn, carried, additional = args
            made = Subgraphs(tracer, trace, {"while_loop_cond_graph": cond_fn, "while_loop_body_graph": body_fn},
                             [*carried, *additional])
        elif op is map_impl:
            f, xs, extra = args
            made = Subgraphs(tracer, trace, {"body_graph": f}, [*(x[0] for x in xs), *extra])
        elif op is scan_op:
            combine_fn, init, xs, extra = args
            made = Subgraphs(tracer, trace, {"scan_combine_graph": combine_fn}, [*init, *(x[0] for x in xs), *extra])
        else:
            raise NotImplementedError(f"flambeau does not trace the HigherOrderOperator {op.name()}")
        result = op(*args)
    if op is cond_op:
        given: tuple[Any, ...] = (pred, *made.nodes(), (*operands, *made.lifted))
    elif op is while_loop_op:
        given = (*made.nodes(), tuple(carried), (*additional, *made.lifted))
    elif op is scan_op:
        given = (*made.nodes(), list(init), list(xs), (*extra, *made.lifted))
    else:
        given = (*made.nodes(), list(xs), [*extra, *made.lifted])
    if frames and frames[-1].functionalizer is not None:
        for x in torch.utils._pytree.tree_leaves(given):
            if id(x) in tracer.tensor_tracker:
                frames[-1].functionalizer.read(x)
    proxy = tracer.create_proxy("call_function", op, given, {}, name=op.name())
    with disabled():
        result = tuple(x.view_as(x) if id(x) in tracer.tensor_tracker else x for x in result)  # a returned operand
        tracer.track(result, proxy)
    return result


def _record_of_tensors(tracer: Any, disabled: Callable[[], Any], op: HigherOrderOperator, args: tuple[Any, ...]) -> Any:
    """Make the node of an operator without functions that returns a tensor; its result."""
    with disabled():
        result = op(*args)
    proxy = tracer.create_proxy("call_function", op, args, {}, name=op.name())
    with disabled():
        tracer.track(result, proxy)
    return result


def _results(module: Any) -> list[Any]:
    """The metadata of a module's results."""
    output = next(node for node in module.graph.nodes if node.op == "output")
    return [getattr(arg, "meta", {}).get("val", arg) for arg in output.args[0]]


def _check_branches(true_graph: Any, false_graph: Any) -> None:
    a, b = _results(true_graph), _results(false_graph)
    if len(a) != len(b):
        raise RuntimeError(f"Unmatched number of outputs from cond() branches: {len(a)} and {len(b)}.")
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if isinstance(x, torch.Tensor) != isinstance(y, torch.Tensor) or (isinstance(x, torch.Tensor) and (
                x.dtype != y.dtype or x.shape != y.shape)):
            raise RuntimeError(f"When merging two branches' output in torch.cond, result {i} differs: "
                               f"{_described(x)} and {_described(y)}")


def _described(x: Any) -> str:
    return f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else f"a {type(x).__name__}"
