"""`Tracer`: records every operator of a call, forward and backward, as one graph while the call runs eagerly.

The call runs on real arrays, so its results do not depend on the tracer. For each operator the declaration is
run once more on IR values. What cannot be traced is recorded with its reason and the user's line (`graph_break`), and
the call continues.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor.dispatch.promotion import promoted_operands, round_params
from ..._tensor.tensor import wrap
from ...backends.compiled.thresholds import pause_kernels, resume_kernels
from ...ir.graph.extern_kernels import FallbackKernel
from ...ir.graph.value import BOOL, Unsupported, Value
from ...ir.lowering.grid_sampling import GRID_SAMPLING
from ...ir.lowering.namespace import lower_operator
from ...modes import active_tracer, active_tracers
from ...ops.declare import COMPOSITE, VIEW, Op
from ..guards.tensor_state import state_objects
from . import aliasing
from .extern_calls import OperatorCall, RandomDraw
from .frame_hook import FrameHook, is_own_function
from .lowering import LOWERED
from .optimizer_updates import UpdateNamespace, ValueCell
from .recomputation import CheckpointRecorder, PolicyRecorder
from .storage_tracer import StorageTracer, user_location
from .symbolic_scalars import SymbolicParamGroup, SymbolicScalar, concrete


class DataGuard(NamedTuple):
    """A guard on data: the IR value of a condition, its outcome in the trace, and the user's line.

    Attributes:
        of_operator: whether the lowering of an operator assumes it, such as indices that are in range; the program
            has no branch there.
    """

    value: Value
    outcome: bool
    where: str
    of_operator: bool = False


class Tracer(StorageTracer):
    """Traces this thread while it is entered as a context manager.

    Attributes:
        storage_offsets: by position of an argument, the storage offset in bytes that the trace depends on.
        data_guards: conditions on tensor values that Python evaluated.
        extern_calls: operators that run eagerly: name, reason, line.
        cleared_grads: tensors whose `.grad` was set to None, by identity.
        grad_reads: tensors whose `.grad` was read before it changed, by identity.
        modules: modules that were called, by identity.
        scalar_inputs: inputs that are hyperparameters: (input number, param group, key, index).
        scalar_guards: comparisons of hyperparameters with constants.
        param_groups: optimizers that stepped, and their groups.
        states: the same, with the state objects at entry.
        initial_state: zeros that optimizers made as initial state, treated as lifted inputs.
        last_draw: the token of the last draw of random numbers.
        ran_backward: whether the function called backward.
        checkpoints: which values backward passes compute again.
        frame_hook: what Python code ran, and its side effects.
        needs_independent_results: whether no differentiable result may be computed from another one: they are results
            of one node, which a gradient with respect to a result does not see.
        excluded: places of Python state that are inputs (`state.places.Excluded`), which need no guards; or None.
        check_write: called before a tensor is written to; None outside of speculation (`speculation.py`).
        lowered_whole: operators, composites among them, that become one kernel instead of what they call.
    """

    needs_independent_results = False
    excluded: Any = None
    check_write: Callable[[Any], None] | None = None
    lowered_whole: frozenset[str] = GRID_SAMPLING

    def __init__(self) -> None:
        super().__init__()
        self.storage_offsets: dict[int, int] = {}
        self.data_guards: list[DataGuard] = []
        self._num_conditions = 0  # of the graph's conditions, those that are data guards already
        self.extern_calls: list[tuple[str, str, str]] = []
        self.cleared_grads: dict[int, Any] = {}
        self.grad_reads: dict[int, Any] = {}
        self.modules: dict[int, Any] = {}
        self.scalar_inputs: list[Any] = []
        self.ran_backward = False
        self.checkpoints = CheckpointRecorder()
        self.scalar_guards: dict[tuple, tuple] = {}
        self.param_groups: list[tuple[Any, dict[str, Any]]] = []
        self.states: list[tuple[Any, dict[str, Any], dict[Any, list[Any]]]] = []
        self.initial_state: list[Any] = []
        self._symbols: dict[tuple, SymbolicScalar] = {}
        self.last_draw: Value | None = None
        self.frame_hook = FrameHook()

    @property
    def effects(self) -> list[Value]:
        """Values that are computed although no result needs them."""
        return [] if self.last_draw is None else [self.last_draw]

    def __enter__(self) -> Tracer:
        self._token = active_tracer.set(self)
        pause_kernels()
        active_tracers[0] += 1
        super().__enter__()
        self.frame_hook.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.frame_hook.stop()
        resume_kernels()
        super().__exit__(*exception)
        active_tracers[0] -= 1
        active_tracer.reset(self._token)

    def release(self) -> None:
        """Drop the references to arrays of the call, which the trace does not need: symbolic scalars outlive it."""
        self.lifted, self.scalar_inputs, self.initial_state = [], [], []
        for table in (self.storages, self.entry_grads, self.grad_reads, self.cleared_grads, self._symbols):
            table.clear()

    # ----- interception of operators -----

    def intercept(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], in_place: bool) -> Any:
        if in_place and self.check_write is not None:
            self.check_write(inputs[0])
        return None

    def before_kernel(self, rule: Callable[..., Any]) -> None:
        if is_own_function(rule):
            self.frame_hook.pause()

    def after_kernel(self, rule: Callable[..., Any]) -> None:
        if is_own_function(rule):
            self.frame_hook.resume()

    def on_operator(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
                    in_place: bool) -> None:
        if self.failure is not None:
            return
        self.frame_hook.pause()
        try:
            self._trace_operator(op, inputs, params, outs, in_place)
        except Unsupported as error:
            self.graph_break(f"{op.name}: {error}")
        except Exception as error:
            self.internal_error(op.name, error)
        finally:
            self.frame_hook.resume()

    def _trace_operator(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
                        in_place: bool) -> None:
        if op.kind == COMPOSITE and op.name not in self.lowered_whole:
            return
        if in_place:
            self.on_version_bump(outs[0])
        if in_place and op.kind == VIEW:  # only the tensor's strides change
            self.value_of(outs[0])
            return
        if not in_place:
            if params.get("storage_offset") is not None:
                self._guard_storage_offset(inputs[0])
            arrays = [out._array for out in outs]
            roots = [id(aliasing.owner(a)) for a in arrays]
            for out, root in zip(outs, roots, strict=True):
                if op.kind == VIEW and (root not in self.storages or self.storages[root].leaf is not None):
                    self.on_view(out)
            if all(root in self.storages and self.storages[root].value is not None for root in roots):
                return  # views of known storages
            if op.kind == VIEW:
                for x in inputs:
                    if isinstance(x, Tensor):
                        self.value_of(x)  # lifts the base, and with it the storage of its views
                if all(root in self.storages for root in roots):
                    return
        values = self.lower(op, inputs, params, outs)
        if in_place:
            target = outs[0]
            self.write(target, values[0])
        else:
            for out, value in zip(outs, values, strict=True):
                self.bind(out._array, value)
        for value, outcome in self.graph.conditions[self._num_conditions:]:
            self.data_guards.append(DataGuard(value, outcome, user_location(), of_operator=True))
        self._num_conditions = len(self.graph.conditions)
        self.record_results(op.name, values, outs)

    def _guard_storage_offset(self, tensor: Any) -> None:
        """Guard on the storage offset of a tensor, if it is an argument."""
        root = aliasing.owner(tensor._array)
        storage = self.storages.get(id(root))
        leaf = None if storage is None else storage.leaf
        source = None if leaf is None else self.argument_sources.get(leaf.attrs)
        if source is not None:
            if source[0] != "argument":
                raise Unsupported("as_strided with a storage offset, of arguments that share memory")
            a = self.arguments_at_entry[source[1]][0]._array
            self.storage_offsets[source[1]] = aliasing.address(a) - aliasing.address(root)

    def provenance(self, trace: Any) -> Any:
        """Return None: only `ProvenanceTracer` records provenance."""

    def record_results(self, name: str, values: Sequence[Value], outs: Sequence[Any]) -> None:
        """Hook for subclasses: called with an operator's name, IR values and result tensors."""

    def lower(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any]) -> list[Value]:
        """Return the IR values of an operator's results: by its rule, its declaration, or as an extern call."""
        rule = LOWERED.get(op.name)
        try:
            if rule is not None:
                return rule(self, op, inputs, params, outs)
            return self.trace_declaration(op, inputs, params)
        except Unsupported as error:
            return self.trace_extern_call(op, inputs, params, outs, str(error))

    def trace_declaration(self, op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> list[Value]:
        """Run an operator's declaration on IR values."""
        run_params, output_params = self._lower_params(params)
        arrays, narrow = self.promoted(op, inputs, params)
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
            run_params = round_params(op, run_params, narrow)
        results = lower_operator(self.graph, op, values, run_params)
        for name, outputs in output_params:
            for array, value in zip(params[name], outputs, strict=True):
                if self.known_value(array) is None:
                    self.bind(array, self.graph.reshape(value, array.shape))
        if narrow is not None:
            results = [self.graph.cast(v, narrow) if v.dtype == np.float32 else v for v in results]
        return results

    def promoted(self, op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> tuple[list[Any], np.dtype | None]:
        """Return operands in the dtypes that an operator computes in, and the narrow dtype of its results, if any."""
        return promoted_operands(op, inputs, params)

    def _lower_params(self, params: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, list[Any]]]]:
        """Replace arrays among the parameters by IR values.

        Returns:
            The parameters, and those that are lists which the operator fills, each with a new empty list.
        """
        run_params: dict[str, Any] = {}
        output_params: list[tuple[str, list[Any]]] = []
        for name, param in params.items():
            if isinstance(param, np.ndarray):
                run_params[name] = self.value_of_array(param)
            elif isinstance(param, Tensor):
                run_params[name] = self.value_of(param)
            elif isinstance(param, list):
                items: list[Any] = []
                if param and isinstance(param[0], np.ndarray):
                    if any(self.known_value(x) is None for x in param):  # the operator has just filled the list
                        output_params.append((name, items))
                    else:
                        items += [self.value_of_array(x) for x in param]
                else:
                    items += param
                run_params[name] = items
            else:
                run_params[name] = param
        return run_params, output_params

    def trace_extern_call(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
                          reason: str) -> list[Value]:
        """Record an operator as an extern kernel, which runs it eagerly."""
        places = [i for i, x in enumerate(inputs) if isinstance(x, Tensor)]
        values = [self.value_of(inputs[i]) for i in places]
        fixed = [None if i in places else x for i, x in enumerate(inputs)]
        run_params, filled = self._lower_params(params)
        array_params: list[tuple[str, int | None]] = []  # names and, for entries of lists, indices
        for name, value in run_params.items():
            for i, x in [(None, value)] if not isinstance(value, list) else list(enumerate(value)):
                if isinstance(x, Value):
                    array_params.append((name, i))
                    values.append(x)
        output_params = [name for name, _ in filled]
        extra = [array for name in output_params for array in params[name]]
        run = OperatorCall(op, fixed, places, run_params, array_params, output_params)
        self.extern_calls.append((op.name, reason, user_location()))
        words = [f"{x!r}" for x in fixed if x is not None]
        words += [f"{k}={v!r}" for k, v in run_params.items() if k not in output_params]
        text = f"{op.name}[{', '.join(words)}]"
        shapes = [(a.shape, a.dtype) for a in (*(o._array for o in outs), *extra)]
        results = self.graph.extern(FallbackKernel(text, run, reason), values, shapes)
        for array, value in zip(extra, results[len(outs):], strict=True):
            self.bind(array, value)
        return results[:len(outs)]

    def on_overwrite(self, tensor: Any, array: np.ndarray) -> None:
        """Called when a tensor was overwritten with the elements of an array."""
        if self.failure is not None:
            return
        self.on_version_bump(tensor)
        try:
            value = self.known_value(array)
            if value is None:
                raise Unsupported("a tensor is overwritten with an array that was not traced")
            self.write(tensor, value)
        except Unsupported as error:
            self.graph_break(str(error))

    def on_memory_change(self, how: str) -> None:
        """Called when a tensor's storage is about to be replaced."""
        self.graph_break(f"{how} replaces the memory of a tensor")

    def on_copy(self, tensor: Any, copy: Any) -> None:
        """Called when a saved tensor was copied because it is about to be written to in place."""
        if self.failure is None:
            try:
                self.bind(copy._array, self.graph.copy(self.value_of(tensor)))
            except Unsupported as error:
                self.graph_break(str(error))

    def run_checkpointed(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any],
                         preserves_random_state: bool, policy: PolicyRecorder | None) -> tuple[bool, Any]:
        """Call a checkpointed function (`CheckpointRecorder.run`)."""
        return self.checkpoints.run(self, function, args, kwargs, preserves_random_state, policy)

    def on_backward_begin(self) -> None:
        """Called when a backward pass begins."""
        if self.on_break is not None:
            self.on_break()
        self.ran_backward = True
        self.checkpoints.begin_pass(len(self.graph.values))

    def on_backward_end(self) -> None:
        """Called when a backward pass has ended."""
        self.checkpoints.end_pass(len(self.graph.values))

    # ----- data read by Python -----

    def on_truth(self, tensor: Any, outcome: bool) -> None:
        """Called for `bool(tensor)`: adds a data guard, since another outcome may take another branch."""
        if self.on_break is not None:
            self.on_break(tensor)
        if self.failure is not None:
            return
        try:
            value = self.value_of(tensor)
        except Unsupported as error:
            self.graph_break(str(error))
            return
        self.data_guards.append(DataGuard(value, outcome, user_location()))

    def on_read(self, tensor: Any, how: str) -> None:
        """Called when Python reads a tensor's elements: breaks the graph unless they are constants of the trace."""
        try:
            if self.failure is None and self.value_of(tensor).base.op == "constant":
                return
        except Unsupported:
            pass
        if self.on_break is not None:
            self.on_break(tensor)
        self.graph_break(f"{how} passes a tensor's elements to Python")

    def on_create(self, a: np.ndarray, unset: bool) -> None:
        """Called for a new array of constants; elements that are `unset` (`empty`) are traced as zeros."""
        if self.failure is None and id(aliasing.owner(a)) not in self.storages and (
                a.dtype.kind in "biufc" or a.dtype == dtypes.BFLOAT16):
            try:
                constant = np.zeros((), a.dtype) if unset else a
                self.bind(a, self.graph.expand(self.graph.constant(constant), a.shape))
            except Unsupported as error:
                self.graph_break(str(error))
            except Exception as error:
                self.internal_error("a new tensor", error)

    def on_running_average(self, average: Any, value: np.ndarray, momentum: float, factor: float) -> None:
        """Called before batch norm's update: average = (1 - momentum) · average + momentum · factor · value."""
        if self.check_write is not None:
            self.check_write(average)
        if self.failure is not None:
            return
        try:
            old, new = self.value_of(average), self.value_of_array(value)
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
        """Return an optimizer's param group with symbolic scalars for its numbers."""
        if self.failure is not None:
            return group
        self.param_groups.append((optimizer, group))
        self.states.append((optimizer, group, state_objects(optimizer, group)))
        return SymbolicParamGroup(self, group)

    def guard_param_group(self, optimizer: Any, group: dict[str, Any]) -> dict[str, Any]:
        """Return an optimizer's param group, whose numbers are constants of the program, with guards."""
        wrapped = self.wrap_param_group(optimizer, group)
        for key in group:
            value = wrapped[key]
            for number in value if type(value) is tuple else (value,):
                if isinstance(number, SymbolicScalar) and number.source is not None:
                    self.guard_on_scalar(number.source, operator.eq, number.concrete, True)
        return group

    def adopts_initial_state(self) -> bool:
        """Whether an optimizer's initial state, zeros made in this call, is traced as lifted inputs.

        It exists when the next call begins, so the first trace agrees with later ones. An optimizer that the function
        itself creates has other param groups in each call, so its traces never agree.
        """
        return self.failure is None and bool(self.param_groups)

    def symbolic_scalar(self, group: dict[str, Any], key: str, index: int | None, concrete: float) -> SymbolicScalar:
        """Return the symbolic scalar of a hyperparameter."""
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
        """Add a guard on the comparison of a hyperparameter with a constant."""
        group, (key, index) = source
        self.scalar_guards.setdefault((id(group), key, index, compare.__name__, other),
                                      (group, key, index, compare, other, outcome))

    def advance_step(self, step: Any) -> Any:
        """Increment a step counter; return its new value as a symbolic scalar."""
        a = step._array
        return self._update_scalar_state(step, lambda: self.value_of(step) + 1, a + 1)

    def scale_state(self, tensor: Any, factor: Any) -> Any:
        """Multiply a scalar of an optimizer's state; return its new value as a symbolic scalar."""
        a = tensor._array
        return self._update_scalar_state(tensor, lambda: self.value_of(tensor) * self._cast(factor, a.dtype),
                                         a * concrete(factor))

    def set_state(self, tensor: Any, number: Any) -> None:
        """Set a scalar of an optimizer's state."""
        self._update_scalar_state(tensor, lambda: self._cast(number, tensor._array.dtype), concrete(number))

    def read_state(self, tensor: Any) -> Any:
        """Return a scalar of an optimizer's state as a symbolic scalar."""
        return self._update_scalar_state(tensor, lambda: self.value_of(tensor), None)

    def _cast(self, number: Any, dtype: np.dtype) -> Any:
        if isinstance(number, SymbolicScalar):
            return self.graph.cast(number.value, dtype)
        return self.graph.constant(np.asarray(number, dtype))

    def _update_scalar_state(self, tensor: Any, make: Callable[[], Value], new: Any) -> Any:
        """Return a 0-d state tensor as a symbolic scalar, after setting it to `new`, whose IR value `make` gives.

        `new` is None for a read.
        """
        value = None
        a = tensor._array
        if self.failure is None:
            try:
                value = make()
            except Unsupported as error:
                self.graph_break(f"a scalar of an optimizer's state: {error}")
        if new is not None:
            self.on_version_bump(tensor)
            a[()] = new
            tensor._bump_version()
        if value is None:
            return float(a)
        state_value: Value = value
        if new is not None:
            self.write(tensor, state_value)
        return SymbolicScalar(self, float(a), lambda: self.graph.cast(state_value, np.dtype(np.float64)))

    def scalar_as_tensor(self, number: Any, dtype: np.dtype | None) -> Any:
        """Return a symbolic scalar as a 0-d tensor, of float64 unless a dtype is given; any other number unchanged."""
        if not isinstance(number, SymbolicScalar) or self.failure is not None:
            return concrete(number)
        tensor = wrap(np.array(number.concrete, np.float64 if dtype is None else dtype))
        self.bind(tensor._array, number.value)
        return tensor

    def guard_on_value(self, value: Value, outcome: bool) -> None:
        """Add a data guard on a value that was computed from hyperparameters and step counts."""
        if self.failure is None:
            self.data_guards.append(DataGuard(value, outcome, user_location()))

    def trace_update(self, rule: Callable[..., None], param: Any, grad: Any, state: tuple, scalars: tuple,
                     differentiable: bool) -> tuple:
        """Called before an update rule: traces it, and returns its scalars as concrete numbers."""
        plain = tuple([concrete(x) for x in scalars])
        if self.failure is not None:
            return plain
        tensors = (param, grad, *state)
        like = param._array
        self.frame_hook.pause()
        try:
            if differentiable or like.dtype.kind != "f" or any(
                    t is not None and (t._array.dtype != like.dtype or t._array.shape != like.shape) for t in tensors):
                raise Unsupported("a differentiable update, or tensors of several shapes or dtypes")
            cells = [None if t is None else ValueCell(self.value_of(t)) for t in tensors]
            before = [None if cell is None else cell.value for cell in cells]
            rule(UpdateNamespace(self.graph), *cells, *scalars)
        except (Unsupported, AttributeError, TypeError) as error:
            self.graph_break(f"{rule.__module__.rpartition('.')[2]}'s rule: {error}")
            return plain
        finally:
            self.frame_hook.resume()
        self._write_update(param, state, zip(tensors, cells, before, strict=True))
        return plain

    def _write_update(self, param: Any, state: Iterable[Any], changes: Iterable[tuple[Any, Any, Any]]) -> None:
        """Write the new values of an optimizer's step: (tensor, its cell or None, its value before)."""
        for tensor in (param, *state):
            if tensor is not None:
                self.on_version_bump(tensor)
        for tensor, cell, old in changes:
            if cell is not None and cell.value is not old:
                self.write(tensor, cell.value)

    def on_rule(self, op: Op, g: Any, saved: Sequence[Any], results: Sequence[Any]) -> None:
        """Called when an operator's derivative rule has run on a device's tensors.

        Args:
            op: the operator.
            g: the gradient of its result.
            saved: what its node saved.
            results: the gradients of its inputs, or None.
        """

    def on_grad_read(self, tensor: Any) -> None:
        """Called when Python reads a tensor's `.grad`."""
        if not self.is_created(tensor):
            self.note_entry_grad(tensor)
            if tensor._grad is self.entry_grads[id(tensor)][1] and id(tensor) not in self.cleared_grads:
                self.grad_reads[id(tensor)] = tensor

    def on_grad_clear(self, tensor: Any) -> None:
        """Called when a tensor's `.grad` is set to None."""
        self.note_entry_grad(tensor)
        self.cleared_grads[id(tensor)] = tensor

    def on_module_call(self, module: Any) -> None:
        """Called when a module is called."""
        self.modules[id(module)] = module

    def on_random_draw(self, function: Callable[..., Any], engine: Any, arguments: tuple, result: Any) -> None:
        """Called when random numbers were drawn: records an extern kernel that draws from the same generator.

        Draws keep their order, and happen even if their numbers are unused: each takes the token of the previous one,
        and the last token is an effect of the program.
        """
        if self.failure is not None:
            return
        try:
            values, places = [], []
            for i, x in enumerate(arguments):
                if isinstance(x, np.ndarray):
                    known = self.known_value(x)
                    if known is not None:
                        places.append(i)
                        values.append(known)
            if self.last_draw is not None:
                values.append(self.last_draw)
            scalars = [x for x in arguments if not isinstance(x, np.ndarray)]
            name = getattr(function, "__name__", repr(function))
            draw = RandomDraw(function, engine, arguments, places, self.checkpoints.records_draws)
            kernel = FallbackKernel(f"{name}{tuple(scalars)}", draw, "random numbers", engine)
            array = np.asarray(result)
            outputs = [(array.shape, array.dtype), ((), BOOL), *draw.state_outputs]
            value, self.last_draw, *_ = self.graph.extern(kernel, values, outputs)
            if isinstance(result, np.ndarray):
                self.bind(result, value)
        except Unsupported as error:
            self.graph_break(f"random numbers: {error}")

    def on_place(self, values: np.ndarray, out: np.ndarray, order: list[int]) -> None:
        """Called when random numbers were written into another layout: `out.transpose(order)` has their order."""
        value = None if self.failure is not None else self.known_value(values)
        if value is None:  # within a draw
            return
        try:
            ordered = self.graph.reshape(value, [out.shape[dim] for dim in order])
            self.bind(out, self.graph.permute(ordered, np.argsort(order).tolist()))
        except Unsupported as error:
            self.graph_break(f"random numbers: {error}")


__all__ = ["DataGuard", "Tracer"]
