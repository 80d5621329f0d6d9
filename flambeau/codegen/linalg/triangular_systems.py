"""Substitution in triangular systems with several right-hand sides, in double precision.

A panel of right-hand sides is a few vectors wide. The unknowns that are known already are read for several rows at
once, whose sums stay in registers; what these rows add to each other is subtracted row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points, target
from ..llvm.array_function import TYPES, ArrayFunction
from ..llvm.loop_nests import I32, POINTER, first_lanes, i64, loop
from ..llvm.lowering import constant, intrinsic, splat
from ..matmul.microkernel import fmuladd

#: words of a block: systems, unknowns, right-hand sides; steps of A in elements; the first row and the step to the
#: next one; whether the diagonal counts as ones; whether other threads of Python may run meanwhile
(_SYSTEMS, _UNKNOWNS, _SIDES, _A_SYSTEM, _A_ROW, _A_COLUMN, _FIRST, _STEP, _UNIT, _RELEASES, _WORDS) = range(11)
#: products from which other threads may run: about 20 us
_LONG = 1 << 18
_DOUBLE = ir.DoubleType()


def lanes() -> int:
    """Numbers of a vector."""
    return max(2, target.host().vector_bits // 64)


def _rows(vectors: int) -> int:
    """Rows whose sums fit the registers, beside the vectors that are read."""
    host = target.host()
    few_registers = host.triple.startswith("x86_64") and host.vector_bits < 512
    return 2 if few_registers and vectors > 2 else 4


def _generate(name: str, char: str, vectors: int) -> str:
    """The function `(x, known, a)`: x."""
    f = ArrayFunction(name, _WORDS, 3, 0)
    b, (x, known, a) = f.b, f.data
    element, wide = TYPES[char], lanes()
    vector, panel = ir.VectorType(_DOUBLE, wide), vectors * wide
    stored = ir.VectorType(element, wide)
    size = 4 if char == "f" else 8
    unknowns, sides, row_step, column_step, first, step = (
        f.word(each) for each in (_UNKNOWNS, _SIDES, _A_ROW, _A_COLUMN, _FIRST, _STEP))
    is_unit = b.icmp_signed("!=", f.word(_UNIT), i64(0))
    releases = b.icmp_signed("!=", f.word(_RELEASES), i64(0))
    high = _rows(vectors)
    sums = [[f.variable(vector, constant(0, vector)) for _ in range(vectors)] for _ in range(high)]

    def place(base: Any, index: Any, kind: Any) -> Any:
        return b.gep(base, [index], source_etype=kind)

    def number(t: Any) -> Any:
        """The row that is solved as number t."""
        return b.add(first, b.mul(t, step))

    def factor(system: Any, i: Any, j: Any) -> Any:
        at = place(system, b.add(b.mul(i, row_step), b.mul(j, column_step)), element)
        value = b.load(at, typ=element, align=size)
        return value if char == "d" else b.fpext(value, _DOUBLE)

    def masked(name: str, at: Any, mask: Any, value: Any = None) -> Any:
        align = ir.Constant(I32, size)
        if value is None:
            return intrinsic(b, name, stored, [at, align, mask, constant(0, stored)], [stored, POINTER])
        return intrinsic(b, name, ir.VoidType(), [value, at, align, mask], [stored, POINTER])

    def solve_rows(system: Any, right: Any, column: Any, masks: list[Any], t: Any, count: int) -> None:
        numbers = [number(b.add(t, i64(r))) for r in range(count)]
        for memory in (each for of_row in sums[:count] for each in of_row):
            b.store(constant(0, vector), memory)
        with loop(b, i64(0), t) as u:
            row = place(known, b.mul(u, i64(panel)), _DOUBLE)
            values = [b.load(place(row, i64(k * wide), _DOUBLE), typ=vector, align=8) for k in range(vectors)]
            j = number(u)
            for i, of_row in zip(numbers, sums, strict=False):
                scale = splat(b, factor(system, i, j), wide)
                for value, memory in zip(values, of_row, strict=True):
                    b.store(fmuladd(b, scale, value, b.load(memory, typ=vector)), memory)
        solved: list[list[Any]] = []
        for r, (i, of_row) in enumerate(zip(numbers, sums, strict=False)):
            diagonal = splat(b, b.select(is_unit, ir.Constant(_DOUBLE, 1.0), factor(system, i, i)), wide)
            before = [splat(b, factor(system, i, each), wide) for each in numbers[:r]]
            solved.append([])
            for k, memory in enumerate(of_row):
                total = b.load(memory, typ=vector)
                for scale, done in zip(before, solved, strict=False):
                    total = fmuladd(b, scale, done[k], total)
                at = place(right, b.add(b.mul(i, sides), b.add(column, i64(k * wide))), element)
                given = masked("masked.load", at, masks[k])
                given = given if char == "d" else b.fpext(given, vector)
                value = b.fdiv(b.fsub(given, total), diagonal)
                solved[r].append(value)
                kept = b.add(b.mul(b.add(t, i64(r)), i64(panel)), i64(k * wide))
                b.store(value, place(known, kept, _DOUBLE), align=8)
                masked("masked.store", at, masks[k], value if char == "d" else b.fptrunc(value, stored))

    with f.released(releases), loop(b, i64(0), f.word(_SYSTEMS)) as number_of_system:
        system = place(a, b.mul(number_of_system, f.word(_A_SYSTEM)), element)
        right = place(x, b.mul(number_of_system, b.mul(unknowns, sides)), element)
        with loop(b, i64(0), sides, panel) as column:
            masks = [first_lanes(b, b.sub(sides, b.add(column, i64(k * wide))), wide) for k in range(vectors)]
            together = b.sub(unknowns, b.srem(unknowns, i64(high)))
            with loop(b, i64(0), together, high) as t:
                solve_rows(system, right, column, masks, t, high)
            with loop(b, together, unknowns) as t:
                solve_rows(system, right, column, masks, t, 1)
    f.leave(0)
    return str(f.module)


@cache
def _maker(char: str, vectors: int) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"triangular_systems_{char}{vectors}"
    return entry_points.builtin_function_maker(name, _generate(name, char, vectors))


def function(char: str, systems: int, unknowns: int, sides: int, steps: tuple[int, int, int], upper: bool,
             unit: bool) -> tuple[Callable[..., Any], int]:
    """The built-in function `(x, known, a)`, which overwrites row-major right-hand sides x by the solutions: x.

    The second result is how many numbers of double precision `known` has memory for.

    Args:
        char: "f" or "d".
        steps: between systems, rows and columns of A, in elements.
        unit: whether the diagonal counts as ones.
    """
    wide = lanes()
    vectors = 1 if sides <= wide else 2 if sides <= 2 * wide else 4
    first, step = (unknowns - 1, -1) if upper else (0, 1)
    long = systems * unknowns * unknowns * sides > _LONG
    words = (systems, unknowns, sides, *steps, first, step, unit, long)
    block = np.array([*words, *entry_points.block_fields()], np.int64)
    return _maker(char, vectors)(block), unknowns * vectors * wide


__all__ = ["function"]
