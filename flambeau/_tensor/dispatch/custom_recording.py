"""Running a user's `Function`: its forward without recording, then its node as the history of the outputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ...engine.anomaly_mode import Anomaly, remember
from ...engine.grad_mode import grad_mode, no_grad
from ...engine.nodes.node import NodeType, next_number
from ...modes import forward_mode, special, transforming, transforms
from ..tensor import Tensor
from .custom_node import FunctionNode
from .custom_outputs import hang_outputs
from .custom_tangents import push_tangents
from .forward_mode import below, levels_of
from .gradient_edge import gradient_edge
from .interception import told_custom


def recorded(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a Function's `forward` and make its node the history of what it returned."""
    node: FunctionNode = object.__new__(cls._backward_cls if not transforms[0] else _node_class(cls))
    apart = cls.setup_context is not node._function_class.setup_context
    if apart:
        args, kwargs = _with_defaults(cls.forward, args, kwargs)
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
        remember(node)
    plain = args
    levels: Sequence[int] = ()
    if special[0]:
        levels = levels_of(args)
        if levels:
            plain = _without_tangents(args, levels[0])
    with no_grad(), without_tangents():
        if apart:
            output = cls.forward(*plain, **kwargs)
            cls.setup_context(node, plain, output)
        else:
            output = cls.forward(node, *plain, **kwargs)
    single = not isinstance(output, tuple)
    given = {id(p): x for p, x in zip(plain, args, strict=True) if isinstance(x, Tensor)}
    outputs = hang_outputs(node, given, [output] if single else output, executable, apart)
    if executable:
        node.keep(outputs)
    if levels:
        for level in levels:
            push_tangents(cls, node, level, args, plain, outputs)
    if special[0] and executable:
        told_custom(node, args, outputs)
    return outputs[0] if single else tuple(outputs)


class without_tangents:
    """A block in which forward mode is off: a Function's own operators push no tangents, its `jvp` does."""

    def __enter__(self) -> None:
        self._token = forward_mode.set(False)

    def __exit__(self, *exception: object) -> None:
        forward_mode.reset(self._token)


def _node_class(cls: Any) -> Any:
    """The class of a Function's nodes: under a transform, as in PyTorch, one whose name says so."""
    if not transforming.get():
        return cls._backward_cls
    made = cls.__dict__.get("_generated_cls")
    if made is None:
        made = cls._generated_cls = NodeType(f"{cls.__name__}GeneratedBackward", (cls._backward_cls,), {})
    return made


def _with_defaults(forward: Callable[..., Any], args: tuple[Any, ...],
                   kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with those that were named, or left out, in their places: `setup_context` is given all of them."""
    code = getattr(forward, "__code__", None)
    if not kwargs and code is not None and code.co_argcount == len(args) and not code.co_kwonlyargcount:
        return args, kwargs
    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def _without_tangents(args: tuple[Any, ...], level: int) -> tuple[Any, ...]:
    """The arguments as the levels outside `level` see them, each sharing its version."""
    found = []
    for x in args:
        if isinstance(x, Tensor) and x._tangents:
            if x._counter is None:
                x._counter = [0]
            x = below(x, level)
        found.append(x)
    return tuple(found)
