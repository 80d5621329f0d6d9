"""Derivative rules on a device as one program: rules that take many operators, traced over IR values.

A rule that is differentiated again, or whose saved values are not all arrays of the device, runs on tensors.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.array import DeviceArray
from ...backends.cuda_devices.launch_recording import LaunchRecording, Unrecordable
from ...engine.nodes.op_node import OpNode
from ...ir.gpu import flash_attention
from ...ir.gpu.device_program import DeviceProgram
from ...ir.gpu.loaded_program import LoadedProgram
from ...ir.gpu.lowering.namespace import DeviceNamespace
from ...ir.graph.inputs import input_for_array, view_as_array
from ...ir.graph.value import Graph, Unsupported, Value
from ...kernels.memory_format import is_dense
from ...modes import active_tracer, special
from ..shape.inference import Metadata
from ..tensor import Tensor, wrap
from .execution import launch
from .operator_programs import MAX_PROGRAMS, OperatorProgram, _as_result, _key, _laid_out, flash_operands

#: operators whose rules are programs: as operators they would be four launches or more
OPERATORS = frozenset((
    "_batch_norm", "_flash_attention", "_group_norm", "_layer_norm", "addcdiv", "addcmul", "acos", "acosh", "atan2",
    "binary_cross_entropy",
    "celu", "clamp", "clamp_max", "elu", "erfinv", "gelu", "hardswish", "huber_loss", "mish", "pow", "prelu",
    "soft_margin_loss", "std"))
#: of these, those whose saved numbers are seldom others in the next call
_OF_NUMBERS = frozenset(("pow",))
#: the run of a program whose launches are recorded
_RECORDED_RUN = 2


class _Rule:
    """A rule's program.

    Attributes:
        program: it.
        places: the inputs that its results are the gradients of.
        runs: how often it ran.
        launch: the launches of an earlier run as a function of the arrays; None: there is none yet.
    """

    __slots__ = ("launch", "places", "program", "runs")

    def __init__(self, program: OperatorProgram, places: list[int]) -> None:
        self.program, self.places, self.runs = program, places, 0
        self.launch: Callable[..., Any] | None = None


_programs: OrderedDict[Any, _Rule | None] = OrderedDict()
_of_runtime: list[Any] = [None]


def run(node: OpNode, g: Any) -> Any:
    """The gradients of a node's inputs by a program, or by operators of tensors.

    Args:
        node: of one of `OPERATORS`.
        g: of its result.
    """
    unpacked = node.unpack(True) if node.plan.saves_tensors else []
    found = gradients(node, g, unpacked)
    return node.vjp(g, True, None, unpacked) if found is None else found


def gradients(node: OpNode, g: Tensor, unpacked: Sequence[Any]) -> list[Any] | None:
    """The gradients of a node's inputs, None for those that need none; None where no program computes them.

    Args:
        node: of one of `OPERATORS`.
        g: of its result.
        unpacked: its saved values.
    """
    runtime = current_runtime()
    if runtime is None or runtime.computes_on_host or g._array.__class__ is not DeviceArray or not g._array.size or (
            special[0] and active_tracer.get() is not None):  # a tracer sees operators
        return None
    if _of_runtime[0] is not runtime:
        _of_runtime[0] = runtime
        _programs.clear()
    arrays: list[Any] = []
    device = g._array.torch_device.index
    try:
        key = (node.op.name, node.plan.needs, device, _key(g, arrays), tuple([_key(x, arrays) for x in unpacked]),
               tuple([_key(x, arrays) for x in node.consts]))
    except Unsupported:
        return None
    if any(each.__class__ is not DeviceArray or each.torch_device.index != device for each in arrays) or (
            node.op.name not in _OF_NUMBERS and any(x.__class__ is float or x.__class__ is int for x in unpacked)):
        return None
    if key not in _programs:
        try:
            _programs[key] = _built(node, g, unpacked, arrays, device)
        except Unsupported:
            _programs[key] = None
        if len(_programs) > MAX_PROGRAMS:
            _programs.popitem(last=False)
    found = _programs[key]
    if found is None:
        return None
    results = found.launch(*arrays) if found.launch is not None else None
    if results is None:
        results = _launched(found, node, g, arrays, device)
    elif results.__class__ is not tuple:
        results = (results,)
    gradients: list[Any] = [None] * len(node.edges)
    for place, array in zip(found.places, results, strict=True):
        gradients[place] = wrap(array)
    return gradients


def _launched(found: _Rule, node: OpNode, g: Tensor, arrays: list[Any], device: int) -> tuple[DeviceArray, ...]:
    """The results of a program; the second time its launches are recorded, for later calls."""
    runtime = current_runtime()
    program = found.program

    def start() -> tuple[DeviceArray, ...]:
        new = program.program.run([arrays[i] for i in program.order])
        assert new is not None
        return tuple([_as_result(array, each) for array, each in zip(new, program.results, strict=True)])

    def run() -> tuple[DeviceArray, ...]:
        found.runs += 1
        if found.runs != _RECORDED_RUN or not runtime.arrays_at_addresses or runtime.is_capturing(
                device, runtime.current_stream(device)):
            return start()
        with LaunchRecording(runtime, device) as recording:
            results = start()
        try:
            found.launch = recording.launch(arrays, results)
        except Unrecordable:
            pass
        return results

    results: tuple[DeviceArray, ...] = launch(f"{node.op.name}_backward", g._device, [wrap(x) for x in arrays], run)
    return results


def _built(node: OpNode, g: Tensor, unpacked: Sequence[Any], arrays: Sequence[DeviceArray], device: int
           ) -> _Rule:
    """The program of a rule.

    Raises:
        Unsupported: the IR or a family of kernels cannot express it.
    """
    fix = node.fix
    graph: Any = Graph()  # of real numbers, which are stored as they are computed
    if (fix is not None and fix[2]) or any(each.dtype.kind == "c" for each in arrays):
        raise Unsupported("a rule of complex numbers")
    namespace = graph.__dict__["namespace"] = DeviceNamespace(graph)
    views = {id(each): view_as_array(graph, input_for_array(graph, each, number), each)
             for number, each in enumerate(arrays)}

    def lowered(x: Any) -> Any:
        if isinstance(x, Tensor):
            x = x._array
        if x.__class__ is DeviceArray:
            value = views[id(x)]
            return graph.cast(value, np.dtype(np.float32)) if value.dtype in dtypes.NARROW else value
        return [lowered(each) for each in x] if x.__class__ is list else x

    flash = flash_operands(node.op, unpacked) if len(unpacked) >= 3 else None
    if flash is not None and g._array.dtype == flash[0].dtype:
        operands = [views[id(each)] for each in flash]
        scale, causal = (node.consts[[name for _, name in node.plan.consts].index(each)]
                         for each in ("scale", "is_causal"))
        out, sums = flash_attention.attention(graph, operands, float(scale), bool(causal))
        computed = flash_attention.gradients(graph, operands, views[id(g._array)], out, sums, float(scale),
                                             bool(causal))
        wanted = [x if need else None for x, need in zip(computed, node.plan.needs, strict=False)]
        return _rule_of(graph, node, g, [*wanted, *[None] * (len(node.edges) - 3)], arrays, device)
    values = (lowered(g), namespace, node.plan.needs, *map(lowered, unpacked), *map(lowered, node.consts))
    try:
        results = _results(node, values)
        if fix is not None and fix[0] is not None:
            results = [x if x is None or x.shape == shape else namespace.sum_to_size(x, shape)
                       for x, shape in zip(results, fix[0], strict=True)]
    except (AttributeError, TypeError, ValueError, IndexError, RuntimeError) as error:
        raise Unsupported(f"{node.op.name}: {error}") from error
    return _rule_of(graph, node, g, results, arrays, device)


def _rule_of(graph: Any, node: OpNode, g: Tensor, results: Sequence[Any], arrays: Sequence[DeviceArray], device: int
             ) -> _Rule:
    """The program of gradients.

    Args:
        results: their values; None for those that are not needed.
    """
    targets, laid_out, places = [], [], []
    for place, value in enumerate(results):
        if value is None:
            continue
        if not isinstance(value, Value):
            raise Unsupported("a gradient that is no array")
        dtype = _dtype_of(place, value, node, g)
        one, result = _laid_out(graph, value, Metadata(tuple(value.shape), dtype, _strides(value.shape, g, arrays)))
        targets.append(one)
        laid_out.append(result)
        places.append(place)
    program = DeviceProgram(graph, targets, graph.conditions)
    if program.guards:
        raise Unsupported("a condition on data")
    return _Rule(OperatorProgram(LoadedProgram(program, current_runtime(), device, f"{node.op.name}_backward"),
                                 list(program.plan.inputs), [], laid_out, []), places)


def _results(node: OpNode, values: tuple[Any, ...]) -> list[Any]:
    """The gradients of a node's inputs by its formulas, None for those that need none."""
    plan = node.plan
    result: list[Any] = [None] * len(node.edges)
    if plan.joint is not None:
        function, pick = plan.joint
        found = list(function(*pick(values)))
        result[:len(found)] = found
        return [x if need else None for x, need in zip(result, plan.needs, strict=True)]
    for i, function, pick in plan.steps:
        if plan.needs[i]:
            result[i] = function(*pick(values))
    return result


def _dtype_of(place: int, value: Value, node: OpNode, g: Tensor) -> np.dtype:
    """The dtype of a gradient: the input's, where that is known, else that of the result's gradient."""
    types = None if node.fix is None else node.fix[1]
    if types is not None and types[place] is not None:
        found: np.dtype = types[place]
        return found
    return g._array.dtype if value.dtype == np.float32 and g._array.dtype in dtypes.NARROW else value.dtype


def _strides(shape: Sequence[int], g: Tensor, arrays: Sequence[DeviceArray]) -> tuple[int, ...] | None:
    """The strides of a gradient in elements: those of the dense arrays of the result's shape; None for row-major.

    Raises:
        Unsupported: these have several layouts.
    """
    same = {tuple(step // each.itemsize for step in each.strides): each for each in arrays
            if each.shape == g._array.shape and is_dense(each)}
    if len(same) > 1:
        raise Unsupported("several layouts")
    if tuple(shape) != g._array.shape or not same:
        return None
    (strides, array), = same.items()
    return None if array.flags.c_contiguous else strides


__all__ = ["OPERATORS", "gradients", "run"]
