"""`BackendFunction`: a function whose graphs a callable compiles, the backend that `compile` was given.

The first call of a signature runs eagerly while it is recorded as a graph of functions (`fx.tracing.call_recorder`),
which the backend compiles. What it returns runs from the second call on that does the same, as long as all guards hold.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..._tensor import Tensor
from ...amp import state as autocast
from ...modes import active_tracer, active_tracers, special
from ...trees import tree_flatten, tree_unflatten
from ..cache.trace_cache import record_agreement
from ..counters import counters
from ..errors import BackendCompilerFailed, Unsupported
from ..splitting.part_results import held_elsewhere
from ..stance import policy
from ..tracing.trace import MAX_TRACES, Trace
from ..tracing.trace_comparison import difference
from ..tracing.tracer import Tracer
from .cache_entry import GUARDS_FAILED, CacheEntry
from .compiled_function import MAX_PART_SIGNATURES, CompiledFunction
from .dynamic_marks import tensor_names
from .signatures import is_static_argument, signature_of


class _NoProgram:
    """Stands for the program of an entry whose code a backend made."""

    cache_key = single = None


class _Recorded(NamedTuple):
    """A recorded call: its trace, what the backend made of its graph, the graph's inputs and the call's result."""

    trace: Trace
    run: Callable[..., Any]
    sources: list[Any]
    leaves: list[Any]
    tree: Any


class _CallTrace(Trace):
    """A trace of which only the guards and the agreement with another one matter: the graph makes the results."""

    def _hidden_bases(self, arguments: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        return []

    def _differentiate(self, arguments: Sequence[Any], leaves: Sequence[Any]) -> None:
        pass

    def _make_outputs(self, arguments: Sequence[Any], leaves: Sequence[Any]) -> None:
        self.outputs = [("tensor",) if isinstance(x, Tensor) else ("constant", x) for x in leaves]


class BackendEntry(CacheEntry):
    """A graph that a backend has compiled, and the guards under which it is that of a call."""

    recorded: _Recorded

    def make_program(self, *_: Any) -> Any:
        return _NoProgram()

    def make_backward(self, *_: Any) -> Any:
        return None

    def run(self, arguments: Sequence[Any], *_: Any, **__: Any) -> Any:
        """Check the guards and call what the backend made; `GUARDS_FAILED` if one does not hold.

        Args:
            arguments: the tensors among the call's arguments.
        """
        if not self.check_guards(arguments):
            return GUARDS_FAILED
        recorded = self.recorded
        results = iter(recorded.run(*[arguments[x] if isinstance(x, int) else x for x in recorded.sources]))
        return tree_unflatten([next(results) if x is Tensor else x for x in recorded.leaves], recorded.tree)


class _Signature:
    """The entries and traces of the calls of one signature."""

    def __init__(self) -> None:
        self.entries: list[BackendEntry] = []
        self.pending: list[_Recorded] = []
        self.num_traces = 0
        self.reason: str | None = None


class BackendFunction(CompiledFunction):
    """A function that a backend compiles; the arguments are those of `CompiledFunction`.

    Args:
        backend: takes a `GraphModule` and a list of examples of its inputs, and returns a function.
    """

    def __init__(self, function: Callable[..., Any], backend: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, **options)
        self.backend = backend
        self._of_backend: dict[Any, _Signature] = {}
        self._tracing = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.function, self.backend, self.fullgraph, self.limit, self.enabled, self.dynamic)

    def like(self, function: Callable[..., Any]) -> CompiledFunction:
        return BackendFunction(function, self.backend, fullgraph=self.fullgraph, limit=self.limit,
                               enabled=self.enabled, dynamic=self.dynamic)

    def reset(self) -> None:
        super().reset()
        self._of_backend = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.enabled or (special[0] and special[0] != active_tracers[0]) or active_tracer.get() is not None or (
                not policy.is_default and policy.runs_eagerly):
            return self.function(*args, **kwargs)
        if self.split is not None and self.split.is_ready and not self.fullgraph:
            return self._call_split(args, kwargs)
        leaves, tree = tree_flatten((args, kwargs))
        if not all(map(is_static_argument, leaves)):
            return self._eagerly(args, kwargs, "an argument that is no tensor, number, string, function or module")
        key = signature_of(leaves, tree)
        found = self._of_backend.get(key)
        if found is None:
            if not policy.is_default or len(self._of_backend) >= (self.limit or policy.recompile_limit):
                return self._eagerly(args, kwargs, "too many signatures")
            found = self._of_backend[key] = _Signature()
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        for entry in found.entries:
            result = entry.run(tensors)
            if result is not GUARDS_FAILED:
                return result
        if found.reason is not None:
            return self._eagerly(args, kwargs, found.reason)
        with self._tracing:
            return self._record(found, args, kwargs)

    def _eagerly(self, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str) -> Any:
        if self.fullgraph:
            raise Unsupported(f"a call of {self.function!r} cannot be compiled as one graph: {reason}")
        return self.function(*args, **kwargs)

    def _record(self, found: _Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call while it is recorded; make an entry if it agrees with an earlier one."""
        counters["frames"]["total"] += 1
        trace, record, result, frames = record_call(self.function, args, kwargs)
        if any(entry.relax_pins(trace) for entry in found.entries):
            return result
        reason = self._why_not(trace)
        if reason is None:
            other = next((each for each in found.pending if difference(each.trace, trace) is None), None)
            if other is not None:
                found.pending.remove(other)
                self._add_backend_entry(found, trace, other)
                return result
            if found.pending:
                reason = difference(found.pending[-1].trace, trace)
            try:
                found.pending = [*found.pending[-3:], self._compile(trace, record, result)]
            except _recorder().NotRecorded as error:
                reason = found.reason = str(error)
        found.num_traces += 1 if trace.failure is None else trace.retry_cost
        if reason is not None and found.num_traces >= MAX_TRACES:
            found.reason, found.pending = found.reason or reason, []
        if trace.failure is not None:
            counters["graph_break"][trace.failure] += 1
        if found.reason is not None:
            if self.fullgraph:
                raise Unsupported(f"a call of {self.function!r} cannot be compiled as one graph: {found.reason}")
            self._divide(frames, found.reason)
        return result

    def _make_part(self, function: Callable[..., Any], split: Any, key: str) -> CompiledFunction:
        return BackendFunction(function, self.backend, limit=MAX_PART_SIGNATURES, part_of=(split, key),
                               dynamic=self.dynamic)

    @staticmethod
    def _why_not(trace: Trace) -> str | None:
        """Why the graph of a call does not stand for it; None if it does."""
        if trace.failure is not None:
            return trace.failure
        if branches := [guard for guard in trace.data_guards if not guard.of_operator]:
            trace.retry_cost = MAX_TRACES
            trace.failure = f"a branch that depends on a tensor's elements ({branches[0].where})"
        elif trace.ran_backward or trace.grad_updates:
            trace.failure = "a backward pass or a gradient that is set, for a backend that compiles graphs of functions"
        return trace.failure

    def _compile(self, trace: Trace, record: Any, result: Any) -> _Recorded:
        """Let the backend compile the graph of a recorded call."""
        leaves, tree = tree_flatten(result)
        graph, examples = record.finish([x for x in leaves if isinstance(x, Tensor)])
        calls = sum("call" in node.op for node in graph.graph.nodes)
        counters["frames"]["ok"] += 1
        run: Callable[..., Any] = graph
        if calls:
            counters["stats"]["unique_graphs"] += 1
            counters["stats"]["calls_captured"] += calls
            try:
                run = self.backend(graph, examples)
            except Exception as error:
                raise BackendCompilerFailed(self.backend, error) from error
            if not callable(run):
                raise BackendCompilerFailed(self.backend, TypeError("compiler_fn did not return callable"))
        return _Recorded(trace, run, record.sources, [Tensor if isinstance(x, Tensor) else x for x in leaves], tree)

    def _add_backend_entry(self, found: _Signature, trace: Trace, other: _Recorded) -> None:
        guard_set, other_set = trace.guard_set, other.trace.guard_set
        assert guard_set is not None
        assert other_set is not None
        entry = BackendEntry(trace, self._title, guard_set.common_guards(other_set), other.trace, "",
                             record_agreement(guard_set, other_set))
        entry.recorded = other
        trace.initial_state = []
        found.entries.insert(0, entry)
        found.num_traces = 0


def _recorder() -> Any:
    """The module that records graphs, which is above the compiler."""
    return importlib.import_module(f"{__package__.partition('.')[0]}.fx.tracing.call_recorder")


def record_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
                ) -> tuple[Trace, Any, Any, Any]:
    """Run a call; return its trace, the recorder of its graph, its result, and the stack where its graph broke."""
    tracer = Tracer()
    tracer.frame_hook.add_object(getattr(function, "__name__", type(function).__name__), function)
    tensors = []
    for x in tree_flatten((args, kwargs))[0]:
        if isinstance(x, Tensor):
            tensors.append(x)
        else:
            tracer.frame_hook.add_object(type(x).__name__, x)
    names = map(_placeholder_name, tensor_names(function, args, kwargs))
    record = _recorder().CallRecorder([*zip(tensors, names, strict=True)], tracer.is_created)
    with tracer, autocast.own_cache():
        tracer.bind_arguments(tensors)
        with record:
            result = function(*args, **kwargs)
        if held := held_elsewhere(result, tracer.frame_hook.objects):
            tracer.graph_break(held)
        trace = _CallTrace(tracer, tensors, result)
    frames = tracer.break_frames or tracer.frame_hook.effect_frames or tracer.frame_hook.external_frames
    tracer.release()
    return trace, record, result, frames if trace.failure is not None else ()


def _placeholder_name(name: str) -> str:
    """The name of the placeholder of an argument, such as `L_x_` for `L['x']`."""
    return name.replace("['", "_").replace("']", "_")


def _unpickle(function: Any, backend: Any, fullgraph: bool, limit: int | None, enabled: bool, dynamic: bool | None
              ) -> BackendFunction:
    return BackendFunction(function, backend, fullgraph=fullgraph, limit=limit, enabled=enabled, dynamic=dynamic)


__all__ = ["BackendFunction", "record_call"]
