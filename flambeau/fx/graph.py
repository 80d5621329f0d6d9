"""Graphs: lists of nodes that are a function, and the methods that build, change, check and print them."""

from __future__ import annotations

import contextlib
import copy
import inspect
import logging
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import flambeau as torch

from .._tensor.parameter import Parameter
from ._compatibility import compatibility
from .code.codegen import _GENERICS, CodeGen, PythonCode, TransformCodeFunc
from .code.namespace import (
    _custom_builtins,
    _CustomBuiltin,
    _illegal_names,
    _is_magic,
    _Namespace,
    _register_custom_builtin,
    _snake_case,
)
from .code.operator_text import _format_target, inplace_methods, magic_methods, reflectable_magic_methods
from .code.pytree_codegen import _BoxedCodeGen, _PyTreeCodeGen, _PyTreeInfo
from .code.stack_traces import _parse_stack_trace, _ParsedStackTrace
from .code.torch_names import is_from_torch as _is_from_torch
from .code.torch_names import qualified_name as _get_qualified_name
from .code.torch_names import type_name as _type_repr
from .immutable_collections import immutable_dict
from .linting import check
from .node import Argument, Node, Target, map_arg, nodes_from

log = logging.getLogger(__name__)

_origin_type_map = _GENERICS
_legal_ops = dict.fromkeys(("call_function", "call_method", "get_attr", "call_module", "placeholder", "output"))


class _InsertPoint:
    """Where new nodes go; as a context manager, until its end."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        self.graph._insert = self.orig_insert


class _node_list:
    """The nodes of a graph in order; they may be erased and inserted during iteration."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"direction must be '_next' or '_prev', got {direction}")
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        return nodes_from(self.graph._root, self.direction == "_prev")

    def __reversed__(self) -> Iterator[Node]:
        return nodes_from(self.graph._root, self.direction == "_next")


class _FindNodesLookupTable:
    """The nodes of a graph by opcode, and by function."""

    def __init__(self) -> None:
        self.table: dict[tuple[str, Any], dict[Node, None]] = defaultdict(dict)

    def _key(self, node: Node) -> tuple[str, Any]:
        return node.op, node.target if node.op == "call_function" else None

    def __contains__(self, node: Node) -> bool:
        return node in self.table[self._key(node)]

    def insert(self, node: Node) -> None:
        """Add a node."""
        self.table[self._key(node)][node] = None

    def remove(self, node: Node) -> None:
        """Remove a node."""
        self.table[self._key(node)].pop(node)

    def find_nodes(self, *, op: str, target: Any = None) -> list[Node]:
        """The nodes of an opcode and a target, in order of insertion."""
        if op == "call_function":
            if target is None:
                raise AssertionError("target must not be None for call_function op")
            return list(self.table[op, target])
        return [node for node in self.table[op, None] if target is None or node.target == target]


def _reference_exists(module: Any, qualified_name: str) -> bool:
    path, _, name = qualified_name.rpartition(".")
    try:
        submodule = module.get_submodule(path)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {path}!", stacklevel=3)
        return False
    value = getattr(submodule, name, None)
    return isinstance(value, (torch.nn.Module, Parameter)) or (
        hasattr(submodule, name) and name in submodule._buffers)


@compatibility(is_backward_compatible=True)
class Graph:
    """A function as a list of nodes in execution order.

    Args:
        owning_module: the module in which the targets of `get_attr` and `call_module` are looked up.
        tracer_cls: the class of the tracer that makes the graph.
        tracer_extras: keyword arguments with which code is traced again after unpickling.

    >>> import flambeau as torch
    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(torch.relu, (x,)))
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(self, owning_module: Any = None, tracer_cls: type | None = None,
                 tracer_extras: dict[str, Any] | None = None) -> None:
        self._owning_module: Any = None
        self._root = Node(self, "", "root", "", (), {})
        self._used_names: dict[str, int] = {}
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen: CodeGen = CodeGen()
        self._co_fields: dict[str, Any] = {}
        self._find_nodes_lookup_table = _FindNodesLookupTable()

    @property
    def owning_module(self) -> Any:
        """The module that the graph belongs to."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """The nodes in order."""
        return _node_list(self)

    def output_node(self) -> Node:
        """The last node, which is the output."""
        node = next(iter(reversed(self.nodes)))
        if node.op != "output":
            raise AssertionError(f"Expected output node, got op={node.op}")
        return node

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of an opcode.

        Args:
            op: the opcode.
            target: their target; required for `call_function`.
            sort: whether they are in execution order.
        """
        found = self._find_nodes_lookup_table.find_nodes(op=op, target=target)
        return sorted(found) if sort else found

    # -- nodes ---------------------------------------------------------------------------------------

    def create_node(self, op: str, target: Any, args: tuple[Any, ...] | None = None,
                    kwargs: dict[str, Any] | None = None, name: str | None = None, type_expr: Any = None) -> Node:
        """Insert a node where new nodes go.

        Args:
            op: the opcode, see `Node`.
            target: the target, see `Node`.
            args: the positional arguments.
            kwargs: the keyword arguments.
            name: the name, made unique; None: after the target.
            type_expr: the annotation of the value.
        """
        if args and not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if kwargs and not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        name = self._graph_namespace.create_name(self._target_to_str(target) if name is None else name, None)
        node = Node(self, name, op, target, args or (), kwargs or immutable_dict(), type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(node)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._find_nodes_lookup_table.insert(node)
        self._len += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = inspect.Signature.empty) -> Node:
        """Insert a parameter of the function.

        Args:
            name: its name.
            type_expr: its annotation.
            default_value: its default.
        """
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Insert the read of a parameter, buffer or submodule.

        Args:
            qualified_name: its path from the owning module.
            type_expr: the annotation of the value.
        """
        if self.owning_module is not None and not _reference_exists(self.owning_module, qualified_name):
            warnings.warn("Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! "
                          "Call GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to "
                          "add the necessary Parameter, or nn.Module.register_buffer to add the necessary buffer",
                          stacklevel=2)
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None,
                    type_expr: Any = None) -> Node:
        """Insert the call of a submodule, by its path from the owning module."""
        if self.owning_module is not None and self.owning_module.get_submodule(module_name) is None:
            warnings.warn("Attempted to insert a call_module Node with no underlying reference in the owning "
                          "GraphModule! Call GraphModule.add_submodule to add the necessary submodule", stacklevel=2)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None,
                    type_expr: Any = None) -> Node:
        """Insert the call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function: Callable[..., Any], args: tuple[Any, ...] | None = None,
                      kwargs: dict[str, Any] | None = None, type_expr: Any = None, name: str | None = None) -> Node:
        """Insert the call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def _query(self, overload: str, tensor_node: Node, arguments: tuple[Any, ...], method: str) -> Node:
        """Insert a question about a tensor, with the answer in its metadata where the tensor's are known."""
        name, _, which = overload.partition(".")
        node = self.call_function(getattr(getattr(torch.ops.aten, name), which), (tensor_node, *arguments))
        key = "val" if "val" in tensor_node.meta else "example_value"
        if tensor_node.meta.get(key) is not None:
            node.meta[key] = getattr(tensor_node.meta[key], method)(*arguments)
        return node

    def create_size_node(self, tensor_node: Node, dim: int) -> Node:
        """Insert the size of a dimension of a tensor."""
        return self._query("sym_size.int", tensor_node, (dim,), "size")

    def create_stride_node(self, tensor_node: Node, dim: int) -> Node:
        """Insert the stride of a dimension of a tensor."""
        return self._query("sym_stride.int", tensor_node, (dim,), "stride")

    def create_storage_offset_node(self, tensor_node: Node) -> Node:
        """Insert the place of a tensor in its storage."""
        return self._query("sym_storage_offset.default", tensor_node, (), "storage_offset")

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Insert the return of a value."""
        return self.create_node(op="output", target="output", args=(result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Insert a copy of a node of another graph.

        Args:
            node: the node.
            arg_transform: maps the nodes among its arguments to values of this graph.
        """
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        if not isinstance(args, tuple):
            raise AssertionError(f"Expected args to be tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"Expected kwargs to be dict, got {type(kwargs)}")
        result = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        result.meta = copy.copy(node.meta)
        return result

    def graph_copy(self, g: Graph, val_map: dict[Node, Any], return_output_node: bool = False) -> Any:
        """Insert copies of all nodes of another graph but its output.

        Args:
            g: the other graph.
            val_map: node of `g` -> value here; filled. Nodes in it are not copied.
            return_output_node: whether the output node of `g` is returned, too.

        Returns:
            What the output of `g` returns, here; None if it has no output.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda n: val_map[n])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        g = Graph(tracer_cls=self._tracer_cls)
        found = g.graph_copy(self, val_map=memo or {}, return_output_node=True)
        g._codegen = copy.deepcopy(self._codegen)
        if found is not None:
            value, old_output = found
            g.output(value, type_expr=old_output.type).meta = copy.copy(old_output.meta)
        return g

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nobody uses.

        Raises:
            RuntimeError: a node uses it, or it is of another graph.
        """
        if to_erase.users:
            raise RuntimeError(f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the "
                               f"graph: {to_erase.users}!")
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:  # type: ignore[attr-defined]
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        self._find_nodes_lookup_table.remove(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update_args_kwargs(map_arg(to_erase._args, lambda n: None), map_arg(to_erase._kwargs, lambda n: None))

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Make new nodes go before a node; None: to the beginning. As a context manager, until its end.

        >>> import flambeau as torch
        >>> graph = torch.fx.symbolic_trace(lambda x: x + 1).graph
        >>> with graph.inserting_before(graph.output_node()):
        ...     _ = graph.call_function(torch.relu, (graph.output_node().args[0],))
        >>> [node.name for node in graph.nodes]
        ['x', 'add', 'relu', 'output']
        """
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Make new nodes go after a node; None: to the end. As a context manager, until its end."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    # -- code ----------------------------------------------------------------------------------------

    def _target_to_str(self, target: Any) -> str:
        """The name of a value, after its target."""
        if callable(target):
            name = target.__name__
        else:
            name = target
            if _is_magic(name):
                name = name[2:-2]
        name = _snake_case(name)
        return {"linalg__powsum": "_powsum"}.get(name, name)

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, of the arguments of the generated function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The result of the generated function, of the value of the output."""
        return self._codegen.process_outputs(out)

    def python_code(self, root_module: str, *, verbose: bool = False, include_stride: bool = False,
                    include_device: bool = False, colored: bool = False, expanded_def: bool = False,
                    record_func: bool = False, additional_meta: list[str] | None = None) -> PythonCode:
        """The graph as the source of a function.

        Args:
            root_module: the name of the parameter in which attributes and submodules are looked up: `self`.
            verbose: whether comments tell where nodes come from, and annotations dtype and shape.
            include_stride, include_device: whether these annotations contain strides and the device.
            colored: whether the text has the colors of terminals.
            expanded_def: whether each parameter has a line of its own.
            record_func: ignored; there is no profiler of graphs.
            additional_meta: the keys of `Node.meta` that comments show.
        """
        namespace = _Namespace()

        def unique_name(node: Node) -> str:
            return namespace.create_name(node.name, node)

        saved = [(node, node._repr_fn) for node in self.nodes]
        try:
            for node, _ in saved:
                node._repr_fn = unique_name
            return self._codegen._gen_python_code(
                self.nodes, root_module, namespace, verbose=verbose, include_stride=include_stride,
                include_device=include_device, colored=colored, expanded_def=expanded_def, record_func=record_func,
                additional_meta=additional_meta)
        finally:
            for node, repr_fn in saved:
                node._repr_fn = repr_fn

    def set_codegen(self, codegen: CodeGen) -> None:
        """Set how the graph becomes source."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc]) -> Any:
        """Register a function that changes the lines of generated code.

        Args:
            make_transformer: a function of the one registered so far, or None, that returns the new one.

        Returns:
            A context manager at whose end the former function is registered again.
        """
        former = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(former)

        @contextlib.contextmanager
        def restoring() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = former

        return restoring()

    def __str__(self) -> str:
        parameters: list[str] = []
        returned = [""]
        lines = [node.format_node(parameters) for node in self.nodes]
        head = f"graph({', '.join(parameters)}){returned[0]}:"
        return "\n    ".join([head, *(line for line in lines if line)])

    def print_tabular(self) -> None:
        """Print the nodes as a table; requires the package `tabulate`."""
        try:
            from tabulate import tabulate  # type: ignore[import-untyped]
        except ImportError:
            print("`print_tabular` relies on the library `tabulate`, which could not be found on this machine. Run "
                  "`pip install tabulate` to install the library.")
            raise
        rows = [[node.op, node.name, node.target, node.args, node.kwargs] for node in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    # -- checks --------------------------------------------------------------------------------------

    def lint(self) -> None:
        """Check that the graph is well-formed: owners, order, names, and the targets in the owning module.

        Raises:
            RuntimeError: it is not.
        """
        check(self)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes that nobody uses and that have no side effects.

        Args:
            is_impure_node: whether a node has side effects; None: `Node.is_impure`.

        Returns:
            Whether nodes were removed.
        """
        self.lint()
        impure = is_impure_node or Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not impure(node) and not node.users:
                self.erase_node(node)
                changed = True
        if self.owning_module is not None:
            used = {node.target for node in self.find_nodes(op="get_attr")}
            for name, child in self.owning_module.named_children():
                if name in used and isinstance(getattr(child, "graph", None), Graph):
                    changed |= child.graph.eliminate_dead_code()
                    child.recompile()
        return changed


for _cls in (CodeGen, PythonCode, _BoxedCodeGen, _Namespace, _PyTreeCodeGen, _PyTreeInfo):
    _cls.__module__ = __name__

__all__ = ["CodeGen", "Graph", "PythonCode"]
_ = (Argument, Target, _BoxedCodeGen, _CustomBuiltin, _ParsedStackTrace, _PyTreeCodeGen, _PyTreeInfo, _custom_builtins,
     _format_target, _get_qualified_name, _illegal_names, _is_from_torch, _parse_stack_trace, _register_custom_builtin,
     _type_repr, inplace_methods, magic_methods, reflectable_magic_methods)
