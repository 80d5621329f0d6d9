"""Jobs: what one variant of a program's code is compiled from, in a form that another process can read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...ir.graph.target import Target
from ...ir.graph.value import Graph, Value
from .program_ir import Place
from .sizes.constants import SIZED_CONSTANT, restored
from .sizes.formulas import SizeFormula


class SizedJob(NamedTuple):
    """The graph for some combinations of sizes.

    Attributes:
        sizes: the combinations of dynamic sizes.
        values: the graph's values: operation, numbers of arguments, attributes, shape, dtype. Numbers that depend on
            the sizes, here and in the regions, are formulas.
        targets: the number of each one's value, that of the input that it overwrites or None, and its region.
        guards: for each data guard the number of its value, its outcome, and its number among the program's guards.
        inputs: by input number the base and offset of its memory.
        constants: by number of an input that may be packed ahead of time, its offset in the job's weights, and bytes.
        derived: the formulas of the symbols behind the sizes.
    """

    sizes: list[tuple[int, ...]]
    values: list[tuple[str, list[int], Any, tuple[int, ...], np.dtype]]
    targets: list[tuple[int, int | None, Any]]
    guards: list[tuple[int, bool, int]]
    inputs: dict[int, Place]
    constants: dict[int, tuple[int, int]]
    derived: list[SizeFormula]


class VariantJob(NamedTuple):
    """A program for one processor.

    Attributes:
        name: the prefix of its symbols.
        sized: the graphs.
        first_output, arena: the bases of the first output and of the arena, which is the last one but for the pool.
        threads: how many threads a run is planned for; with several the pool is the last base.
        weights: a file with the weights as an array of bytes; "" where they are not packed ahead of time.
    """

    name: str
    sized: list[SizedJob]
    first_output: int
    arena: int
    threads: int = 1
    weights: str = ""


class KernelReport(NamedTuple):
    """A kernel of a plan: its name, and the bytes and operations that the cost model counts."""

    name: str
    bytes: int
    operations: int


class VariantCode(NamedTuple):
    """Compiled code.

    Attributes:
        objects: object files.
        arenas: by combination of sizes, bytes of the arena.
        tables: bytes that the table of a plan takes in front of the arena, at most.
        kernels: of the plan for the last sizes.
        packed: weights that were packed ahead of time.
        read: by job, the numbers of the inputs that are read.
    """

    objects: list[bytes]
    arenas: dict[tuple[int, ...], int]
    tables: int
    kernels: list[KernelReport]
    packed: np.ndarray
    read: list[set[int]]


def encode_graph(graph: Graph) -> list[tuple[str, list[int], Any, tuple[int, ...], np.dtype]]:
    """The values of a graph."""
    return [(v.op, [x.number for x in v.args], v.attrs, v.shape, v.dtype) for v in graph.values]


def decode_graph(
    job: SizedJob, symbols: Sequence[Any], evaluate: Callable[[Any], Any]
) -> tuple[Graph, list[Target], list[tuple[Value, bool]]]:
    """The graph, targets and data guards of a job.

    Args:
        symbols: the sizes, and what is derived from them.
        evaluate: gives the value of a structure for these.
    """
    graph = Graph()
    values: list[Value] = []
    for op, args, attrs, shape, dtype in job.values:
        if op == SIZED_CONSTANT:
            values.append(restored(graph, attrs, evaluate(shape), dtype, symbols))
        else:
            operands = [values[i] for i in args]
            values.append(graph.restore(op, operands, evaluate(attrs), evaluate(shape), dtype))
    targets = [
        Target(values[value], None if over is None else values[over], evaluate(region))
        for value, over, region in job.targets
    ]
    return graph, targets, [(values[value], outcome) for value, outcome, _ in job.guards]


__all__ = ["KernelReport", "SizedJob", "VariantCode", "VariantJob", "decode_graph", "encode_graph"]
