"""Nodes: the operations of a graph, linked in execution order, with the nodes that use each value."""

from __future__ import annotations

import builtins
import operator
import typing
from collections.abc import Callable, Iterator
from typing import Any, Optional, TypeAlias, Union

import flambeau as torch

from ..environment.symbolic import SymBool, SymFloat, SymInt
from ..ops.overloads import OpOverload
from ._compatibility import compatibility
from .code.torch_names import qualified_name as _get_qualified_name
from .code.torch_names import type_name as _type_repr
from .code.torch_names import value_repr
from .immutable_collections import immutable_dict, immutable_list
from .operator_schemas import ArgsKwargsPair, normalize_function, normalize_module
from .purity import _side_effectful_functions, has_side_effect, is_impure

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

BaseArgumentTypes = Union[  # noqa: UP007
    str, int, float, bool, complex, torch.dtype, torch.Tensor, torch.device, torch.memory_format, torch.layout,
    OpOverload, SymInt, SymBool, SymFloat]
base_types = typing.get_args(BaseArgumentTypes)
Target: TypeAlias = Callable[..., Any] | str
Argument = Optional[Any]  # noqa: UP045

_legal_ops = dict.fromkeys(("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"))

_DTYPES = {"bfloat16": "bf16", "float64": "f64", "float32": "f32", "float16": "f16", "float8_e4m3fn": "f8e4m3fn",
           "float8_e5m2": "f8e5m2", "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2fnuz": "f8e5m2fnuz",
           "float8_e8m0fnu": "f8e8m0fnu", "float4_e2m1fn_x2": "f4e2m1fnx2", "complex32": "c32", "complex64": "c64",
           "complex128": "c128", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "bool": "b8",
           "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64"}


def dtype_abbreviation(dtype: Any) -> str:
    """The short name of a dtype in printed graphs: `f32`."""
    name = str(dtype).rpartition(".")[2]
    return _DTYPES.get(name, name)


def stringify_shape(shape: Any) -> str:
    """Sizes in brackets: `[2, 3]`."""
    return f"[{', '.join(map(str, shape))}]"


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    custom = getattr(arg, "_custom_fx_repr_fn", None)
    if custom is not None:
        return custom()
    if isinstance(arg, Node):
        return f"%{arg}"
    if isinstance(arg, (list, tuple)):
        items = ", ".join(_format_arg(item) for i, item in enumerate(arg) if i < max_list_len)
        rest = "" if len(arg) < max_list_len + 1 else f", ...[total_len={len(arg)}]"
        if isinstance(arg, list):
            return f"[{items}{rest}]"
        return f"({items}{',' if len(arg) == 1 else ''}{rest})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_format_arg(value)}" for key, value in arg.items()) + "}"
    return arg if isinstance(arg, str) else _str(arg)


def _str(arg: Any) -> str:
    text = value_repr(arg)
    return text if text != repr(arg) else str(arg)


class Node:
    """An operation of a graph, and the value that it computes.

    Attributes:
        op: `placeholder`, `get_attr`, `call_function`, `call_module`, `call_method` or `output`.
        target: the function; otherwise the name of the argument, attribute, module or method.
        args, kwargs: the arguments; nodes among them are the values that these nodes compute.
        name: the unique name of the value.
        users: the nodes that use the value, as keys.
        type: the annotation of the value.
        meta: data that transformations attach; copies of the node keep it.

    >>> import flambeau as torch
    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(torch.relu, (x,))
    >>> y.args, list(x.users)
    ((x,), [relu])
    """

    graph: Any
    name: str
    op: str
    target: Any
    type: Any
    users: dict[Node, None]
    meta: dict[str, Any]
    _repr_fn: Callable[[Node], str] | None
    _args: tuple[Any, ...]
    _kwargs: dict[str, Any]
    _input_nodes: dict[Node, None]
    _prev: Node
    _next: Node
    _sort_key: tuple[int, ...]

    def __init__(self, graph: Any, name: str, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
                 return_type: Any = None) -> None:
        if op == "call_function":
            if not callable(target):
                raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                                 f"{torch.typename(target)} but a Callable is expected")
        elif op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        elif not isinstance(target, str):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                             f"{torch.typename(target)} but a str is expected")
        own = self.__dict__
        own.update(graph=graph, name=name, op=op, target=target, type=return_type, users={}, meta={}, _repr_fn=None,
                   _args=(), _kwargs=immutable_dict(), _input_nodes={}, _prev=self, _next=self, _sort_key=(),
                   _erased=False)
        self._update_args_kwargs(args, kwargs)

    # -- the list ------------------------------------------------------------------------------------

    @property
    def next(self) -> Node:
        """The following node."""
        return self._next

    @property
    def prev(self) -> Node:
        """The preceding node."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move a node of the same graph before this one."""
        self._prepend(x)

    def append(self, x: Node) -> None:
        """Move a node of the same graph after this one."""
        self._next._prepend(x)

    def _prepend(self, x: Node) -> None:
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        for node, name, value in ((before, "_next", x), (x, "_prev", before), (x, "_next", self), (self, "_prev", x)):
            node.__dict__[name] = value
        low, high = before._sort_key, self._sort_key
        if not low:  # at the beginning
            key: tuple[int, ...] = (high[0] - 1,) if high else (0,)
        elif not high:  # at the end
            key = (low[0] + 1,)
        else:
            key = _key_between(low, high)
        x.__dict__["_sort_key"] = key

    def _remove_from_list(self) -> None:
        before, after = self._prev, self._next
        before.__dict__["_next"], after.__dict__["_prev"] = after, before

    def __lt__(self, other: Node) -> bool:
        return self._sort_key < other._sort_key

    def __gt__(self, other: Node) -> bool:
        return self._sort_key > other._sort_key

    def __le__(self, other: Node) -> bool:
        return self is other or self._sort_key < other._sort_key

    def __ge__(self, other: Node) -> bool:
        return self is other or self._sort_key > other._sort_key

    # -- arguments -----------------------------------------------------------------------------------

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments; assignment updates the users of the nodes among them."""
        return self._args

    @args.setter
    def args(self, a: tuple[Any, ...]) -> None:
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments; assignment updates the users of the nodes among them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._update_args_kwargs(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def _update_args_kwargs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        own = self.__dict__
        for used in self._input_nodes:
            used.users.pop(self, None)
        inputs: dict[Node, None] = {}
        own["_input_nodes"] = inputs

        def use(node: Node) -> Node:
            inputs.setdefault(node)
            node.users.setdefault(self)
            return node

        own["_args"] = map_arg(tuple(args), use)
        own["_kwargs"] = map_arg(dict(kwargs), use)

    def _replace_input_with(self, old_input: Node, new_input: Node) -> None:
        def replace(node: Node) -> Node:
            return new_input if node is old_input else node

        self._update_args_kwargs(map_arg(self._args, replace), map_arg(self._kwargs, replace))

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace the positional argument at an index."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Insert a positional argument before an index."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"insert_args index must be between 0 and len(self.args), got {idx}")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set a keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *,
                              propagate_meta: bool = False) -> list[Node]:
        """Make the users of this node use another one.

        Args:
            replace_with: the other node.
            delete_user_cb: which users are changed; None: all.
            propagate_meta: give `replace_with`, which has no `meta` yet, the `meta` of this node.

        Returns:
            The nodes that were changed.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError("Called node.replace_all_uses_with(replace_with, propagate_meta=True), "
                                     "but replace_with already has .meta keys")
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        hooks = getattr(self.graph.owning_module, "_replace_hooks", None) or ()
        for user in changed:
            for hook in hooks:
                hook(old=self, new=replace_with.name, user=user)
            user._replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace an argument by another one wherever it stands."""
        for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
            hook(old=old_input, new=new_input.name, user=self)
        self._replace_input_with(old_input, new_input)

    def normalized_arguments(self, root: Any, arg_types: tuple[Any, ...] | None = None,
                             kwarg_types: dict[str, Any] | None = None,
                             normalize_to_only_use_kwargs: bool = False) -> ArgsKwargsPair | None:
        """The arguments matched to the signature of the function or module, defaults included.

        Args:
            root: the module in which module targets are looked up.
            arg_types: the types of the positional arguments, to choose among overloads.
            kwarg_types: the types of the keyword arguments.
            normalize_to_only_use_kwargs: whether all arguments are given by keyword.

        Returns:
            The arguments; None if the target has no usable signature.
        """
        if self.op == "call_function":
            return normalize_function(self.target, self.args, self.kwargs, arg_types, kwarg_types,
                                      normalize_to_only_use_kwargs=normalize_to_only_use_kwargs)
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs,
                                    normalize_to_only_use_kwargs=normalize_to_only_use_kwargs)
        return None

    # -- properties ----------------------------------------------------------------------------------

    @property
    def stack_trace(self) -> str | None:
        """The Python stack where the node was recorded, if the tracer records it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether removing the node changes more than its value: side effects, inputs, outputs.

        Args:
            impure_random: whether drawing random numbers is a side effect.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            if self.graph.owning_module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            module = self.graph.owning_module.get_submodule(self.target)
            if module is None:
                raise AssertionError(f"Did not find expected submodule target {self.target}")
            return getattr(module, "_is_impure", False)
        return self.op == "call_function" and is_impure(self.target, self.args, self.kwargs, impure_random)

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if name == "name" and "name" in own:
            for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
                if not isinstance(value, str):
                    raise AssertionError(f"Expected value to be str, got {builtins.type(value)}")
                for user in self.users:
                    hook(old=self, new=value, user=user)
        table = getattr(own.get("graph"), "_find_nodes_lookup_table", None) if name in ("op", "target") else None
        listed = table is not None and self in table
        if table is not None and listed:
            table.remove(self)
        object.__setattr__(self, name, value)
        if table is not None and listed:
            table.insert(self)

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # -- text ----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        if isinstance(target, str):
            return target
        if hasattr(target, "__module__"):
            name = getattr(target, "__name__", None)
            if name is not None and target.__module__ in ("builtins", "_operator"):
                return f"{target.__module__.lstrip('_')}.{name}"
        return _get_qualified_name(target)

    def format_node(self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None,
                    *, include_tensor_metadata: bool = False) -> str | None:
        """The node as text.

        Args:
            placeholder_names: a list to which the text of a placeholder is appended instead.
            maybe_return_typename: a list whose first item is set to the annotation of the output.
            include_tensor_metadata: whether the text contains dtype, shape, strides and device of the value.
        """
        annotation = f"{_type_repr(self.type)} " if self.type else ""
        users = f"[num_users={len(self.users)}]"
        if self.op == "placeholder":
            argument = self.target + (f"{self.target}: {_type_repr(self.type)}" if self.type else "")
            if placeholder_names:
                placeholder_names.append(argument)
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {annotation}{users} = {self.op}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"%{self.name} : {annotation}{users} = {self.op}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        if include_tensor_metadata:
            value = self.meta.get("val", self.meta.get("tensor_meta", self.meta.get("example_value")))
            if isinstance(value, torch.Tensor) and value.layout not in (torch.sparse_csc, torch.sparse_csr):
                annotation = (f'Tensor "{dtype_abbreviation(value.dtype)}{stringify_shape(value.shape)}'
                              f'{stringify_shape(value.stride())}{value.device}"')
        return (f"%{self.name} : {annotation}{users} = {self.op}[target={self._pretty_print_target(self.target)}]("
                f"args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})")


def _key_between(low: tuple[int, ...], high: tuple[int, ...]) -> tuple[int, ...]:
    """A key that sorts after `low` and before `high`."""
    if len(low) == len(high):
        return (*low, 0)
    if len(low) > len(high):
        return (*low[:-1], low[-1] + 1) if (*low[:-1], low[-1] + 1) < high else (*low, 0)
    candidate = (*high[:-1], high[-1] - 1)
    return candidate if candidate > low else (*candidate, 0)


def nodes_from(root: Node, backward: bool) -> Iterator[Node]:
    """The nodes of a list; a node that is erased in the meantime is skipped."""
    current = root._prev if backward else root._next
    while current is not root:
        if not current._erased:  # type: ignore[attr-defined]
            yield current
        current = current._prev if backward else current._next


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Apply a function to each node in an argument; lists and dictionaries become immutable.

    Args:
        a: an argument: a node, a tuple, list, dictionary or slice of arguments, or any other value.
        fn: the function.

    >>> import flambeau as torch
    >>> x = torch.fx.Graph().placeholder("x")
    >>> torch.fx.map_arg([x, 1], lambda node: node.name)
    ['x', 1]
    """
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Apply a function to each value in an argument; lists and dictionaries become immutable."""
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


has_side_effect.__module__ = __name__
_marked = [Node, map_arg, map_aggregate]
for _obj in _marked:
    compatibility(is_backward_compatible=True)(_obj)
_ = (operator, _side_effectful_functions)
