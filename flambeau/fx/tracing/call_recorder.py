"""`CallRecorder`: records the functions and methods that a call applies to tensors, as Dynamo gives to backends.

The call runs on its arguments while a `TorchFunctionMode` records it, so control flow is that of these arguments. The
record becomes one graph (`finish`), or one for each segment between graph breaks (`segments`).
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import flambeau as torch

from ..._tensor.custom_functions.recording import apply_function
from ..._tensor.dispatch.handlers import handlers
from ..._tensor.overriding import protocol
from ..._tensor.overriding.function_modes import TorchFunctionMode
from ...amp import state as autocast
from ...compiler.guards.object_kinds import CONSTANT_TYPES
from ...ops.function_operators import HigherOrderOperator
from ...ops.overloads import OpOverload, OpOverloadPacket
from ...trees import tree_flatten, tree_map
from ..graph_module import GraphModule
from .call_graph import Body, CallGraph, Modes, NotRecorded, RecordedOperation
from .call_segments import GraphBreak, is_in_loop, live_values, segments_of

#: methods that stand for operators; which of both a program wrote is not known
_OPERATORS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "matmul":
              operator.matmul, "gt": operator.gt, "lt": operator.lt, "ge": operator.ge, "le": operator.le,
              "eq": operator.eq, "ne": operator.ne}


_PACKAGE = __name__.partition(".")[0]
_OWN_NAMESPACES = ("aten", "prims", _PACKAGE)


class Segment(NamedTuple):
    """A segment of a call.

    Attributes:
        graph: its graph.
        examples: the tensors of the placeholders.
        frame: the number of the frame that it belongs to.
    """

    graph: GraphModule
    examples: list[Any]
    frame: int


def _version(tensor: Any) -> int:
    """The number of writes to a tensor: `_version`, whose use in a program breaks the graph."""
    counter = tensor._counter
    return 0 if counter is None else counter[0]


def _runs_user_code(func: Any) -> bool:
    """Whether a function of tensors is a user's: a custom operator, or one with a `__torch_function__` protocol."""
    if isinstance(func, (OpOverload, OpOverloadPacket)):
        return str(func).partition(".")[0] not in _OWN_NAMESPACES
    return isinstance(func, FunctionType) and func.__module__.partition(".")[0] != _PACKAGE


def _attribute_of(found: Any) -> str:
    """The name of a property of tensors."""
    return next((name for cls in torch.Tensor.__mro__ for name, x in vars(cls).items() if x is found),
                found.fget.__name__)


#: by custom Function, the target of its calls
_applications: weakref.WeakKeyDictionary[type, Callable[..., Any]] = weakref.WeakKeyDictionary()


def _apply_of(cls: type) -> Callable[..., Any]:
    """The function that graphs call for a custom Function."""
    found = _applications.get(cls)
    if found is None:
        of = weakref.ref(cls)

        def apply(*args: Any, **kwargs: Any) -> Any:
            return of().apply(*args, **kwargs)  # type: ignore[union-attr]

        apply.__module__, apply.__qualname__, found = cls.__module__, f"{cls.__qualname__}.apply", apply
        _applications[cls] = found
    return found


def _containers(x: Any) -> Iterator[Any]:
    if isinstance(x, (tuple, list, dict)):
        yield x
        for each in x.values() if isinstance(x, dict) else x:
            yield from _containers(each)


def _modes() -> Modes:
    dtype = autocast.casts_to()
    return Modes(torch.is_grad_enabled(), None if dtype is None else (dtype, torch.is_autocast_cache_enabled()))


class CallRecorder(TorchFunctionMode):
    """A block whose functions of tensors are recorded.

    Args:
        tensors: the tensors among the arguments, with names.
        is_created: whether a tensor was made in the call.
        frames: what returns the numbers of the frames of user code on the stack, the outermost first.

    Attributes:
        failure: why the call cannot be repeated, or None.
        operations: what was recorded.
        runs_user_code: whether an operation is a custom operator or Function, which may have side effects.
        breaks: where the graph broke.
        codes: the codes of frames 1, 2, ...; set by the tracer.
        is_pure: whether the call writes to nothing that outlives it and draws no random numbers; set by the tracer.
        sources: by placeholder of the graph that `finish` returns, the position of an argument, or a tensor.

    >>> x = torch.ones(2)
    >>> with CallRecorder([(x, "L_x_")], lambda tensor: False) as record:
    ...     y = (x + 1).sum()
    >>> [node.op for node in record.finish([y])[0].graph.nodes]
    ['placeholder', 'call_function', 'call_method', 'output']
    """

    def __init__(self, tensors: Sequence[tuple[Any, str]], is_created: Callable[[Any], bool],
                 frames: Callable[[], tuple[int, ...]] = tuple) -> None:
        super().__init__()
        self._arguments = {id(x): (i, name) for i, (x, name) in enumerate(tensors)}
        self._kept: list[Any] = [x for x, _ in tensors]  # identities stay unique as long as they live
        self._is_created, self._frames = is_created, frames
        self._start = self._end = _modes()
        self.is_pure, self.codes = False, list[CodeType]()
        self._num_excluded = 0
        self.runs_user_code = False
        self.failure: str | None = None
        self.operations: list[RecordedOperation] = []
        self.breaks: list[GraphBreak] = []
        self.sources: list[Any] = []

    def __enter__(self) -> CallRecorder:
        self._outer, handlers.record_function = handlers.record_function, self._apply_function
        super().__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end = _modes()
        super().__exit__(*exception)
        handlers.record_function = self._outer

    @contextmanager
    def excluded(self) -> Iterator[None]:
        """A block of the call that belongs to no graph."""
        self._num_excluded += 1
        try:
            yield
        finally:
            self._num_excluded -= 1

    def add_break(self, frames: Sequence[tuple[int, Any]], reads: Sequence[Any] = ()) -> None:
        """Record that the graph breaks here.

        Args:
            frames: the frames of user code on the stack and their numbers, the outermost first.
            reads: what Python reads.
        """
        if not self._num_excluded:
            values = [*reads, *(live_values(frame) for _, frame in frames)]
            tensors = [x for x in tree_flatten(values)[0] if isinstance(x, torch.Tensor)]
            self._kept.extend(tensors)
            self.breaks.append(GraphBreak(
                len(self.operations), tuple([(n, is_in_loop(x.f_code, x.f_lasti)) for n, x in frames]),
                tuple(map(id, tensors))))

    # ----- what the call does -----

    def _apply_function(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the call of a custom Function as one operation, with its derivative."""
        if self._num_excluded or self not in protocol.function_modes.get():
            return NotImplemented if self._outer is None else self._outer(cls, args, kwargs)
        versions = [(x, _version(x)) for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
        num_breaks, num_operations = len(self.breaks), len(self.operations)
        handlers.record_function = self._outer
        try:
            result = apply_function(cls, args, kwargs)
        finally:
            handlers.record_function = self._apply_function
        if len(self.breaks) > num_breaks:  # runs in Python, and its operations are segments
            self._kept.append((args, kwargs))
            return result
        del self.operations[num_operations:]
        self.runs_user_code = True
        for x in tree_flatten((args, kwargs))[0]:
            if not isinstance(x, (torch.Tensor, *CONSTANT_TYPES, type, torch.dtype, torch.device)):
                self.failure = f"an argument of a custom Function of class {type(x).__name__}, which may be another one"
        self._try_to_record(_apply_of(cls), args, kwargs, result, any(_version(x) != before for x, before in versions))
        return result

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._num_excluded:
            self._kept.append((args, kwargs))
            return func(*args, **kwargs)
        position = getattr(func, "body_position", None)
        if position is not None and isinstance(func, HigherOrderOperator):
            return self._call_body(func, position, args, kwargs)
        versions = [(x, _version(x)) for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
        num_breaks = len(self.breaks)
        result = func(*args, **kwargs)
        if len(self.breaks) > num_breaks:  # the operation runs in Python
            self._kept.append((args, kwargs))
            return result
        self._try_to_record(func, args, kwargs, result, any(_version(x) != before for x, before in versions))
        return result

    def _call_body(self, operator: Any, position: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call an operator that calls a function, as one operation whose operands are the tensors that this reads."""
        num_breaks, num_operations = len(self.breaks), len(self.operations)
        inside: list[Modes] = []
        function = args[position]

        def body(*args: Any, **kwargs: Any) -> Any:
            inside.append(_modes())
            return function(*args, **kwargs)

        super().__enter__()
        try:
            result = operator.py_kernels["CompositeExplicitAutograd"](*args[:position], body, *args[position + 1:],
                                                                      **kwargs)
        finally:
            super().__exit__(None, None, None)
        if len(self.breaks) > num_breaks or len(inside) != 1:
            return result  # the operations of the function are those of its caller
        operations = self.operations[num_operations:]
        tensors = [x for x in tree_flatten(result)[0] if isinstance(x, torch.Tensor)]
        if operations:
            del self.operations[num_operations:]
            recorded = Body(operations, tensors, inside[0])
            self.operations.append(RecordedOperation(
                "call_function", operator, (*args[:position], recorded, *recorded.inputs), {}, tuple(tensors), _modes(),
                self._frames()))
        return result

    def _try_to_record(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, writes: bool
                       ) -> None:
        if writes or any(isinstance(x, torch.Tensor) for x in tree_flatten(result)[0]):  # sizes and flags are constants
            self.runs_user_code |= _runs_user_code(func)
            op, target, args, kwargs = self._described(func, *tree_map(lambda x: x, (args, kwargs)))  # lists may change
            self.operations.append(RecordedOperation(op, target, args, kwargs, result, _modes(), self._frames()))

    @staticmethod
    def _described(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Any, Any, Any]:
        """The kind of node, its target and arguments."""
        name = getattr(func, "__name__", "")
        if name == "__get__":
            return "call_function", getattr, (*args[:1], _attribute_of(func.__self__)), {}
        if name in ("__setitem__", "__getitem__"):
            return "call_function", operator.setitem if name == "__setitem__" else operator.getitem, args, {}
        if name in _OPERATORS and len(args) == 2 and not kwargs:
            return "call_function", _OPERATORS[name], args, {}
        if getattr(torch.Tensor, name, None) is func:
            return "call_method", name, args, kwargs
        return "call_function", func, args, kwargs

    def containers(self) -> Iterator[Any]:
        """The containers of the record that refer to tensors."""
        yield self._kept
        for each in self.operations:
            yield each
            yield from _containers((each.args, each.kwargs, each.result if isinstance(each.result, tuple) else ()))

    # ----- graphs -----

    def _why_no_input(self, tensor: Any) -> str | None:
        if self._is_created(tensor):
            return "a tensor that was made by a function which takes none"
        return None

    def finish(self, results: Sequence[Any]) -> tuple[GraphModule, list[Any]]:
        """Return the graph of the call, whose output is a tuple of tensors, and examples of its inputs.

        Args:
            results: the tensors of the call's result.

        Raises:
            NotRecorded: the call cannot be repeated.
        """
        if self.failure is not None:
            raise NotRecorded(self.failure)
        graph = CallGraph(self._arguments, self._why_no_input, self._start)
        for each in self.operations:
            if any(x._hooks or x._retains_grad for x in each.all_outputs):
                raise NotRecorded("a hook on a tensor, or one that retains its gradient")
            graph.add(each)
        module = graph.finish(results, self._end)
        self.sources = graph.sources
        return module, graph.examples

    def segments(self, results: Sequence[Any]) -> list[Segment]:
        """Return the graphs of the segments between graph breaks: their results are tensors that are read later.

        Args:
            results: the tensors of the call's result.
        """
        used = {*map(id, results), *(x for each in self.breaks for x in each.reads)}
        used.update(id(x) for x in tree_flatten(self._kept[len(self._arguments):])[0] if isinstance(x, torch.Tensor))
        divided = segments_of(self.operations, self.breaks)
        inside = {id(each) for _, segment in divided for each in segment}
        modes = {frame: self._start for each in self.operations for frame in each.frames[:1]} | {0: self._start}
        for frame, operations in divided:
            modes.setdefault(frame, operations[0].modes)
        used.update(id(x) for each in self.operations if id(each) not in inside for x in each.inputs)
        found: list[Segment] = []
        for frame, operations in reversed(divided):
            graph = CallGraph(self._arguments, lambda tensor: None, modes[frame])
            try:
                for each in operations:
                    graph.add(each)
                made = {id(x): x for each in operations for x in each.outputs if id(x) in used}
                module = graph.finish([*made.values()], modes[frame])
            except NotRecorded:
                continue
            finally:
                used.update(id(x) for each in operations for x in each.inputs)
            found.append(Segment(module, graph.examples, frame))
        return found[::-1]


__all__ = ["CallRecorder", "NotRecorded", "Segment"]
