"""`Partition`: a function as a driver, which runs in Python, and parts, which are compiled.

Runs of statements without a break become parts: functions that take the live variables that they read and return those
that they assign. Statements with a break, and the loops, branches, `with` and `try` blocks around them, stay in the
driver. All nodes keep their positions, so tracebacks and debuggers show the user's lines.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

from .hoisting import PART, PYTHON, Break, Hoister, Item
from .names import Flow, Names, has_jump, has_return, is_transparent
from .source import FunctionSource, function_definition

UNBOUND = "__unbound__"
_LOOPS = (ast.For, ast.While)
_COMPOUND = (*_LOOPS, ast.If, ast.With, ast.Try, ast.Match)
#: what a part computes: a run without any of these stays in the driver
_COMPUTING = (ast.Call, ast.BinOp, ast.AugAssign, ast.Subscript, ast.Compare, ast.USub, ast.Invert)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global,
                ast.Nonlocal, ast.Delete)
#: what a nested function may not contain to be a part
_NOT_IN_CLOSURES = (*_DEFINITIONS, ast.Lambda, ast.Yield, ast.YieldFrom, ast.Await, ast.GeneratorExp)
#: conditions that call only these stay in the driver
_CHEAP_FUNCTIONS = frozenset({"len", "isinstance", "hasattr", "getattr", "callable", "type", "int", "bool", "range",
                              "id", "issubclass"})


class PartSource(NamedTuple):
    """A part.

    Attributes:
        name: the free variable of the driver that holds it.
        node: its definition.
        items: the keys of its statements.
        statements: its statements, of the function or hoisted.
    """

    name: str
    node: ast.FunctionDef
    items: tuple[str, ...]
    statements: list[ast.stmt]


class Decisions:
    """What is known about the statements of a function.

    Attributes:
        breaks: by identity of their nodes, the breaks.
        python: keys of statements that are not worth compiling, or cannot be.
        cuts: keys of statements at which a new part begins.
        opened: keys of compound statements that stay in the driver.
    """

    def __init__(self) -> None:
        self.breaks: dict[int, Break] = {}
        self.python: set[str] = set()
        self.cuts: set[str] = set()
        self.opened: set[str] = set()


class _Context(NamedTuple):
    """Where a block stands.

    Attributes:
        after: variables that may be read after it.
        is_tail: whether the function returns after it.
        guarded: variables that may be read after an exception in it.
    """

    after: frozenset[str]
    is_tail: bool
    guarded: frozenset[str]


class Partition:
    """A division of a function.

    Args:
        source: the function.
        decisions: where it is divided.

    Attributes:
        driver: the definition of the driver.
        parts: the parts.
    """

    def __init__(self, source: FunctionSource, decisions: Decisions) -> None:
        self._source, self._decisions = source, decisions
        self._hoister = Hoister(source, decisions.breaks)
        self.parts: list[PartSource] = []
        self._name = "lambda_" if isinstance(source.node, ast.Lambda) else source.node.name
        self._declared = [x for x in ast.walk(source.node) if isinstance(x, (ast.Global, ast.Nonlocal))]
        own = Names(source.body)
        self._captured = own.captured & source.local_names
        counts = dict.fromkeys(source.parameters, 1)
        for each in source.nodes:
            if isinstance(each, _LOOPS):
                counts.update(dict.fromkeys(Names([each]).stores, 2))
        for each in source.nodes:
            if isinstance(each, ast.stmt) and not isinstance(each, _COMPOUND):
                for name in Names([each]).stores:
                    counts[name] = counts.get(name, 0) + 1
        self._constant = frozenset(name for name, count in counts.items() if count == 1)
        body, _ = self._block(source.body, _Context(frozenset(), True, frozenset()), set(source.parameters))
        self.driver = self._function(source.node.args, body or [ast.Pass()], source.node)

    # ----- blocks -----

    def _block(self, statements: Sequence[ast.stmt], context: _Context,
               bound: set[str] | None) -> tuple[list[ast.stmt], set[str] | None]:
        """Divide a block.

        Args:
            statements: its statements.
            context: where it stands.
            bound: the variables that are bound at its beginning; None if it is not reached.

        Returns:
            The statements of the driver, and the variables that are bound at the end; None if it is not reached.
        """
        items: list[Item] = []
        for statement in statements:
            items += self._items(statement)
        items = [each for item, joins in zip(items, self._joins(items, context, bound), strict=True)
                 for each in ([item] if joins else self._opened(item))]
        return self._run_items(items, context, bound)

    def _run_items(self, items: Sequence[Item], context: _Context,
                   bound: set[str] | None) -> tuple[list[ast.stmt], set[str] | None]:
        """Divide statements that have been hoisted; like `_block`."""
        driver: list[ast.stmt] = []
        run: list[Item] = []
        flows = [item.statement for item in items]

        def live(at: int) -> frozenset[str]:
            return Flow(flows[at:]).live_before(context.after)

        joins_run = self._joins(items, context, bound)
        for at, item in enumerate(items):
            if bound is None:
                break
            statement = item.statement
            if joins_run[at]:
                if run and item.key in self._decisions.cuts:
                    bound = self._end_run(run, driver, live(at), bound, context, at_end=False)
                    run = []
                    if bound is None:
                        break
                run.append(item)
                if isinstance(statement, (ast.Return, ast.Raise)) or not context.guarded.isdisjoint(
                        Names([statement]).stores):
                    bound = self._end_run(run, driver, live(at + 1), bound, context, at_end=False)
                    run = []
                continue
            if run:
                bound = self._end_run(run, driver, live(at), bound, context, at_end=False)
                run = []
            if bound is not None:
                inner = context._replace(after=live(at + 1), is_tail=context.is_tail and at == len(items) - 1)
                bound = self._in_driver(item, driver, inner, bound)
        if run and bound is not None:
            bound = self._end_run(run, driver, context.after, bound, context, at_end=context.is_tail)
        return driver, bound

    def _joins(self, items: Sequence[Item], context: _Context, bound: set[str] | None) -> list[bool]:
        """Return which statements of a block run in parts; one that may return does if all after it join its part."""
        is_part = [self._is_part(item, context, bound) for item in items]
        is_cut = [item.key in self._decisions.cuts for item in items]
        return [is_part[at] and (isinstance(item.statement, ast.Return) or not has_return([item.statement])
                                 or (context.is_tail and not context.guarded and all(is_part[at:])
                                     and not any(is_cut[at + 1:]))) for at, item in enumerate(items)]

    def _opened(self, item: Item) -> list[Item]:
        """Return a statement that stays in the driver, after the statements that evaluate its condition."""
        node = item.statement
        if item.key in self._decisions.python or id(node) in self._decisions.breaks:
            return [item]
        if isinstance(node, ast.If):
            before, test = self._hoister.divide_expression(node.test, self._computes(node.test))
            return [*before, Item(PYTHON, self._made(node, test=test), item.key)]
        if isinstance(node, ast.For):
            before, iterable = self._hoister.divide_expression(node.iter, False)
            return [*before, Item(PYTHON, self._made(node, iter=iterable), item.key)]
        if isinstance(node, ast.With):
            before, expression = self._hoister.divide_expression(node.items[0].context_expr, False)
            first = ast.withitem(expression, node.items[0].optional_vars)
            return [*before, Item(PYTHON, self._made(node, items=[first, *node.items[1:]]), item.key)]
        return [item]

    def _items(self, statement: ast.stmt) -> list[Item]:
        """Return a statement as items."""
        if isinstance(statement, _COMPOUND) or type(statement).__name__ in ("TryStar", "AsyncFor", "AsyncWith"):
            return [Item(PART, statement, self._hoister.key(statement))]
        if self._hoister.has_break(statement):
            return self._hoister.divide(statement)
        return [Item(PART, statement, self._hoister.key(statement))]

    def _is_part(self, item: Item, context: _Context, bound: set[str] | None) -> bool:
        """Whether a statement may run in a part."""
        statement, decisions = item.statement, self._decisions
        if item.kind == PYTHON or item.key in decisions.python or item.key in decisions.opened:
            return False
        if isinstance(statement, _DEFINITIONS) or self._hoister.has_break(statement) or has_jump([statement]):
            return False
        names = Names([statement])
        if not names.stores.isdisjoint(self._captured):
            return False
        captured = names.captured & self._source.local_names
        if not captured <= self._constant or (bound is not None and not captured <= bound):
            return False
        if isinstance(statement, _COMPOUND):
            if not context.guarded.isdisjoint(names.stores) or type(statement).__name__ == "TryStar":
                return False
            return not any(isinstance(each, _DEFINITIONS) for each in ast.walk(statement))
        return True

    # ----- the driver -----

    def _in_driver(self, item: Item, driver: list[ast.stmt], context: _Context,
                   bound: set[str]) -> set[str] | None:
        """Append a statement to the driver; blocks in it are divided."""
        node: Any = item.statement
        is_whole = item.key in self._decisions.python or id(node) in self._decisions.breaks
        if isinstance(node, ast.If) and not is_whole:
            made, bound_after = self._if(node, context, bound)
        elif isinstance(node, ast.For) and not is_whole:
            made, bound_after = self._for(node, context, bound)
        elif isinstance(node, ast.While) and not is_whole:
            made, bound_after = self._while(node, context, bound)
        elif isinstance(node, ast.With) and not is_whole:
            made, bound_after = self._with(node, context, bound)
        elif isinstance(node, ast.Try) and not is_whole:
            made, bound_after = self._try(node, context, bound)
        elif isinstance(node, ast.FunctionDef) and not is_whole and self._is_closure(node, bound):
            made, bound_after = self._closure(node, item.key), bound | {node.name}
        else:
            dispatches = isinstance(node, (*_COMPOUND, ast.AugAssign)) or item.key in self._decisions.python
            made = self._hoister.dispatching(node) if dispatches and item.kind != PYTHON else node
            names = Names([node])
            bound_after = self._after_simple(node, names, bound)
        driver.append(made)
        return bound_after

    @staticmethod
    def _after_simple(node: ast.stmt, names: Names, bound: set[str]) -> set[str] | None:
        if isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return None
        if isinstance(node, ast.Delete):
            return bound - names.stores
        return bound if isinstance(node, _COMPOUND) else bound | names.stores

    def _computes(self, node: ast.expr) -> bool:
        """Whether a condition may compute with tensors: it calls a function or a method."""
        return not isinstance(node, ast.NamedExpr) and any(isinstance(each, ast.Call) and not (isinstance(
            each.func, ast.Name) and each.func.id in _CHEAP_FUNCTIONS) for each in ast.walk(node)) and (
                f"t{self._source.number.get(id(node), -1)}" not in self._decisions.python)

    def _if(self, node: ast.If, context: _Context, bound: set[str]) -> tuple[ast.stmt, set[str] | None]:
        bound = bound | Names([node.test]).stores
        body, body_bound = self._block(node.body, context, set(bound))
        orelse, orelse_bound = self._block(node.orelse, context, set(bound))
        reached = [each for each in (body_bound, orelse_bound) if each is not None]
        return self._made(node, body=body or [ast.Pass()], orelse=orelse), (
            set.intersection(*reached) if reached else None)

    def _for(self, node: ast.For, context: _Context, bound: set[str]) -> tuple[ast.stmt, set[str]]:
        after = context.after | Names([node]).loads
        inner = context._replace(after=after, is_tail=False)
        body, _ = self._block(node.body, inner, bound | Names([node.target]).stores)
        orelse, _ = self._block(node.orelse, context._replace(is_tail=False), set(bound))
        return self._made(node, body=body or [ast.Pass()], orelse=orelse), bound

    def _while(self, node: ast.While, context: _Context, bound: set[str]) -> tuple[ast.stmt, set[str]]:
        inner = context._replace(after=context.after | Names([node]).loads, is_tail=False)
        orelse, _ = self._block(node.orelse, context._replace(is_tail=False), set(bound))
        test_statements: list[ast.stmt] = []
        test: ast.expr = node.test
        if not node.orelse:
            items, test = self._hoister.divide_expression(node.test, self._computes(node.test))
            leave = ast.copy_location(ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], []), node.test)
            following = Flow([leave, *node.body]).live_before(inner.after)
            test_statements, bound_in_body = self._run_items(items, inner._replace(after=following), set(bound))
        if not test_statements:
            body, _ = self._block(node.body, inner, bound | Names([test]).stores)
            return self._made(node, test=test, body=body or [ast.Pass()], orelse=orelse), bound
        body, _ = self._block(node.body, inner, bound_in_body)
        always = ast.copy_location(ast.Constant(True), node.test)
        return self._made(node, test=always, body=[*test_statements, leave, *body], orelse=[]), bound

    def _with(self, node: ast.With, context: _Context, bound: set[str]) -> tuple[ast.stmt, set[str] | None]:
        bound = bound | Names(node.items).stores
        passes = all(is_transparent(item.context_expr) for item in node.items)
        inner = context if passes else context._replace(guarded=context.guarded | context.after)
        body, body_bound = self._block(node.body, inner, set(bound))
        return self._made(node, body=body or [ast.Pass()]), body_bound if passes else bound

    def _try(self, node: ast.Try, context: _Context, bound: set[str]) -> tuple[ast.stmt, set[str] | None]:
        after = context.after | Names([node]).loads
        inner = context._replace(after=after, is_tail=False)
        guarded = context.guarded | Names([*node.handlers, *node.finalbody]).loads
        if node.handlers:
            guarded |= context.after
        body, body_bound = self._block(node.body, inner._replace(guarded=guarded), set(bound))
        handlers = []
        for handler in node.handlers:
            block, _ = self._block(handler.body, inner._replace(guarded=guarded),
                                   bound | ({handler.name} if handler.name else set()))
            handlers.append(self._made(handler, body=block or [ast.Pass()]))
        orelse, orelse_bound = self._block(node.orelse, inner._replace(guarded=guarded), body_bound)
        finalbody, _ = self._block(node.finalbody, inner, set(bound))
        bound_after = bound if node.handlers else orelse_bound
        return self._made(node, body=body or [ast.Pass()], handlers=handlers, orelse=orelse, finalbody=finalbody), (
            bound_after)

    # ----- nested functions -----

    def _is_closure(self, node: ast.FunctionDef, bound: set[str]) -> bool:
        """Whether the body of a nested function may be a part: it only reads variables, which have one value each."""
        inner = [each for statement in node.body for each in ast.walk(statement)]
        if node.decorator_list or node.args.vararg is not None or node.args.kwarg is not None or (
                self._hoister.has_break(node)) or any(isinstance(each, _NOT_IN_CLOSURES) for each in inner):
            return False
        read = self._read_by(node)
        return read <= self._constant and read <= bound and any(
            isinstance(each, ast.Call) for each in inner) and not any(
                isinstance(each, ast.Name) and each.id in ("super", "locals", "vars", "eval", "exec", "__class__")
                for each in inner)

    def _read_by(self, node: ast.FunctionDef) -> frozenset[str]:
        """Return the variables of the function that a nested function reads."""
        own = Names(node.body).stores | {x.arg for x in _parameters_of(node)}
        return frozenset((Names(node.body).loads - own) & self._source.local_names)

    def _closure(self, node: ast.FunctionDef, key: str) -> ast.FunctionDef:
        """Return a nested function that calls its body, which is a part."""
        parameters = [*(x.arg for x in _parameters_of(node)), *sorted(self._read_by(node))]
        arguments = ast.arguments([], [ast.arg(x) for x in parameters], None, [], [], None, [])
        name = f"__part_{len(self.parts)}__"
        self.parts.append(PartSource(name, self._function(arguments, list(node.body), node), (key,), [node]))
        call = ast.Call(ast.Name(name, ast.Load()), [ast.Name(x, ast.Load()) for x in parameters], [])
        made: ast.FunctionDef = self._made(node, body=[_locate(ast.Return(call), node.body[0])])
        return made

    # ----- parts -----

    def _end_run(self, run: Sequence[Item], driver: list[ast.stmt], after: frozenset[str], bound: set[str],
                 context: _Context, *, at_end: bool) -> set[str] | None:
        """Append a run of statements to the driver, as the call of a part if it computes anything.

        Args:
            run: the statements.
            driver: the driver's statements.
            after: variables that may be read after them.
            bound: the variables that are bound before them.
            at_end: whether the function returns after them.
        """
        statements = [item.statement for item in run]
        flow = Flow(statements)
        assigned = flow.assigned
        if not any(isinstance(each, _COMPUTING) for statement in statements for each in ast.walk(statement)):
            driver += statements
            return None if assigned is None else bound | assigned
        names = Names(statements)
        variables = self._source.local_names | {x for x in names.loads | names.stores if x.startswith("__value_")}
        returns = at_end or isinstance(statements[-1], ast.Return)
        outputs = [] if returns else sorted(names.stores & variables & (after | context.guarded))
        definite = set(outputs) if assigned is None else assigned
        inputs = (flow.exposed & variables) | {x for x in outputs if x not in definite}
        parameters = [*(x for x in self._source.parameters if x in inputs),
                      *sorted(inputs - {*self._source.parameters})]
        loose_inputs = [x for x in parameters if x not in bound]
        loose_outputs = [x for x in outputs if x not in definite and x not in bound]
        at = statements[0]
        declared = self._declarations(names)
        body: list[ast.stmt] = [*declared, *(_unbind(x) for x in loose_inputs), *statements]
        if not returns and assigned is not None:
            body += [_rebind(x) for x in loose_outputs]
            if outputs:
                body.append(ast.Return(_tuple(outputs, ast.Load())))
        for each in body:
            _locate(each, at if each not in statements else each)
        arguments = ast.arguments([], [ast.arg(x) for x in parameters], None, [], [], None, [])
        name = f"__part_{len(self.parts)}__"
        keys = tuple([item.key for item in run])
        self.parts.append(PartSource(name, self._function(arguments, body, at), keys, statements))
        call = ast.Call(ast.Name(name, ast.Load()), [ast.Name(x, ast.Load()) for x in parameters], [])
        calls: list[ast.stmt] = [_rebind(x) for x in loose_inputs]
        if returns:
            calls.append(ast.Return(call))
        elif outputs:
            calls.append(ast.Assign([_tuple(outputs, ast.Store())], call))
        else:
            calls.append(ast.Expr(call))
        calls += [_unbind(x) for x in dict.fromkeys([*loose_inputs, *loose_outputs]) if not returns]
        driver += [_locate(each, at) for each in calls]
        if returns or assigned is None:
            return None
        return bound | assigned

    def _declarations(self, names: Names) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for each in self._declared:
            used = [name for name in each.names if name in names.stores]
            if used:
                found.append(type(each)(used))
        return found

    def _function(self, arguments: ast.arguments, body: list[ast.stmt], at: Any) -> ast.FunctionDef:
        """Return a definition, on a line of the user's function."""
        made = function_definition(self._name, _without_annotations(arguments), body)
        made.lineno, made.col_offset = at.lineno, at.col_offset
        made.end_lineno, made.end_col_offset = at.end_lineno, at.end_col_offset
        return ast.fix_missing_locations(made)

    @staticmethod
    def _made(node: Any, **fields: Any) -> Any:
        made = copy.copy(node)
        for name, value in fields.items():
            setattr(made, name, value)
        return made


def _parameters_of(node: ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _locate(node: Any, at: ast.AST) -> Any:
    for each in ast.walk(node):
        if "lineno" in each._attributes and not hasattr(each, "lineno"):
            ast.copy_location(each, at)
    return node


def _tuple(names: Sequence[str], context: ast.expr_context) -> ast.expr:
    if len(names) == 1:
        return ast.Name(names[0], context)
    return ast.Tuple([ast.Name(x, context) for x in names], context)


def _unbind(name: str) -> ast.stmt:
    """`if name is UNBOUND: del name`"""
    test = ast.Compare(ast.Name(name, ast.Load()), [ast.Is()], [ast.Name(UNBOUND, ast.Load())])
    return ast.If(test, [ast.Delete([ast.Name(name, ast.Del())])], [])


def _rebind(name: str) -> ast.stmt:
    """`try: name` / `except NameError: name = UNBOUND`"""
    bind = ast.Assign([ast.Name(name, ast.Store())], ast.Name(UNBOUND, ast.Load()))
    handler = ast.ExceptHandler(ast.Name("NameError", ast.Load()), None, [bind])
    return ast.Try([ast.Expr(ast.Name(name, ast.Load()))], [handler], [], [])


def _without_annotations(arguments: ast.arguments) -> ast.arguments:
    made = copy.copy(arguments)
    for kind in ("posonlyargs", "args", "kwonlyargs"):
        setattr(made, kind, [ast.copy_location(ast.arg(x.arg), x) for x in getattr(arguments, kind)])
    for kind in ("vararg", "kwarg"):
        each = getattr(arguments, kind)
        setattr(made, kind, None if each is None else ast.copy_location(ast.arg(each.arg), each))
    made.defaults = []
    made.kw_defaults = [None] * len(arguments.kwonlyargs)
    return made


__all__ = ["UNBOUND", "Decisions", "PartSource", "Partition"]
