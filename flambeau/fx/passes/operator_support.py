"""Which nodes a backend supports."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

from .._compatibility import compatibility
from ..node import Node
from .shape_prop import TensorMetadata
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]

TargetTypeName = str
SupportedArgumentDTypes = Any
SupportDict = Mapping[str, Any]
IsNodeSupported = Callable[[Mapping[str, Any], Node], bool]


@compatibility(is_backward_compatible=False)
class OperatorSupportBase(abc.ABC):
    """The base of what knows which nodes are supported."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Whether a node is supported.

        Args:
            submodules: path -> module.
            node: the node.
        """
        raise NotImplementedError


@compatibility(is_backward_compatible=False)
class OperatorSupport(OperatorSupportBase):
    """Nodes are supported by target and dtypes.

    Args:
        support_dict: name of the target -> None, or (dtypes of each positional argument or None, name of a keyword
            argument -> dtypes).
    """

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Whether a node is supported; nodes that call nothing are."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        supported = self._support_dict[target]
        if supported is None:
            return True
        positional, named = supported
        pairs = [*zip(node.args, positional, strict=False),
                 *((node.kwargs[name], dtypes) for name, dtypes in named.items() if name in node.kwargs)]
        return all(_get_arg_dtype(arg) in dtypes for arg, dtypes in pairs
                   if dtypes is not None and isinstance(arg, Node))


@compatibility(is_backward_compatible=False)
def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """The operator support of a function."""
    class FunctionalOperatorSupport(OperatorSupportBase):
        def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
            return is_node_supported(submodules, node)

    return FunctionalOperatorSupport()


@compatibility(is_backward_compatible=False)
def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What supports the nodes that all of several support."""
    return create_op_support(lambda modules, node: all(each.is_node_supported(modules, node) for each in op_support))


@compatibility(is_backward_compatible=False)
def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What supports the nodes that any of several supports."""
    return create_op_support(lambda modules, node: any(each.is_node_supported(modules, node) for each in op_support))


@compatibility(is_backward_compatible=False)
class OpSupports:
    """Conditions from which others are made."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: Any) -> OperatorSupportBase:
        """Nodes no argument of which has a dtype."""
        return create_op_support(lambda _, node: all(_get_arg_dtype(arg) != dtype for arg in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Nodes whose name is not in a set."""
        return create_op_support(lambda _, node: node.name not in disallow_set)


def _get_arg_dtype(arg: Node) -> Any:
    if not isinstance(arg, Node):
        raise AssertionError(f"Expected torch.fx.Node, got {type(arg)}")
    meta = arg.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else arg.meta["type"]
