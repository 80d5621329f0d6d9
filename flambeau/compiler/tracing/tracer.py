"""A function's run, written down: every operator that it applies, forward and backward, as one graph.

The function runs as it always does, on real arrays, so its results are right whatever comes of the writing down.
A `Capture` is told of each operator and adds what it computes to the graph; arrays are recognized by their memory. What
cannot be written down is noted with its reason and the line of the user's program, and the run goes on.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor.dispatch.interception import Interceptor
from ..._tensor.dispatch.promotion import _operands, rounded_params
from ..._tensor.tensor import wrap
from ...backends.compiled.thresholds import pause, resume
from ...engine.saved.version_counters import WRITES
from ...ir.graph.extern_kernels import FallbackKernel
from ...ir.graph.value import BOOL, Graph, Unsupported, Value
from ...ir.lowering.namespace import lowered
from ...modes import active_tracer, active_tracers
from ...ops.declare import COMPOSITE, VIEW, Op
from ..guards.tensor_state import state_objects
from . import aliasing
from .aliasing import Storage
from .extern_calls import OperatorCall, RandomDraw
from .frame_hook import FrameHook, is_own_function
from .lowering import LOWERED
from .optimizer_updates import UpdateNamespace, ValueCell
from .symbolic_scalars import SymbolicParamGroup, SymbolicScalar, concrete

_PACKAGE = __name__.partition(".")[0]

class LiftedInput(NamedTuple):
    """An array that the function found, and did not compute.

    Attributes:
        number: of its leaf.
        tensor: that showed it.
        array: the memory that the leaf is.
        own: the tensor's array.
    """

    number: int
    tensor: Any
    array: np.ndarray
    own: np.ndarray


def _state(x: Any) -> tuple:
    """What a function may change of a tensor besides its numbers and its gradient, and its version."""
    return x._array, x._node, x._requires_grad, *hook_state(x), 0 if x._counter is None else x._counter[0]


def hook_state(x: Any) -> tuple[Any, ...]:
    """What of a tensor a new hook changes."""
    return len(x._hooks or ()), len(x._post_accumulate_hooks or ()), bool(x._retains)


class DataGuard(NamedTuple):
    """The truth of a value, by which the function chose its way."""

    value: Value
    outcome: bool
    where: str


def user_location() -> str:
    """The innermost line of the program that is not of this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        if frame.f_back is None:
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Tracer(Interceptor):
    """Writes down what is applied while it is entered.

    Attributes:
        graph: what was written down.
        outside: arrays that were found, by their leaves' numbers.
        given_from: where the leaves that are arguments come from, by their numbers (see `Trace.sources`).
        entered: the arguments, and what they were when the function began.
        starts: arguments by position, and at which byte of their memory they must begin.
        failed: why the run cannot be replayed, or None.
        guards: truths that the run depended on.
    """

    def __init__(self) -> None:
        self.graph = Graph()
        self.num_leaves = 0
        self.lifted: list[LiftedInput] = []
        self.argument_sources: dict[int, tuple] = {}
        self.arguments_at_entry: list[tuple[Any, tuple]] = []
        self.storage_offsets: dict[int, int] = {}
        self.failure: str | None = None
        self.data_guards: list[DataGuard] = []
        self._seen_conditions = 0
        self.extern_calls: list[tuple[str, str, str]] = []  # operator, why, where
        self.storages: dict[int, Storage] = {}
        self.cleared_grads: dict[int, Any] = {}  # tensors whose gradients were taken away, by identity
        self.grad_reads: dict[int, Any] = {}  # tensors whose gradients the function looked at as it found them
        self.entry_grads: dict[int, tuple[Any, Any]] = {}  # tensors seen, with the gradients they had then
        self.versions: dict[int, list[Any]] = {}  # by counter
        # tensors that the function made over memory which was there before; held weakly, since graphs hang on them
        self.views: dict[int, weakref.ref[Any]] = {}
        self.modules: dict[int, Any] = {}
        self.scalar_inputs: list[Any] = []  # what gives the numbers that are leaves
        self.ran_backward = False
        self.scalar_guards: dict[tuple, tuple] = {}
        self.param_groups: list[tuple[Any, dict[str, Any]]] = []  # optimizers and their groups
        self.states: list[tuple[Any, dict[str, Any], dict[Any, list[Any]]]] = []  # with what they remembered before
        self.initial_state: list[Any] = []  # zeros that optimizers begin with, as if they had been there
        self._symbols: dict[tuple, SymbolicScalar] = {}
        self.last_draw: Value | None = None  # says that the last random numbers were drawn
        self.frame_hook = FrameHook()

    def __enter__(self) -> Tracer:
        self._token = active_tracer.set(self)
        pause()
        active_tracers[0] += 1
        super().__enter__()
        self.frame_hook.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.frame_hook.stop()
        resume()
        super().__exit__(*exception)
        active_tracers[0] -= 1
        active_tracer.reset(self._token)

    def forget(self) -> None:
        """Let go of the arrays that the run met, which its trace needs no more; symbols would keep them for long."""
        self.lifted, self.scalar_inputs, self.initial_state = [], [], []
        for each in (self.storages, self.entry_grads, self.grad_reads, self.cleared_grads, self._symbols):
            each.clear()

    # ----- what goes wrong -----

    def graph_break(self, why: str) -> None:
        """Note that the run cannot be replayed; the first reason counts."""
        if self.failure is None:
            self.failure = f"{why} ({user_location()})"

    def internal_error(self, what: str, error: Exception) -> None:
        """Note an error of the capture's own: the run goes on, and a warning says so."""
        self.graph_break(f"{what}: an error of flambeau's own, {type(error).__name__}: {error}")
        warnings.warn(f"{what} cannot be compiled, by an error of flambeau's own: {type(error).__name__}: {error}. "
                      "The call runs eagerly. Please report it.", RuntimeWarning, stacklevel=2)

    # ----- arrays and values -----

    def begin(self, tensors: Sequence[Any]) -> None:
        """Let a call's arguments be leaves; those that lie in one memory show parts of one leaf."""
        try:
            for members in aliasing.group_by_storage(tensors):
                first = members[0]
                places = {aliasing.place(tensors[i]._array) for i in members}
                if len(places) == 1:
                    self.argument_sources[self.num_leaves] = ("argument", first)
                    self.given(tensors[first])
                else:
                    self._given_together([tensors[i] for i in members], members)
        except Unsupported as error:
            self.graph_break(str(error))
        for x in tensors:
            self.note_entry_grad(x)
        self.arguments_at_entry = [(x, _state(x)) for x in tensors]

    def given(self, tensor: Any) -> Value:
        """Let a tensor's array be a leaf."""
        a = tensor._array
        storage, leaf = aliasing.given(self.graph, a, self.num_leaves)
        self.num_leaves += 1
        known = self.storages.get(id(aliasing.owner(a)))
        if known is not None:
            raise Unsupported("two arguments that share memory")
        self._keep(aliasing.owner(a), storage)
        return leaf

    def _given_together(self, tensors: Sequence[Any], positions: Sequence[int]) -> None:
        """Let arguments that lie in one memory be views of a leaf, from the first byte of any to the last."""
        lowest = min(range(len(tensors)), key=lambda i: aliasing.address(tensors[i]._array))
        span = aliasing.span([x._array for x in tensors])
        storage, _ = aliasing.given(self.graph, span, self.num_leaves)
        self.argument_sources[self.num_leaves] = ("memory of", positions[lowest], span.size)
        self.num_leaves += 1
        storage.root = aliasing.owner(tensors[lowest]._array)
        self.storages[id(storage.root)] = storage

    def note_entry_grad(self, tensor: Any) -> None:
        """Note the gradient that a tensor has when it is first met."""
        if id(tensor) not in self.entry_grads:
            self.entry_grads[id(tensor)] = (tensor, tensor._grad)

    def value_of(self, tensor: Any) -> Value:
        """What a tensor's array holds now."""
        a = tensor._array
        storage = self.storages.get(id(aliasing.owner(a)))
        if storage is None:
            storage = self._found(tensor, a)
        if tensor._requires_grad and tensor._node is None:
            self.note_entry_grad(tensor)
        if tensor._counter is not None:
            self._check_version(tensor)
        return storage.read(a)

    def known(self, a: np.ndarray) -> Value | None:
        """What an array holds, if it was computed in this run or given."""
        storage = self.storages.get(id(aliasing.owner(a)))
        return None if storage is None else storage.read(a)

    def _found(self, tensor: Any, a: np.ndarray) -> Storage:
        if type(a) is not np.ndarray:
            raise Unsupported(f"a tensor of {type(a).__name__}")
        root = aliasing.owner(a)
        if not a.ndim and a is root and not a.flags.writeable:  # what backward begins with: one for all
            return self._keep(root, aliasing.made(self.graph, a, self.graph.constant(a)))
        shown = aliasing.leaf_array(a)
        storage, _ = aliasing.given(self.graph, shown, self.num_leaves)
        self.lifted.append(LiftedInput(self.num_leaves, tensor, shown, a))
        self.num_leaves += 1
        storage.root = root
        return self._keep(root, storage)

    def _keep(self, root: np.ndarray, storage: Storage) -> Storage:
        """Let a storage be found by its array: until that is gone, if it was made in this run."""
        key, found = id(root), self.storages
        found[key] = storage
        if storage.leaf is None:
            storage.alive = weakref.ref(root, lambda _: found.pop(key, None))
        return storage

    def bind(self, a: np.ndarray, value: Value) -> None:
        """Note that a new array holds a value."""
        if value.dtype != a.dtype:
            value = self.graph.cast(value, a.dtype)
        if value.shape != a.shape:
            raise Unsupported(f"a result of shape {a.shape} written down as {value.shape}")
        known = self.storages.get(id(aliasing.owner(a)))
        if known is not None and known.value is None:
            known.remember(a, value)
            return
        self._keep(aliasing.owner(a), aliasing.made(self.graph, a, value))

    # ----- what the run tells -----

    def before_kernel(self, rule: Callable[..., Any]) -> None:
        if is_own_function(rule):
            self.frame_hook.pause()

    def after_kernel(self, rule: Callable[..., Any]) -> None:
        if is_own_function(rule):
            self.frame_hook.resume()

    def tell(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any], in_place: bool) -> None:
        if self.failure is not None:
            return
        self.frame_hook.pause()
        try:
            self._tell(op, inputs, params, outs, in_place)
        except Unsupported as error:
            self.graph_break(f"{op.name}: {error}")
        except Exception as error:
            self.internal_error(op.name, error)
        finally:
            self.frame_hook.resume()

    def _tell(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
              in_place: bool) -> None:
        if op.kind == COMPOSITE:
            return
        if in_place:
            self.on_version_bump(outs[0])
        if in_place and op.kind == VIEW:  # the tensor shows its memory otherwise from now on
            self.value_of(outs[0])
            return
        if not in_place:
            if params.get("storage_offset") is not None:
                self._counts_from_start(inputs[0])
            arrays = [out._array for out in outs]
            roots = [id(aliasing.owner(a)) for a in arrays]
            for out, root in zip(outs, roots, strict=True):
                if op.kind == VIEW and (root not in self.storages or self.storages[root].leaf is not None):
                    self.on_view(out)
            if all(root in self.storages and self.storages[root].value is not None for root in roots):
                return  # views
            if op.kind == VIEW:
                for x in inputs:
                    if isinstance(x, Tensor):
                        self.value_of(x)  # then what shows its memory is known too
                if all(root in self.storages for root in roots):
                    return
        values = self.lower(op, inputs, params, outs)
        if in_place:
            target = outs[0]
            self.write(target, values[0])
        else:
            for out, value in zip(outs, values, strict=True):
                self.bind(out._array, value)
        for value, outcome in self.graph.conditions[self._seen_conditions:]:
            self.data_guards.append(DataGuard(value, outcome, user_location()))
        self._seen_conditions = len(self.graph.conditions)
        self.note(op.name, values, outs)

    def _counts_from_start(self, tensor: Any) -> None:
        """Note that the run depends on where a tensor, if it is an argument, begins in its memory."""
        root = aliasing.owner(tensor._array)
        storage = self.storages.get(id(root))
        leaf = None if storage is None else storage.leaf
        source = None if leaf is None else self.argument_sources.get(leaf.attrs)
        if source is not None:
            if source[0] != "argument":
                raise Unsupported("a view by its place in memory, of arguments that share it")
            a = self.arguments_at_entry[source[1]][0]._array
            self.storage_offsets[source[1]] = aliasing.address(a) - aliasing.address(root)

    def provenance(self, trace: Any) -> Any:
        """The lines and names of a trace's values; None, since nobody asked for them (`origins.Lined`)."""

    def note(self, name: str, values: Sequence[Value], outs: Sequence[Any]) -> None:
        """Take note of an operator's values and of the tensors that it gave."""

    def write(self, target: Any, value: Value) -> None:
        """Note that a tensor was overwritten."""
        a = target._array
        if value.dtype != a.dtype:
            value = self.graph.cast(value, a.dtype)
        if value.shape != a.shape:
            value = self.graph.expand(value, a.shape)
        self.value_of(target)
        self.storages[id(aliasing.owner(a))].write(a, value)

    def lower(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any]) -> list[Value]:
        """The values that an application gives."""
        rule = LOWERED.get(op.name)
        try:
            if rule is not None:
                return rule(self, op, inputs, params, outs)
            return self.trace_declaration(op, inputs, params)
        except Unsupported as error:
            return self.whole(op, inputs, params, outs, str(error))

    def trace_declaration(self, op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> list[Value]:
        """What an operator's declaration makes of its inputs."""
        run_params, kept = self._parameters(params)
        arrays, narrow = _operands(op, inputs, params)
        values: list[Any] = []
        for x, a in zip(inputs, arrays, strict=True):
            if isinstance(x, Tensor):
                value = self.value_of(x)
                if narrow is not None and value.dtype != narrow and value.dtype not in dtypes.NARROW and (
                        a.dtype == np.float32):
                    value = self.graph.cast(value, narrow)
                values.append(self.graph.cast(value, a.dtype))
            elif isinstance(a, (np.ndarray, np.generic)):
                values.append(self.graph.constant(np.asarray(a)))
            else:
                values.append(a)
        if narrow is not None and op.promoting_params:
            run_params = rounded_params(op, run_params, narrow)
        found = lowered(self.graph, op, values, run_params)
        for name, mine in kept:
            for array, value in zip(params[name], mine, strict=True):
                if self.known(array) is None:
                    self.bind(array, self.graph.reshape(value, array.shape))
        if narrow is not None:
            found = [self.graph.cast(v, narrow) if v.dtype == np.float32 else v for v in found]
        return found

    def _parameters(self, params: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, list[Any]]]]:
        """Parameters with values for their arrays, and new lists for those that an operator leaves something in."""
        run: dict[str, Any] = {}
        kept: list[tuple[str, list[Any]]] = []
        for name, value in params.items():
            if isinstance(value, np.ndarray):
                run[name] = self.array(value)
            elif isinstance(value, Tensor):
                run[name] = self.value_of(value)
            elif isinstance(value, list):
                mine: list[Any] = []
                if value and isinstance(value[0], np.ndarray):
                    if any(self.known(x) is None for x in value):  # left there just now
                        kept.append((name, mine))
                    else:
                        mine += [self.array(x) for x in value]
                else:
                    mine += value
                run[name] = mine
            else:
                run[name] = value
        return run, kept

    def array(self, a: np.ndarray) -> Value:
        """What an array holds that no tensor shows: of the function's own, or found."""
        known = self.known(a)
        return self._found(None, a).read(a) if known is None else known

    def whole(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
              why: str) -> list[Value]:
        """An application as one call of the operator, by the interpreter."""
        places = [i for i, x in enumerate(inputs) if isinstance(x, Tensor)]
        values = [self.value_of(inputs[i]) for i in places]
        fixed = [None if i in places else x for i, x in enumerate(inputs)]
        run_params, kept = self._parameters(params)
        array_params: list[tuple[str, int | None]] = []  # parameters, and their list's entries, that are arrays
        for name, value in run_params.items():
            for i, x in [(None, value)] if not isinstance(value, list) else list(enumerate(value)):
                if isinstance(x, Value):
                    array_params.append((name, i))
                    values.append(x)
        keeping = [name for name, _ in kept]
        extra = [array for name in keeping for array in params[name]]
        run = OperatorCall(op, fixed, places, run_params, array_params, keeping)
        self.extern_calls.append((op.name, why, user_location()))
        words = [f"{x!r}" for x in fixed if x is not None]
        words += [f"{k}={v!r}" for k, v in run_params.items() if k not in keeping]
        said = f"{op.name}[{', '.join(words)}]"
        shapes = [(a.shape, a.dtype) for a in (*(o._array for o in outs), *extra)]
        found = self.graph.extern(FallbackKernel(said, run, why), values, shapes)
        for array, value in zip(extra, found[len(outs):], strict=True):
            self.bind(array, value)
        return found[:len(outs)]

    def on_view(self, tensor: Any) -> None:
        """The function made a tensor over memory that is there already."""
        self.views[id(tensor)] = weakref.ref(tensor)

    def on_version_bump(self, tensor: Any, times: int = 1) -> None:
        """A write to a tensor is counted, or about to be, of which the capture knows."""
        if not tensor._inference:
            self._version(tensor)[1] += times

    def _version(self, tensor: Any) -> list[Any]:
        """Of a tensor's memory: the counter of writes, and how far the writes that the capture knows of explain it."""
        counter = tensor._counter
        if counter is None:
            counter = tensor._counter = [0]
        known = self.versions.get(id(counter))
        if known is None:
            storage = self.storages.get(id(aliasing.owner(tensor._array)))
            is_created = storage is not None and storage.leaf is None
            known = self.versions[id(counter)] = [counter, 0 if is_created else counter[0]]
        return known

    def _check_version(self, tensor: Any) -> None:
        if tensor._counter is None or tensor._inference:
            return
        counter, records_provenance = self._version(tensor)
        if counter[0] & WRITES > records_provenance & WRITES:
            raise Unsupported("memory is written to in a way that is not written down")

    def on_overwrite(self, tensor: Any, array: np.ndarray) -> None:
        """A tensor was overwritten with what an array holds."""
        if self.failure is not None:
            return
        self.on_version_bump(tensor)
        try:
            value = self.known(array)
            if value is None:
                raise Unsupported("a tensor that is overwritten with numbers of unknown origin")
            self.write(tensor, value)
        except Unsupported as error:
            self.graph_break(str(error))

    def is_created(self, tensor: Any) -> bool:
        """Whether the function made a tensor itself."""
        storage = self.storages.get(id(aliasing.owner(tensor._array)))
        view = self.views.get(id(tensor))
        return (view is not None and view() is tensor) or (storage is not None and storage.leaf is None)

    def on_memory_change(self, how: str) -> None:
        """A tensor is about to be given other memory."""
        self.graph_break(f"{how} gives a tensor other memory")

    def on_copy(self, tensor: Any, copy: Any) -> None:
        """What a tensor holds was copied, since it is about to be written to and its gradient needs the old value."""
        if self.failure is None:
            try:
                self.bind(copy._array, self.graph.copy(self.value_of(tensor)))
            except Unsupported as error:
                self.graph_break(str(error))

    # ----- what the interpreter asks of tensors -----

    def on_truth(self, tensor: Any, outcome: bool) -> None:
        """The function asked for a tensor's truth: another outcome may take another way."""
        if self.failure is not None:
            return
        try:
            value = self.value_of(tensor)
        except Unsupported as error:
            self.graph_break(str(error))
            return
        self.data_guards.append(DataGuard(value, outcome, user_location()))

    def on_read(self, tensor: Any, how: str) -> None:
        """The interpreter looked at a tensor's numbers: what it does with them is not known.

        A tensor that the function has not used before is one from outside, whose numbers may be others next time.
        """
        try:
            if self.failure is None and self.value_of(tensor).base.op == "constant":  # the same in every call
                return
        except Unsupported:
            pass
        self.graph_break(f"{how} hands a tensor's numbers to the interpreter")

    def on_create(self, a: np.ndarray, unset: bool) -> None:
        """An array was made of nothing but what the function says; zeros stand for elements that are `unset`."""
        if self.failure is None and id(aliasing.owner(a)) not in self.storages and (
                a.dtype.kind in "biufc" or a.dtype == dtypes.BFLOAT16):
            try:
                filled = np.zeros((), a.dtype) if unset else a
                self.bind(a, self.graph.expand(self.graph.constant(filled), a.shape))
            except Unsupported as error:
                self.graph_break(str(error))
            except Exception as error:
                self.internal_error("what was created", error)

    def on_running_average(self, average: Any, value: np.ndarray, momentum: float, factor: float) -> None:
        """A running average is about to move: (1 - momentum) · average + momentum · factor · value."""
        if self.failure is not None:
            return
        try:
            old, new = self.value_of(average), self.array(value)
            self.on_version_bump(average)
            if old.dtype != new.dtype:
                raise Unsupported("a running average of another dtype")
            if factor != 1.0:
                new = new * factor
            self.write(average, old * (1 - momentum) + new * momentum)
        except Unsupported as error:
            self.graph_break(f"batch_norm: {error}")

    # ----- optimizers -----

    def wrap_param_group(self, optimizer: Any, group: dict[str, Any]) -> dict[str, Any]:
        """An optimizer's group, whose numbers are symbols."""
        if self.failure is not None:
            return group
        self.param_groups.append((optimizer, group))
        self.states.append((optimizer, group, state_objects(optimizer, group)))
        return SymbolicParamGroup(self, group)

    def adopts_initial_state(self) -> bool:
        """Whether the zeros that an optimizer's state begins with are taken as found, though they are made now.

        They are there when the next call begins, so the first one is like the others. An optimizer of the function's
        own begins anew each time; but its groups are others each time, too, and no two calls agree.
        """
        return self.failure is None and bool(self.param_groups)

    def number(self, group: dict[str, Any], key: str, index: int | None, concrete: float) -> SymbolicScalar:
        """The symbol of a hyperparameter."""
        known = self._symbols.get((id(group), key, index))
        if known is None:
            def make() -> Value:
                leaf = self.graph.input(self.num_leaves, (), np.dtype(np.float64))
                self.scalar_inputs.append((self.num_leaves, group, key, index))
                self.num_leaves += 1
                return leaf

            known = self._symbols[id(group), key, index] = SymbolicScalar(self, concrete, make, (group, (key, index)))
        return known

    def guard_on_scalar(self, source: tuple[Any, Any], compare: Callable[[Any, Any], bool], other: Any,
                        outcome: bool) -> None:
        """The run depends on how a hyperparameter compares with a number."""
        group, (key, index) = source
        self.scalar_guards.setdefault((id(group), key, index, compare.__name__, other),
                                  (group, key, index, compare, other, outcome))

    def advance_step(self, step: Any) -> Any:
        """A step counter goes up by one; its new value, as a symbol."""
        a = step._array
        return self._state(step, lambda: self.value_of(step) + 1, a + 1)

    def scale_state(self, tensor: Any, factor: Any) -> Any:
        """A number that an optimizer remembers is multiplied by another; its new value, as a symbol."""
        a = tensor._array
        return self._state(tensor, lambda: self.value_of(tensor) * self._cast(factor, a.dtype), a * concrete(factor))

    def set_state(self, tensor: Any, number: Any) -> None:
        """A number that an optimizer remembers becomes another."""
        self._state(tensor, lambda: self._cast(number, tensor._array.dtype), concrete(number))

    def read_state(self, tensor: Any) -> Any:
        """A number that an optimizer remembers, as a symbol."""
        return self._state(tensor, lambda: self.value_of(tensor), None)

    def _cast(self, number: Any, dtype: np.dtype) -> Any:
        if isinstance(number, SymbolicScalar):
            return self.graph.cast(number.value, dtype)
        return self.graph.constant(np.asarray(number, dtype))

    def _state(self, tensor: Any, make: Callable[[], Value], new: Any) -> Any:
        """A tensor of one number as an optimizer sees it: a symbol; `make` writes down what it becomes, if `new` is."""
        value = None
        a = tensor._array
        if self.failure is None:
            try:
                value = make()
            except Unsupported as error:
                self.graph_break(f"a number that an optimizer remembers: {error}")
        if new is not None:
            self.on_version_bump(tensor)
            a[()] = new
            tensor._bump_version()
        if value is None:
            return float(a)
        made: Value = value
        if new is not None:
            self.write(tensor, made)
        return SymbolicScalar(self, float(a), lambda: self.graph.cast(made, np.dtype(np.float64)))

    def scalar_as_tensor(self, number: Any, dtype: np.dtype | None) -> Any:
        """A symbol as a tensor of one number, in float64 unless a dtype is named; any other number itself."""
        if not isinstance(number, SymbolicScalar) or self.failure is not None:
            return concrete(number)
        tensor = wrap(np.array(number.concrete, np.float64 if dtype is None else dtype))
        self.bind(tensor._array, number.value)
        return tensor

    def guard_on_value(self, value: Value, outcome: bool) -> None:
        """The run depends on the truth of a value that was computed from hyperparameters and step counts."""
        if self.failure is None:
            self.data_guards.append(DataGuard(value, outcome, user_location()))

    def trace_update(self, rule: Callable[..., None], param: Any, grad: Any, state: tuple, scalars: tuple,
                differentiable: bool) -> tuple:
        """An update rule is about to run; its numbers as they are in this run."""
        plain = tuple([concrete(x) for x in scalars])
        if self.failure is not None:
            return plain
        tensors = (param, grad, *state)
        like = param._array
        self.frame_hook.pause()
        try:
            if differentiable or like.dtype.kind != "f" or any(
                    t is not None and (t._array.dtype != like.dtype or t._array.shape != like.shape) for t in tensors):
                raise Unsupported("an update of this kind")
            cells = [None if t is None else ValueCell(self.value_of(t)) for t in tensors]
            before = [None if cell is None else cell.value for cell in cells]
            rule(UpdateNamespace(self.graph), *cells, *scalars)
        except (Unsupported, AttributeError, TypeError) as error:
            self.graph_break(f"{rule.__module__.rpartition('.')[2]}'s rule: {error}")
            return plain
        finally:
            self.frame_hook.resume()
        for tensor in (param, *state):
            if tensor is not None:
                self.on_version_bump(tensor)
        for tensor, cell, old in zip(tensors, cells, before, strict=True):
            if cell is not None and cell.value is not old:
                self.write(tensor, cell.value)
        return plain

    def on_grad_read(self, tensor: Any) -> None:
        """The function asks for a tensor's gradient, or whether there is one."""
        if not self.is_created(tensor):
            self.note_entry_grad(tensor)
            if tensor._grad is self.entry_grads[id(tensor)][1] and id(tensor) not in self.cleared_grads:
                self.grad_reads[id(tensor)] = tensor

    def on_grad_clear(self, tensor: Any) -> None:
        """A tensor's gradient was taken away."""
        self.note_entry_grad(tensor)
        self.cleared_grads[id(tensor)] = tensor

    def on_module_call(self, module: Any) -> None:
        """A module was called."""
        self.modules[id(module)] = module

    def on_random_draw(self, function: Callable[..., Any], engine: Any, arguments: tuple, result: Any) -> None:
        """Random numbers were drawn: a run draws them anew, from the same stream.

        In the same order, and even if nobody wants them: each draw gives, besides its numbers, a value that says it was
        done, which the next one takes.
        """
        if self.failure is not None:
            return
        try:
            values, places = [], []
            for i, x in enumerate(arguments):
                if isinstance(x, np.ndarray):
                    known = self.known(x)
                    if known is not None:
                        places.append(i)
                        values.append(known)
            if self.last_draw is not None:
                values.append(self.last_draw)
            shown = [x for x in arguments if not isinstance(x, np.ndarray)]
            name = getattr(function, "__name__", repr(function))
            draw = RandomDraw(function, engine, arguments, places)
            whole = FallbackKernel(f"{name}{tuple(shown)}", draw, "random numbers", engine)
            array = np.asarray(result)
            value, self.last_draw = self.graph.extern(whole, values, [(array.shape, array.dtype), ((), BOOL)])
            if isinstance(result, np.ndarray):
                self.bind(result, value)
        except Unsupported as error:
            self.graph_break(f"random numbers: {error}")
