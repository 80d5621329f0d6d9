"""Calls of user-defined Functions: forward runs without recording, then its node is connected to inputs and outputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ...engine.anomaly_mode import Anomaly, store_traceback
from ...engine.grad_mode import grad_mode, no_grad
from ...engine.nodes.node import NodeType, next_number
from ...modes import active_transforms, dispatch_in_use, forward_mode, special, transform_stack
from ..overriding.dispatch import hold_handlers
from ..tensor import Tensor
from .custom_node import FunctionNode
from .custom_outputs import attach_outputs
from .custom_tangents import push_function_tangents
from .forward_mode import strip_levels, tangent_levels
from .gradient_edge import gradient_edge
from .handlers import handlers
from .interception import notify_custom_function


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
    tensors = [(i, x) for i, x in enumerate(args) if isinstance(x, Tensor)]
    node.needs_input_grad = tuple(isinstance(x, Tensor) and x._requires_grad for x in args)
    executable = grad_mode.get() and any(node.needs_input_grad)
    node.edges = tuple(gradient_edge(x) if x._requires_grad and executable else None for _, x in tensors)
    numbers = tuple(x._output_nr for _, x in tensors)
    node.edge_outputs = numbers if any(numbers) else None
    node.extra = node.outputs = node.run = None
    node.seq = next_number()
    node._positions = tuple(i for i, _ in tensors)
    node._n_args = len(args)
    node._input_metas = tuple((x._array.shape, None if x._grad_type is None else x._array.dtype) for _, x in tensors)
    if Anomaly.enabled and executable:
        store_traceback(node)
    forward_args = args
    levels: Sequence[int] = ()
    if special[0]:
        levels = tangent_levels(args)
        if levels:
            forward_args = _strip_tangents(args, levels[0])
    with no_grad(), forward_mode_disabled():
        if has_setup_context:
            output = cls.forward(*forward_args, **kwargs)
            cls.setup_context(node, forward_args, output)
        else:
            output = cls.forward(node, *forward_args, **kwargs)
    single = not isinstance(output, tuple)
    input_tensors = {id(p): x for p, x in zip(forward_args, args, strict=True) if isinstance(x, Tensor)}
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


class forward_mode_disabled:
    """A block without forward mode: inside `forward` operators push no tangents, the Function's `jvp` does."""

    def __enter__(self) -> None:
        self._token = forward_mode.set(False)

    def __exit__(self, *exception: object) -> None:
        forward_mode.reset(self._token)


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
