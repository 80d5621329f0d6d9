"""`torch._export.utils`: which inputs of a program's graph are parameters, buffers and constants, and their values."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from ..environment.dispatcher import _dispatch_has_kernel_for_dispatch_key
from ..utils import _pytree


def is_param(program: Any, node: Any) -> bool:
    """Whether a node is an input that stands for a parameter.

    >>> import flambeau as torch
    >>> from flambeau.export.utils import is_param
    >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(2),))
    >>> [node.name for node in program.graph.nodes if is_param(program, node)]
    ['p_weight', 'p_bias']
    """
    return node.name in program.graph_signature.inputs_to_parameters


def get_param(program: Any, node: Any) -> torch.nn.Parameter | None:
    """The parameter that a node stands for; None for another node."""
    name = program.graph_signature.inputs_to_parameters.get(node.name)
    return None if name is None else program.state_dict[name]


def is_buffer(program: Any, node: Any) -> bool:
    """Whether a node is an input that stands for a buffer."""
    return node.name in program.graph_signature.inputs_to_buffers


def get_buffer(program: Any, node: Any) -> torch.Tensor | None:
    """The buffer that a node stands for, persistent or not; None for another node."""
    signature = program.graph_signature
    name = signature.inputs_to_buffers.get(node.name)
    if name is None:
        return None
    kept = program.constants if name in signature.non_persistent_buffers else program.state_dict
    return kept[name]


def is_lifted_tensor_constant(program: Any, node: Any) -> bool:
    """Whether a node is an input that stands for a tensor that is no parameter and no buffer."""
    return node.name in program.graph_signature.inputs_to_lifted_tensor_constants


def get_lifted_tensor_constant(program: Any, node: Any) -> torch.Tensor | None:
    """The constant that a node stands for; None for another node."""
    name = program.graph_signature.inputs_to_lifted_tensor_constants.get(node.name)
    return None if name is None else program.constants[name]


def _is_cia_op(op: Any) -> bool:
    """Whether an operator is composed of others and has no derivative of its own: a composite implicit one.

    >>> import flambeau as torch
    >>> from flambeau.export.utils import _is_cia_op
    >>> _is_cia_op(torch.ops.aten.linear.default), _is_cia_op(torch.ops.aten.relu.default)
    (True, False)
    """
    return _dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")


def register_dataclass_as_pytree_node(cls: type, flatten_fn: Any = None, unflatten_fn: Any = None, *,
                                      serialized_type_name: str | None = None, **options: Any) -> None:
    """`torch.export.register_dataclass`.

    Raises:
        NotImplementedError: functions of its own that flatten it.
    """
    if flatten_fn is not None or unflatten_fn is not None:
        raise NotImplementedError("register_dataclass_as_pytree_node: use torch.utils._pytree.register_pytree_node for "
                                  "functions of your own")
    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)


__all__ = ["get_buffer", "get_lifted_tensor_constant", "get_param", "is_buffer", "is_lifted_tensor_constant",
           "is_param", "register_dataclass_as_pytree_node"]
