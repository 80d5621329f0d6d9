"""Code generation: a graph as the source of a Python function."""

from __future__ import annotations

import enum
import os
import pprint
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import flambeau as torch

from ..._subclasses.fake_tensor import FakeTensor
from ...ops.overloads import OpOverload
from .._compatibility import compatibility
from ..node import Node, dtype_abbreviation, stringify_shape
from ..tensor_type import TensorType
from .namespace import _custom_builtins, _Namespace
from .operator_text import _format_target, inplace_methods, magic_methods
from .stack_traces import summary_comment
from .torch_names import is_from_torch, value_repr
from .torch_names import qualified_name as _get_qualified_name
from .torch_names import type_name as _type_repr

TransformCodeFunc = Callable[[list[str]], list[str]]

_GENERICS: dict[Any, Any] = {list: typing.List, dict: typing.Dict, set: typing.Set,  # noqa: UP006
                             frozenset: typing.FrozenSet, tuple: typing.Tuple}  # noqa: UP006
_counter_regexp = re.compile(r"# COUNTER: (\d+)")
_COLORS = {"red": "\033[31m", "blue": "\033[34m", "dim": "\033[2m", "dim_green": "\033[2m\033[32m",
           "dim_blue": "\033[2m\033[34m"}


@compatibility(is_backward_compatible=True)
@dataclass
class PythonCode:
    """The source of a graph.

    Attributes:
        src: the source of the function.
        globals: its globals: name -> object.
        _lineno_map: line of the function -> index of the node; None for lines of no node.
        _prologue_start: the line of `def` in the source.
    """

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


@compatibility(is_backward_compatible=False)
class CodeGen:
    """How a graph becomes source; a subclass changes the signature and the return statement.

    >>> import flambeau as torch
    >>> class Numbers(torch.fx.CodeGen):
    ...     def gen_fn_def(self, free_vars, maybe_return_annotation):
    ...         return f"def forward(self, *numbers):\\n    {', '.join(free_vars)}, = numbers"
    >>> gm = torch.fx.symbolic_trace(lambda a, b: a + b)
    >>> gm.graph.set_codegen(Numbers())
    >>> _ = gm.recompile()
    >>> gm(1, 2)
    3
    """

    _sym_repr: Callable[[Any], str] = lambda x: repr(x)

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """The `def` line; `self` is inserted into the parameters.

        Args:
            free_vars: the parameters as text; changed.
            maybe_return_annotation: the annotation of the result as text, or "".
            expanded_def: whether each parameter has a line of its own.
        """
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if expanded_def:
            lines = "".join(_argument_line(arg) for arg in free_vars)
            return f"def {self._func_name}(\n{lines}){maybe_return_annotation}:"
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, *, descs: Sequence[str] | None = None,
                        repr_fn: Callable[[Any], str] | None = None) -> str:
        """The `return` statement, not indented."""
        if descs is not None and isinstance(output_args, (list, tuple)):
            return _described_items(output_args, descs, "return ", repr_fn or repr)
        return f"return {(repr_fn or repr)(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, of the arguments of the generated function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The result of the generated function, of the value of the output node."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """More globals of the generated code: (name, object)."""
        return []

    def _call_with_known_options(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a method that a subclass may define without some of its keyword parameters."""
        code = method.__code__ if hasattr(method, "__code__") else None
        if code is not None and not code.co_flags & 0x08:
            names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
            options = {name: value for name, value in options.items() if name in names}
        return method(*args, **options)

    def _gen_python_code(self, nodes: Any, root_module: str, namespace: _Namespace, *, verbose: bool = False,
                         include_stride: bool = False, include_device: bool = False, colored: bool = False,
                         expanded_def: bool = False, record_func: bool = False,
                         additional_meta: list[str] | None = None) -> PythonCode:
        writer = _Writer(self, root_module, namespace, verbose, include_stride, include_device, colored, expanded_def,
                         additional_meta)
        body = writer.body_of(list(nodes))
        wrap_statements = ""
        if writer.wrapped:
            name = writer.add_global("wrap", torch.fx.wrap)
            wrap_statements = "\n".join(f'{name}("{each}")' for each in writer.wrapped)
        if self._body_transformer:
            body = self._body_transformer(body)
        for name, value in self.additional_globals():
            writer.add_global(name, value)
        prologue = self._call_with_known_options(self.gen_fn_def, writer.parameters, writer.return_annotation,
                                                 expanded_def=expanded_def)
        lines: list[str] = []
        line_map: dict[int, int | None] = {}
        first, current = prologue.count("\n") + 1, None
        for line in "".join(body).split("\n"):
            counter = _counter_regexp.search(line)
            if counter is not None:
                current = int(counter.group(1))
            else:
                line_map[len(lines) + first] = current
                lines.append(line)
        code = "\n".join("    " + line for line in "\n".join(lines).lstrip("\n").split("\n"))
        return PythonCode(f"\n{wrap_statements}\n\n{prologue}\n{code}", writer.globals, _lineno_map=line_map,
                          _prologue_start=wrap_statements.count("\n") + 4)


def _argument_line(arg: str) -> str:
    argument, mark, comment = arg.partition("#")
    return f"    {argument.rstrip()},  # {comment.lstrip()}\n" if mark else f"    {arg},\n"


def _described_items(items: Sequence[Any], descs: Sequence[str] | None, prefix: str, show: Callable[[Any], str]) -> str:
    """A tuple or list with a line for each item and a comment."""
    left, right = "()" if isinstance(items, tuple) else "[]"
    comments = [""] * len(items) if descs is None else [f"  # {desc}" for desc in descs]
    lines = (f"    {show(item)},{comment}\n" for item, comment in zip(items, comments, strict=False))
    return f"{prefix}{left}\n{''.join(lines)}{right}"


class _Writer:
    """Writes the body of the function of one graph."""

    def __init__(self, codegen: CodeGen, root_module: str, namespace: _Namespace, verbose: bool, include_stride: bool,
                 include_device: bool, colored: bool, expanded_def: bool, additional_meta: list[str] | None) -> None:
        self.codegen, self.root, self.namespace = codegen, root_module, namespace
        self.verbose, self.expanded, self.additional_meta = verbose, expanded_def, additional_meta
        self.stride = include_stride or os.environ.get("FX_GRAPH_SHOW_STRIDE", "0") == "1"
        self.device = include_device or os.environ.get("FX_GRAPH_SHOW_DEVICE", "0") == "1"
        self.meta = os.environ.get("FX_GRAPH_SHOW_META", "0") == "1"
        self.colored = colored
        self.parameters: list[str] = []
        self.body: list[str] = []
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.return_annotation = ""
        self._last_comment: str | None = None
        for name, (_, obj) in _custom_builtins.items():
            self.globals[self.namespace.create_name(name, obj)] = obj

    def paint(self, color: str, text: str) -> str:
        return f"{_COLORS[color]}{text}\033[0m" if self.colored else text

    def add_global(self, name_hint: str, obj: Any) -> str:
        """The name by which generated code refers to an object."""
        if is_from_torch(obj) and obj is not torch.device:
            return _get_qualified_name(obj)
        name = self.namespace.create_name(name_hint, obj)
        if name in self.globals:
            if self.globals[name] is not obj and self.globals[name] != obj:
                raise AssertionError(f"Global name {name} already assigned to different object")
            return name
        self.globals[name] = obj
        return name

    def type_text(self, kind: Any) -> str:
        """An annotation as text."""
        if kind == ():
            return "()"
        text = _type_repr(kind)
        if isinstance(kind, types.UnionType) and "|" in text:
            return "|".join(map(self.type_text, typing.get_args(kind)))
        origin = getattr(kind, "__origin__", None)
        if not origin:
            return self.add_global(text, kind)
        if isinstance(kind, typing._GenericAlias):  # type: ignore[attr-defined]
            origin = _GENERICS.get(origin, origin)
        origin_text = self.add_global(_type_repr(origin), origin)
        arguments = kind.dims if isinstance(kind, TensorType) else typing.get_args(kind)
        if not arguments:
            return origin_text
        return f"{origin_text}[{','.join(map(self.type_text, arguments))}]"

    def show(self, arg: Any) -> str:
        """An argument as text."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return f"{self.add_global(_get_qualified_name(type(arg)), type(arg))}{tuple(arg)!r}"
        if isinstance(arg, (OpOverload, torch._ops.HigherOrderOperator)):
            return self.add_global(_get_qualified_name(arg), arg)
        if isinstance(arg, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)):
            return self.add_global(re.sub(r"\W", "_", arg.__name__), arg)
        if isinstance(arg, enum.Enum):
            return f"{self.add_global(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, torch.Tensor):
            return f"torch.Tensor(size={list(arg.size())}, dtype={str(arg.dtype).split('.')[-1]})"
        if isinstance(arg, tuple):
            return f"({self.show(arg[0])},)" if len(arg) == 1 else f"({', '.join(map(self.show, arg))})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.show, arg))}]"
        if isinstance(arg, slice):
            return f"slice({self.show(arg.start)}, {self.show(arg.stop)}, {self.show(arg.step)})"
        return self.paint("blue", value_repr(arg))

    def arguments(self, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
        return ", ".join([*map(self.show, args), *(f"{name} = {self.show(value)}" for name, value in kwargs.items())])

    def body_of(self, nodes: list[Node]) -> list[str]:
        last_uses: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(nodes):
            for used in node._input_nodes:
                if used not in seen:
                    seen.add(used)
                    last_uses.setdefault(node, []).append(used)
        for i, node in enumerate(nodes):
            if self.verbose and node.op not in ("placeholder", "output"):
                comment = self.paint("dim", summary_comment(node, self.additional_meta))
                if comment != self._last_comment:
                    self._last_comment = comment
                    self.body.append(f"\n{comment}\n")
            self.body.append(f"# COUNTER: {i}\n")
            self.emit(node)
            if node.op == "output":
                self.body.append("\n")
            elif node.op != "placeholder":
                finished = [*last_uses.get(node, []), *([] if node.users else [node])]
                deletion = self.paint("dim", " = ".join([*map(repr, finished), "None"]))
                self.body.append(f";  {deletion}\n" if finished else "\n")
        return self.body or ["pass\n"]

    def emit(self, node: Node) -> None:
        """Append the statement of a node, without the end of its line."""
        annotation = "" if node.type is None else f" : {self.type_text(node.type)}"
        if self.verbose:
            annotation = self.value_annotation(node) or annotation
        desc = node.meta.get("desc") if self.expanded else None
        if self.meta and node.meta:
            lines = (f"{key}: {pprint.pformat(str(value), width=80, compact=True)}\n"
                     for key, value in node.meta.items())
            self.body.append(f'"""\n{"".join(lines)}"""\n')
        left = f"{node!r}{annotation} = "
        if node.op == "placeholder":
            default = f" = {self.show(node.args[0])}" if node.args else ""
            comment = f"  # {desc}" if desc is not None else ""
            self.parameters.append(f"{node.target}{annotation}{default}{comment}")
            name = node.target.replace("*", "")
            if name != repr(node):
                self.body.append(f"{node!r} = {name}\n")
        elif node.op == "call_method":
            self.body.append(f"{left}{_format_target(self.show(node.args[0]), node.target)}"
                             f"({self.arguments(node.args[1:], node.kwargs)})")
        elif node.op == "call_function":
            self.body.append(self.function_call(node, left))
        elif node.op == "call_module":
            self.body.append(f"{left}{_format_target(self.root, node.target)}"
                             f"({self.arguments(node.args, node.kwargs)})")
        elif node.op == "get_attr":
            self.body.append(f"{left}{_format_target(self.root, node.target)}")
        elif node.op == "output":
            if node.type is not None:
                self.return_annotation = f" -> {self.type_text(node.type)}"
            self.body.append(self.codegen._call_with_known_options(
                self.codegen.generate_output, node.args[0], descs=desc, repr_fn=self.show))
        else:
            raise NotImplementedError(f"node: {node.op} {node.target}")

    def function_call(self, node: Node, left: str) -> str:
        target = node.target
        if getattr(target, "__module__", "") == "_operator":
            if target.__name__ in magic_methods:
                return left + magic_methods[target.__name__].format(*map(self.show, node.args))
            if target.__name__ in inplace_methods:
                statement = inplace_methods[target.__name__].format(*map(self.show, node.args))
                return f"{statement};  {left}{self.show(node.args[0])}"
        name = self.add_global(_get_qualified_name(target), target)
        if name == "getattr" and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return left + _format_target(self.show(node.args[0]), node.args[1])
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(name)
        return f"{left}{name}({self.arguments(node.args, node.kwargs)})"

    def value_annotation(self, node: Node) -> str:
        """The dtype and shape of a node's value as an annotation; "" if it is not known."""
        value = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
        if isinstance(value, torch.Tensor) and value.layout not in (torch.sparse_csc, torch.sparse_csr):
            text = (self.paint("red", dtype_abbreviation(value.dtype))
                    + self.paint("blue", stringify_shape(value.shape))
                    + self.paint("dim_blue", stringify_shape(value.stride()) if self.stride else "")
                    + self.paint("dim_green", str(value.device) if self.device else ""))
            plain = type(value) is torch.Tensor or isinstance(value, FakeTensor)
            return f': "{text}"' if plain else f': "{type(value).__name__}({text})"'
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            return f': "Sym({value})"'
        if isinstance(value, tuple) and type(value).__name__ == "TensorMetadata":
            return f': "{dtype_abbreviation(value.dtype)}{stringify_shape(value.shape)}"'  # type: ignore[attr-defined]
        return ""


__all__ = ["CodeGen", "PythonCode", "TransformCodeFunc"]
