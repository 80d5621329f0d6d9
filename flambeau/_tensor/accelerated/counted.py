"""Operators whose results have as many elements as the device's elements say: the host reads one number.

A program counts, the host waits for the number and makes results of that size, and a second program writes them. Both
have sizes of operands alone in their code, so that another number needs no other program.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.array import DeviceArray
from ...dtypes import BFLOAT16, NARROW
from ...ir.gpu.device_kernels import device_kernel
from ...ir.gpu.device_program import DeviceProgram
from ...ir.gpu.loaded_program import LoadedProgram
from ...ir.gpu.lowering.namespace import DeviceNamespace, lower_for_device
from ...ir.graph.inputs import input_for_array, view_as_array
from ...ir.graph.target import Target
from ...ir.graph.value import BOOL, FLOAT32, INT64, Graph, Unsupported, Value
from ...ops.declare import Op
from ..tensor import Tensor

#: programs that are kept
MAX_PROGRAMS = 512
_UINT8 = np.dtype(np.uint8)
Lowering = Callable[..., Sequence[Value]]


class _Loaded(NamedTuple):
    program: LoadedProgram
    order: list[int]


_programs: OrderedDict[Any, _Loaded | None] = OrderedDict()
_of_runtime: list[Any] = [None]


def _run(name: str, lowering: Lowering, arrays: Sequence[DeviceArray], device: int, key: Any = (),
         outputs: Sequence[DeviceArray] | None = None) -> list[DeviceArray]:
    """Run a program of the values that a function makes of the arrays'.

    Args:
        name: of the program; with `key` and the arrays' layouts it tells what the function makes.
        outputs: arrays to write, instead of new ones; they may be shorter than the program's results.

    Raises:
        Unsupported: there is no kernel.
    """
    runtime = current_runtime()
    layouts = tuple([(each.shape, each.strides, each.dtype.str, each.dtype.names) for each in arrays])
    if _of_runtime[0] is not runtime:
        _of_runtime[0] = runtime
        _programs.clear()
    wanted = name, device, layouts, key
    if wanted not in _programs:
        try:
            _programs[wanted] = _build(name, lowering, arrays, device)
        except (Unsupported, AttributeError, TypeError, ValueError, IndexError):
            _programs[wanted] = None
        if len(_programs) > MAX_PROGRAMS:
            _programs.popitem(last=False)
    found = _programs[wanted]
    if found is None:
        raise Unsupported(name)
    results = found.program.run([arrays[i] for i in found.order], outputs)
    assert results is not None
    return results


def _build(name: str, lowering: Lowering, arrays: Sequence[DeviceArray], device: int) -> _Loaded:
    runtime, graph = current_runtime(), Graph()
    namespace = lower_for_device(graph, runtime.assertions.address(device))
    if any(each.dtype.kind == "c" or (each.dtype.kind == "V" and each.dtype != BFLOAT16) for each in arrays):
        raise Unsupported("elements of such a dtype")
    views = [view_as_array(graph, input_for_array(graph, each, i), each) for i, each in enumerate(arrays)]
    targets = [Target(graph.copy(value)) for value in lowering(namespace, *views)]
    program = DeviceProgram(graph, targets, graph.conditions, namespace.effects)
    return _Loaded(LoadedProgram(program, runtime, device, name), list(program.plan.inputs))


def _read(array: DeviceArray) -> int:
    """A number of the device, for which the host waits."""
    return int(current_runtime().download(array)[0])


# ----- masks -----


def _true_elements(xp: DeviceNamespace, x: Value) -> list[Value]:
    g = xp.graph
    flat = x if x.ndim else g.reshape(x, (1,))
    wide = g.cast(flat, FLOAT32) if flat.dtype in NARROW else flat
    mask = flat if flat.dtype == BOOL else g.apply("ne", wide, g.constant(0, wide.dtype))
    mask = g.copy(mask)
    return [mask, *xp.counted(mask)]


def _places(xp: DeviceNamespace, mask: Value, sums: Value, number: Value) -> list[Value]:
    return device_kernel("places", [mask, sums, number], [((mask.size * mask.ndim,), INT64)])


def _nonzero(x: DeviceArray, device: int) -> list[DeviceArray]:
    runtime = current_runtime()
    if x.dtype.kind == "c":
        raise Unsupported("complex numbers")
    mask, sums, number = _run("count_nonzero", _true_elements, [x], device)
    count = _read(number)
    if not x.ndim or not count:
        return [runtime.empty(device, (count, x.ndim), INT64)]
    out = runtime.empty(device, (x.ndim, count), INT64)
    _run("nonzero", _places, [mask, sums, number], device, outputs=[out.reshape(-1)])
    return [out.transpose(1, 0)]


def _selected(xp: DeviceNamespace, x: Value, mask: Value, sums: Value) -> list[Value]:
    x = xp.graph.copy(xp.graph.expand(x, mask.shape))
    return device_kernel("select_true", [x, mask, sums], [((mask.size,), x.dtype)])


def _masked_select(x: DeviceArray, mask: DeviceArray, device: int) -> list[DeviceArray]:
    if mask.dtype != BOOL:
        raise Unsupported("a mask of another dtype")
    shape = np.broadcast_shapes(x.shape, mask.shape)

    def counted(xp: DeviceNamespace, given: Value) -> list[Value]:
        whole = xp.graph.copy(xp.graph.reshape(xp.graph.expand(given, shape), shape or (1,)))
        return [whole, *xp.counted(whole)]

    whole, sums, number = _run("count_true", counted, [mask], device, shape)
    out = current_runtime().empty(device, (_read(number),), x.dtype)
    if out.size:
        _run("masked_select", _selected, [x, whole, sums], device, outputs=[out])
    return [out]


# ----- unique elements -----


def _runs(xp: DeviceNamespace, flat: Value) -> tuple[Value, Value, Value, Value]:
    """Of neighbours that are equal: whether each begins a run, the runs before each tile, their number, its run."""
    g, n = xp.graph, flat.size
    wide = g.cast(flat, FLOAT32) if flat.dtype in NARROW else flat
    first = g.expand(g.constant(True, BOOL), (1,))
    if n > 1:
        first = g.cat([first, g.apply("ne", g.slice(wide, 0, 1, n - 1), g.slice(wide, 0, 0, n - 1))], 0)
    first = g.copy(first)
    sums, number = xp.counted(first)
    rank, _ = xp._ranks(first)
    run = g.apply("sub", g.apply("add", rank, g.cast(first, INT64)), 1)
    return first, sums, number, run


def _unique_parts(xp: DeviceNamespace, x: Value) -> list[Value]:
    g = xp.graph
    values, order = xp._sorted_rows(g.copy(g.reshape(x, (1, x.size))), False)
    flat = g.reshape(values, (x.size,))
    first, sums, number, run = _runs(xp, flat)
    inverse = xp.scattered(run, g.reshape(order, (x.size,)), (x.size,), 0)
    return [flat, first, sums, number, g.reshape(inverse, x.shape)]


def _consecutive_parts(xp: DeviceNamespace, x: Value) -> list[Value]:
    flat = xp.graph.reshape(x, (x.size,))
    first, sums, number, run = _runs(xp, flat)
    return [flat, first, sums, number, xp.graph.reshape(run, x.shape)]


def _of_runs(xp: DeviceNamespace, flat: Value, first: Value, sums: Value, number: Value) -> list[Value]:
    n = flat.size
    [values] = device_kernel("select_true", [flat, first, sums], [((n,), flat.dtype)])
    [starts] = device_kernel("places", [first, sums, number], [((n,), INT64)])
    return [values, *device_kernel("run_lengths", [starts, number], [((n,), INT64)])]


def _unique(x: DeviceArray, device: int, name: str, lowering: Lowering) -> list[DeviceArray]:
    flat, first, sums, number, inverse = _run(name, lowering, [x], device)
    count, runtime = _read(number), current_runtime()
    values, counts = (runtime.empty(device, (count,), dtype) for dtype in (x.dtype, INT64))
    _run("runs", _of_runs, [flat, first, sums, number], device, outputs=[values, counts])
    return [values, inverse, counts]


# ----- counts -----


def _limits(xp: DeviceNamespace, x: Value) -> list[Value]:
    return [xp.graph.reshape(xp.graph.cast(xp.graph.reduce(name, x, (0,)), INT64), (1,)) for name in ("min", "max")]


def _bincount(x: DeviceArray, weights: DeviceArray | None, minlength: int, device: int) -> list[DeviceArray]:
    if x.ndim != 1 or x.dtype.kind not in "iu" or minlength < 0 or (
            weights is not None and (weights.shape != x.shape or weights.dtype.kind == "c")):
        raise Unsupported("no vector of integers, or weights of another shape")
    low, high = (_read(each) for each in _run("limits", _limits, [x], device))
    if low < 0:
        raise Unsupported("negative elements")
    length = max(high + 1, minlength)
    bins = 1 << (length - 1).bit_length()  # a program serves many lengths

    def counted(xp: DeviceNamespace, at: Value, *given: Value) -> list[Value]:
        g = xp.graph
        at = g.cast(at, INT64)
        if not given:
            return [xp.counts_of(at, bins)]
        wide = g.cast(given[0], FLOAT32 if given[0].dtype == FLOAT32 else np.dtype(np.float64))
        return [xp.scattered(g.copy(wide), at, (bins,), 0)]

    [counts] = _run("bincount", counted, [x, *([] if weights is None else [weights])], device, bins)
    if bins == length:
        return [counts]
    out = current_runtime().empty(device, (length,), counts.dtype)
    current_runtime().copy_between(out, counts[:length])
    return [out]


def run(op: Op, inputs: Sequence[Any], params: dict[str, Any], device: int) -> Any:
    """The results of an operator, in a list; NotImplemented for other operators, or where there is no kernel."""
    if op.name not in _OPERATORS:
        return NotImplemented
    arrays: list[Any] = [x._array if isinstance(x, Tensor) else x for x in inputs]
    if any(each is not None and (not isinstance(each, np.ndarray) or not prod(each.shape)) for each in arrays):
        return NotImplemented
    arrays = [each if each is None or each.__class__ is DeviceArray else current_runtime().upload(
        np.ascontiguousarray(each), device, blocking=False) for each in arrays]
    try:
        if op.name == "masked_select":
            return _masked_select(arrays[0], arrays[1], device)
        if op.name == "bincount":
            return _bincount(arrays[0], arrays[1] if len(arrays) > 1 else None, params.get("minlength", 0), device)
        if op.name == "_unique2":
            return _unique(arrays[0], device, "unique", _unique_parts)
        if op.name == "unique_consecutive":
            if params.get("dim") is not None:
                return NotImplemented
            return _unique(arrays[0], device, "unique_consecutive", _consecutive_parts)
        return _nonzero(arrays[0], device)
    except Unsupported:
        return NotImplemented


_OPERATORS = frozenset(("nonzero", "argwhere", "masked_select", "_unique2", "unique_consecutive", "bincount"))

__all__ = ["run"]
