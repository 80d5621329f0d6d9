"""Derivative rules on a device: the launches that a rule made for cotangents and saved tensors of the same layouts.

A backward pass on a device applies operators to tensors. What a node's rule applies depends on its plan, its constants
and layouts; so later nodes of the same plan enter the launch stubs of an earlier one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....backends.cuda_devices.array import DeviceArray
from ....backends.cuda_devices.launch_recording import LaunchRecording, Unrecordable
from ....dtypes import BFLOAT16
from ....engine.grad_mode import grad_mode, inference
from ....engine.saved.saved_tensors import Packed
from ....errstate import run_in_quiet
from ....modes import active_transforms, determinism, dispatch_in_use, inference_used, special
from ....ops.declare import COMPOSITE, VIEW
from ...dispatch.interception import Interceptor
from ...fastpath.known_views import array_maker, view_of
from ...overriding import entry_points
from ...tensor import Tensor, wrap
from ..generators import default_generators

_MOST = 4096
#: the number of structured dtypes
_VOID = np.dtype("V1").num
#: in place of recorded rules: the layouts came once; they cannot be recorded
_SEEN, _NEVER = object(), object()


class RecordedRule(NamedTuple):
    """The launches of a rule.

    Slots are those of the arrays given, then of the operators' results.

    Attributes:
        steps: (launch, slots of its arrays, whether it has several results).
        results: the slot of each gradient; -1 for none.
        roots: for each gradient the slot of the given array that it is, or is a view of; -1 for new memory.
    """

    steps: list[tuple[Callable[..., Any], tuple[int, ...], bool]]
    results: list[int]
    roots: list[int]


class _Observer(Interceptor):
    def __init__(self) -> None:
        self.found: list[Any] = []

    def on_operator(self, op: Any, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
                    in_place: bool) -> None:
        self.found.append((op, tuple(inputs), dict(params), list(outs), in_place))


class RuleTable:
    """The recorded rules of a runtime's devices.

    Args:
        runtime: the runtime.
        step: makes (launch, result) of an operator, as `call_table.recorded_step`.
    """

    def __init__(self, runtime: Any, step: Callable[..., Any]) -> None:
        self._runtime, self._step, self._several = runtime, step, runtime.count > 1
        self._known: dict[Any, Any] = {}

    def run(self, function: Callable[..., Any], node: Any, g: Any, run_itself: Callable[[], Any]) -> Any:
        """The gradients that a rule gives.

        Args:
            function: the rule, a function of the node, g, and whether they are tensors.
            g: the cotangent, or a list of those of several outputs.
            run_itself: runs it.
        """
        if special[0] != 1 or entry_points.in_use[0] != 1 or dispatch_in_use[0] != 1 or active_transforms[0] or (
                (inference_used[0] and inference.get()) or determinism[0] or grad_mode.get()
                or node.extra is not None):
            return run_itself()
        plan = node.plan
        saved = node.saved
        if saved is None or any(entry.__class__ is Packed or (entry.__class__ is tuple and entry[1] is None)
                                for entry in saved):
            return run_itself()
        tensors: list[Any] = []
        arrays: list[Any] = []
        parts: list[Any] = [id(plan), id(function), node.outputs]
        for x in g if g.__class__ is list else (g,):
            if x is None:
                parts.append(None)
            elif x.__class__ is Tensor and x._array.__class__ is DeviceArray:
                a = x._array
                tensors.append(x)
                arrays.append(a)
                parts += (_kind(a), a.shape, a.strides)
                if self._several:
                    parts.append(a.memory.device)
            else:
                return run_itself()
        values = node.unpack(False) if plan.saves_tensors else ()
        for value in (*values, *node.consts, *(node.fix or ())):
            for a in value if value.__class__ is list else (value,):
                if a.__class__ is DeviceArray:
                    tensors.append(None)
                    arrays.append(a)
                    parts += (_kind(a), a.shape, a.strides)
                elif isinstance(a, np.ndarray):
                    if a.size > 1:
                        return run_itself()
                    parts += (a.dtype.num, a.shape, a.tobytes())
                else:
                    parts += (a.__class__, repr(a) if a.__class__ is float else a)
        ids = list(map(id, arrays))
        if len(set(ids)) < len(ids):
            parts += map(ids.index, ids)
        key = tuple(parts)
        try:
            known = self._known.get(key)
        except TypeError:
            return run_itself()
        if known.__class__ is RecordedRule:
            found = run_in_quiet(_launch, (known.steps, arrays))
            if found is None:
                return run_itself()
            return [None if slot < 0 else _gradient(slot, root, found, tensors)
                    for slot, root in zip(known.results, known.roots, strict=True)]
        if known is _NEVER:
            return run_itself()
        if known is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = _SEEN
            return run_itself()
        return self._observed(key, run_itself, arrays)

    def _observed(self, key: Any, run_itself: Callable[[], Any], arrays: list[Any]) -> Any:
        self._known[key] = _NEVER
        device = arrays[0].memory.device.index
        before = [each.get_offset() for each in default_generators()]
        with LaunchRecording(self._runtime, device, keeps=False) as transfers, _Observer() as observer, (
                warnings.catch_warnings(record=True)) as caught:
            warnings.simplefilter("always")
            result = run_itself()
        for each in caught:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
        if not caught and not transfers.refused and before == [each.get_offset() for each in default_generators()]:
            try:
                recorded = self._recorded(observer.found, result, arrays, device)
            except Unrecordable:
                recorded = None
            if recorded is not None:
                self._known[key] = recorded
        return result

    def _recorded(self, found: list[Any], result: Any, arrays: list[Any], device: int) -> RecordedRule | None:
        slots = {id(a): i for i, a in reversed(list(enumerate(arrays)))}
        roots = list(range(len(arrays)))
        values = list(arrays)
        steps = []
        kept = []
        for op, inputs, params, outs, in_place in found:
            if in_place or op.kind == COMPOSITE or op.tensor_list or any(value.__class__ is list
                                                                         for value in params.values()):
                return None
            operands, own = [], []
            for x in inputs:
                if isinstance(x, Tensor):
                    slot = slots.get(id(x._array))
                    if slot is None:
                        if x._array.__class__ is DeviceArray or x._array.size > 1:
                            return None
                        operands.append(x)
                        continue
                    own.append(slot)
                    operands.append(values[slot])
                else:
                    operands.append(x)
            for value in params.values():
                if isinstance(value, (np.ndarray, Tensor)):  # indices, masks: other ones in the next call
                    slot = slots.get(id(value))
                    if slot is None:
                        return None
                    own.append(slot)
            if op.kind == VIEW and len(outs) > 1:
                made = _views(operands[0], [out._array for out in outs])
            else:
                made = self._step(op, operands, params, False, device, self._runtime)
            if made is None:
                return None
            launch, value = made
            several = value.__class__ is tuple
            steps.append((launch, tuple(own), several))
            for out, each in zip(outs, value if several else (value,), strict=True):
                slots[id(out._array)] = len(values)
                roots.append(roots[own[0]] if op.kind == VIEW else -1)
                kept.append(out)
                values.append(each)
        results, of = [], []
        for x in result:
            slot = -1 if x is None else slots.get(id(x._array), -2)
            if slot == -2:
                return None
            results.append(slot)
            of.append(-1 if slot < 0 else roots[slot])
        return RecordedRule(steps, results, of)


def _views(array: Any, views: Sequence[Any]) -> Any:
    """(the function of an array that makes such views, these views); None where there is none."""
    makers: Any = [array_maker(array, each) for each in views]
    return None if None in makers else (lambda a: tuple([make(a) for make in makers]), tuple(views))


def _kind(a: np.ndarray) -> Any:
    """What tells the array's dtype from others, quickly hashed."""
    number = a.dtype.num
    return number if number != _VOID else a.dtype is BFLOAT16 or a.dtype


def _gradient(slot: int, root: int, found: Sequence[Any], tensors: Sequence[Any]) -> Tensor:
    """A result as a tensor: a cotangent itself, a view of one, or a tensor of its own."""
    source: Any = None if root < 0 else tensors[root]
    if source is None:
        made: Tensor = wrap(found[slot])
        return made
    return source if slot == root else view_of(source, found[slot], False)


def _launch(steps: Sequence[tuple[Callable[..., Any], tuple[int, ...], bool]], arrays: Sequence[Any]) -> Any:
    """All values by slot; None as soon as a launch gives None."""
    values = list(arrays)
    for launch, slots, several in steps:
        result = launch(*[values[slot] for slot in slots])
        if result is None:
            return None
        if several:
            values += result
        else:
            values.append(result)
    return values


__all__ = ["RecordedRule", "RuleTable"]
