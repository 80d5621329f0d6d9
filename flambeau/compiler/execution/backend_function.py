"""`BackendFunction`: a function whose graphs a callable compiles, the backend that `compile` was given.

The first call of a signature runs eagerly while it is recorded as a graph of functions (`fx.tracing.call_recorder`),
which the backend compiles. What it returns computes the results of this call, if it writes to nothing, and runs from
the second call on that does the same, as long as all guards hold. If the graph breaks, the backend compiles the graphs
before and after the breaks at once; they are kept until the parts into which the function is divided ask for them.
"""

from __future__ import annotations

import copy
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
from ..guards.object_kinds import is_traversable
from ..splitting.part_results import held_elsewhere
from ..stance import policy
from ..tracing.trace import MAX_TRACES, Trace
from ..tracing.trace_comparison import difference
from ..tracing.tracer import Tracer
from .cache_entry import GUARDS_FAILED, CacheEntry
from .compiled_function import MAX_PART_SIGNATURES, CompiledFunction
from .dynamic_marks import tensor_names
from .result_owners import are_known_elsewhere
from .signatures import argument_signature, is_static_argument, signature_of, weak_reference

#: graphs that are compiled and wait for the parts of a function
MAX_UNCLAIMED = 64


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


class _Compiled(NamedTuple):
    """A graph that a backend has compiled, and that no call of its own has asked for yet.

    Attributes:
        signature: what a graph has in common with it that computes the same.
        results: by result, whether it is an input, and the number of its node.
        num_inputs: of its placeholders, those that operations read.
        run: what the backend returned.
    """

    signature: Any
    results: list[tuple[bool, int]]
    num_inputs: int
    run: Callable[..., Any]


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

    def __init__(self, arguments: Sequence[Any]) -> None:
        self.entries: list[BackendEntry] = []
        self.pending: list[_Recorded] = []
        self.num_traces = 0
        self.reason: str | None = None
        self.compiled: list[_Compiled] = []
        self.objects = [(i, weak_reference(x)) for i, x in enumerate(arguments) if argument_signature(x)[0] == "object"]

    def matches(self, arguments: Sequence[Any]) -> bool:
        """Whether the arguments that are keyed by identity are the same objects."""
        return all(ref() is arguments[i] for i, ref in self.objects)


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
        self._unclaimed: list[_Compiled] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.function, self.backend, self.fullgraph, self.limit, self.enabled, self.dynamic)

    def like(self, function: Callable[..., Any]) -> CompiledFunction:
        return BackendFunction(function, self.backend, fullgraph=self.fullgraph, limit=self.limit,
                               enabled=self.enabled, dynamic=self.dynamic)

    def reset(self) -> None:
        super().reset()
        self._of_backend = {}
        self._unclaimed.clear()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.enabled or (special[0] and special[0] != active_tracers[0]) or active_tracer.get() is not None or (
                not policy.is_default and policy.runs_eagerly):
            return self.function(*args, **kwargs)
        if self.split is not None and self.split.is_ready and not self.fullgraph:
            return self._call_split(args, kwargs)
        leaves, tree = tree_flatten((args, kwargs))
        key = signature_of(leaves, tree)
        found = self._of_backend.get(key)
        if found is not None and not found.matches(leaves):
            del self._of_backend[key]
            found = None
        if found is None:
            if not policy.is_default or len(self._of_backend) >= (self.limit or policy.recompile_limit):
                return self._eagerly(args, kwargs, "too many signatures")
            found = self._of_backend[key] = _Signature(leaves)
            if not all(is_static_argument(x) or is_traversable(x) for x in leaves):
                found.reason = "an argument that is no tensor, number, string, function or module"
                return self._record(found, args, kwargs)
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
        is_first = not found.num_traces and not found.entries
        trace, record, result, frames = record_call(self.function, args, kwargs)
        if any(entry.relax_pins(trace) for entry in found.entries):
            return result
        reason = self._why_not(trace) or found.reason
        if reason is None:
            other = next((each for each in found.pending if difference(each.trace, trace) is None), None)
            if other is not None:
                found.pending.remove(other)
                self._add_backend_entry(found, trace, other)
                return result
            if found.pending:
                reason = difference(found.pending[-1].trace, trace)
            try:
                recorded, graph, examples = self._compile(found, trace, record, result)
                found.pending = [*found.pending[-3:], recorded]
                found.num_traces += 1
                if is_first and (again := self._replay_first(record, recorded, graph, examples, result)) is not None:
                    return again
            except _recorder().NotRecorded as error:
                reason = found.reason = str(error)
        if reason is not None and is_first:
            self._compile_segments(record, result)
        if trace.failure is not None or found.reason is not None:
            found.num_traces += trace.retry_cost
        if reason is not None and found.num_traces >= MAX_TRACES:
            found.reason, found.pending = found.reason or reason, []
        if trace.failure is not None:
            counters["graph_break"][trace.failure] += 1
        if found.reason is not None:
            if self.fullgraph:
                raise Unsupported(f"a call of {self.function!r} cannot be compiled as one graph: {found.reason}")
            self._divide(frames, found.reason)
        return result

    @staticmethod
    def _replay_first(record: Any, recorded: _Recorded, graph: Any, examples: list[Any], result: Any) -> Any:
        """Let what the backend returned compute the results of the recorded call; None if that had other effects.

        Nothing may be written that outlives the call, no random numbers drawn, no custom operators and Functions run,
        which may have side effects, and no result be known elsewhere.
        """
        if not record.is_pure or Tensor not in recorded.leaves:
            return None
        leaves = tree_flatten(result)[0]
        given = {id(x) for x in examples}
        tensors = [x for x in leaves if isinstance(x, Tensor) and id(x) not in given]
        metadata = [x for node in graph.graph.nodes
                    for x in (node.meta, *_containers(node.meta.get("example_value")))]
        if are_known_elsewhere(tensors, [leaves, *_containers(result), *record.containers(), *metadata]):
            return None
        del tensors, leaves
        results = iter(recorded.run(*examples))
        return tree_unflatten([next(results) if x is Tensor else x for x in recorded.leaves], recorded.tree)

    def _compile_segments(self, record: Any, result: Any) -> None:
        """Let the backend compile the graphs between the graph breaks of a call.

        Those of a function that is called several times are compiled once.
        """
        known, frames = [*self._unclaimed], dict[Any, int]()
        for graph, examples, frame in record.segments([x for x in tree_flatten(result)[0] if isinstance(x, Tensor)]):
            made = _unclaimed(graph, graph)
            key = record.codes[frame - 1] if frame else None, None if made is None else made.signature
            if made is not None and frames.setdefault(key, frame) != frame:
                continue
            at = _find(made, known)
            if at is not None:
                del known[at]
            else:
                run = self._call_backend(graph, examples)
                if made is not None:
                    self._unclaimed[:] = [*self._unclaimed[-MAX_UNCLAIMED:], made._replace(run=run)]

    def _make_part(self, function: Callable[..., Any], split: Any, key: str) -> CompiledFunction:
        made = BackendFunction(function, self.backend, limit=MAX_PART_SIGNATURES, part_of=(split, key),
                               dynamic=self.dynamic)
        made._unclaimed = self._unclaimed
        return made

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

    def _compile(self, found: _Signature, trace: Trace, record: Any, result: Any) -> tuple[_Recorded, Any, list[Any]]:
        """Let the backend compile the graph of a recorded call; also return the graph and examples of its inputs."""
        leaves, tree = tree_flatten(result)
        graph, examples = record.finish([x for x in leaves if isinstance(x, Tensor)])
        counters["frames"]["ok"] += 1
        run = self._claim(found, graph)
        if run is None:
            run = self._call_backend(graph, examples)
            if (made := _unclaimed(graph, run)) is not None:
                found.compiled = [*found.compiled[-3:], made]
        leaves = [Tensor if isinstance(x, Tensor) else x for x in leaves]
        return _Recorded(trace, run, record.sources, leaves, tree), graph, examples

    def _call_backend(self, graph: Any, examples: list[Any]) -> Callable[..., Any]:
        """What the backend makes of a graph; one without calls is run as it is."""
        calls = sum("call" in node.op for node in graph.graph.nodes)
        if not calls:
            run: Callable[..., Any] = graph
            return run
        counters["stats"]["unique_graphs"] += 1
        counters["stats"]["calls_captured"] += calls
        try:
            verify = policy.verify_correctness
            run = self.backend(graph if verify is None else copy.deepcopy(graph), examples)
            if verify is not None and callable(run) and not verify(graph, run, examples):
                raise RuntimeError(f"incorrect results of backend {self.backend}")
        except Exception as error:
            raise BackendCompilerFailed(self.backend, error) from error
        if not callable(run):
            raise BackendCompilerFailed(self.backend, TypeError("compiler_fn did not return callable"))
        return run

    def _claim(self, found: _Signature, graph: Any) -> Callable[..., Any] | None:
        """What the backend has made of a graph that computes the same; None if there is none.

        Graphs of calls that agree in nothing else, since the function changes Python state, are compiled once.
        """
        for table in (self._unclaimed, [] if found.entries else found.compiled):
            wanted = _unclaimed(graph, graph) if table else None
            at = _find(wanted, table)
            if at is not None and wanted is not None:
                each = table[at]
                if table is self._unclaimed:
                    del table[at]
                return _selected(each.run, each.num_inputs, [
                    (is_input, number if is_input else each.results.index((is_input, number)))
                    for is_input, number in wanted.results])
        return None

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


def _find(wanted: _Compiled | None, table: Sequence[_Compiled]) -> int | None:
    """The position of a graph that computes all that is wanted; None if there is none."""
    if wanted is None:
        return None
    return next((i for i, each in enumerate(table) if each.signature == wanted.signature and all(
        result[0] or result in each.results for result in wanted.results)), None)


def _unclaimed(graph: Any, run: Callable[..., Any]) -> _Compiled | None:
    """A compiled graph as `_Compiled`; None if it cannot be compared with others."""
    module = importlib.import_module(f"{__package__.partition('.')[0]}.fx.tracing.call_graph")
    signature = module.signature_of_graph(graph)
    if signature is None:
        return None
    output = next(iter(reversed(graph.graph.nodes)))
    return _Compiled(signature, module.result_positions(graph, output.args[0]),
                     sum(each[0] == "placeholder" for each in signature), run)


def _selected(run: Callable[..., Any], num_inputs: int, places: list[tuple[bool, int]]) -> Callable[..., Any]:
    """A function that returns some of the inputs, and of the results of `run`, which takes the first inputs."""
    def selected(*inputs: Any) -> tuple[Any, ...]:
        results = tuple(run(*inputs[:num_inputs]))
        return tuple([inputs[i] if is_input else results[i] for is_input, i in places])

    return selected


def _containers(x: Any) -> list[Any]:
    """The containers in a tree, outermost first."""
    if isinstance(x, dict):
        return [x, *(each for value in x.values() for each in _containers(value))]
    return [x, *(each for value in x for each in _containers(value))] if isinstance(x, (tuple, list)) else []


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
    hook = tracer.frame_hook
    record = _recorder().CallRecorder([*zip(tensors, names, strict=True)], tracer.is_created,
                                      lambda: tuple([number for number, _ in hook.numbered_frames()]))

    def on_break(*reads: Any) -> None:
        record.add_break(hook.numbered_frames(), reads)

    hook.frame_numbers, hook.on_effect = {}, on_break
    tracer.on_break, tracer.outside_of_graphs = on_break, record.excluded
    with tracer, autocast.own_cache():
        tracer.bind_arguments(tensors)
        with record:
            result = function(*args, **kwargs)
        if held := held_elsewhere(result, tracer.frame_hook.objects):
            tracer.graph_break(held)
        trace = _CallTrace(tracer, tensors, result)
    record.is_pure = not (trace.failure or trace.version_bumps or trace.written_leaves or trace.effects
                          or trace.grad_updates or trace.ran_backward or record.runs_user_code)
    frames = tracer.break_frames or tracer.frame_hook.effect_frames or tracer.frame_hook.external_frames
    tracer.release()
    hook.frame_numbers, record.codes = None, hook.frame_codes
    return trace, record, result, frames if trace.failure is not None else ()


def _placeholder_name(name: str) -> str:
    """The name of the placeholder of an argument, such as `L_x_` for `L['x']`."""
    return name.replace("['", "_").replace("']", "_")


def _unpickle(function: Any, backend: Any, fullgraph: bool, limit: int | None, enabled: bool, dynamic: bool | None
              ) -> BackendFunction:
    return BackendFunction(function, backend, fullgraph=fullgraph, limit=limit, enabled=enabled, dynamic=dynamic)


__all__ = ["BackendFunction", "record_call"]
