"""Normal forms: arguments matched to signatures, functions as operators."""

from __future__ import annotations

import operator
from typing import Any

import flambeau as torch

from ..interpreter import Transformer
from ..node import Node, map_aggregate
from ..operator_schemas import create_type_hint, normalize_function, normalize_module
from ..proxy import Proxy
from .schema_type_annotation import AnnotateTypesWithSchema


class NormalizeArgs(Transformer):
    """Matches the arguments of calls to signatures, defaults included.

    Args:
        module: the module.
        normalize_to_only_use_kwargs: whether all arguments are given by keyword.
    """

    def __init__(self, module: Any, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.node_map: dict[Any, Node] = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        """Execute a node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)

        def type_of(arg: Any) -> Any:
            return n.meta.get("type") if isinstance(arg, Node) else type(arg)

        arg_types = tuple(create_type_hint(each) for each in map_aggregate(n.args, type_of))
        if n.op == "call_function":
            out = self.call_function(n.target, args, kwargs, arg_types,
                                     {name: type_of(value) for name, value in kwargs.items()})
        else:
            out = super().run_node(n)
        if n.op != "output":
            self.node_map[out] = n
            out.node.meta, out.node.type = n.meta, n.type
        return out

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
                      arg_types: tuple[Any, ...] | None = None, kwarg_types: dict[str, Any] | None = None) -> Proxy:
        """The call of a function in the new graph."""
        found = normalize_function(target, args, kwargs, arg_types, kwarg_types, self.normalize_to_only_use_kwargs)
        if found is not None:
            return self.tracer.create_proxy("call_function", target, *found)
        return super().call_function(target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a submodule in the new graph."""
        found = normalize_module(self.module, target, args, kwargs, self.normalize_to_only_use_kwargs)
        return super().call_module(target, *(found or (args, kwargs)))


class NormalizeOperators(AnnotateTypesWithSchema):
    """Replaces functions by the operators of Python that call them: `torch.add(x, y)` by `x + y`."""

    binary_magic_method_remap = {  # noqa: RUF012  (the name and type are PyTorch's)
        torch.add: operator.add, torch.mul: operator.mul, torch.sub: operator.sub, torch.div: operator.truediv,
        torch.floor_divide: operator.floordiv, torch.remainder: operator.mod, torch.eq: operator.eq,
        torch.ne: operator.ne, torch.lt: operator.lt, torch.le: operator.le, torch.gt: operator.gt,
        torch.ge: operator.ge}

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a function in the new graph."""
        if target in self.binary_magic_method_remap and len(args) == 2:
            return super().call_function(self.binary_magic_method_remap[target], args, {})
        return super().call_function(target, args, kwargs)
