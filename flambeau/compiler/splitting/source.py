"""`FunctionSource`: the syntax tree of a function, checked against its code, and compilation of functions made from it.

Positions of bytecode (`code.co_positions`) are positions of syntax nodes, so the call that broke a graph is found
exactly. A function whose source was changed, or that has none, is not split.
"""

from __future__ import annotations

import ast
import copy
import inspect
import linecache
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..guards.bytecode_names import code_names

#: globals and attributes with which a function reads its own frame
_FRAME_FUNCTIONS = frozenset({"locals", "eval", "exec", "vars", "dir"})
_FRAME_ATTRIBUTES = frozenset({"_getframe", "currentframe"})
#: attributes of tensors and nodes with which a function sees gradients of its variables
_GRADIENT_METHODS = frozenset({"retain_grad", "register_hook", "register_multi_grad_hook", "grad_fn",
                               "register_prehook", "next_functions"})
_SUSPENDING = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
#: flags of a code object that `compile` takes: `from __future__ import ...`
_FUTURES = sum(getattr(__import__("__future__"), name).compiler_flag
               for name in __import__("__future__").all_feature_names)
_FUNCTIONS = (ast.FunctionDef, ast.Lambda)


class CannotSplit(Exception):
    """A function cannot be split."""


class Position(NamedTuple):
    """The range of a syntax node: lines from 1, columns in bytes of UTF-8 from 0."""

    line: int | None
    end_line: int | None
    column: int | None
    end_column: int | None


class FunctionSource:
    """The syntax tree of a function.

    Args:
        function: the function.

    Attributes:
        function: the function.
        node: its definition.
        body: its statements; of a lambda: one `return`.
        local_names: its parameters and local variables.
        parameters: its parameters.
        number: by identity of a node, its position in a walk of the tree.
        inspects_gradients: whether it may ask for gradients of its variables: `autograd.grad`, hooks, `retain_grad`.

    Raises:
        CannotSplit: there is no source, or the function is a generator, or it reads its own frame.
    """

    def __init__(self, function: types.FunctionType) -> None:
        code = function.__code__
        if code.co_flags & _SUSPENDING:
            raise CannotSplit("a generator or coroutine")
        names = code_names(code)
        if not _FRAME_FUNCTIONS.isdisjoint(names.global_names) or not _FRAME_ATTRIBUTES.isdisjoint(names.attributes):
            raise CannotSplit("it reads its own frame (locals, eval)")
        self.function, self.code = function, code
        tree, codes = _parse(code, function.__globals__)
        if code not in codes:
            raise CannotSplit("its source is not what was compiled")
        self.node = copy.deepcopy(_definition(tree, code))
        if "__class__" in code.co_freevars:
            _ExplicitSuper(self.node).visit(self.node)
        body = self.node.body
        if isinstance(body, list):
            self.body: list[ast.stmt] = body
        else:
            self.body = [ast.copy_location(ast.Return(body), body)]
        self.local_names = frozenset((*code.co_varnames, *code.co_cellvars))
        arguments = self.node.args
        self.parameters = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        self.parameters += [each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None]
        nodes = [each for statement in self.body for each in ast.walk(statement)]
        self.number = {id(each): i for i, each in enumerate(nodes)}
        self.nodes = nodes
        for each in nodes:
            if isinstance(each, ast.Nonlocal) and each not in self.body:
                raise CannotSplit("a nested function that assigns its variables (nonlocal)")
            if isinstance(each, ast.keyword) and each.arg == "create_graph" and not (
                    isinstance(each.value, ast.Constant) and not each.value.value):
                raise CannotSplit("it differentiates gradients, and a part is differentiated once")
        self.inspects_gradients = any(
            (isinstance(each, ast.Attribute) and each.attr in _GRADIENT_METHODS)
            or (isinstance(each, ast.Call) and getattr(each.func, "attr", getattr(each.func, "id", "")) == "grad")
            or (isinstance(each, ast.keyword) and each.arg == "inputs") for each in nodes)
        self._class = _class_name(function)

    def find(self, position: Position) -> ast.AST | None:
        """Return the innermost node with this range; else the innermost call that ends where it ends; else None."""
        if position.line is None or position.column is None:
            return None
        exact = [each for each in self.nodes if _position(each) == position]
        if not exact:  # a method call that spans lines begins, for the interpreter, with the method's name
            exact = [each for each in self.nodes if isinstance(each, ast.Call) and each.lineno <= position.line
                     and _position(each)[1::2] == position[1::2]]
        return exact[-1] if exact else None

    def statement_at(self, line: int) -> ast.stmt | None:
        """Return the innermost statement on a line; None if there is none."""
        found = [each for each in self.nodes if isinstance(each, ast.stmt) and
                 each.lineno <= line <= (each.end_lineno or each.lineno)]
        return found[-1] if found else None

    def compile(self, node: ast.FunctionDef, cells: dict[str, Any]) -> types.FunctionType:
        """Compile a function over the globals and closure of this one.

        Args:
            node: its definition, whose nodes have the positions of the original.
            cells: further free variables, by name, with their values.
        """
        own = dict(zip(self.code.co_freevars, self.function.__closure__ or (), strict=True))
        closure = own | {name: types.CellType(value) for name, value in cells.items()}
        outer = function_definition("enclosing", ast.arguments([], [ast.arg(name) for name in closure], None, [], [],
                                                               None, []), [node])
        if self._class is not None:
            _Mangler(self._class).visit(outer)
        ast.copy_location(outer, node)
        module = compile(ast.fix_missing_locations(ast.Module([outer], [])), self.code.co_filename, "exec",
                         self.code.co_flags & _FUTURES, True)
        [enclosing] = [x for x in module.co_consts if isinstance(x, types.CodeType)]
        [code] = [x for x in enclosing.co_consts if isinstance(x, types.CodeType)]
        code = code.replace(co_name=self.code.co_name, co_qualname=self.code.co_qualname)
        made = types.FunctionType(code, self.function.__globals__, node.name, None,
                                  tuple([closure[name] for name in code.co_freevars]))
        made.__qualname__, made.__module__ = self.function.__qualname__, self.function.__module__
        return made


class _Mangler(ast.NodeTransformer):
    """Mangles private names, which the compiler does only within the class."""

    def __init__(self, name: str) -> None:
        self._prefix = f"_{name.lstrip('_')}"

    def _mangled(self, name: str) -> str:
        return f"{self._prefix}{name}" if name.startswith("__") and not name.endswith("__") else name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._mangled(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._mangled(node.arg)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self._mangled(node.attr)
        return self.generic_visit(node)


class _ExplicitSuper(ast.NodeTransformer):
    """Replaces `super()` by `super(__class__, self)`, which parts can evaluate."""

    def __init__(self, function: Any) -> None:
        arguments = function.args
        self._function, self._first = function, [*arguments.posonlyargs, *arguments.args][0].arg

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            for name in ("__class__", self._first):
                made = ast.copy_location(ast.Name(name, ast.Load()), node)
                made.end_lineno, made.end_col_offset = made.lineno, made.col_offset  # no instruction is there
                node.args.append(made)
        return node

    def visit(self, node: ast.AST) -> Any:
        return node if is_nested_scope(node) and node is not self._function else super().visit(node)


def _class_name(function: types.FunctionType) -> str | None:
    parts = function.__code__.co_qualname.split(".")
    name = parts[-2] if len(parts) > 1 and parts[-2] != "<locals>" else ""
    return name if name.strip("_") else None


_parsed: dict[str, tuple[list[str], ast.Module, list[types.CodeType]]] = {}


def _parse(code: types.CodeType, space: dict[str, Any]) -> tuple[ast.Module, list[types.CodeType]]:
    """Return the tree of the file of a code object, and all code objects that it compiles to."""
    file = code.co_filename
    lines = linecache.getlines(file, space)
    if not lines:
        raise CannotSplit("its source is not available")
    known = _parsed.get(file)
    if known is None or known[0] is not lines:
        flags = code.co_flags & _FUTURES
        try:
            tree = ast.parse("".join(lines), file)
            codes = [*_nested_codes(compile(tree, file, "exec", flags, True))]
        except (SyntaxError, ValueError, RecursionError):
            raise CannotSplit("its source is not available") from None
        known = _parsed[file] = lines, tree, codes
    return known[1], known[2]


def _nested_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each
            yield from _nested_codes(each)


def _definition(tree: ast.Module, code: types.CodeType) -> Any:
    """Return the definition of the function with this code."""
    positions = {Position(*each) for each in code.co_positions()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and _position(node.body) in positions and (
                node.lineno == code.co_firstlineno):
            return node
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([each.lineno for each in node.decorator_list], default=node.lineno)
            if first == code.co_firstlineno:
                return node
    raise CannotSplit("its source is not available")


def _position(node: Any) -> Position:
    if not hasattr(node, "lineno"):
        return Position(0, 0, 0, 0)
    return Position(node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)


def function_definition(name: str, arguments: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    """Return the definition of a function without decorators and annotations."""
    made = ast.FunctionDef(name, arguments, body, [])
    if "type_params" in ast.FunctionDef._fields:  # from Python 3.12 on
        made.type_params = []  # type: ignore[attr-defined,unused-ignore]
    return made


def is_nested_scope(node: ast.AST) -> bool:
    """Whether a node is a function or a class, whose names are not those of the function around it."""
    return isinstance(node, (*_FUNCTIONS, ast.AsyncFunctionDef, ast.ClassDef))


__all__ = ["CannotSplit", "FunctionSource", "Position", "function_definition", "is_nested_scope"]
