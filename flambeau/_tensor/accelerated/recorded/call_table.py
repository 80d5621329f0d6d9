"""Calls on a device that come again and again: the launches and the graph of an earlier call of the same layouts.

A public function on a device passes through many layers before something is launched. The second call with the same
layouts and parameters is observed: which operators it applies, what these launch, which nodes they record. Later calls
enter launch stubs and make the nodes, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from ....backends.cuda_devices import current_runtime, observe
from ....backends.cuda_devices.array import DeviceArray
from ....backends.cuda_devices.launch_recording import LaunchRecording, Unrecordable
from ....backends.written_settings import observe_writes
from ....devices import memory_format
from ....dtypes import BFLOAT16, default_observers
from ....dtypes import dtype as dtype_type
from ....engine.grad_mode import grad_mode, inference
from ....modes import active_transforms, determinism, dispatch_in_use, enabled_autocasts, inference_used, special
from ....ops.declare import VIEW, Op
from ...dispatch.array_kernels import kernel_of
from ...fastpath.call_observation import Write, observe_call
from ...fastpath.known_views import array_maker, view_launch, view_of
from ...fastpath.recorded_calls import Filled, RecordedCall
from ...overriding import entry_points
from ...parameter import Parameter
from ...tensor import INFERENCE, Tensor, wrap
from .. import operator_programs, products
from ..calls import CHANGE_ATTRIBUTES, HANDLERS, RUN_FUNCTIONS, called_on_device, rules
from ..execution import below_autograd
from ..generators import default_generators
from . import draw_table
from .conditions import only_devices
from .factory_table import FACTORIES, FactoryTable
from .number_reads import READS, number_reader
from .rule_table import RuleTable

new = object.__new__
_grad_enabled = grad_mode.get
_TENSORS = frozenset((Tensor, Parameter))
_PLAIN = frozenset((int, bool, str, type(None), dtype_type, memory_format))
_VOID = np.dtype("V1").num
#: the most layouts of one function
LAYOUTS = 512
_METADATA = frozenset(f"torch.Tensor.{name}" for name in (
    "size", "stride", "dim", "ndimension", "numel", "nelement", "element_size", "is_contiguous", "is_floating_point",
    "is_complex", "is_signed", "storage_offset"))
#: in place of a recorded call: the layouts came once; they cannot be recorded
_SEEN, _NEVER = object(), object()


class CallTable:
    """The recorded calls of one public function, by the layouts of tensors and the values of other arguments.

    Args:
        name: the function's.
        runtime: the device's runtime.
    """

    __slots__ = ("_find", "_known", "_several", "name", "runtime")

    def __init__(self, name: str, runtime: Any) -> None:
        self.name, self.runtime, self._several = name, runtime, runtime.count > 1
        self._known: dict[Any, Any] = {}
        self._find = self._known.get

    def call(self, implementation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
             values: Sequence[Any] | None = None, cast: bool = False) -> Any:
        """The result of a call; NotImplemented where the function itself has to run.

        Args:
            values: all arguments, with the tensors of lists in their place; None: there are no such lists, as far as
                is known.
            cast: whether autocast, if it is on, has cast the arguments.
        """
        if special[0] != 1 or entry_points.in_use[0] != 1 or dispatch_in_use[0] != 1 or active_transforms[0] or (
                determinism[0]):  # something else than the device is in use
            if not enabled_autocasts[0]:
                return NotImplemented
            if not cast:
                return self._under_autocast(implementation, args, kwargs)
        inferring = inference_used[0] and inference.get()
        parts: list[Any] = []
        tensors: list[Any] = []
        arrays: list[Any] = []
        bit, mask, several = 1, 0, self._several
        if values is None:
            values = (*args, *kwargs.values()) if kwargs else args
        for x in values:
            kind = x.__class__
            if kind in _TENSORS:
                a = x._array
                if a.__class__ is not DeviceArray:
                    return NotImplemented
                tensors.append(x)
                arrays.append(a)
                dtype = a.dtype
                parts += (dtype.num if dtype.num != _VOID else dtype is BFLOAT16 or dtype, a.shape, a.strides)
                if several:
                    parts.append(a.memory.device)
                if x._requires_grad:
                    mask |= bit
                bit += bit
            elif kind in _PLAIN:
                parts += (kind, x)
            elif kind is float:
                parts.append(x or repr(x))
            elif (kind is list or kind is tuple) and x and x[0].__class__ in _TENSORS:
                return self.call(implementation, args, kwargs, _without_lists((*args, *kwargs.values())), cast)
            elif kind is tuple:
                parts += (kind, x, *map(type, x))
            else:
                return NotImplemented
        if kwargs:
            parts += kwargs
        if bit > 2:
            ids = list(map(id, tensors))
            if len(set(ids)) < len(ids):
                parts += map(ids.index, ids)
        elif bit == 1:
            return NotImplemented
        if mask and not _grad_enabled():
            mask = 0
        key = (mask, *parts)
        try:
            known = self._find(key)
        except TypeError:  # a list in a tuple
            return NotImplemented
        if known.__class__ is RecordedCall:
            result = known(tensors, arrays)
            if inferring and result is not None:
                for x in result if isinstance(result, tuple) else (result,):
                    if x._base is None:
                        x._inference, x._counter = True, INFERENCE
            return NotImplemented if result is None else result
        if known.__class__ is FunctionType:  # one launch, and nothing is recorded
            array = known(*arrays)
            if array is None:
                return NotImplemented
            result = new(Tensor)
            result._array = array
            result._requires_grad = False
            result._output_nr = 0
            result._node = result._grad = result._counter = result._base = result._accumulator = None
            if inferring:
                result._inference, result._counter = True, INFERENCE
            return result
        if known.__class__ is InPlace:
            x = tensors[0]
            if bit > 4 and _shares_memory(arrays):
                return NotImplemented
            if (x._inference and not inferring) or known.launch(*[arrays[i] for i in known.slots]) is None:
                return NotImplemented
            if x._inference:
                return x
            counter = x._counter
            if counter is None:
                x._counter = [1]
            else:
                counter[0] += 1
            return x
        if known.__class__ is View:
            source = tensors[0]
            if source._view_steps is not None or source._inference:
                return NotImplemented if source._view_steps is not None else known.of_inference(arrays[0])
            a = arrays[0]
            if known.several is None:
                return view_of(source, known.makers[0](a), False)
            return known.several([view_of(source, make(a), known.multi) for make in known.makers])
        if known is _NEVER:
            return NotImplemented
        if known is None:
            if len(self._known) >= LAYOUTS:
                self._known.clear()
            self._known[key] = _SEEN
            return NotImplemented
        return self._observed(key, implementation, args, kwargs, tensors, arrays)

    def _under_autocast(self, implementation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The same while autocast is on, with the arguments in its dtypes."""
        if not only_devices() or active_transforms[0] or determinism[0]:
            return NotImplemented

        def run(*args: Any, **kwargs: Any) -> Any:
            if special[0] != 1:  # autocast acts on the functions that this one is composed of
                return NotImplemented
            result = self.call(implementation, args, kwargs, None, True)
            return self._run(implementation, args, kwargs) if result is NotImplemented else result

        call = entry_points.innermost[0]
        return NotImplemented if call is None else call(self.name, run, args, kwargs)

    def _run(self, implementation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = called_on_device(self.name, implementation, args, kwargs)
        return implementation(*args, **kwargs) if result is NotImplemented else result

    def _observed(self, key: Any, implementation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
                  tensors: list[Any], arrays: list[Any]) -> Any:
        """The result of the function itself, whose launches are recorded."""
        self._known[key] = _NEVER
        before = _offsets()
        with LaunchRecording(self.runtime, arrays[0].memory.device.index, keeps=False) as transfers:
            result, seen = observe_call(self._run, (implementation, args, kwargs), {}, tensors)
        if seen is not None and not transfers.refused and _offsets() == before:  # no values were read or drawn
            recorded: Any
            if seen.__class__ is Write:
                recorded = _written(seen, tensors, self.runtime)
            else:
                recorded = _recorded(seen, arrays, self.runtime)
                if recorded.__class__ is RecordedCall:
                    recorded = (recorded.launch or recorded) if recorded.describes(result, tensors, None) else None
            if recorded is not None:
                self._known[key] = recorded
        return result


def _without_lists(values: Sequence[Any]) -> list[Any]:
    """The values, with the class, length and elements of lists of tensors in their place."""
    found: list[Any] = []
    for x in values:
        if (x.__class__ is list or x.__class__ is tuple) and x and x[0].__class__ in _TENSORS:
            found += (x.__class__.__name__, len(x), *x)
        else:
            found.append(x)
    return found


class View(NamedTuple):
    """A call whose results are views of its tensor, which does not require gradients.

    Attributes:
        makers: the functions of the tensor's array that make the views.
        several: the class of several views; None for one.
        multi: whether they are views of an operator with several outputs.
    """

    makers: tuple[Callable[[DeviceArray], DeviceArray], ...]
    several: Any
    multi: bool

    def of_inference(self, array: DeviceArray) -> Any:
        """The views of an inference tensor, which are inference tensors without a base."""
        made: list[Any] = [wrap(make(array)) for make in self.makers]
        for each in made:
            each._inference, each._counter = True, INFERENCE
        return made[0] if self.several is None else self.several(made)


def _recorded(seen: Any, arrays: Sequence[DeviceArray], runtime: Any) -> RecordedCall | View | None:
    """The recorded call of what was observed; None where an operator has no launch of its own."""
    values: list[Any] = list(arrays)
    device = arrays[0].memory.device.index
    if any(each.memory.device.index != device for each in arrays):
        return None
    launches: list[tuple[Any, tuple[int, ...]]] = []
    if seen.last < 0:
        return _views(seen, arrays[0]) if len(arrays) == 1 and not any(seen.templates) else None
    if seen.several is None and any(op.n_outputs != 1 for op, _, _ in seen.steps):
        return None
    if seen.several is not None and seen.views[0] is not None:
        (op, _, params), = seen.steps
        with below_autograd():
            makers: Any = [array_maker(arrays[0], each) for each in kernel_of(op)(arrays[0], **params)]
        if None in makers:
            return None
        return RecordedCall([(lambda array: tuple([make(array) for make in makers]), (0,))], seen.views, seen.templates,
                            seen.last, seen.several, len(arrays))
    for (op, sources, params), template in zip(seen.steps, seen.templates, strict=True):
        operands = [x if slot < 0 else values[slot] for slot, x in sources]
        try:
            found = recorded_step(op, operands, params, template is not None and template.list_at >= 0, device, runtime)
        except Unrecordable:
            return None
        if found is None:
            return None
        launch, result = found
        values.append(result)
        launches.append((launch, tuple([slot for slot, _ in sources if slot >= 0])))
    return RecordedCall(launches, seen.views, seen.templates, seen.last, seen.several, len(arrays))


class InPlace(NamedTuple):
    """A call that writes into its first tensor; nothing is recorded.

    Attributes:
        launch: of the operator's inputs that are tensors.
        slots: which arguments these are.
    """

    launch: Callable[..., Any]
    slots: tuple[int, ...]


def _written(seen: Write, tensors: Sequence[Any], runtime: Any) -> InPlace | None:
    """The recorded call of an operator that writes in place; the launch of the observation is a second one."""
    op, inputs, params = seen
    target = inputs[0]._array
    given = [x for x in inputs if isinstance(x, Tensor)]
    device = target.memory.device.index
    if (grad_mode.get() and any(x._requires_grad for x in given)) or not all(x._array.size for x in given) or (
            runtime.is_capturing(device, runtime.current_stream(device))):
        return None
    arrays = [x._array for x in given]
    own = _with_own_memory(arrays, device, runtime)
    kept = runtime.empty(device, target.shape, target.dtype, target.strides)  # what the second launch would change
    runtime.copy_between(kept, target)
    replaced = {id(a): b for a, b in zip(arrays, own, strict=True)}
    operands = [wrap(replaced[id(x._array)]) if isinstance(x, Tensor) else x for x in inputs]

    def compute() -> Any:
        with LaunchRecording(runtime, device) as recording:
            return operator_programs.run(op, operands, params, device, operands[0]._array), recording

    with below_autograd():
        result, recording = runtime.launch(op.name, device, arrays, (), compute)
        runtime.copy_between(target, kept)
    if result is not None:
        return None
    try:
        launch = recording.launch(own, ())
    except Unrecordable:
        return None
    ids = list(map(id, tensors))
    return InPlace(launch, tuple([ids.index(id(x)) for x in given]))


def _views(seen: Any, array: DeviceArray) -> View | None:
    makers: list[Any]
    if isinstance(seen.several, Tensor):
        makers = [array_maker(array, seen.several._array)]
        return None if None in makers else View(tuple(makers), None, False)
    (op, sources, params), = seen.steps
    if len(sources) != 1:
        return None
    with below_autograd():
        makers = [array_maker(array, each) for each in kernel_of(op)(array, **params)]
    return None if None in makers else View(tuple(makers), seen.several, bool(op.multi_output_view))


def recorded_step(op: Op, operands: list[Any], params: dict[str, Any], fills: bool, device: int, runtime: Any) -> Any:
    """(the launch of an operator, its result), or None: a launch of the arrays of operands, then of parameters."""
    if op.kind == VIEW:
        if len(operands) != 1:
            return None
        with below_autograd():
            launch = view_launch(operands, kernel_of(op), params)
        if launch is None:
            return None
        return launch, launch(operands[0])
    held = [name for name, value in params.items() if value.__class__ is DeviceArray]
    own = _with_own_memory([*operands, *[params[name] for name in held]], device, runtime)
    given = [each for each in own if isinstance(each, DeviceArray)]
    operands = own[:len(operands)]
    params = {**params, **dict(zip(held, own[len(operands):], strict=True))}
    tensors = [wrap(each) if isinstance(each, DeviceArray) else each for each in operands]
    named: dict[str, Any] = {name: [] if fills and value.__class__ is list else value
                             for name, value in params.items()}
    lists = [name for name, value in named.items() if fills and value.__class__ is list]
    if not all(each.size for each in given):
        return None
    stream = runtime.current_stream(device)
    if runtime.is_capturing(device, stream):
        return None

    def compute() -> Any:
        for name in lists:
            named[name] = []
        with LaunchRecording(runtime, device) as recording:
            for attempt in (products.run, operator_programs.run):
                found = attempt(op, tensors, named, device)
                if found is not NotImplemented:
                    return found, recording
        return None

    with below_autograd():
        computed = runtime.launch(op.name, device, given, (), compute)
        if computed is not None and computed[1].refused:  # a new program has copied its constants: now they are there
            computed = runtime.launch(op.name, device, given, (), compute)
    if computed is None:
        return None
    results, recording = computed
    saved = [each for name in lists for each in named[name]]
    if (saved and not fills) or any(each.__class__ is not DeviceArray for each in (*results, *saved)):
        return None
    inner = recording.launch(given, [*results, *saved])
    if not fills:
        return inner, results[0] if op.n_outputs == 1 else tuple(results)
    if not saved:  # the rule computes what it needs again

        def fill_nothing(*arrays: DeviceArray) -> Filled | None:
            found = inner(*arrays)
            return None if found is None else Filled(found, [])

        return fill_nothing, results[0]

    def fill(*arrays: DeviceArray) -> Filled | None:
        found = inner(*arrays)
        return None if found is None else Filled(found[0], list(found[1:]))

    return fill, results[0]


def call_table(runtime: Any) -> Callable[[str], Any]:
    """What makes the function that runs a public function's repeated calls (`entry_points.device_calls`)."""

    def make(name: str) -> Any:
        if name in READS:
            return number_reader(name, runtime)
        if name in FACTORIES:
            return FactoryTable(name, runtime).call
        draws = draw_table.table(name, runtime)
        if draws is not None:
            return draws
        if name in HANDLERS or name in RUN_FUNCTIONS:
            return None
        return run_plainly if name in _METADATA or name.endswith(CHANGE_ATTRIBUTES) else CallTable(name, runtime).call

    return make


def run_plainly(implementation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of shapes, strides and dtypes, or an attribute's accessor, which are the same for any tensor."""
    return implementation(*args, **kwargs) if only_devices() else NotImplemented


def _with_own_memory(operands: Sequence[Any], device: int, runtime: Any) -> list[Any]:
    """The operands, with copies in place of arrays that share memory: launches tell operands by their memory."""
    found: dict[int, Any] = {}
    own = []
    for each in operands:
        if each.__class__ is DeviceArray:
            first = found.setdefault(id(each.memory), each)
            if first is not each:
                once = each[(..., *[slice(None if stride else 1) for stride in each.strides])]
                copied = runtime.empty(device, once.shape, each.dtype, once.strides)
                runtime.copy_between(copied, once)
                each = np.broadcast_to(copied, each.shape, subok=True)  # strides of 0 as they were
        own.append(each)
    return own


def _shares_memory(arrays: Sequence[DeviceArray]) -> bool:
    """Whether another array than the first is in the first one's memory, and is not that array."""
    first = arrays[0]
    base = first.base if first.base.__class__ is DeviceArray else first
    return any(each is not first and (each is base or each.base is base) for each in arrays[1:])


def _offsets() -> list[int]:
    """How many numbers the devices' generators have drawn."""
    return [each.get_offset() for each in default_generators()]


def _follow(runtime: Any) -> None:
    addressed = runtime is not None and runtime.arrays_at_addresses
    entry_points.device_calls[0] = call_table(runtime) if addressed else None
    rules[0] = RuleTable(runtime, recorded_step) if addressed else None


def forget() -> None:
    """Drop the recorded calls and rules, after a setting that launches depend on was written, or the default dtype."""
    if entry_points.device_calls[0] is not None:
        _follow(current_runtime())


observe(_follow)
observe_writes(forget)
default_observers.append(forget)

__all__ = ["CallTable", "call_table", "forget", "recorded_step"]
