"""The records of all operators as GPU programs; `python -m tests.ir.gpu.operators [--assemble]` goes through all.

A record's function with its gradients is traced as `compile` traces it. Instead of a program of the CPU the graph
becomes a list of launches, which the emulator runs on random arrays; the reference evaluates the graph value by value.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import flambeau as torch
from flambeau.codegen.gpu.emulation import scalar_evaluator
from flambeau.codegen.gpu.kernel_ir import Kernel
from flambeau.codegen.scalar import scalar_ir
from flambeau.dtypes import BFLOAT16, NARROW, cast, to_bfloat16, widen
from flambeau.ir.gpu.device_program import DeviceProgram
from flambeau.ir.graph.extern_kernels import ExternKernel
from flambeau.ir.graph.value import Graph, Unsupported, Value
from flambeau.ir.kernels.families import CPU
from flambeau.ir.schedule import program
from flambeau.runtime import launch
from flambeau.runtime.launch import Spec
from tests.compiler.test_operators import applied, others, points, with_gradients
from tests.ir.evaluator import elements
from tests.ops.spec import RECORDS, Record, load
from tests.ops.test_generic import samples_of

load()
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool)
_REDUCTIONS = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any,
               "all": np.all, "argmax": np.argmax, "argmin": np.argmin}


class _Captured(BaseException):
    """Ends a compiled call once its graph is known."""


@contextmanager
def _capturing() -> Iterator[list[tuple]]:
    """Graphs that are about to become programs of the CPU."""
    found: list[tuple] = []
    original = program.Program.__init__

    def capture(self: Any, graph: Graph, targets: Any, conditions: Any = (), effects: Any = (), cache_key: Any = None
                ) -> None:
        found.append((graph, list(targets), list(conditions), list(effects)))
        raise _Captured

    program.Program.__init__ = capture
    try:
        yield found
    finally:
        program.Program.__init__ = original


def device_program(record: Record, dtype: Any) -> DeviceProgram | None:
    """The program of a record's first sample and its gradients; None where `compile` has no program of it.

    Raises:
        Unsupported: something in it has no GPU kernel.
    """
    try:
        first = next(iter(samples_of(record, dtype)))
        function = with_gradients(applied(record.name, first))
        tensors = points(first)
    except (StopIteration, RuntimeError, TypeError, NotImplementedError, ValueError):
        return None
    with _capturing() as found, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compiled = torch.compile(function)
            compiled(*tensors)
            compiled(*others(record.name, tensors))
        except _Captured:
            pass
        except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):  # not defined for the dtype
            return None
    return DeviceProgram(*found[0]) if found else None


def random_inputs(made: DeviceProgram) -> dict[int, np.ndarray]:
    """Arrays for the inputs: numbers between 0 and 1, indices 0 and 1."""
    random, arrays = np.random.default_rng(0), {}
    for each in made.schedule.inputs:
        dtype = each.dtype
        values = random.integers(0, 2, each.shape) if dtype.kind in "biu" else random.uniform(0.1, 0.9, each.shape)
        arrays[each.attrs] = to_bfloat16(values.astype("f4")) if dtype == BFLOAT16 else values.astype(dtype)
    return arrays


def reference(graph: Graph, wanted: list[Value], inputs: dict[int, np.ndarray]) -> dict[Value, np.ndarray]:
    """Values of a graph, one after another; narrow floats as float32."""
    found: dict[Value, Any] = {}
    with np.errstate(all="ignore"):
        for value in sorted(_reachable(wanted), key=lambda each: each.number):
            found[value] = _one(graph, value, found, inputs)
    return found


def _reachable(wanted: list[Value]) -> set[Value]:
    seen, stack = set(), list(wanted)
    while stack:
        value = stack.pop()
        if value not in seen:
            seen.add(value)
            stack.extend(value.args)
    return seen


def _one(graph: Graph, value: Value, found: dict[Value, Any], inputs: dict[int, np.ndarray]) -> Any:
    op, args = value.op, [found[each] for each in value.args]
    if op == "input":
        return widen(inputs[value.attrs]) if value.dtype in NARROW else inputs[value.attrs]
    if op == "constant":
        return widen(graph.array(value)) if value.dtype in NARROW else graph.array(value)
    if op == "view":
        return elements(args[0], value.shape, *value.attrs)
    if op == "copy":
        return args[0].copy()
    if op == "matmul":
        if value.dtype in NARROW:  # the sums in float32, rounded once
            sums = np.matmul(args[0].astype("f4"), args[1].astype("f4"))
            return widen(cast(sums, value.dtype)).astype(scalar_evaluator.held(value.dtype))
        return np.matmul(args[0], args[1], dtype=value.dtype)
    if op == "convolve":
        return _convolved(value, [np.ascontiguousarray(each) for each in args])
    if op == "reduce":
        name, axes, shape = value.attrs
        kept = [d for d in range(args[0].ndim) if d not in axes]
        rows = args[0].transpose(*kept, *axes).reshape(*shape, -1)
        return np.asarray(_REDUCTIONS[name](rows, -1), value.dtype).reshape(shape)
    if op == "assemble":
        return _assembled(value, args)
    if op == "extern":
        return _extern(graph, value, args)
    if op == "getitem":
        return args[0][value.attrs]
    inputs_ = [scalar_ir.variable(i, each.dtype) for i, each in enumerate(value.args)]
    node = (scalar_ir.cast(inputs_[0], value.dtype) if op == "cast" else scalar_ir.select(*inputs_) if op == "select"
            else scalar_ir.apply(op, *inputs_))
    known = dict(zip(inputs_, args, strict=True))
    for each in scalar_ir.topological_order([node]):
        if each not in known:
            known[each] = scalar_evaluator.evaluate(each, [known[x] for x in each.args])
    result = np.asarray(known[node])
    if result.size == 1:  # the evaluator's constants have one dimension
        result = result.reshape(())
    return np.broadcast_to(result, value.shape).astype(scalar_evaluator.held(value.dtype))


def _assembled(value: Value, args: list[np.ndarray]) -> np.ndarray:
    has_background, *places = value.attrs
    flat = np.array(args[0] if has_background else np.zeros(value.shape, args[0].dtype)).reshape(-1)
    for piece, (strides, offset) in zip(args[has_background:], places, strict=True):
        flat[elements(np.arange(value.size), piece.shape, strides, offset)] = piece
    return flat.reshape(value.shape)


def _convolved(value: Value, args: list[np.ndarray]) -> np.ndarray:
    """The CPU's kernel."""
    kind, stride, padding, dilation, groups = value.attrs
    out = np.empty(value.shape, value.dtype)
    x, y = args[::-1] if kind == "weight" else args
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    launch.run(CPU.convolution(kind, [Spec.of(out)], Spec.of(x), Spec.of(y), [], None, geometry), [out, x, y])
    return out


def _extern(graph: Graph, value: Value, args: list[np.ndarray]) -> list[np.ndarray]:
    """The CPU's kernel."""
    assert isinstance(value.attrs, ExternKernel)
    outs = [np.empty(each.shape, each.dtype) for each in graph.extern_outputs[value]]
    arrays = [np.ascontiguousarray(_narrowed(each, x.dtype)) for each, x in zip(args, value.args, strict=True)]
    launch.run(value.attrs.launches([Spec.of(each) for each in outs], [Spec.of(each) for each in arrays]),
               [*outs, *arrays])
    return [widen(each) if each.dtype in NARROW else each for each in outs]


def _narrowed(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return to_bfloat16(array) if dtype == BFLOAT16 else array.astype(dtype, copy=False)


def compare(made: DeviceProgram) -> bool:
    """Emulate a program and compare its results; False where a data guard fails.

    Raises:
        AssertionError: they differ.
        RaceError, OutOfBoundsError: the emulator found one.
    """
    inputs = random_inputs(made)
    schedule = made.schedule
    wanted = [each.value for each in schedule.targets] + [value for value, _ in schedule.conditions]
    expected = reference(schedule.graph, wanted, inputs)
    arrays = [inputs[number].copy() for number in made.plan.inputs]
    results = made.emulate(arrays)
    holds = all(bool(np.all(expected[value])) == outcome for value, outcome in schedule.conditions)
    assert (results is not None) == holds
    if results is None:
        return False
    new = [each.value for each in schedule.targets if each.overwrites is None]
    pairs = list(zip(results, new, strict=True))
    pairs += [(arrays[made.plan.inputs.index(each.overwrites.attrs)], each.value) for each in schedule.targets
              if each.overwrites is not None]
    for array, value in pairs:
        narrow = value.dtype in NARROW
        tolerance = 2e-2 if narrow else 1e-9 if value.dtype == np.float64 else 2e-5
        mine = widen(array) if narrow else array
        np.testing.assert_allclose(mine.reshape(value.shape), expected[value], rtol=tolerance, atol=tolerance)
    return True


def main() -> None:
    """Go through all records and dtypes."""
    from tests.codegen.gpu.assembling import assemble

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--assemble", action="store_true", help="assemble all kernels, too")
    parser.add_argument("names", nargs="*", help="records; all, if none is named")
    options = parser.parse_args()
    count: Counter[str] = Counter()
    kernels: dict[str, Kernel] = {}
    for name in options.names or RECORDS:
        for dtype in DTYPES:
            try:
                made = device_program(RECORDS[name], dtype)
                if made is None:
                    count["no program"] += 1
                    continue
                kernels.update((kernel.name, kernel) for kernel in made.kernels)
                count["agrees" if compare(made) else "a data guard fails"] += 1
            except Unsupported:
                count["no GPU kernel"] += 1
            except Exception as error:
                count["differs"] += 1
                print(name, dtype, type(error).__name__, str(error)[:300])
    print(dict(count), len(kernels), "kernels")
    if options.assemble:
        every = list(kernels.values())
        for start in range(0, len(every), 100):
            assemble(every[start:start + 100])
        print("assembled")


if __name__ == "__main__":
    main()
