"""Persistent cache of execution plans: a later process runs the same graph without planning it.

The key of an entry is the graph, its targets, the processor, the versions and the package's sources. An entry has for
each step the code library, the function, its plan words and the locations of its operands; compiled code has cache
entries of its own. Fallback kernels are stored as the number of their value in the graph.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ...dtypes import BFLOAT16
from ...kernels import threads
from ...runtime import compilation, debug_output, launch, target
from ...runtime.cache_store import PLANS
from ...runtime.compilation import Library, Symbol, Word
from ..graph.extern_kernels import ExternKernel, FallbackKernel
from ..graph.target import Target
from ..graph.value import Graph, Value
from .steps import Call, ExecutionPlan, Step, View

#: environment variables that plans do not depend on
_IRRELEVANT = frozenset({"FLAMBEAU_CACHE_DIR", "FLAMBEAU_CACHE_LIMIT", "FLAMBEAU_DEBUG"})


def cache_key(graph: Graph, targets: Sequence[Target], conditions: Sequence[tuple[Value, bool]],
         effects: Sequence[Value] = ()) -> str:
    """The cache key of a program."""
    kinds: dict[np.dtype, str] = {}
    lines = [environment()]
    for value in graph.values:
        kind = kinds.get(value.dtype)
        if kind is None:
            kind = kinds[value.dtype] = _dtype_name(value.dtype)
        lines.append(f"{value.op} {[x.number for x in value.args]} {value.attrs!r} {value.shape} {kind}")
    lines += [f"{t.value.number} {None if t.overwrites is None else t.overwrites.number} {t.region}" for t in targets]
    lines += [f"{value.number} {outcome}" for value, outcome in conditions]
    lines.append(f"{[value.number for value in effects]} {sorted(value.number for value in graph.runtime_constants)}")
    if graph.phases:
        lines.append(f"{sorted((value.number, phase) for value, phase in graph.phases.items())}")
    return PLANS.key("\n".join(lines))


def environment() -> str:
    """Everything that a plan depends on except the graph and the package's sources.

    That is the versions of Python, NumPy and LLVM, the processor, the number of threads, and `FLAMBEAU_` variables.
    """
    return _environment(threads.count(), tuple(sorted((k, v) for k, v in os.environ.items()
                                                  if k.startswith("FLAMBEAU_") and k not in _IRRELEVANT)))


@cache
def _environment(count: int, variables: tuple[tuple[str, str], ...]) -> str:
    return repr((sys.version, np.__version__, target.host(), count, variables))


def _dtype_name(dtype: np.dtype) -> str:
    return "bfloat16" if dtype == BFLOAT16 else dtype.str


def _dtype(name: str) -> np.dtype:
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


# ----- writing ------------------------------------------------------------------------------


def write(entry: str, execution_plan: ExecutionPlan, graph: Graph) -> None:
    """Write an execution plan, unless it calls a fallback kernel that is not in the graph."""
    libraries: dict[int, tuple[int, Library]] = {}

    def library_index(library: Library) -> int:
        return libraries.setdefault(id(library), (len(libraries), library))[0]

    def encode_word(x: Word) -> Any:
        return (library_index(x.library), x.name) if isinstance(x, Symbol) else x

    def encode_view(x: View) -> tuple:
        entry, offset, shape, strides, dtype = x
        return entry, offset, shape, strides, _dtype_name(dtype)

    externs = {id(value.attrs): value.number for value in graph.values if value.op == "extern"}
    steps: list[tuple] = []
    for step in execution_plan.steps:
        if isinstance(step, Call):
            number = externs.get(id(step.extern))
            if number is None:
                return
            steps.append((number, [*map(encode_view, step.inputs)], [*map(encode_view, step.outputs)], step.kernel))
            continue
        launched: Any = step.launch
        if isinstance(launched, launch.Condition):
            encoded: Any = launched.outcome
        else:
            encoded = (library_index(launched.library), encode_word(launched.body), launched.chunks,
                       [*map(encode_word, launched.words)], encode_word(launched.then), launched.scratch)
        steps.append((encoded, step.pointers, step.kernel))
    constants = [(_dtype_name(a.dtype), a.shape, a.tobytes()) for a in execution_plan.constants]
    output_specs = [(shape, _dtype_name(dtype)) for shape, dtype in execution_plan.output_specs]
    code = [(library.recipe, library.names) for _, library in libraries.values()]
    plan = execution_plan
    PLANS.write(entry, marshal.dumps((plan.inputs, output_specs, constants, plan.arena, plan.arena_entry, plan.entries,
                                      code, steps)))


# ----- reading ------------------------------------------------------------------------------


def read(entry: str, graph: Graph) -> ExecutionPlan | None:
    """Read an execution plan; None where there is none, or where its code is not cached."""
    if debug_output.is_enabled("llvm", "asm"):  # output of the compilation, which a cached plan does not have
        return None
    payload = PLANS.read(entry)
    if payload is None:
        return None
    try:
        return _read(payload, graph)
    except (ValueError, TypeError, EOFError, LookupError, AttributeError):  # an intact file that is not a plan
        PLANS.discard(entry)
        return None


def _read(payload: bytes, graph: Graph) -> ExecutionPlan | None:
    inputs, output_specs, constants, arena, arena_entry, entries, code, steps = marshal.loads(payload)
    libraries = [compilation.load_cached(recipe, names) for recipe, names in code]
    if None in libraries:
        return None
    return ExecutionPlan(inputs, [(shape, _dtype(name)) for shape, name in output_specs],
                         [np.frombuffer(bits, _dtype(name)).reshape(shape) for name, shape, bits in constants],
                         arena, arena_entry, entries, [_step(step, libraries, graph) for step in steps])


def _step(step: tuple, libraries: Sequence[Any], graph: Graph) -> Step | Call:
    if len(step) == 4:
        number, inputs, outputs, kernel = step
        extern: FallbackKernel | ExternKernel = graph.values[number].attrs
        return Call(extern, [*map(_view, inputs)], [*map(_view, outputs)], kernel)
    encoded, pointers, kernel = step
    if isinstance(encoded, bool):
        return Step(launch.Condition(encoded), pointers, kernel)
    library, body, chunks, words, then, scratch = encoded

    def decode_word(x: Any) -> Word:
        return Symbol(libraries[x[0]], x[1]) if isinstance(x, tuple) else x

    decoded = launch.Launch(libraries[library], decode_word(body), chunks, tuple(map(decode_word, words)),
                            decode_word(then), scratch)
    return Step(decoded, pointers, kernel)


def _view(encoded: tuple) -> View:
    entry, offset, shape, strides, dtype = encoded
    return entry, offset, shape, strides, _dtype(dtype)


__all__: list[Any] = ["cache_key", "environment", "read", "write"]
