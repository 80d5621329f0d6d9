"""Hoisting: a statement whose middle cannot be compiled becomes several, in evaluation order.

`y = model(x) * x.sum().item()` becomes

    a = model(x)                # part
    b = x.sum()                 # part
    c = b.item()                # Python
    y = a * c                   # part

so that what surrounds the call is compiled.
"""

from __future__ import annotations

import ast
import copy
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from .source import FunctionSource, is_nested_scope

PART, PYTHON = "part", "python"
DISPATCH = "__dispatch__"
_CHAIN = (ast.Name, ast.Attribute)
_WITH_OPERANDS = (ast.Call, ast.Dict, ast.JoinedStr, ast.Compare, ast.Tuple, ast.List, ast.Set, ast.Slice, ast.BoolOp,
                  ast.Name, ast.Constant)


class Break(NamedTuple):
    """A node that runs in Python.

    Attributes:
        node: an expression, or a statement that runs in Python as a whole.
        calls_python: whether it runs Python code of the user, which may rebind names and may be split itself.
    """

    node: ast.AST
    calls_python: bool


class Item(NamedTuple):
    """A statement in evaluation order.

    Attributes:
        kind: PART or PYTHON.
        statement: the statement.
        key: its identity in all partitions of the function.
    """

    kind: str
    statement: ast.stmt
    key: str


class _CannotHoist(Exception):
    """A break in an expression that is evaluated several times, or perhaps not at all."""


class Hoister:
    """Divides statements around the breaks in them.

    Args:
        source: the function.
        breaks: by identity of their nodes, the breaks.
    """

    def __init__(self, source: FunctionSource, breaks: dict[int, Break]) -> None:
        self._source, self._breaks = source, dict(breaks)
        self._number = dict(source.number)
        self._copies: list[ast.AST] = []  # keeps the nodes alive whose identities are keys

    def has_break(self, *nodes: ast.AST | None) -> bool:
        """Whether nodes are, or contain, breaks."""
        return any(id(each) in self._breaks for node in nodes if node is not None for each in ast.walk(node))

    def key(self, node: ast.AST) -> str:
        """Return the key of a whole statement."""
        return f"s{self._number[id(node)]}"

    def divide(self, statement: ast.stmt) -> list[Item]:
        """Return the statements that a simple statement becomes."""
        number = self._number[id(statement)]
        if id(statement) in self._breaks:
            return [Item(PYTHON, self.dispatching(statement), self.key(statement))]
        items: list[Item] = []
        rest: Any = statement
        try:
            while self.has_break(rest):
                rest = self._statement(rest, items)
                if rest is None:
                    return items
        except _CannotHoist:
            return [Item(PYTHON, self.dispatching(statement), self.key(statement))]
        return [*items, Item(PART, rest, f"r{number}" if items else self.key(statement))]

    def divide_expression(self, node: ast.expr, is_needed: bool) -> tuple[list[Item], ast.expr]:
        """Return the statements before the expression of a compound statement (a condition), and the expression.

        Args:
            is_needed: whether the expression is evaluated in a part even if it contains no break.
        """
        items: list[Item] = []
        try:
            while self.has_break(node):
                node = self._extract(node, self._first_break(node), items)
        except _CannotHoist:
            return [], self.dispatching(node)
        if is_needed:
            node = self._hoist(node, items, PART)
        return items, node

    # ----- statements -----

    def _statement(self, node: ast.stmt, items: list[Item]) -> ast.stmt | None:
        """Hoist the first break of a statement; return the rest, None if nothing is left."""
        value = getattr(node, "value", None)
        found: Break
        if isinstance(node, (ast.Expr, ast.Assign, ast.Return, ast.AnnAssign)) and value is not None and (
                self.has_break(value)):
            found = self._first_break(value)
            if found.node is value and not self.has_break(*getattr(node, "targets", ())):
                rest = self._copied(node)
                rest.value = self._operands(found, items)
                items.append(Item(PYTHON, rest, f"p{self._number[id(node)]}"))
                return None
            return self._with(node, value=self._extract(value, found, items))
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and self.has_break(node.value):
            return self._with(node, value=self._extract(node.value, self._first_break(node.value), items))
        if isinstance(node, ast.Raise) and node.exc is not None and self.has_break(node.exc):
            return self._with(node, exc=self._extract(node.exc, self._first_break(node.exc), items))
        if isinstance(node, ast.Assert) and self.has_break(node.test):
            return self._with(node, test=self._extract(node.test, self._first_break(node.test), items))
        raise _CannotHoist

    def _first_break(self, node: ast.AST) -> Break:
        """Return the break in an expression that is evaluated first."""
        for child in _operands(node):
            if self.has_break(child):
                return self._first_break(child)
        if id(node) in self._breaks:
            return self._breaks[id(node)]
        for child in _lazy_operands(node):
            if self.has_break(child):
                return self._first_break(child)
        raise _CannotHoist

    def _extract(self, node: Any, found: Break, items: list[Item]) -> Any:
        """Append the statements that evaluate an expression up to a break, the break included; return the rest."""
        if node is found.node:
            number = self._number[id(node)]
            return self._assign(self._operands(found, items), number, items, PYTHON)
        children = _operands(node)
        at = next((i for i, child in enumerate(children) if any(each is found.node for each in ast.walk(child))), None)
        if at is None:
            return self._extract_lazy(node, found, items)
        before = [self._hoist_operand(node, i, child, found, items) for i, child in enumerate(children[:at])]
        inner = self._extract(children[at], found, items)
        return self._rebuilt(node, [*before, inner, *children[at + 1:]])

    def _extract_lazy(self, node: Any, found: Break, items: list[Item]) -> ast.expr:
        """Turn a conditional expression that contains a break into an `if` statement, which is divided in turn."""
        number = self._number[id(node)]
        name = f"__value_{number}__"
        if isinstance(node, ast.IfExp):
            test = self._hoist(node.test, items, PART)
            arms = [[self._located(ast.Assign([ast.Name(name, ast.Store())], arm), arm)]
                    for arm in (node.body, node.orelse)]
        elif isinstance(node, ast.BoolOp):
            at = next(i for i, child in enumerate(node.values) if self.has_break(child))
            first = node.values[0] if at == 1 else self._with(node, values=node.values[:at])
            test = self._assign(first, number, items, PART)
            rest = node.values[at] if at == len(node.values) - 1 else self._with(node, values=node.values[at:])
            arms = [[self._located(ast.Assign([ast.Name(name, ast.Store())], rest), rest)], []]
            if isinstance(node.op, ast.Or):
                test = self._located(ast.UnaryOp(ast.Not(), test), node)
        else:
            raise _CannotHoist
        items.append(Item(PYTHON, self._located(ast.If(test, *arms), node), f"i{number}"))
        return self._located(ast.Name(name, ast.Load()), node)

    def _operands(self, found: Break, items: list[Item]) -> Any:
        """Hoist the operands of a break; return it with them."""
        node = found.node
        if type(node) not in _FIELDS and not isinstance(node, _WITH_OPERANDS):  # a comprehension
            return self.dispatching(node)
        children = [self._hoist_operand(node, i, child, found, items) for i, child in enumerate(_operands(node))]
        rebuilt = self._rebuilt(node, children)
        if found.calls_python and isinstance(rebuilt, ast.Call):
            rebuilt = _dispatched(rebuilt, self._copied)
        return rebuilt

    # ----- operands -----

    def _hoist_operand(self, node: ast.AST, index: int, child: Any, found: Break, items: list[Item]) -> Any:
        if isinstance(child, (ast.Slice, ast.Tuple, ast.Starred)) and not isinstance(node, ast.Starred):
            return self._rebuilt(child, [self._hoist_operand(child, i, x, found, items)
                                         for i, x in enumerate(_operands(child))])
        if isinstance(node, ast.Call) and index == 0:  # the function is looked up after its arguments are hoisted
            if isinstance(child, ast.Name):
                return child
            if isinstance(child, ast.Attribute):
                if self._is_module_chain(child):
                    return child
                return self._with(child, value=self._hoist_operand(child, 0, child.value, found, items))
        return child if self._stays(child, found) else self._hoist(
            child, items, PYTHON if isinstance(child, _CHAIN) else PART)

    def _stays(self, node: ast.AST, found: Break) -> bool:
        """Whether an operand may be evaluated after the break."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Attribute):
            return self._is_module_chain(node) or (not found.calls_python and _is_chain(node))
        return isinstance(node, ast.Name) and (
            not found.calls_python or node.id in self._source.local_names or node.id.startswith("__value_")
            or isinstance(self._global(node.id), (types.ModuleType, type, types.FunctionType,
                                                  types.BuiltinFunctionType)))

    def _is_module_chain(self, node: ast.AST) -> bool:
        """Whether an expression is an attribute of a module that a global names."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in self._source.local_names and isinstance(
            self._global(node.id), types.ModuleType)

    def _global(self, name: str) -> Any:
        space = self._source.function.__globals__
        builtins = space.get("__builtins__", {})
        own = builtins if isinstance(builtins, dict) else vars(builtins)
        return space.get(name, own.get(name))

    def _hoist(self, node: Any, items: list[Item], kind: str) -> Any:
        if isinstance(node, (ast.Constant, ast.Name)):
            return node
        return self._assign(node, self._number[id(node)], items, kind)

    def _assign(self, node: Any, number: int, items: list[Item], kind: str) -> Any:
        name = f"__value_{number}__"
        items.append(Item(kind, self._located(ast.Assign([ast.Name(name, ast.Store())], node), node), f"t{number}"))
        return self._located(ast.Name(name, ast.Load()), node)

    # ----- copies -----

    def _with(self, node: Any, **fields: Any) -> Any:
        made = self._copied(node)
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    def _copied(self, node: Any) -> Any:
        made = copy.copy(node)
        self._number[id(made)] = self._number[id(node)]
        if id(node) in self._breaks:
            self._breaks[id(made)] = self._breaks[id(node)]._replace(node=made)
        self._copies.append(made)
        return made

    def _located(self, node: Any, at: ast.AST) -> Any:
        self._copies.append(node)
        self._number.setdefault(id(node), self._number.get(id(at), -1))
        for each in ast.walk(node):
            if not hasattr(each, "lineno") and "lineno" in each._attributes:
                ast.copy_location(each, at)
        return node

    def _rebuilt(self, node: Any, children: Sequence[Any]) -> Any:
        """Copy an expression with other operands (`_operands`)."""
        if isinstance(node, (ast.Name, ast.Constant)):
            return node
        made = self._copied(node)
        values: Iterator[Any] = iter(children)
        if isinstance(node, ast.Call):
            made.func = next(values)
            made.args = [next(values) for _ in node.args]
            made.keywords = [self._with_value(each, next(values)) for each in node.keywords]
        elif isinstance(node, ast.Dict):
            pairs = [(None if key is None else next(values), next(values)) for key in node.keys]
            made.keys, made.values = [key for key, _ in pairs], [value for _, value in pairs]
        elif isinstance(node, ast.JoinedStr):
            made.values = [self._with_value(each, next(values)) if isinstance(each, ast.FormattedValue) else each
                           for each in node.values]
        elif isinstance(node, ast.Compare):
            made.left, made.comparators = next(values), [*values, *node.comparators[1:]]
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            made.elts = [*values]
        elif isinstance(node, ast.Slice):
            made.lower, made.upper, made.step = [None if x is None else next(values)
                                                 for x in (node.lower, node.upper, node.step)]
        elif isinstance(node, ast.BoolOp):
            made.values = [next(values), *node.values[1:]]
        else:
            for name in _FIELDS[type(node)]:
                setattr(made, name, next(values))
        return made

    @staticmethod
    def _with_value(node: Any, value: Any) -> Any:
        made = copy.copy(node)
        made.value = value
        return made

    # ----- calls of functions that are split -----

    def dispatching(self, node: Any) -> Any:
        """Copy a statement or expression; its calls run split functions in parts."""
        return _Dispatching().visit(copy.deepcopy(node))


def _dispatched(call: ast.Call, copied: Callable[[ast.Call], ast.Call]) -> ast.Call:
    """A copy of a call that runs a split function in parts."""
    if isinstance(call.func, ast.Name) and call.func.id == "super":
        return call
    made = copied(call)
    made.func = ast.copy_location(ast.Name(DISPATCH, ast.Load()), call.func)
    made.args = [call.func, *call.args]
    return made


class _Dispatching(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return _dispatched(node, copy.copy)

    def visit(self, node: ast.AST) -> Any:
        return node if is_nested_scope(node) else super().visit(node)


#: by class of an expression, its operands in evaluation order
_FIELDS: dict[type, tuple[str, ...]] = {
    ast.BinOp: ("left", "right"), ast.UnaryOp: ("operand",), ast.Subscript: ("value", "slice"),
    ast.Attribute: ("value",), ast.Starred: ("value",), ast.IfExp: ("test",), ast.FormattedValue: ("value",)}


def _operands(node: Any) -> list[Any]:
    """Return the operands of an expression that are always evaluated, in order."""
    if isinstance(node, ast.Call):
        return [node.func, *node.args, *(each.value for each in node.keywords)]
    if isinstance(node, ast.Dict):
        return [x for pair in zip(node.keys, node.values, strict=True) for x in pair if x is not None]
    if isinstance(node, ast.JoinedStr):
        return [each.value for each in node.values if isinstance(each, ast.FormattedValue)]
    if isinstance(node, ast.Compare):
        return [node.left, node.comparators[0]]
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return node.elts
    if isinstance(node, ast.Slice):
        return [x for x in (node.lower, node.upper, node.step) if x is not None]
    if isinstance(node, ast.BoolOp):
        return node.values[:1]
    return [getattr(node, name) for name in _FIELDS.get(type(node), ())]


def _lazy_operands(node: Any) -> list[Any]:
    """Return the operands of an expression that are evaluated only on some conditions."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    return node.values[1:] if isinstance(node, ast.BoolOp) else []


def _is_chain(node: ast.AST) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


__all__ = ["DISPATCH", "PART", "PYTHON", "Break", "Hoister", "Item"]
