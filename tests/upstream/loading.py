"""Loading of a test file: names that its top-level imports lack become placeholders."""

from __future__ import annotations
import __future__

import ast
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from . import placeholder
from .import_hook import look_up, placeholders

_LOOK_UP = "__upstream_look_up__"
_COMPILED = "__upstream_compiled_function__"


class _Imports(ast.NodeTransformer):
    """Rewrites `from m import a as b` at module level to `b = look_up("m", "a")`."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.AST]:
        if node.module == "__future__" or node.level or any(a.name == "*" for a in node.names):
            return node
        made: list[ast.AST] = []
        for a in node.names:
            call = ast.Call(ast.Name(_LOOK_UP, ast.Load()),
                            [ast.Constant(node.module), ast.Constant(a.name)], [])
            made.append(ast.copy_location(ast.Assign([ast.Name(a.asname or a.name, ast.Store())], call), node))
        return made


class _Devices(ast.NodeTransformer):
    """Replaces the device name and the method of a fork by `cpu`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("npu", "mlu"):
            node.func.attr = "cpu"
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if node.value in ("npu", "npu:0", "privateuse1", "mlu"):
            return ast.copy_location(ast.Constant("cpu"), node)
        return node


class _CompiledFunctions(type):
    """The class of `CompiledFunction`: its instances are told by their names in PyTorch."""

    def __instancecheck__(cls, instance: object) -> bool:
        from flambeau.fx.operator_schemas import is_compiled_in_pytorch

        return is_compiled_in_pytorch(instance)


class CompiledFunction(metaclass=_CompiledFunctions):
    """The functions that are part of PyTorch's extension; here they are written in Python."""


class _BuiltinFunctions(ast.NodeTransformer):
    """Replaces `types.BuiltinFunctionType`, by which tests tell functions of the extension, by `CompiledFunction`."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr == "BuiltinFunctionType" and isinstance(node.value, ast.Name) and node.value.id == "types":
            return ast.copy_location(ast.Name(_COMPILED, ast.Load()), node)
        return self.generic_visit(node)


#: top-level statements of the machinery that failed: module, line and reason
lost: list[str] = []


def execute(module: ModuleType, path: str, *transformers: ast.NodeTransformer, tolerant: bool = False) -> None:
    """Execute a source file in a module; names that its imports lack become placeholders.

    With `tolerant`, so do names that a failing top-level statement would have bound.
    """
    with open(path, encoding="utf-8") as file:
        tree = _Imports().visit(ast.parse(file.read(), path))
    for transformer in transformers:
        tree = transformer.visit(tree)
    ast.fix_missing_locations(tree)
    vars(module)[_LOOK_UP] = look_up
    before, placeholder.loading[0] = placeholder.loading[0], True
    try:
        with placeholders():
            if tolerant:
                _execute_statements(module, path, tree)
            else:
                exec(compile(tree, path, "exec", dont_inherit=True), vars(module))
    finally:
        placeholder.loading[0] = before


def _execute_statements(module: ModuleType, path: str, tree: ast.Module) -> None:
    flags = __future__.annotations.compiler_flag if any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body) else 0
    for node in tree.body:
        try:
            while True:
                try:
                    exec(compile(ast.Module([node], []), path, "exec", flags, dont_inherit=True), vars(module))
                    break
                except Exception as error:
                    member = _failing_member(node, path, error)
                    if member is None:
                        raise
                    lost.append(f"{module.__name__}:{member.lineno}: {type(error).__name__}: {error}")
        except Exception as error:
            lost.append(f"{module.__name__}:{node.lineno}: {type(error).__name__}: {error}")
            for name in _bound(node):
                vars(module).setdefault(name, placeholder.Placeholder(f"{module.__name__}.{name}", internal=True))


def _failing_member(node: ast.stmt, path: str, error: Exception) -> ast.stmt | None:
    """The statement of a class's body that raised, such as a test with a decorator over a missing list; removed."""
    if not isinstance(node, ast.ClassDef):
        return None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == path and frame.f_code.co_name == node.name:
            for member in node.body:
                first = min([member.lineno, *(each.lineno for each in getattr(member, "decorator_list", []))])
                if first <= line <= (member.end_lineno or member.lineno) and len(node.body) > 1:
                    node.body.remove(member)
                    return member
    return None


def _bound(node: ast.stmt) -> Iterator[str]:
    """Names that a statement binds in its module."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
        return
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((a.asname or a.name).partition(".")[0] for a in node.names)
        return
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id
        elif isinstance(inner, (ast.FunctionDef, ast.ClassDef)):
            yield inner.name


def load(path: str) -> ModuleType:
    """The module of a test file, under the file's own name."""
    name = os.path.splitext(os.path.basename(path))[0]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    module = ModuleType(name)
    module.__file__ = os.path.abspath(path)
    sys.modules[name] = module
    own = () if os.environ.get("FLAMBEAU_UPSTREAM") == "oracle" else (_BuiltinFunctions(),)
    vars(module)[_COMPILED] = CompiledFunction
    execute(module, path, _Devices(), *own, tolerant=True)
    return module


class TestFileFinder(MetaPathFinder, Loader):
    """Loads files of a folder of tests by import: those that tests share, and a test's file in a process it started."""

    __test__ = False

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if "." in fullname or not os.path.exists(os.path.join(self.folder, fullname + ".py")):
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return load(os.path.join(self.folder, spec.name + ".py"))

    def exec_module(self, module: ModuleType) -> None:
        """It has been executed by `load`."""
