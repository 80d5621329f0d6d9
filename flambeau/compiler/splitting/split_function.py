"""`SplitFunction`: a function with graph breaks, as compiled parts and a driver between them.

Each failed trace adds a break, and the function is divided again; parts that stay the same keep their programs. A
function that the driver calls at a break, and that broke there, is split too.
"""

from __future__ import annotations

import ast
import inspect
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ...nn import Module
from ...nn.modules.base.hooks import GLOBAL_HOOKS
from ..tracing.break_frames import BreakFrame
from ..tracing.frame_hook import is_own_function, is_stdlib_file, is_user_code
from ..tracing.provenance import place_of
from .hoisting import DISPATCH, Break
from .partition import UNBOUND, Decisions, Partition, PartSource
from .source import CannotSplit, FunctionSource, Position

#: function objects of one code that are split; closures that are made anew in each call are not
MAX_FUNCTIONS_OF_CODE = 8
#: flags of the code of generators and coroutines
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
#: how often a function is divided
MAX_DIVISIONS = 200


class Unbound:
    """Stands for a variable that has no value, among the arguments and results of parts."""


#: by code, where functions broke that were called by a traced one: whether the call there runs Python, the reason
_known_breaks: dict[types.CodeType, dict[BreakFrame, tuple[bool, str]]] = {}
_lock = threading.RLock()


class SplitFunction:
    """A function that is divided at graph breaks.

    Args:
        function: the function.
        make_part: compiles a part: takes a function, this object and the key of the part.
        called: by identity, the split forms of functions that are called at breaks, shared by all of a program.
        compile_module: compiles a module inside of one whose call runs in Python, such as `DistributedDataParallel`.

    Attributes:
        parts: the compiled parts, by their source.
        reasons: by number of the node, the reason of each break.
        failure: why it cannot be split, or None.
        num_divisions: how often it was divided.
    """

    def __init__(self, function: types.FunctionType, make_part: Callable[..., Any],
                 called: dict[int, SplitFunction] | None = None,
                 compile_module: Callable[[Any], Any] | None = None) -> None:
        self.function, self._make_part, self._compile_module = function, make_part, compile_module
        self._modules: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._callees: weakref.WeakKeyDictionary[types.FunctionType, Any] = weakref.WeakKeyDictionary()
        self.called: dict[int, SplitFunction] = {} if called is None else called
        self.parts: dict[str, tuple[PartSource, Any]] = {}
        self.reasons: dict[int, str] = {}
        self.failure: str | None = None
        self.num_divisions = 0
        self._decisions = Decisions()
        self._driver: types.FunctionType | None = None
        try:
            self._source: FunctionSource | None = FunctionSource(function)
        except CannotSplit as error:
            self._source, self.failure = None, str(error)

    @property
    def inspects_gradients(self) -> bool:
        """Whether the function may ask for gradients of its variables."""
        return self._source is not None and self._source.inspects_gradients

    def break_reasons(self) -> list[str]:
        """Return the reasons of the breaks, in the order of the source; then those of functions called at breaks."""
        splits = [self, *(each for each in self.called.values() if each is not self and each.is_ready)]
        return [split.reasons[number] for split in splits for number in sorted(split.reasons)]

    @property
    def is_ready(self) -> bool:
        """Whether there is a driver, for the function as it is now."""
        source = self._source
        return self._driver is not None and source is not None and self.function.__code__ is source.code

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the driver."""
        driver, function = self._driver, self.function
        if driver is None or function.__code__ is not self._source.code:  # type: ignore[union-attr]
            return function(*args, **kwargs)
        if driver.__defaults__ is not function.__defaults__ or driver.__kwdefaults__ is not function.__kwdefaults__:
            driver.__defaults__, driver.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        return driver(*args, **kwargs)

    # ----- breaks -----

    def add_break(self, frames: Sequence[BreakFrame], codes: Sequence[types.CodeType], reason: str) -> bool:
        """Divide the function at the call that broke; return False if there is no such call.

        Args:
            frames: the stack, from the innermost frame.
            codes: the code of this function, or of its parts.
            reason: the reason, for reports.
        """
        at = max((i for i, frame in enumerate(frames) if frame.code in codes), default=None)
        if at is None or self._source is None:
            return False
        with _lock:
            node: Any = self._source.find(Position(*frames[at].position))
            if node is None:
                line = frames[at].position[0]
                node = None if line is None else self._source.statement_at(line)
            if node is None or id(node) in self._decisions.breaks:
                return False
            node = self._breakable(node)
            # `_forward` is DistributedDataParallel's: its module is the user's, though the break comes before its call
            calls_python = any(is_user_code(frame.code) or frame.code.co_name == "_forward" for frame in frames[:at])
            self._decisions.breaks[id(node)] = Break(node, calls_python)
            self.reasons[self._source.number[id(node)]] = reason
            for i, frame in enumerate(frames[:at]):
                calls_python = any(is_user_code(below.code) for below in frames[:i])
                if is_user_code(frame.code) or (calls_python and frame.code.co_name == "forward"):
                    _known_breaks.setdefault(frame.code, {}).setdefault(frame, (calls_python, reason))
            return self._divide()

    def _breakable(self, node: ast.AST) -> ast.AST:
        """Return the expression or statement that runs in Python so that a node does."""
        assert self._source is not None
        if isinstance(node, (ast.expr, ast.stmt)) and not isinstance(node, (ast.FormattedValue, ast.Slice)):
            return node
        return next((each for each in reversed(self._source.nodes) if isinstance(each, (ast.expr, ast.stmt))
                     and not isinstance(each, ast.FormattedValue)
                     and any(child is node for child in ast.walk(each))), node)

    def add_failure(self, frames: Sequence[BreakFrame], reason: str, key: str | None = None) -> None:
        """Divide the function, or one of its parts, that cannot be compiled.

        At the call that broke; else at the line that the reason names; else in the middle. A single statement runs in
        Python.

        Args:
            frames: the stack where the graph broke, from the innermost frame; () if unknown.
            reason: the reason.
            key: the part; None if the function was traced as a whole.
        """
        with _lock:
            source = self._source
            known = None if key is None else self.parts.get(key)
            if source is None or (key is not None and known is None):
                return
            code = source.code if known is None else known[1].function.__code__
            if frames and self.add_break(frames, [code], reason):
                return
            if known is None:
                items, statements = [f"s{source.number[id(x)]}" for x in source.body], source.body
            else:
                items, statements = [*known[0].items], known[0].statements
            place = place_of(reason)
            statement = None
            if place is not None and place.file == source.code.co_filename and len(items) > 1 and (
                    place.number != code.co_firstlineno):  # which stands for an unknown line
                statement = source.statement_at(place.number)
            key_of_statement = None if statement is None else f"s{source.number[id(statement)]}"
            if isinstance(statement, ast.If) and key_of_statement not in self._decisions.opened and any(
                    statement is x for whole in statements for x in ast.walk(whole)):
                self._decisions.opened.add(str(key_of_statement))
                self.reasons[source.number[id(statement)]] = reason
            elif statement is not None and id(statement) not in self._decisions.breaks and any(
                    statement is x for whole in statements for x in ast.walk(whole)):
                self._decisions.breaks[id(statement)] = Break(statement, True)
                self.reasons[source.number[id(statement)]] = reason
            elif len(items) > 1:
                self._decisions.cuts.add(items[len(items) // 2])
            else:
                self._simplify(items[0], statements[0], reason)
            self._divide()

    def _simplify(self, key: str, statement: ast.stmt, reason: str) -> None:
        """Let the statement of a part that cannot be compiled run in the driver; blocks are divided in turn."""
        is_compound = isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try))
        if is_compound and key not in self._decisions.opened:
            self._decisions.opened.add(key)
        else:
            self._decisions.python.add(key)
            self.reasons[int(key[1:])] = reason

    def run_in_python(self, key: str) -> None:
        """Let the statements of a part run in the driver: they compute nothing, or have too many signatures."""
        with _lock:
            known = self.parts.get(key)
            if known is not None:
                self._decisions.python.update(known[0].items)
                self._divide()

    def add_known_breaks(self) -> None:
        """Divide the function where it broke while another one was traced."""
        assert self._source is not None
        for frame, (calls_python, reason) in _known_breaks.get(self._source.code, {}).items():
            node: Any = self._source.find(Position(*frame.position))
            if node is not None:
                node = self._breakable(node)
                self._decisions.breaks.setdefault(id(node), Break(node, calls_python))
                self.reasons.setdefault(self._source.number[id(node)], reason)
        self._divide()

    def _divide(self) -> bool:
        """Make the driver and its parts again; return False if that is not possible."""
        assert self._source is not None
        if self.num_divisions >= MAX_DIVISIONS:
            return False
        self.num_divisions += 1
        try:
            self._divide_again()
        except Exception as error:  # the function runs eagerly
            self._driver, self.failure = None, f"internal error, {type(error).__name__}: {error}"
            warnings.warn(f"{self.function.__qualname__} cannot be split because of an internal error of flambeau, "
                          f"{type(error).__name__}: {error}. It runs eagerly. Please report it.", RuntimeWarning,
                          stacklevel=2)
            return False
        return True

    def _divide_again(self) -> None:
        assert self._source is not None
        partition = Partition(self._source, self._decisions)
        cells: dict[str, Any] = {UNBOUND: Unbound, DISPATCH: self._dispatch}
        parts = {}
        for part in partition.parts:
            key = ast.dump(part.node, include_attributes=True)
            known = self.parts.get(key)
            if known is None:
                function = self._source.compile(part.node, {UNBOUND: Unbound})
                function.__name__ = f"{function.__name__}:{part.node.lineno}"
                made = self._make_part(function, self, key)
            else:
                made = known[1]
            parts[key] = part, made
            cells[part.name] = made
        self.parts = parts
        self._driver = self._source.compile(partition.driver, cells)

    # ----- calls at breaks -----

    def _dispatch(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function; if it broke, in parts."""
        call_through = getattr(type(function), "_call_through", None)
        if call_through is not None and self._compile_module is not None:
            inner = function.module
            if inner not in self._modules:
                self._modules[inner] = self._compile_module(inner)
            return call_through(function, self._modules[inner], *args, **kwargs)
        found = resolve(function)
        if found is not None and found[0].__code__ in _known_breaks:
            split = self.called.get(id(found[0])) or self._split_called(found[0])
            if split is not None:
                return split(*found[1], *args, **kwargs)
        elif found is not None and (made := self._compiled_callee(found[0])) is not None:
            return made(*found[1], *args, **kwargs)
        return function(*args, **kwargs)

    def _compiled_callee(self, function: types.FunctionType) -> Any:
        """Compile a user's function that the driver calls where no graph broke; None for one that runs in Python."""
        if function in self._callees:
            return self._callees[function]
        code = function.__code__
        with _lock:
            own = self.function.__code__
            if self._compile_module is None or self.inspects_gradients or code.co_flags & _SUSPENDS:
                return None
            if code is own or code in own.co_consts or is_own_function(function) or is_stdlib_file(code.co_filename):
                return None  # nested functions, which are made in each call, have parts
            if sum(each.__code__ is code for each in self._callees) >= MAX_FUNCTIONS_OF_CODE:
                return None
            made = self._callees[function] = self._compile_module(function)
            return made

    def _split_called(self, function: types.FunctionType) -> SplitFunction | None:
        """Return the split form of a function that is called at a break; None for closures made in each call."""
        with _lock:
            code = function.__code__
            if sum(each.function.__code__ is code for each in self.called.values()) >= MAX_FUNCTIONS_OF_CODE:
                return None
            split = self.called[id(function)] = SplitFunction(function, self._make_part, self.called,
                                                                self._compile_module)
            if split.failure is None:
                split.add_known_breaks()
            return split


def resolve(function: Any) -> tuple[types.FunctionType, tuple[Any, ...]] | None:
    """Return the Python function that a call runs, and the arguments that precede the call's; None if unknown."""
    if isinstance(function, types.FunctionType):
        return function, ()
    if isinstance(function, types.MethodType):
        return (function.__func__, (function.__self__,)) if isinstance(function.__func__, types.FunctionType) else None
    if isinstance(function, Module):
        return resolve(function.forward) if _runs_forward_only(function) else None
    return None


def _runs_forward_only(module: Any) -> bool:
    """Whether a call of a module is a call of its `forward`, without hooks."""
    own = module.__dict__
    return type(module).__call__ is Module.__call__ and not (
        own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"] or own["_backward_pre_hooks"]
        or GLOBAL_HOOKS.any or "_compiled_call_impl" in own)


__all__ = ["SplitFunction", "Unbound", "resolve"]
