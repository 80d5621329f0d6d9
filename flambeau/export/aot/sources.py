"""Sources: exported programs and Python functions, captured for all their sizes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import count, product
from math import prod
from typing import Any

import flambeau as torch

from ...fx.interpreter import Interpreter
from ...trees import tree_flatten
from ..exported_program import ExportedProgram
from ..graph_signature import OutputKind
from .build import Progress, Source, silent
from .capture import Capture, capture, capture_stable, line_of
from .errors import ExportError
from .interface import DerivedSize, Extent
from .jobs import encode_graph
from .sizes.formulas import Combination, MissingCombination
from .sizes.result_shapes import result_shapes
from .sizes.templates import Template, templates

#: the largest size of a dimension without a maximum, or with a distant one, for which there is code by default
DEFAULT_MAXIMUM = 64
#: the most values of a size for which there is code by default, and the most combinations of sizes
MAX_RANGE, MAX_COMBINATIONS = 512, 4096


class _Located(Interpreter):
    """An interpreter of a program's graph that knows which node runs."""

    node: Any = None

    def run_node(self, n: Any) -> Any:
        self.node = n
        return super().run_node(n)

    def line(self) -> str | None:
        """The user's line of the node that runs."""
        return None if self.node is None else line_of(self.node.meta.get("stack_trace") or "")


def program_source(
    program: ExportedProgram,
    name: str,
    sizes: dict[str, Iterable[int]] | None = None,
    progress: Progress = silent,
) -> Source:
    """Capture an exported program for each combination of its dynamic sizes.

    Args:
        program: the program, without example inputs of other classes than tensors and numbers.
        name: the prefix of its functions.
        sizes: name of a dynamic size -> the values for which there are plans.
        progress: told what is being done.

    Raises:
        ExportError: it cannot be compiled.
        ValueError: `sizes` names no dynamic size, or too many.
    """
    if program.example_inputs is None:
        raise ExportError("the program has no example inputs")
    module = program.module(check_guards=False)
    interpreter = _Located(module)
    leaves = tree_flatten(program.example_inputs)[0]
    tensors = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    constraints = {(each.leaf, each.dim): each for each in program._input_constraints}
    roots = list(dict.fromkeys(each.root for each in constraints.values()))
    combinations = _combinations(roots, list(constraints.values()), sizes or {})
    labels = {id(value): key for key, value in (*module.named_parameters(), *module.named_buffers())}
    inputs = program.graph_signature.user_inputs
    done = count(1)

    def captured(combination: tuple[int, ...]) -> Capture:
        values = dict(zip(roots, combination, strict=True))
        resized = []
        for i, x in enumerate(leaves):
            if i in tensors:
                shape = [
                    values[c.root] * c.factor + c.offset if (c := constraints.get((i, d))) else n
                    for d, n in enumerate(x.shape)
                ]
                x = _resized(x, shape)
            resized.append(x)
        found = capture(interpreter.run, tuple(resized), names=labels, locate=interpreter.line)
        progress("tracing", min(next(done), len(combinations)), len(combinations))
        return found

    with torch.no_grad():
        graphs, captures = templates(combinations, captured)
        results, derived = _results(roots, combinations, captures, captured)
    progress("tracing", len(combinations), len(combinations))
    shapes = [
        tuple(
            Extent(c.root, c.factor, c.offset) if (c := constraints.get((i, d))) else Extent(None, 0, n)
            for d, n in enumerate(leaves[i].shape)
        )
        for i in tensors
    ]
    outputs = [spec for spec in program.graph_signature.output_specs if spec.kind == OutputKind.USER_OUTPUT]
    names = ["output"] if len(results) == 1 else [f"output{i}" for i in range(len(results))]
    if not results and outputs:
        raise ExportError("the program returns no tensor")
    arguments = [str(inputs[i]) for i in tensors]
    return Source(name, tuple(roots), captures, graphs, arguments, names, shapes, results, derived)


def _results(
    names: Sequence[str],
    combinations: Sequence[Combination],
    captures: list[tuple[Combination, Capture]],
    captured: Callable[[Combination], Capture],
) -> tuple[list[tuple[Extent, ...]], list[DerivedSize]]:
    """The shapes of results; more combinations are captured until they are known."""
    while True:
        try:
            return result_shapes(names, combinations, captures)
        except MissingCombination as missing:
            captures.append((missing.combination, captured(missing.combination)))


def function_source(function: Callable[..., Any], args: tuple[Any, ...], name: str) -> Source:
    """Capture a Python function of tensors, such as a training step.

    Args:
        function: the function; tensors that it reads from outside are weights, those that it writes to are state.
        args: its arguments.
        name: the prefix of its functions.

    Raises:
        ExportError: it cannot be compiled.
    """
    leaves = [x for x in tree_flatten(args)[0] if isinstance(x, torch.Tensor)]
    arguments = tuple(x.detach().contiguous().clone() if isinstance(x, torch.Tensor) else x for x in args)
    found = capture_stable(function, arguments)
    results = len(found.results)
    outputs = ["output"] if results == 1 else [f"output{i}" for i in range(results)]
    shapes = [tuple(Extent(None, 0, n) for n in x.shape) for x in leaves]
    graph = Template([()], found, encode_graph(found.graph), [t.region for t in found.targets], [])
    given = _argument_names(function, args, len(leaves))
    made = [tuple(Extent(None, 0, n) for n in shape) for shape, _ in found.results]
    return Source(name, (), [((), found)], [graph], given, outputs, shapes, made, [])


def _argument_names(function: Callable[..., Any], args: tuple[Any, ...], count: int) -> list[str]:
    try:
        names = list(inspect.signature(function).bind(*args).arguments)
    except (TypeError, ValueError):
        names = []
    if len(names) == len(args) == count:
        return names
    return [f"input{i}" for i in range(count)]


def _combinations(
    roots: Sequence[str], constraints: Sequence[Any], chosen: dict[str, Iterable[int]]
) -> list[tuple[int, ...]]:
    unknown = set(chosen) - set(roots)
    if unknown:
        raise ValueError(f"sizes= names {sorted(unknown)}, but the dynamic sizes are {list(roots)}")
    values = []
    for root in roots:
        mine = next(each for each in constraints if each.root == root)
        low, high = max(1, mine.min), mine.max
        if root in chosen:
            wanted = sorted(set(chosen[root]))
            if not wanted or wanted[0] < low or wanted[-1] > high:
                raise ValueError(
                    f"sizes={{{root!r}: ...}} must be in the range of Dim({root!r}), [{low}, {high}], got {wanted}"
                )
        elif high - low < MAX_RANGE:
            wanted = list(range(low, high + 1))
        else:
            wanted = list(range(low, max(low, DEFAULT_MAXIMUM) + 1))
            warnings.warn(
                f"there is code for {root} from {low} to {wanted[-1]} only, since its range has more than {MAX_RANGE} "
                f"sizes: give Dim({root!r}) a maximum, or save(..., sizes={{{root!r}: range(...)}})",
                stacklevel=4,
            )
        values.append(wanted)
    found = list(product(*values))
    if len(found) > MAX_COMBINATIONS:
        raise ValueError(
            f"{len(found)} combinations of sizes are too many: there is code for at most {MAX_COMBINATIONS}. Give "
            "fewer with sizes={name: [...]}"
        )
    return found


def _resized(x: Any, shape: Sequence[int]) -> Any:
    """A dense tensor of a shape, with the elements of another one, repeated."""
    flat, size = x.detach().flatten(), prod(shape)
    if not flat.numel():
        return torch.zeros(tuple(shape), dtype=x.dtype)
    return flat.repeat(-(-size // flat.numel()))[:size].clone().reshape(tuple(shape))


__all__ = ["function_source", "program_source"]
