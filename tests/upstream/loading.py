"""Loading of a test file: names that its top-level imports lack become placeholders."""

from __future__ import annotations

import ast
import os
import sys
from types import ModuleType

from . import placeholder
from .import_hook import look_up, placeholders

_LOOK_UP = "__upstream_look_up__"


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
    """Replaces the device name of a fork by `cpu`."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if node.value in ("npu", "npu:0"):
            return ast.copy_location(ast.Constant("cpu"), node)
        return node


def load(path: str) -> ModuleType:
    """The module of a test file, under the file's own name."""
    name = os.path.splitext(os.path.basename(path))[0]
    with open(path, encoding="utf-8") as file:
        tree = ast.fix_missing_locations(_Devices().visit(_Imports().visit(ast.parse(file.read(), path))))
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    module = ModuleType(name)
    module.__file__ = os.path.abspath(path)
    vars(module)[_LOOK_UP] = look_up
    sys.modules[name] = module
    placeholder.loading[0] = True
    try:
        with placeholders():
            exec(compile(tree, path, "exec"), vars(module))
    finally:
        placeholder.loading[0] = False
    return module
