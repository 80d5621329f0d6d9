"""Names in syntax trees: which variables a statement reads and assigns, and which closures capture."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from .source import is_nested_scope

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.While)
#: context managers that let exceptions pass
_TRANSPARENT = frozenset({"no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "autocast", "profile",
                          "record_function", "detect_anomaly", "device", "open", "sdpa_kernel", "set_detect_anomaly"})


class Names:
    """The variables of the function's own scope in a piece of its tree.

    Attributes:
        loads: variables that are read, also by comprehensions and nested functions.
        stores: variables that are assigned or deleted.
        captured: variables that nested functions, classes and generators read, perhaps later.
    """

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self.loads: set[str] = set()
        self.stores: set[str] = set()
        self.captured: set[str] = set()
        for node in nodes:
            self._visit(node)

    def _visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            (self.loads if isinstance(node.ctx, ast.Load) else self.stores).add(node.id)
            return
        if isinstance(node, _COMPREHENSIONS):
            self._comprehension(node)
            return
        if isinstance(node, ast.Lambda):
            for default in (*node.args.defaults, *(x for x in node.args.kw_defaults if x is not None)):
                self._visit(default)
            self._closure(node)
            return
        if is_nested_scope(node):
            self.stores.add(node.name)  # type: ignore[attr-defined]
            self._closure(node)
            return
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self.stores |= {each.asname or each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
            if node.name is not None:
                self.stores.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest is not None:
            self.stores.add(node.rest)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.loads.add(node.target.id)
        elif isinstance(node, ast.Delete):
            self.loads |= {each.id for each in node.targets if isinstance(each, ast.Name)}
        for child in ast.iter_child_nodes(node):
            if isinstance(node, ast.Call) and isinstance(child, ast.GeneratorExp) and len(node.args) == 1:
                self._comprehension(child)  # consumed by the call
            else:
                self._visit(child)
                if isinstance(child, ast.GeneratorExp):
                    self._closure(child)

    def _comprehension(self, node: ast.AST) -> None:
        inner = Names([])
        targets: set[str] = set()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.comprehension):
                targets |= Names([child.target]).stores
                for part in (child.iter, *child.ifs):
                    inner._visit(part)
            else:
                inner._visit(child)
        self.loads |= inner.loads - targets
        self.stores |= inner.stores  # of assignment expressions
        self.captured |= inner.captured - targets

    def _closure(self, node: ast.AST) -> None:
        """Take all names in a nested scope as captured that are not clearly its own."""
        own: set[str] = set()
        read: set[str] = set()
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                (read if isinstance(each.ctx, ast.Load) else own).add(each.id)
            elif isinstance(each, ast.arg):
                own.add(each.arg)
        if isinstance(node, (ast.ClassDef, ast.GeneratorExp)) or any(
                is_nested_scope(each) for each in ast.walk(node) if each is not node):
            own = set()
        self.loads |= read - own
        self.captured |= read - own


class Flow:
    """Reads and definite assignments along the paths through statements.

    Attributes:
        exposed: variables that may be read before they are assigned here.
        assigned: variables that are assigned if the end is reached; None if it is never reached.
        jumps: whether `break` or `continue` may leave the statements before their end.
    """

    def __init__(self, statements: Sequence[ast.stmt]) -> None:
        self.exposed: set[str] = set()
        self.jumps = False
        self.assigned: set[str] | None = set()
        for statement in statements:
            if self.assigned is None:
                break
            self._statement(statement)

    def live_before(self, after: frozenset[str]) -> frozenset[str]:
        """Return the variables that may be read from the beginning on, if `after` may be read from the end on."""
        if self.assigned is None and not self.jumps:
            return frozenset(self.exposed)
        return frozenset(self.exposed | (after - (set() if self.jumps else self.assigned or set())))

    def _read(self, *nodes: ast.AST | None) -> None:
        names = Names([x for x in nodes if x is not None])
        assert self.assigned is not None
        self.exposed |= names.loads - self.assigned

    def _branch(self, statements: Sequence[ast.stmt], more: Iterable[str] = ()) -> set[str] | None:
        inner = Flow(statements)
        known = (self.assigned or set()) | set(more)
        self.exposed |= inner.exposed - known
        self.jumps |= inner.jumps
        return None if inner.assigned is None else inner.assigned | set(more)

    def _statement(self, node: ast.stmt) -> None:
        assert self.assigned is not None
        if isinstance(node, ast.If):
            self._read(node.test)
            stored = Names([node.test]).stores
            arms = [self._branch(node.body, stored), self._branch(node.orelse, stored)]
            reached = [arm for arm in arms if arm is not None]
            self.assigned = self.assigned | set.intersection(*reached) if reached else None
        elif isinstance(node, _LOOPS):
            outer = self.jumps
            self._read(node.iter if isinstance(node, ast.For) else node.test)
            self._branch(node.body, Names([node.target]).stores if isinstance(node, ast.For) else ())
            self.jumps = outer
            self._branch(node.orelse)
        elif isinstance(node, ast.With):
            for item in node.items:
                self._read(item.context_expr, item.optional_vars)
                self.assigned |= Names([item]).stores
            body = self._branch(node.body)
            if all(is_transparent(item.context_expr) for item in node.items):
                self.assigned = None if body is None else self.assigned | body
        elif isinstance(node, (ast.Try, ast.Match)) or type(node).__name__ == "TryStar":
            self._read(node)
            self.jumps |= has_jump([node])
        elif isinstance(node, (ast.Return, ast.Raise)):
            self._read(node)
            self.assigned = None
        elif isinstance(node, (ast.Break, ast.Continue)):
            self.jumps, self.assigned = True, None
        else:
            self._read(node)
            names = Names([node])
            if isinstance(node, ast.Delete):
                self.assigned -= names.stores
            else:
                self.assigned |= names.stores


def is_transparent(node: ast.expr) -> bool:
    """Whether a context manager is known to let exceptions pass."""
    function: Any = node.func if isinstance(node, ast.Call) else node
    return getattr(function, "attr", getattr(function, "id", "")) in _TRANSPARENT


def has_jump(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements contain a `break` or `continue` of a loop around them."""
    pending: list[ast.AST] = [*statements]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Break, ast.Continue)):
            return True
        if isinstance(node, _LOOPS):
            pending += node.orelse
        elif not is_nested_scope(node):
            pending += ast.iter_child_nodes(node)
    return False


def has_return(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements contain a `return` of the function around them."""
    pending: list[ast.AST] = [*statements]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Return):
            return True
        if not is_nested_scope(node):
            pending += ast.iter_child_nodes(node)
    return False


__all__ = ["Flow", "Names", "has_jump", "has_return", "is_transparent"]
