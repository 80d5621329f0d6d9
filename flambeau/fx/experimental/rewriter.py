"""Tracing of rewritten source: `assert` statements become calls."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
from types import FunctionType
from typing import Any

from ...nn.modules.module import Module
from .._symbolic_trace import Tracer
from ..graph import Graph


class AST_Rewriter(ast.NodeTransformer):
    """Rewrites the source of a function: `assert` becomes `torch._assert`, an annotated assignment calls `annotate`."""

    def rewrite(self, fn: FunctionType) -> FunctionType:
        """The function of the rewritten source."""
        lines = inspect.getsourcelines(fn)[0]
        indent = lines[0][:len(lines[0]) - len(lines[0].lstrip())]  # lines of a long string may have none
        source = "".join(line.removeprefix(indent) for line in lines)
        tree = ast.fix_missing_locations(self.visit(ast.parse(source)))
        scope = copy.copy(fn.__globals__)
        before = set(scope)
        exec(compile(tree, "", "exec", dont_inherit=True), scope)
        new = [name for name in scope if name not in before]
        if len(new) != 1:
            raise AssertionError(f"Expected 1 new key, got {len(new)}")
        compiled: Any = scope[new[0]]
        result: Any = functools.update_wrapper(
            FunctionType(compiled.__code__, fn.__globals__, name=compiled.__name__, argdefs=compiled.__defaults__,
                         closure=compiled.__closure__), compiled)
        result.__kwdefaults__ = copy.copy(compiled.__kwdefaults__)
        return result

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        """`torch._assert(test, message)`."""
        call: Any = ast.parse("torch._assert()", mode="eval").body
        call.args = [node.test, node.msg or ast.Constant(value="", kind=None)]
        return ast.copy_location(ast.Expr(value=call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.Assign:
        """`target = annotate(value, annotation)`."""
        arguments: list[Any] = [node.value, node.annotation]
        call = ast.Call(func=ast.Name(id="annotate", ctx=ast.Load()), args=arguments, keywords=[])
        return ast.Assign(targets=[node.target], value=call)


class RewritingTracer(Tracer):
    """A tracer of rewritten source."""

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """Trace a function or module whose source is rewritten first."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn: Any) -> Any:
    if not isinstance(fn, Module):
        return AST_Rewriter().rewrite(fn)

    def rewritten(m: Any) -> Any:
        class RewrittenModule(Module):
            def __init__(self, orig: Any) -> None:
                super().__init__()
                for name, value in vars(orig).items():
                    self.__dict__[name] = copy.copy(rewritten(value) if isinstance(value, Module) else value)

        RewrittenModule.forward = AST_Rewriter().rewrite(m.forward)
        return RewrittenModule(m)

    return rewritten(fn)
