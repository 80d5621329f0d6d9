"""Calls of user-defined Functions: forward runs without recording, then its node is connected to inputs and outputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ...engine.anomaly_mode import Anomaly, store_traceback
from ...engine.nodes.node import NodeType, next_number
from ...modes import (
    active_transforms,
    dispatch_in_use,
    forward_mode,
    grad_mode,
    inference,
    requested_grad_mode,
    special,
    transform_stack,
)
from ..dispatch.forward_mode import strip_levels, tangent_levels
from ..dispatch.gradient_edge import gradient_edge
from ..dispatch.handlers import handlers
from ..dispatch.interception import notify_custom_function
from ..overriding.dispatch import hold_handlers
from ..tensor import Tensor
from .node import FunctionNode
from .outputs import attach_outputs
from .tangents import push_function_tangents


def apply_function(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a Function's `forward` and make its node the `grad_fn` of the outputs."""
    if special[0] and handlers.record_function is not None:
        recorded = handlers.record_function(cls, args, kwargs)
        if recorded is not NotImplemented:
            return recorded
    node: FunctionNode = object.__new__(cls._backward_cls if not active_transforms[0] else _node_class(cls))
    has_setup_context = cls.setup_context is not node._function_class.setup_context
    if has_setup_context:
        args, kwargs = _bind_defaults(cls.forward, args, kwargs)
    needs: list[bool] = []
    tensors: list[Tensor] = []
    positions: list[int] = []
    for i, x in enumerate(args):
        if isinstance(x, Tensor):
            needs.append(x._requires_grad)
            tensors.append(x)
            positions.append(i)
        else:
            needs.append(False)
    node.needs_input_grad = tuple(needs)
    executable = grad_mode.get() and True in needs
    if executable:
        node.edges = tuple([gradient_edge(x) if x._requires_grad else None for x in tensors])
        numbers = tuple([x._output_nr for x in tensors])
        node.edge_outputs = numbers if any(numbers) else None
    else:
        node.edges, node.edge_outputs = (None,) * len(tensors), None
    node.extra = node.outputs = node.run = None
    node.seq = next_number()
    node._positions = tuple(positions)
    node._n_args = len(args)
    node._input_metas = tuple([(x._array.shape, None if x._grad_type is None else x._array.dtype) for x in tensors])
    if Anomaly.enabled and executable:
        store_traceback(node)
    forward_args = args
    levels: Sequence[int] = ()
    if special[0]:
        levels = tangent_levels(args)
        if levels:
            forward_args = _strip_tangents(args, levels[0])
    recording = requested_grad_mode if inference.get() else grad_mode
    recording_before, forward_mode_before = recording.set(False), forward_mode.set(False)
    try:  # operators inside record nothing and push no tangents: the Function's `jvp` does
        if has_setup_context:
            output = cls.forward(*forward_args, **kwargs)
            cls.setup_context(node, forward_args, output)
        else:
            output = cls.forward(node, *forward_args, **kwargs)
    finally:
        forward_mode.reset(forward_mode_before)
        recording.reset(recording_before)
    single = not isinstance(output, tuple)
    input_tensors = {id(forward_args[i]): x for i, x in zip(positions, tensors, strict=True)}
    outputs = attach_outputs(node, input_tensors, [output] if single else output, executable, has_setup_context)
    if executable:
        node.save_tensors(outputs)
    if levels:
        for level in levels:
            push_function_tangents(cls, node, level, args, forward_args, outputs)
        if executable:
            node._output_tangents = {k: x._tangents for k, x in enumerate(outputs) if isinstance(x, Tensor)}
    if special[0] and executable:
        if dispatch_in_use[0]:
            hold_handlers(node, (*args, *outputs))
        notify_custom_function(node, args, outputs)
    return outputs[0] if single else tuple(outputs)


def _node_class(cls: Any) -> Any:
    """The class of a Function's nodes: inside a transform `<name>GeneratedBackward`, as in PyTorch."""
    if not transform_stack.get():
        return cls._backward_cls
    generated = cls.__dict__.get("_generated_cls")
    if generated is None:
        generated = cls._generated_cls = NodeType(f"{cls.__name__}GeneratedBackward", (cls._backward_cls,),
                                                        {"__module__": cls._backward_cls.__module__})
    return generated


def _bind_defaults(forward: Callable[..., Any], args: tuple[Any, ...],
                   kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """All arguments by position, with defaults filled in, as `setup_context` gets them."""
    code = getattr(forward, "__code__", None)
    if not kwargs and code is not None and code.co_argcount == len(args) and not code.co_kwonlyargcount:
        return args, kwargs
    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def _strip_tangents(args: tuple[Any, ...], level: int) -> tuple[Any, ...]:
    """The arguments without tangents from `level` on, sharing memory and version counters."""
    result = []
    for x in args:
        if isinstance(x, Tensor) and x._tangents:
            if x._counter is None:
                x._counter = [0]
            x = strip_levels(x, level)
        result.append(x)
    return tuple(result)
