"""Operators on a device by generated kernels: a declaration, traced over IR values, as a program of launches.

A program serves one operator, one layout of its operands and one set of parameters. Python numbers among the operands
are arrays of one element, kept in the device's memory, so that another number needs no other program.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.array import DeviceArray
from ...engine.grad_mode import no_grad
from ...ir.gpu import flash_attention
from ...ir.gpu.device_program import DeviceProgram
from ...ir.gpu.families import GpuFamilies
from ...ir.gpu.interleaved_graph import InterleavedGraph
from ...ir.gpu.loaded_program import LoadedProgram
from ...ir.gpu.lowering.namespace import lower_for_device
from ...ir.graph.inputs import input_for_array, memory_order, view_as_array
from ...ir.graph.target import Target
from ...ir.graph.value import Graph, Unsupported, Value
from ...ir.lowering.namespace import lower_operator
from ...modes import determinism
from ...ops.declare import ELEMENTWISE, VIEW, Op
from ..dispatch.promotion import promoted_operands, round_params, round_scalar, scalar_operand
from ..overriding.dispatch import no_dispatch
from ..shape.inference import Metadata, _unchecked, _unit, infer
from ..tensor import Tensor
from . import convolutions
from .convolutions import convolution_library

#: programs that are kept, and numbers in each device's memory
MAX_PROGRAMS, MAX_NUMBERS = 4096, 4096


class _Result(NamedTuple):
    """How a result lies in the program's array: the shape, the dtype, and the strides in bytes."""

    shape: tuple[int, ...]
    dtype: np.dtype
    strides: tuple[int, ...]


class OperatorProgram(NamedTuple):
    """A program of one operator.

    Attributes:
        program: with its constants on the device.
        order: for each input of the program the number of the array among the operands.
        numbers: for each Python number among the operands, in their order, the function that makes an array of it.
        results: of the operator.
        saved: results that the kernel keeps for the backward pass, by the parameter that lists them.
    """

    program: LoadedProgram
    order: list[int]
    numbers: list[Callable[[Any], np.ndarray]]
    results: list[_Result]
    saved: list[tuple[str, _Result]]


#: complex dtypes, by their characters, that kernels compute with
_COMPLEX = "FD"
#: operators of other kinds that compute each element from that of the same place
_ELEMENT_BY_ELEMENT = frozenset(("_to_copy",))
#: operators -> why the last one had no program
refusals: dict[str, str] = {}
_programs: OrderedDict[Any, OperatorProgram | None] = OrderedDict()
_numbers: OrderedDict[Any, DeviceArray] = OrderedDict()
_of_runtime: list[Any] = [None]


def clear() -> None:
    """Drop all programs and numbers."""
    _programs.clear()
    _numbers.clear()


def _layout(a: np.ndarray) -> tuple[Any, ...]:
    return a.shape, a.strides, a.dtype.str, a.dtype.names


def _key(value: Any, arrays: list[Any]) -> Any:
    """What of a value a program depends on; arrays are appended to a list.

    Raises:
        Unsupported: it is nothing that a program is chosen by.
    """
    if isinstance(value, Tensor):
        value = value._array
    if isinstance(value, np.ndarray):
        for i, each in enumerate(arrays):
            if each is value:
                return "again", i
        arrays.append(value)
        return _layout(value)
    if value.__class__ is list or value.__class__ is tuple:
        return (value.__class__, *(_key(each, arrays) for each in value))
    if value is None or isinstance(value, (bool, int, float, complex, str, slice, dtypes.dtype, np.dtype)):
        return value.__class__, repr(value)
    try:
        hash(value)
    except TypeError:
        raise Unsupported(f"a parameter of class {type(value).__name__}") from None
    return value


def run(op: Op, inputs: Sequence[Any], params: dict[str, Any], device: int, target: DeviceArray | None = None
        ) -> Any:
    """An operator's results on a device; NotImplemented where there are no kernels, or a condition on data fails.

    Args:
        inputs: tensors in the device's memory or 0-d ones of the host, numbers and None.
        target: the array, the first input's, that the result is written to instead.

    Raises:
        RuntimeError, IndexError: as the operator does for these shapes and dtypes.
    """
    runtime = current_runtime()
    if _of_runtime[0] is not runtime:
        _of_runtime[0] = runtime
        clear()
    arrays: list[Any] = []
    try:
        key = (id(op), op.name, device, target is not None, dtypes.get_default_dtype(), determinism[0],
               tuple([_operand_key(x, arrays) for x in inputs]),
               tuple([(name, _key(value, arrays)) for name, value in params.items()]),
               convolutions.settings() if op.name in convolutions.OPERATORS else None)
    except Unsupported:
        return NotImplemented
    if key in _programs:
        found = _programs[key]
        _programs.move_to_end(key)
    else:
        try:
            found = _build(op, inputs, params, arrays, device, target)
        except Unsupported as error:
            found, refusals[op.name] = None, str(error)
        _programs[key] = found
        if len(_programs) > MAX_PROGRAMS:
            _programs.popitem(last=False)
    if found is None:
        return NotImplemented
    numbers = [make(x) for make, x in zip(found.numbers, [x for x in inputs if _is_number(x)], strict=True)]
    operands = [_on_device(each, device) for each in arrays] + [kept_number(each, device) for each in numbers]
    new = found.program.run([operands[i] for i in found.order])
    if new is None:
        return NotImplemented
    if target is not None:
        return None
    results = [_as_result(array, each) for array, each in zip(new, found.results, strict=False)]
    for array, (name, each) in zip(new[len(found.results):], found.saved, strict=True):
        params[name].append(_as_result(array, each))
    return results


def _operand_key(x: Any, arrays: list[Any]) -> Any:
    return x.__class__ if _is_number(x) else _key(x, arrays)


def _is_number(x: Any) -> bool:
    return x.__class__ is int or x.__class__ is float or x.__class__ is complex


def _on_device(array: Any, device: int) -> DeviceArray:
    """An array on the device, also one of the host: one element stays there, more are copied for each call."""
    if array.__class__ is DeviceArray:
        return array
    return current_runtime().upload(array, device, blocking=False) if array.ndim else kept_number(array, device)


def kept_number(number: np.ndarray, device: int) -> DeviceArray:
    """An array of one element in a device's memory, where it stays for later calls."""
    key = device, number.dtype.str, number.dtype.names, number.shape, number.tobytes()
    found = _numbers.get(key)
    if found is None:
        found = _numbers[key] = current_runtime().constant(np.ascontiguousarray(number), device)
        if len(_numbers) > MAX_NUMBERS:
            _numbers.popitem(last=False)
    return found


def _as_result(array: DeviceArray, result: _Result) -> DeviceArray:
    base: Any = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    return np.ndarray.__new__(DeviceArray, result.shape, result.dtype, base, array.byte_offset, result.strides)


def _build(op: Op, inputs: Sequence[Any], params: dict[str, Any], arrays: list[Any], device: int,
           target: DeviceArray | None) -> OperatorProgram:
    """The program of an operator.

    Raises:
        Unsupported: the IR or a family of kernels cannot express it.
    """
    graph = InterleavedGraph()
    namespace = lower_for_device(graph, current_runtime().assertions.address(device))
    leaves: list[Value] = []
    for number, each in enumerate(arrays):
        if each.__class__ is not DeviceArray and memory_order(each) is None:
            raise Unsupported("an array of the host with gaps")
        if not _computes(each.dtype):
            raise Unsupported(f"elements of {each.dtype}")
        leaves.append(input_for_array(graph, each, number))
    views = {id(each): view_as_array(graph, leaf, each) for each, leaf in zip(arrays, leaves, strict=True)}
    metas, lists = _metadata(op, inputs, params)
    if metas is not None and op.name in convolutions.OPERATORS:
        metas = convolutions.in_memory_format(metas, inputs)
    given = {name: _lowered_param(value, views) for name, value in params.items()}
    order = _elementwise_order(op, metas, target, given)
    if order is not None:
        shape = target.shape if target is not None else metas[0].shape  # type: ignore[index]
        views = {key: graph.permute(graph.expand(view, shape), order) if view.shape else view
                 for key, view in views.items()}
    values, numbers, narrow = _operands(op, inputs, params, graph, views, len(arrays))
    flash = flash_operands(op, inputs)
    if flash is not None:  # whose gradient saves nothing
        lists = {}
    filled: dict[str, list[Any]] = {name: list(given[name]) for name in lists}
    if narrow is not None and op.promoting_params:
        given = round_params(op, given, narrow)
    if flash is not None:
        out, _ = flash_attention.attention(graph, [views[id(each)] for each in flash], float(params["scale"]),
                                           bool(params["is_causal"]))
        results = [out]
    else:
        results = lower_operator(graph, op, values, {**given, **filled})
    if narrow is not None:
        results = [graph.cast(v, narrow) if v.dtype == np.float32 else v for v in results]
    if target is not None:
        return _written(graph, results[0], leaves, target, arrays, numbers, device, op, namespace.effects,
                        order is not None)
    if metas is None:
        if op.kind == VIEW:
            raise Unsupported(f"a copy by the view operator {op.name}")
        metas = [Metadata(tuple(value.shape), value.dtype) for value in results]
    if len(results) != len(metas):
        raise Unsupported(f"{len(results)} results instead of {len(metas)}")
    targets, laid_out = [], []
    for value, meta in zip(results, metas, strict=True):
        one, result = _laid_out(graph, value, meta, order)
        targets.append(one)
        laid_out.append(result)
    saved: list[tuple[str, _Result]] = []
    for name, count in lists.items():
        for value in filled[name][count:]:
            one, result = _laid_out(graph, value, Metadata(tuple(value.shape), value.dtype))
            targets.append(one)
            saved.append((name, result))
    program = DeviceProgram(graph, targets, graph.conditions, namespace.effects, GpuFamilies(
        convolutions=convolution_library(current_runtime(), device)))
    return OperatorProgram(LoadedProgram(program, current_runtime(), device, op.name), list(program.plan.inputs),
                           numbers, laid_out, saved)


def flash_operands(op: Op, inputs: Sequence[Any]) -> list[DeviceArray] | None:
    """Query, key and value of attention that the flash kernel computes; None for anything else."""
    if op.name != "_flash_attention" or any(x is not None for x in inputs[3:]):
        return None
    arrays = [x._array for x in inputs[:3]]
    applies = flash_attention.applies([each.shape for each in arrays], [each.dtype for each in arrays])
    return arrays if applies else None


def _elementwise_order(op: Op, metas: list[Metadata] | None, target: DeviceArray | None, given: dict[str, Any]
                       ) -> list[int] | None:
    """The order of dimensions in memory in which an elementwise operator is computed; None for that of the results."""
    if op.kind != ELEMENTWISE and op.name not in _ELEMENT_BY_ELEMENT:
        return None
    if any(isinstance(each, (Value, list)) for each in given.values()):
        return None
    if target is not None:
        stand_in: np.ndarray = target
    else:
        if not metas or metas[0].strides is None or any(each[::2] != metas[0][::2] for each in metas):
            return None
        size = metas[0].dtype.itemsize
        stand_in = np.lib.stride_tricks.as_strided(np.empty(1, metas[0].dtype), metas[0].shape,
                                                   [s * size for s in metas[0].strides])
    order = memory_order(stand_in)
    return None if order is None or order == sorted(order) else order


def _computes(dtype: np.dtype) -> bool:
    return dtype.char in _COMPLEX or dtype.kind in "biuf" or dtype == dtypes.BFLOAT16


def _metadata(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> tuple[list[Metadata] | None, dict[str, int]]:
    """The results' metadata, where a rule tells it, and for each parameter that is a list of arrays how many it has."""
    lists = {name: len(value) for name, value in params.items() if value.__class__ is list and (
        not value or isinstance(value[0], np.ndarray))}
    found = infer(op, inputs, {**params, **{name: list(params[name]) for name in lists}})
    return found, lists


def _operands(op: Op, inputs: Sequence[Any], params: dict[str, Any], graph: Graph, views: dict[int, Value],
              first: int) -> tuple[list[Any], list[Callable[[Any], np.ndarray]],
                                                np.dtype | None]:
    """The operands as IR values in the dtype that is computed in, the numbers among them, and the narrow dtype."""
    computed, narrow = promoted_dtypes(op, inputs, params)
    values: list[Any] = []
    numbers: list[Callable[[Any], np.ndarray]] = []
    for x, a in zip(inputs, computed, strict=True):
        if isinstance(x, Tensor):
            value = views[id(x._array)]
            if narrow is not None and value.dtype != narrow and value.dtype not in dtypes.NARROW and (
                    a.dtype == np.float32):
                value = graph.cast(value, narrow)
            values.append(graph.cast(value, a.dtype))
        elif _is_number(x):
            if not isinstance(a, (np.ndarray, np.generic)) or not _computes(a.dtype):
                raise Unsupported("a number that is no operand")
            values.append(graph.input(first + len(numbers), (), a.dtype))
            if narrow is not None and op.inputs[len(values) - 1] not in op.unrounded:
                numbers.append(partial(round_scalar, narrow=narrow))
            else:
                numbers.append(partial(scalar_operand, to=a.dtype))
        elif isinstance(a, (np.ndarray, np.generic)):
            values.append(graph.constant(np.asarray(a)))
        else:
            values.append(a)
    return values, numbers, narrow


def promoted_dtypes(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> tuple[list[Any], np.dtype | None]:
    """Arrays of one element in the dtypes that an operator computes in, and the narrow dtype of its results."""
    units = [_unit(x, 1) if isinstance(x, Tensor) else x for x in inputs]
    token = no_dispatch.set(True)
    try:
        with no_grad():
            return promoted_operands(_unchecked(op), units, params)
    finally:
        no_dispatch.reset(token)


def _lowered_param(value: Any, views: dict[int, Value]) -> Any:
    if isinstance(value, Tensor):
        value = value._array
    if isinstance(value, np.ndarray):
        return views[id(value)]
    if value.__class__ is list or value.__class__ is tuple:
        return value.__class__(_lowered_param(each, views) for each in value)
    return value


def _laid_out(graph: InterleavedGraph, value: Value, meta: Metadata, computed: list[int] | None = None
              ) -> tuple[Target, _Result]:
    """The target of a result: the elements in the order that they have in memory.

    Args:
        computed: the order of dimensions that the value has already.
    """
    if value.dtype != meta.dtype:
        value = graph.cast(value, meta.dtype)
    if computed is not None:
        back = [computed.index(d) for d in range(len(computed))]
        value = graph.permute(value, back)
    if value.shape != meta.shape:
        raise Unsupported(f"a result of shape {value.shape} instead of {meta.shape}")
    size = meta.dtype.itemsize
    stand_in = np.empty(0, meta.dtype)
    strides = None if meta.strides is None else tuple(s * size for s in meta.strides)
    if strides is None or not value.size:
        steps, step = [], size
        for n in reversed(meta.shape):
            steps.append(step)
            step *= max(n, 1)
        strides = strides or tuple(reversed(steps))
        return Target(_in_memory(graph, value)), _Result(meta.shape, meta.dtype, strides)
    stand_in = np.lib.stride_tricks.as_strided(np.empty(1, meta.dtype), meta.shape, strides)
    order = memory_order(stand_in)
    if order is None:
        raise Unsupported(f"a result of strides {meta.strides}")
    return Target(_in_memory(graph, graph.permute(value, order))), _Result(meta.shape, meta.dtype, strides)


def _in_memory(graph: InterleavedGraph, value: Value) -> Value:
    """What a program returns for a value: complex numbers as pairs of real ones."""
    return graph.as_reals(value) if value.dtype.kind == "c" else value


def _written(graph: InterleavedGraph, value: Value, leaves: list[Value], target: DeviceArray, arrays: list[Any],
             numbers: list[Any], device: int, op: Op, effects: Sequence[Value], ordered: bool) -> OperatorProgram:
    """The program that writes a result over the first input.

    Args:
        ordered: whether the value's dimensions have the order of the target's memory already.
    """
    order = memory_order(target)
    number = next(i for i, each in enumerate(arrays) if each is target)
    if order is None or any(each is not target and each.__class__ is DeviceArray and each.memory is target.memory
                            for each in arrays):
        raise Unsupported("a target with gaps, or one that shares memory with an operand")
    if value.dtype != target.dtype:
        value = graph.cast(value, target.dtype)
    if ordered:
        value = graph.permute(value, [order.index(d) for d in range(len(order))])
    if value.shape != target.shape:
        value = graph.expand(value, target.shape)
    leaf = leaves[number] if target.dtype.kind != "c" else graph.memory_of(leaves[number])
    one = Target(_in_memory(graph, graph.permute(value, order)), leaf)
    program = DeviceProgram(graph, [one], graph.conditions, effects)
    return OperatorProgram(LoadedProgram(program, current_runtime(), device, f"{op.name}_"),
                           list(program.plan.inputs), numbers, [], [])


__all__ = ["OperatorProgram", "clear", "flash_operands", "kept_number", "promoted_dtypes", "refusals", "run"]
