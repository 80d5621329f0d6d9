"""What calls consist of: the operators that they apply, and the launches that compute the same from arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from ...devices import memory_format
from ...errstate import run_in_quiet
from ...ops.declare import COMPOSITE, ELEMENTWISE, VIEW, Op
from ..dispatch.array_kernels import ROW_MAJOR, kernel_of, row_major
from ..dispatch.interception import Interceptor
from ..dispatch.promotion import result_type
from ..tensor import Tensor, wrap
from .known_views import view_launch
from .launch_makers import filling_launch, launch_of
from .linalg_launches import CHECKED
from .linalg_launches import MAKERS as LINALG_MAKERS
from .narrow_launches import converting_launch, flat_steps, masked_fill_of_narrow, narrow_launch
from .node_templates import NodeTemplate, Unlike
from .recorded_calls import Filled, RecordedCall, values_of
from .without_promotion import conversion_of

ndarray = np.ndarray
asarray = np.asarray

class _Observer(Interceptor):
    """The operators that a call applies."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.writes: list[Any] = []

    def on_operator(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
                    in_place: bool) -> None:
        self.found.append(None if in_place else (op, tuple(inputs), dict(params), outs))
        if in_place:
            self.writes.append((op, tuple(inputs), dict(params)))


def observe_call(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], tensors: list[Tensor]
                 ) -> tuple[Any, Any]:
    """`observe`, of calls on a device: also of one operator that writes in place (`Write`), or of operators that make
    views of an argument: their last slot is -1, and `several` is the view, or the class of several views.
    """
    with warnings.catch_warnings(record=True) as caught, _Observer() as observer:
        warnings.simplefilter("always")
        result = function(*args, **kwargs)
    for each in caught:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    if caught:
        return result, None
    if observer.found == [None]:
        op, inputs, params = observer.writes[0]
        if result is inputs[0] is tensors[0] and all(map(_is_plain, params.values())) and all(
                not isinstance(x, Tensor) or any(x is each for each in tensors) for x in inputs):
            return result, Write(op, inputs, params)
    return result, _call_of(observer.found, tensors, result, True)


def observe(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], tensors: list[Tensor],
            observing: list[int]) -> tuple[Any, Any]:
    """The result of a call, and what it consists of; None for the latter where the call warns.

    Args:
        tensors: the tensors among the arguments.
        observing: is [1] during the call.
    """
    with warnings.catch_warnings(record=True) as caught, _Observer() as observer:
        warnings.simplefilter("always")
        observing[0] = 1
        try:
            result = function(*args, **kwargs)
        finally:
            observing[0] = 0
    for each in caught:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return result, None if caught else _call_of(observer.found, tensors, result)


class Write(NamedTuple):
    """A call that writes an operator's result into its first argument, which is what it returns."""

    op: Op
    inputs: tuple[Any, ...]
    params: dict[str, Any]


class _Call(NamedTuple):
    """What a call consists of.

    Slots are those of the tensors among the arguments, then of the operators' results.

    Attributes:
        steps: (operator, sources of its inputs, parameters) of each operator; a source is (slot, None), or (-1, value).
        views: of each step, the slot of the tensor whose view its result is, and whether it is one of several.
        templates: of each step, the template of its node.
        last: the slot of the result.
        arrays: the tensors' arrays.
        several: the class of several results.
    """

    steps: list[tuple[Op, tuple[Any, ...], dict[str, Any]]]
    views: list[tuple[int, bool] | None]
    templates: list[NodeTemplate | None]
    last: int
    arrays: list[ndarray]
    several: Any


def _call_of(found: list[Any], tensors: list[Tensor], result: Any, views_too: bool = False) -> _Call | None:
    """What a call consists of; None for one that is not made of operators with one new result each.

    Args:
        views_too: whether operators that make views of an argument are such a call, too, whose last slot is -1.
    """
    if not found or None in found or (result.__class__ is not Tensor and not isinstance(result, tuple)):
        return None
    slots = {id(x): i for i, x in reversed(list(enumerate(tensors)))}
    steps: list[Any] = []
    views: list[tuple[int, bool] | None] = []
    templates: list[NodeTemplate | None] = []
    for op, inputs, params, outs in found:
        last = op is found[-1][0] and len(found) == 1
        if views_too and last and op.kind == VIEW and isinstance(result, tuple) and inputs[0] is tensors[0] and (
                list(map(id, result)) == list(map(id, outs)) and all(x._base is not None for x in outs)):
            try:
                template = None if outs[0]._node is None else NodeTemplate(op, inputs, outs, slots)
            except (Unlike, KeyError):
                return None
            last_slot = -1 if template is None else len(tensors)
            return _Call([(op, ((0, None),), params)], [(0, True)], [template], last_slot, [x._array for x in tensors],
                         result.__class__)
        if op.kind == COMPOSITE or (op.n_outputs != 1 and not last) or op.tensor_list or (
                not all(map(_is_plain, params.values()))):
            return None
        sources = []
        for x in inputs:
            if not isinstance(x, Tensor):
                sources.append((-1, x))
            elif id(x) in slots:
                sources.append((slots[id(x)], None))
            else:
                return None
        try:
            templates.append(None if outs[0]._node is None else NodeTemplate(op, inputs, outs, slots))
        except (Unlike, KeyError):
            return None
        view = None
        if outs[0]._base is not None:
            view = sources[0][0], op.multi_output_view
        views.append(view)
        slots[id(outs[0])] = len(tensors) + len(steps)
        steps.append((op, tuple(sources), params))
    arrays = [x._array for x in tensors]
    if isinstance(result, tuple):
        if list(map(id, result)) != list(map(id, found[-1][3])) or found[-1][0].kind == VIEW:
            return None
        return _Call(steps, views, templates, len(tensors), arrays, result.__class__)
    slot = slots.get(id(result), -1)
    root = slot
    while root >= len(tensors) and (view := views[root - len(tensors)]) is not None:
        root = view[0]
    if views_too and 0 <= root < len(tensors) <= slot and all(view is not None and not view[1] for view in views):
        if any(templates):
            return _Call(steps, views, templates, slot, arrays, None)
        return _Call(steps, views, templates, -1, arrays, result)  # a view of a view of an argument
    if root < len(tensors) or slot != len(tensors) + len(steps) - 1:  # an argument, or a view of one
        return None
    return _Call(steps, views, templates, slot, arrays, None)


def _is_plain(value: Any) -> bool:
    """Whether a parameter is part of a call, not of what it drew or read."""
    return value is None or value.__class__ in (int, float, bool, str, list, dtypes.dtype, memory_format) or (
        value.__class__ is tuple and all(map(_is_plain, value)))


def prepared(call: _Call | None) -> Any:
    """The launch of an observed call; None if it has none.

    Returns:
        (launch, class of several results, None): a function of the arrays; or (function of the arrays,
        None, the `RecordedCall`).
    """
    if call is None:
        return None
    if call.several is None and call.steps[0][0].n_outputs > 1:
        return _checked(call)
    values: list[Any] = list(call.arrays)
    launches: list[tuple[Any, tuple[int, ...]]] = []
    for (op, sources, params), template in zip(call.steps, call.templates, strict=True):
        operands = [x if slot < 0 else values[slot] for slot, x in sources]
        launch = _step(op, operands, params, template is not None and template.list_at >= 0)
        result = None if launch is None else run_in_quiet(launch, [values[slot] for slot, _ in sources if slot >= 0])
        if result is None:
            return None
        if result.__class__ is Filled:
            result = result.array
        if result.__class__ is not tuple and result.__class__ is not ndarray:
            return None
        values.append(result)
        launches.append((launch, tuple([slot for slot, _ in sources if slot >= 0])))
    count = len(call.arrays)
    if not any(call.templates) and (not any(call.views) or (
            call.several is None and call.views[call.last - count] is None)):
        if len(launches) == 1 and launches[0][1] == tuple(range(count)):
            return launches[0][0], call.several, None
        return _result_of(launches, call.last, count), call.several, None
    recorded = RecordedCall(launches, call.views, call.templates, call.last, call.several, count)
    return _result_of(launches, call.last, count), None, recorded


def _checked(call: _Call) -> Any:
    """The launch of an operator's first result, where its second one was looked at; None if there is none."""
    (op, sources, params), = call.steps
    make = CHECKED.get(op.name)
    slots = tuple([slot for slot, _ in sources])
    if make is None or any(call.templates) or slots != tuple(range(len(call.arrays))):
        return None
    launch = make(*call.arrays, **{name: params.get(name, op.defaults[name]) for name in op.params})
    return None if launch is None else (launch, None, None)


def _step(op: Op, operands: list[Any], params: dict[str, Any], fills: bool) -> Any:
    """The launch of an operator; its kernel, where it has no launch.

    Args:
        fills: whether it returns `Filled`, too: with the list among the parameters, which its kernel fills.
    """
    values = {name: params[name] if name in params else op.defaults[name] for name in op.params}
    values = {name: [] if value.__class__ is list else value for name, value in values.items()}
    conversion = None if op.kind == VIEW else conversion_of(op, [
        x.dtype if x.__class__ is ndarray else None if x is None else x.__class__ for x in operands])
    if conversion is not None and conversion.narrow is not None:
        return None if fills else narrow_launch(op, operands, params, values, conversion)
    if op.kind != VIEW and not fills and (op.name in LINALG_MAKERS or all(
            x.__class__ is not ndarray or x.flags.c_contiguous for x in operands)):
        launch = launch_of(op, operands, values)
        if launch is None and op.name == "masked_fill":
            launch = masked_fill_of_narrow(*operands, **values)
        if launch is not None:
            return launch
    if op.kind == VIEW:
        return view_launch(operands, kernel_of(op), params)
    kernel = kernel_of(op)
    if conversion is None:
        return _converting(op, operands, params, values)
    numbers = conversion.numbers
    constants = [None if x.__class__ is ndarray else (x if x is None or numbers is None else numbers[x],)
                 for x in operands]
    finish: Callable[[Any], Any] = _results if op.n_outputs != 1 else (
        _row_major_array if op.name in ROW_MAJOR else asarray)
    if fills:
        name = next(name for name, value in values.items() if value.__class__ is list)
        others = {each: value for each, value in params.items() if each != name}
        if any(each is not None and each[0] is not None for each in constants):
            return None
        if all(x.__class__ is not ndarray or x.flags.c_contiguous for x in operands):
            filling = filling_launch(op, operands, values)
            if filling is not None:
                return lambda *given: _filled(filling(*given))

        def fill(*given: ndarray) -> Filled:
            rest = iter(given)
            stored: list[Any] = []
            array = kernel(*[next(rest) if each is None else None for each in constants], **others, **{name: stored})
            return Filled(finish(array), stored)

        return fill
    if not any(constants):
        found = run_in_quiet(kernel, operands, params)
        plain = op.n_outputs == 1 and found.__class__ is ndarray and finish(found) is found
        if len(operands) == 1:
            return (lambda a: kernel(a, **params)) if plain else lambda a: finish(kernel(a, **params))
        return (lambda *given: kernel(*given, **params)) if plain else lambda *given: finish(kernel(*given, **params))

    def run(*given: ndarray) -> Any:
        rest = iter(given)
        return finish(kernel(*[next(rest) if each is None else each[0] for each in constants], **params))

    return run


def _filled(results: tuple[ndarray, ...] | None) -> Filled | None:
    return None if results is None else Filled(results[0], list(results[1:]))


def _converting(op: Op, operands: list[Any], params: dict[str, Any], values: dict[str, Any]) -> Any:
    """The launch of an operator of arrays that are converted to the result's dtype."""
    if op.kind == ELEMENTWISE and params and len(operands) == 1 and operands[0].dtype in dtypes.NARROW and all(
            value.__class__ in (int, float) for value in params.values()):
        launch = converting_launch(op, operands, values, operands[0].dtype)
        if launch is not None:
            return launch
        narrow, of_wide = operands[0].dtype, kernel_of(op)
        return lambda a: dtypes.cast(asarray(of_wide(dtypes.widen(a), **params)), narrow)
    if op.promote not in ("common", "float") or op.kind != ELEMENTWISE or params or op.unpromoted or (
            any(x.__class__ is not ndarray or (x.dtype.kind not in "bif" and x.dtype not in dtypes.NARROW)
                for x in operands)):
        return None
    common, kernel = result_type([wrap(x) for x in operands]).numpy, kernel_of(op)
    if common in dtypes.NARROW:
        launch = converting_launch(op, operands, values, common)
        if launch is not None:
            return launch
        return lambda *given: dtypes.cast(
            asarray(kernel(*[dtypes.widen(dtypes.cast(x, common)) for x in given])), common)
    if op.promote == "float" and common.kind != "f":
        return None
    return lambda *given: asarray(kernel(*[x.astype(common) for x in given]))


def _results(results: Any) -> tuple[ndarray, ...]:
    return tuple([row_major(asarray(each)) for each in results])


def _row_major_array(result: Any) -> Any:
    return row_major(asarray(result))


def _result_of(launches: list[tuple[Any, tuple[int, ...]]], last: int, count: int) -> Callable[..., Any]:
    """The function of arrays that runs launches one after the other; None as soon as one gives None."""
    forward = values_of(launches, True)

    def run(*arrays: ndarray) -> Any:
        values = run_in_quiet(forward, (list(arrays),))
        result = None if values is None else values[last]
        return result.array if result.__class__ is Filled else result

    run.steps = flat_steps(launches, count, last)  # type: ignore[attr-defined]
    return run


__all__ = ["Write", "observe", "observe_call", "prepared"]
