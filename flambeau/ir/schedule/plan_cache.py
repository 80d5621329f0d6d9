"""Plans kept on disk: the next process that computes the same runs its kernels without planning them anew.

A graph's values, what is wanted of them, the processor and the sources of what plans them name the entry. It says of
each step which function of which library of code it is, with what numbers and where its operands lie; the code has
entries of its own. What is called by the interpreter is named by its value in the graph, which has it.
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
    """The name of the entry for what a program is made of."""
    kinds: dict[np.dtype, str] = {}
    lines = [environment()]
    for value in graph.values:
        kind = kinds.get(value.dtype)
        if kind is None:
            kind = kinds[value.dtype] = _named(value.dtype)
        lines.append(f"{value.op} {[x.number for x in value.args]} {value.attrs!r} {value.shape} {kind}")
    lines += [f"{t.value.number} {None if t.overwrites is None else t.overwrites.number} {t.region}" for t in targets]
    lines += [f"{value.number} {outcome}" for value, outcome in conditions]
    lines.append(f"{[value.number for value in effects]}")
    return PLANS.key("\n".join(lines))


def environment() -> str:
    """What a plan depends on besides its graph and the package's sources.

    That is the versions of Python, NumPy and LLVM, the processor, the number of threads, and `FLAMBEAU_` variables.
    """
    return _environment(threads.count(), tuple(sorted((k, v) for k, v in os.environ.items()
                                                  if k.startswith("FLAMBEAU_") and k not in _IRRELEVANT)))


@cache
def _environment(count: int, variables: tuple[tuple[str, str], ...]) -> str:
    return repr((sys.version, np.__version__, target.host(), count, variables))


def _named(dtype: np.dtype) -> str:
    return "bfloat16" if dtype == BFLOAT16 else dtype.str


def _dtype(said: str) -> np.dtype:
    return BFLOAT16 if said == "bfloat16" else np.dtype(said)


# ----- writing ------------------------------------------------------------------------------


def write(entry: str, execution_plan: ExecutionPlan, graph: Graph) -> None:
    """Keep a program's execution_plan, unless it calls what the graph does not have."""
    libraries: dict[int, tuple[int, Library]] = {}

    def of(library: Library) -> int:
        return libraries.setdefault(id(library), (len(libraries), library))[0]

    def word(x: Word) -> Any:
        return (of(x.library), x.name) if isinstance(x, Symbol) else x

    def view(x: View) -> tuple:
        entry, offset, shape, strides, dtype = x
        return entry, offset, shape, strides, _named(dtype)

    externs = {id(value.attrs): value.number for value in graph.values if value.op == "extern"}
    steps: list[tuple] = []
    for step in execution_plan.steps:
        if isinstance(step, Call):
            number = externs.get(id(step.extern))
            if number is None:
                return
            steps.append((number, [*map(view, step.inputs)], [*map(view, step.outputs)], step.kernel))
            continue
        what: Any = step.launch
        if isinstance(what, launch.Condition):
            said: Any = what.outcome
        else:
            said = (of(what.library), word(what.body), what.chunks, [*map(word, what.words)], word(what.then),
                    what.scratch)
        steps.append((said, step.pointers, step.kernel))
    constants = [(_named(a.dtype), a.shape, a.tobytes()) for a in execution_plan.constants]
    output_specs = [(shape, _named(dtype)) for shape, dtype in execution_plan.output_specs]
    code = [(library.recipe, library.names) for _, library in libraries.values()]
    plan = execution_plan
    PLANS.write(entry, marshal.dumps((plan.inputs, output_specs, constants, plan.arena, plan.arena_entry, plan.entries,
                                      code, steps)))


# ----- reading ------------------------------------------------------------------------------


def read(entry: str, graph: Graph) -> ExecutionPlan | None:
    """The execution_plan of this name; None where there is none, or where its code is not there."""
    if debug_output.is_enabled("llvm", "asm"):  # which are shown of what is compiled
        return None
    payload = PLANS.read(entry)
    if payload is None:
        return None
    try:
        return _read(payload, graph)
    except (ValueError, TypeError, EOFError, LookupError, AttributeError):  # whole, but no plan
        PLANS.discard(entry)
        return None


def _read(payload: bytes, graph: Graph) -> ExecutionPlan | None:
    inputs, output_specs, constants, arena, arena_entry, entries, code, steps = marshal.loads(payload)
    libraries = [compilation.load_cached(recipe, names) for recipe, names in code]
    if None in libraries:
        return None
    return ExecutionPlan(inputs, [(shape, _dtype(said)) for shape, said in output_specs],
                  [np.frombuffer(bits, _dtype(said)).reshape(shape) for said, shape, bits in constants],
                  arena, arena_entry, entries, [_step(step, libraries, graph) for step in steps])


def _step(step: tuple, libraries: Sequence[Any], graph: Graph) -> Step | Call:
    if len(step) == 4:
        number, inputs, outputs, kernel = step
        extern: FallbackKernel | ExternKernel = graph.values[number].attrs
        return Call(extern, [*map(_view, inputs)], [*map(_view, outputs)], kernel)
    said, pointers, kernel = step
    if isinstance(said, bool):
        return Step(launch.Condition(said), pointers, kernel)
    library, body, chunks, words, then, scratch = said

    def word(x: Any) -> Word:
        return Symbol(libraries[x[0]], x[1]) if isinstance(x, tuple) else x

    return Step(launch.Launch(libraries[library], word(body), chunks, tuple(map(word, words)), word(then), scratch),
                pointers, kernel)


def _view(said: tuple) -> View:
    entry, offset, shape, strides, dtype = said
    return entry, offset, shape, strides, _dtype(dtype)


__all__: list[Any] = ["cache_key", "environment", "read", "write"]
