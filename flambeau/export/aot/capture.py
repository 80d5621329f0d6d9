"""Capture: one call of a function as an IR graph, with the memory behind each of its inputs.

The call runs once, eagerly, under the tracer of `torch.compile`. Tensors that are not arguments are *memory* of the
model: weights if the call only reads them, state if it writes to them. What the call wrote is undone afterwards, so
that exporting a training step trains nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

import flambeau as torch

from ..._tensor.creation.generators import default_generator
from ...amp import state as autocast
from ...compiler.guards.guard_set import GuardSet
from ...compiler.tracing.aliasing import memory_order
from ...compiler.tracing.storage_tracer import LiftedInput
from ...compiler.tracing.tracer import DataGuard, Tracer
from ...ir.graph.complex_graph import ComplexGraph
from ...ir.graph.extern_kernels import FallbackKernel
from ...ir.graph.target import Target
from ...ir.graph.value import Graph, Unsupported, Value
from ...ops.declare import Op
from ...trees import tree_flatten
from .errors import ExportError
from .primitives.namespace import new_graph
from .random_draws import STEP, RandomDraws

#: gives the user's line of what runs now; None: the innermost frame outside this package
Locate = Callable[[], str | None]


class Memory(NamedTuple):
    """An array that the model owns.

    Attributes:
        array: identifies the memory: every capture of a program meets the same array.
        initial: its elements when the call began.
        name: of the parameter, buffer or hyperparameter; "" where unknown.
        settable: whether it is a hyperparameter or a seed, which may be set between runs.
    """

    array: np.ndarray
    initial: np.ndarray
    name: str
    settable: bool = False


class Capture(NamedTuple):
    """A captured call.

    Attributes:
        graph: the IR graph.
        targets: results in order, then writes.
        guards: data guards: a bool value, its required outcome, and the user's line.
        arguments: by input number, the position of the argument that it stands for.
        memory: by input number, the model's memory that it stands for.
        written: the input numbers that the call writes to.
        results: shapes and dtypes of the results.
    """

    graph: Graph
    targets: list[Target]
    guards: list[DataGuard]
    arguments: dict[int, int]
    memory: dict[int, Memory]
    written: list[int]
    results: list[tuple[tuple[int, ...], np.dtype]]


class _CapturingTracer(Tracer):
    """A tracer that keeps the elements of lifted arrays as they were, and draws random numbers by a counter."""

    lowered_whole = frozenset()

    def __init__(self, locate: Locate) -> None:
        super().__init__()
        self.graph = new_graph()
        self._locate = locate
        self.initial: dict[int, np.ndarray] = {}
        self.optimizers: list[tuple[Any, Any, dict[str, Any] | None]] = []  # parameters with their state at entry
        self.refusal: str | None = None
        self.draws: RandomDraws | None = None
        self.random_input = 0

    def graph_break(self, reason: str) -> None:
        super().graph_break(reason)
        if self.refusal is None:
            place = self._locate()
            self.refusal = self.failure if place is None else f"{reason} ({place})"

    def _lift(self, tensor: Any, a: np.ndarray) -> Any:
        before = len(self.lifted)
        storage = super()._lift(tensor, a)
        for lifted in self.lifted[before:]:
            self.initial[lifted.number] = lifted.array.copy(order="K")
        return storage

    def intercept(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], in_place: bool) -> Any:
        if in_place:
            self._keep(inputs[0])
        return super().intercept(op, inputs, params, in_place)

    def _update_scalar_state(self, tensor: Any, make: Callable[[], Any], new: Any) -> Any:
        self._keep(tensor)
        return super()._update_scalar_state(tensor, make, new)

    def wrap_param_group(self, optimizer: Any, group: dict[str, Any]) -> dict[str, Any]:
        self.optimizers += [
            (optimizer, p, dict(optimizer.state[p]) if p in optimizer.state else None) for p in group["params"]
        ]
        return super().wrap_param_group(optimizer, group)

    def initializes_state(self) -> bool:
        """Whether an optimizer made other state than zeros: its first step is not like the others."""
        adopted = {id(x) for x in self.initial_state}
        return any(
            isinstance(x, torch.Tensor) and id(x) not in adopted and (before is None or before.get(key) is not x)
            for optimizer, p, before in self.optimizers
            if p in optimizer.state
            for key, x in optimizer.state[p].items()
        )

    def _keep(self, tensor: Any) -> None:
        """Lift a tensor before it is written to."""
        if self.failure is None:
            try:
                self.value_of(tensor)
            except Unsupported as error:
                self.graph_break(str(error))

    def on_operator(
        self, op: Any, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any], in_place: bool
    ) -> None:
        guards, calls = len(self.data_guards), len(self.extern_calls)
        super().on_operator(op, inputs, params, outs, in_place)
        place = self._locate()
        if place is not None:
            self.data_guards[guards:] = [each._replace(where=place) for each in self.data_guards[guards:]]
            self.extern_calls[calls:] = [(name, why, place) for name, why, _ in self.extern_calls[calls:]]

    def on_random_draw(self, function: Callable[..., Any], engine: Any, arguments: tuple, result: Any) -> None:
        if self.failure is not None:
            return
        options = function.keywords if isinstance(function, partial) else {}
        name = getattr(function.func if isinstance(function, partial) else function, "__name__", "a function")
        try:
            if not isinstance(result, np.ndarray):
                raise Unsupported(f"{name} draws a number that Python reads")
            if self.draws is None:
                self.random_input = self.num_leaves
                self.num_leaves += 1
                self.draws = RandomDraws(self.graph, self.graph.input(self.random_input, (), np.dtype(np.int64)))
            values = [self._drawn_from(x) if isinstance(x, np.ndarray) else x for x in arguments]
            value = self.draws.draw(name, values, options, result.dtype, result.size)
            self.bind(result, self.graph.reshape(value, result.shape))
        except Unsupported as error:
            self.graph_break(f"random numbers: {error}. Draw them outside and pass them as an argument, or call eval()")

    def _drawn_from(self, a: np.ndarray) -> Value:
        """The IR value of an array of parameters of a distribution."""
        known = self.known_value(a)
        if known is None:
            if not a.size or (a != a.flat[0]).any():
                raise Unsupported("parameters that are not known")
            return self.graph.expand(self.graph.constant(a.flat[0], a.dtype), a.shape)
        return known


def capture(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    *,
    names: dict[int, str] | None = None,
    locate: Locate = lambda: None,
) -> Capture:
    """Run a call once and return its graph.

    Args:
        function: the function or module.
        args: its arguments; tensors must be contiguous.
        names: identity of a tensor -> its name.
        locate: gives the user's line.

    Raises:
        ExportError: the call cannot be one program of compiled kernels.
    """
    found, tracer = _run(function, args, names or {}, locate)
    tracer.release()
    return found


def capture_stable(function: Callable[..., Any], args: tuple[Any, ...]) -> Capture:
    """Run a call twice and return its graph, of a function that does the same in each call.

    Args:
        function: the function; it may write to tensors from outside, not to other objects.
        args: its arguments.

    Raises:
        ExportError: as `capture`; or the function changes a Python object, or differs from call to call.
    """
    first, tracer = _run(function, args, {}, lambda: None)
    guards = _guards(tracer)
    violated = guards.violated()
    tracer.release()
    second, tracer = _run(function, args, {}, lambda: None)
    mutation = guards.mutation(_guards(tracer), violated)
    tracer.release()
    if mutation is not None:
        raise ExportError(f"this cannot be compiled ahead of time: {mutation}")
    for mine, theirs in zip_longest(first.graph.values, second.graph.values):
        if mine is None or theirs is None or mine.text != theirs.text:
            line = theirs.text if mine is None else mine.text
            raise ExportError(
                f"the function does not do the same in each call: {line} differs. What changes from call "
                "to call must be an argument, or a tensor that it writes to"
            )
    return second


def _guards(tracer: _CapturingTracer) -> GuardSet:
    return GuardSet(tracer.frame_hook, list(tracer.modules.values()))


def _run(
    function: Callable[..., Any], args: tuple[Any, ...], names: dict[int, str], locate: Locate
) -> tuple[Capture, _CapturingTracer]:
    tensors = [x for x in tree_flatten(args)[0] if isinstance(x, torch.Tensor)]
    stream = default_generator.engine.snapshot()
    gradients: dict[int, tuple[Any, Any]] = {}
    try:
        for _ in range(2):
            tracer = _CapturingTracer(locate)
            tracer.frame_hook.add_object(getattr(function, "__name__", type(function).__name__), function)
            with _undone(tracer, gradients):
                with tracer, autocast.own_cache():
                    tracer.bind_arguments(tensors)
                    result = function(*args)
                initializes = tracer.initializes_state()
                left = _gradients_left(tracer)
                if not left:
                    return _collect(tracer, tensors, result, names, initializes), tracer
            for tensor in left:  # a gradient that is None at first counts as zeros
                tensor._grad._array[...] = 0
    finally:
        default_generator.engine.restore(stream)
        for tensor, gradient in gradients.values():
            tensor._grad = gradient
    raise ExportError(
        "each call begins with other gradients than the last one ended with: set them to None "
        "(optimizer.zero_grad()) in the function that is exported"
    )


def _gradients_left(tracer: _CapturingTracer) -> list[Any]:
    """The tensors with gradients that the call made and left, so that the next call begins in another state."""
    return [
        tensor
        for tensor, entry in tracer.entry_grads.values()
        if entry is None
        and tensor._grad is not None
        and not tracer.is_created(tensor)
        and id(tensor) not in tracer.cleared_grads
    ]


@contextmanager
def _undone(tracer: _CapturingTracer, gradients: dict[int, tuple[Any, Any]]) -> Iterator[None]:
    """Restore the elements of lifted arrays and optimizers' state afterwards; collect the gradients to restore."""
    try:
        yield
    finally:
        for lifted in tracer.lifted:
            if lifted.array.flags.writeable:
                lifted.array[...] = tracer.initial[lifted.number]
        if tracer.initializes_state():
            for optimizer, p, before in tracer.optimizers:
                optimizer.state.pop(p, None)
                if before is not None:
                    optimizer.state[p] = before
        for key, (tensor, entry) in tracer.entry_grads.items():
            if not tracer.is_created(tensor):
                gradients.setdefault(key, (tensor, entry))


def _collect(
    tracer: _CapturingTracer, tensors: Sequence[Any], result: Any, names: dict[int, str], initializes: bool
) -> Capture:
    graph = tracer.graph
    assert isinstance(graph, ComplexGraph)
    tracer.frame_hook.stop()
    if initializes:
        raise ExportError(
            "an optimizer initializes its state in this step, which is unlike the next ones: run the step "
            "once before it is exported"
        )
    reason = tracer.refusal or tracer.failure or tracer.frame_hook.effect
    if reason is not None:
        raise ExportError(f"this cannot be compiled ahead of time: {reason}")
    if tracer.extern_calls:
        name, why, place = tracer.extern_calls[0]
        raise ExportError(f"{name} has no compiled kernel for these arguments: {why or 'it runs in NumPy'} ({place})")
    targets: list[Target] = []
    results = []
    try:
        for x in tree_flatten(result)[0]:
            if isinstance(x, torch.Tensor):
                value = tracer.value_of(x)
                if value.op in ("view", "input", "constant") or any(value is t.value for t in targets):
                    value = _copied(graph, value, len(targets))
                targets.append(Target(value))
                results.append((value.shape, value.dtype))
    except Unsupported as error:
        raise ExportError(f"a result cannot be compiled ahead of time: {error}") from None
    written = _writes(tracer, targets)
    arguments = {}
    for number, source in tracer.argument_sources.items():
        if source[0] != "argument":
            raise ExportError("two arguments share memory: pass copies as examples")
        arguments[number] = source[1]
    return Capture(graph, targets, list(tracer.data_guards), arguments, _memory_of(tracer, names), written, results)


def _copied(graph: ComplexGraph, value: Value, number: int) -> Value:
    """A new array of a value's elements, one for each number."""
    if value.dtype.kind != "c":
        return graph.make("copy", (value,), number, value.shape, value.dtype)
    return graph.complex(*(graph.make("copy", (x,), number, x.shape, x.dtype) for x in graph.parts(value)))


def _writes(tracer: _CapturingTracer, targets: list[Target]) -> list[int]:
    """Append the targets of writes; return the numbers of the inputs that are written to."""
    written = []
    for storage in tracer.storages.values():
        if not storage.changed or storage.leaf is None or storage.value is None or not storage.leaf.size:
            continue
        if storage.value.shape != storage.leaf.shape:
            raise ExportError("memory is written in another shape than it has")
        targets.append(Target(storage.value, storage.leaf))
        written.append(storage.leaf.attrs)
    if tracer.draws is not None:
        targets.append(Target(tracer.draws.state + STEP, tracer.draws.state))
        written.append(tracer.random_input)
    return written


def _memory_of(tracer: _CapturingTracer, names: dict[int, str]) -> dict[int, Memory]:
    memory = {
        each.number: Memory(each.array, tracer.initial[each.number], names.get(id(each.tensor), ""))
        for each in map(_checked, tracer.lifted)
    }
    if tracer.draws is not None:
        seed = np.array(default_generator.engine.initial_seed & (1 << 63) - 1)
        memory[tracer.random_input] = Memory(_RANDOM_STATE, seed, "seed", True)
    guarded = {(id(group), key, index) for group, key, index, *_ in tracer.scalar_guards.values()}
    for number, group, key, index in tracer.scalar_inputs:
        value = group[key] if index is None else group[key][index]
        place = _NUMBERS.setdefault((id(group), key, index), (group, np.zeros((), np.float64)))[1]
        free = (id(group), key, index) not in guarded
        memory[number] = Memory(place, np.array(float(value)), key if index is None else f"{key}_{index}", free)
    return memory


#: stands for the state of random numbers
_RANDOM_STATE = np.zeros((), np.int64)
#: arrays that stand for hyperparameters, with their param group, which must stay alive: its identity is in the key
_NUMBERS: dict[tuple[int, str, int | None], tuple[Any, np.ndarray]] = {}


def _checked(lifted: LiftedInput) -> LiftedInput:
    if memory_order(lifted.array) is None:
        raise ExportError(
            f"a tensor of shape {lifted.tensor_array.shape} from outside of the function is not dense: "
            "export a copy of it, x.contiguous()"
        )
    return lifted


def fallback_kernels(values: Sequence[Value]) -> list[FallbackKernel]:
    """The fallback kernels that values depend on."""
    seen: set[int] = set()
    found, stack = [], list(values)
    while stack:
        value = stack.pop()
        if value.number in seen:
            continue
        seen.add(value.number)
        if value.op == "extern" and isinstance(value.attrs, FallbackKernel):
            found.append(value.attrs)
        stack += value.args
    return found


_FRAME = re.compile(r'File "([^"]+)", line (\d+), in .*\n?\s*(.*)')
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def line_of(stack_trace: str) -> str | None:
    """The innermost line of a recorded stack outside this package, else the innermost line, with its source."""
    frames = _FRAME.findall(stack_trace)
    if not frames:
        return None
    file, number, source = ([frame for frame in frames if not frame[0].startswith(_PACKAGE + os.sep)] or frames)[-1]
    return f"{file}:{number}: {source.strip()}" if source else f"{file}:{number}"


__all__ = ["Capture", "Memory", "capture", "capture_stable", "fallback_kernels", "line_of"]
