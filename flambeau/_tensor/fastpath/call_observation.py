"""What calls consist of: the operators that they apply, and the launches that compute the same from arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...errstate import run_in_quiet
from ...ops.declare import COMPOSITE, VIEW, Op
from ..dispatch.array_kernels import ROW_MAJOR, kernel_of, row_major
from ..dispatch.interception import Interceptor
from ..tensor import Tensor
from .launch_makers import launch_of
from .without_promotion import conversion_of

ndarray = np.ndarray
asarray = np.asarray

#: operators whose kernels are called without what the general path does around them
DIRECT = frozenset(("_rms_norm", "addmm", "topk", "cummax", "cummin"))


class _Observer(Interceptor):
    """The operators that a call applies."""

    def __init__(self) -> None:
        self.found: list[Any] = []

    def on_operator(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
                    in_place: bool) -> None:
        self.found.append(None if in_place else (op, tuple(inputs), dict(params), outs))


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


def _call_of(found: list[Any], tensors: list[Tensor], result: Any) -> Any:
    """What a call consists of: (steps, slot of the result, the tensors' arrays, the class of several results).

    A step is (operator, sources of its inputs, parameters); a source is (slot, None), or (-1, value). Slots are those
    of the tensors, then of the steps' results. None for a call that is not made of operators with one new result each.
    """
    if not found or None in found or (result.__class__ is not Tensor and not isinstance(result, tuple)):
        return None
    slots = {id(x): i for i, x in enumerate(tensors)}
    steps: list[Any] = []
    for op, inputs, params, outs in found:
        last = op is found[-1][0] and len(found) == 1
        if op.kind == COMPOSITE or (op.n_outputs != 1 and not last) or op.variadic or (
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
        slots[id(outs[0])] = len(tensors) + len(steps)
        steps.append((op, tuple(sources), params))
    if isinstance(result, tuple):
        if list(map(id, result)) != list(map(id, found[-1][3])) or found[-1][0].kind == VIEW:
            return None
        return steps, len(tensors), [x._array for x in tensors], result.__class__
    if id(result) not in slots or slots[id(result)] < len(tensors) or found[-1][0].kind == VIEW:
        return None
    return steps, slots[id(result)], [x._array for x in tensors], None


def _is_plain(value: Any) -> bool:
    """Whether a parameter is part of a call, not of what it drew or read."""
    return value is None or value.__class__ in (int, float, bool, str, list, dtypes.dtype) or (
        value.__class__ is tuple and all(map(_is_plain, value)))


def prepared(call: Any) -> Any:
    """The launch of an observed call; None if it has none.

    Returns:
        (launch, operator, sources of its inputs, parameters); sources are None if the call's result is not recorded as
        that operator's. Of several results: (launch, class of the tuple, None, parameters).
    """
    if call is None:
        return None
    steps, last, arrays, several = call
    values, launches = list(arrays), []
    for op, sources, params in steps:
        operands = [x if slot < 0 else values[slot] for slot, x in sources]
        launch = _step(op, operands, params, len(steps) > 1)
        result = None if launch is None else launch(*[values[slot] for slot, _ in sources if slot >= 0])
        if result is None:
            return None
        values.append(result if result.__class__ is tuple else asarray(result))
        launches.append((launch, tuple([slot for slot, _ in sources if slot >= 0])))
    op, sources, params = steps[-1]
    if several is not None:
        return launches[0][0], several, None, params
    if len(steps) > 1:
        return _chain(launches, last), op, None, params
    # the fast paths of operators with one input record faster than `record`
    records = op.kind != VIEW and op.n_outputs == 1 and op.differentiable and len(arrays) > 1 and not any(
        value.__class__ is list for value in params.values())
    (launch, order), = launches
    if order != tuple(range(len(arrays))):
        return _chain(launches, last), op, sources if records else None, params
    return launch, op, sources if records else None, params


def _step(op: Op, operands: list[Any], params: dict[str, Any], in_chain: bool) -> Any:
    """The launch of an operator; in a chain of operators its kernel, where it has no launch."""
    values = {name: params[name] if name in params else op.defaults[name] for name in op.params}
    values = {name: [] if value.__class__ is list else value for name, value in values.items()}
    if op.kind != VIEW and all(x.__class__ is not ndarray or x.flags.c_contiguous for x in operands):
        launch = launch_of(op, operands, values)
        if launch is not None:
            return launch
    if not in_chain and op.name not in DIRECT:
        return None
    kernel, numbers = kernel_of(op), None
    if op.kind != VIEW:
        conversion = conversion_of(op, [x.dtype if x.__class__ is ndarray else None if x is None else x.__class__
                                        for x in operands])
        if conversion is None or conversion.narrow is not None:
            return None
        numbers = conversion.numbers
    constants = [None if x.__class__ is ndarray else (x if x is None or numbers is None else numbers[x],)
                 for x in operands]
    finish = _results if op.n_outputs != 1 else _row_major_array if op.name in ROW_MAJOR else asarray
    if not any(constants) and not params:
        return lambda *given: finish(kernel(*given))

    def run(*given: ndarray) -> Any:
        rest = iter(given)
        return finish(kernel(*[next(rest) if each is None else each[0] for each in constants], **params))

    return run


def _results(results: Any) -> tuple[ndarray, ...]:
    return tuple([row_major(asarray(each)) for each in results])


def _row_major_array(result: Any) -> Any:
    return row_major(asarray(result))


def _chain(launches: list[tuple[Any, tuple[int, ...]]], last: int) -> Callable[..., Any]:
    """The function of arrays that runs launches one after the other; None as soon as one gives None."""
    def run(arrays: tuple[ndarray, ...]) -> Any:
        values = list(arrays)
        for launch, slots in launches:
            result = launch(*[values[slot] for slot in slots])
            if result is None:
                return None
            values.append(result)
        return values[last]

    return lambda *arrays: run_in_quiet(run, (arrays,))


__all__ = ["observe", "prepared"]
