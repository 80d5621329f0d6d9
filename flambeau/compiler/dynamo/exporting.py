"""`torch._dynamo.export`: the graph of one call of a function, with the function's own signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import flambeau as torch

from ..._tensor.parameter import Parameter
from ...fx.code.pytree_codegen import _PyTreeCodeGen, _PyTreeInfo
from ...fx.experimental.proxy_tensor import make_fx
from ...fx.tracing.call_recorder import NotRecorded
from ...utils import _pytree as pytree
from ..errors import Unsupported, UserError, UserErrorType
from ..execution.backend_function import record_call
from ..execution.compiled_function import CompiledFunction
from ..module import OptimizedModule

_BRANCH = ("Dynamic control flow is not supported at the moment. Please use torch.cond to explicitly capture the "
           "control flow.")


class ExportResult(NamedTuple):
    """The graph, and the guards under which it is the function's."""

    graph_module: Any
    guards: list[Any]


def export(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], aten_graph: bool,
           decomposition_table: Any, same_signature: bool) -> ExportResult:
    """Export a call; the arguments are those of `torch._dynamo.export`."""
    if isinstance(f, OptimizedModule):
        f = f._orig_mod
    if isinstance(f, CompiledFunction):
        f = f.function
    trace, record, result, _ = record_call(f, args, kwargs)
    if trace.failure is None and not all(guard.of_operator for guard in trace.data_guards):
        raise UserError(UserErrorType.DYNAMIC_CONTROL_FLOW, _BRANCH, "cond_operands")
    if trace.failure is not None:
        raise Unsupported(trace.failure)
    leaves, out_spec = pytree.tree_flatten(result)
    try:
        graph, _ = record.finish([x for x in leaves if isinstance(x, torch.Tensor)])
    except NotRecorded as error:
        raise Unsupported(str(error)) from None
    guards = [] if trace.guard_set is None else [*trace.guard_set.guards.values()]
    if not same_signature:
        return ExportResult(graph, guards)
    _restore_signature(graph, record.sources, f, args, kwargs, leaves, out_spec)
    if aten_graph:
        exported, codegen = graph, graph.graph._codegen
        flat, in_spec = pytree.tree_flatten((args, kwargs))

        def of_leaves(*flat: Any) -> list[Any]:
            new_args, new_kwargs = pytree.tree_unflatten(list(flat), in_spec)
            return pytree.tree_leaves(exported(*new_args, **new_kwargs))

        graph = make_fx(of_leaves, decomposition_table=decomposition_table)(*flat)
        graph.graph._codegen = codegen
        graph.recompile()
    return ExportResult(graph, guards)


def _restore_signature(module: Any, sources: list[Any], f: Callable[..., Any], args: tuple[Any, ...],
                       kwargs: dict[str, Any], leaves: list[Any], out_spec: Any) -> None:
    """Give a graph all arguments of the call, its other tensors as attributes, and the call's result."""
    flat, in_spec = pytree.tree_flatten((args, kwargs))
    graph = module.graph
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    positions = [i for i, x in enumerate(flat) if isinstance(x, torch.Tensor)]
    with graph.inserting_before(placeholders[0] if placeholders else next(iter(graph.nodes))):
        inputs = [graph.placeholder(f"arg{i}") for i in range(len(flat))]
    for number, (node, source) in enumerate(zip(placeholders, sources, strict=True)):
        if isinstance(source, int):
            new = inputs[positions[source]]
            new.meta.update(node.meta)
        else:
            name = f"_tensor_{number}"
            if isinstance(source, Parameter):
                module.register_parameter(name, source)
            else:
                module.register_buffer(name, source)
            with graph.inserting_before(node):
                new = graph.get_attr(name)
        node.replace_all_uses_with(new)
        graph.erase_node(node)
    output = next(node for node in graph.nodes if node.op == "output")
    tensors = iter(output.args[0])
    output.args = ([next(tensors) if isinstance(x, torch.Tensor) else x for x in leaves],)
    names = _argument_names(f, args, kwargs)
    graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, in_spec, out_spec))
    module.recompile()


def _argument_names(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """The names of the arguments of a call, positional ones first."""
    function = f.forward if isinstance(f, torch.nn.Module) else f
    try:
        parameters = [p.name for p in inspect.signature(function).parameters.values()
                      if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    except (TypeError, ValueError):
        parameters = []
    names = [*parameters[:len(args)], *(f"args_{i}" for i in range(len(parameters[:len(args)]), len(args)))]
    return [*names, *kwargs]


__all__ = ["ExportResult", "export"]
