"""Sums, extrema and counts of few elements in one call.

Sums add in NumPy's order: from eight elements on into eight sums, whose sum is that of pairs, then what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm import numpy_sums
from ..llvm.array_function import TYPES, ArrayFunction
from ..llvm.loop_nests import I8, I32, I64, i64, loop
from ..llvm.lowering import constant, intrinsic, splat

#: the most terms of a sum that NumPy does not divide
MOST_TERMS = numpy_sums.MOST_TERMS
#: what is summed
PLAIN, SQUARES, MAGNITUDES = "plain", "squares", "magnitudes"
#: words of a block: rows, terms of each, the elements from one term to the next, and from one row to the next
_ROWS, _LENGTH, _STEP, _ROW_STEP, _WORDS = range(5)


def _generate_sums(name: str, char: str, kind: str, root: bool, strided: bool, many: bool) -> str:
    """The function `(result, array)`: the result.

    Args:
        kind: what is summed.
        root: whether the result is the square root.
        strided: whether the step between terms is not 1.
        many: whether there are more than `MOST_TERMS` terms, which are plain.
    """
    f, type_ = ArrayFunction(name, _WORDS, 2, 0), TYPES[char]
    b, (out, x) = f.b, f.data
    vector = ir.VectorType(type_, numpy_sums.TOGETHER)
    length, step = f.word(_LENGTH), f.word(_STEP)
    few, any_terms = numpy_sums.few_terms(f, type_), numpy_sums.any_terms(f.module, type_) if many else None

    def term(value: Any) -> Any:
        if kind == SQUARES:
            return b.fmul(value, value)
        return intrinsic(b, "fabs", value.type, [value]) if kind == MAGNITUDES else value

    with loop(b, i64(0), f.word(_ROWS)) as number:
        start = b.mul(number, f.word(_ROW_STEP))

        def at_index(index: Any, start: Any = start) -> Any:
            return b.gep(x, [b.add(start, b.mul(index, step) if strided else index)], source_etype=type_)

        def one(index: Any, at_index: Any = at_index) -> Any:
            return term(b.load(at_index(index), typ=type_, align=1))

        def several(index: Any, at_index: Any = at_index, one: Any = one) -> Any:
            if not strided:
                return term(b.load(at_index(index), typ=vector, align=1))
            values = ir.Constant(vector, ir.Undefined)
            for lane in range(numpy_sums.TOGETHER):
                values = b.insert_element(values, one(b.add(index, i64(lane))), ir.Constant(I32, lane))
            return values

        if any_terms is None:
            result = few(length, one, several)
        else:
            total = b.call(any_terms, [at_index(i64(0)), length, step])
            result = b.fadd(ir.Constant(type_, 0.0), total)
        if root:
            result = intrinsic(b, "sqrt", type_, [result])
        b.store(result, b.gep(out, [number], source_etype=type_), align=1)
    f.leave(0)
    return str(f.module)


def _generate_extremum(name: str, char: str, largest: bool) -> str:
    """The function `(None, result, array)`: the result; None where it is 0, whose sign is open, or there is NaN."""
    f, type_ = ArrayFunction(name, 1, 2), TYPES[char]
    b, (out, x) = f.b, f.data
    lanes = 16 if char == "f" else 8
    vector, masks = ir.VectorType(type_, lanes), ir.VectorType(I8, lanes)
    count, relation = f.word(0), ">" if largest else "<"
    whole = b.and_(count, i64(-lanes))
    worst = ir.Constant(type_, float("-inf") if largest else float("inf"))
    best, bests = f.variable(type_, worst), f.variable(vector, splat(b, worst, lanes))
    nan, nans = f.variable(I8, ir.Constant(I8, 0)), f.variable(masks, constant(0, masks))

    def include(value: Any, best: Any, nan: Any, mask: Any) -> None:
        so_far = b.load(best, typ=value.type)
        b.store(b.select(b.fcmp_ordered(relation, value, so_far), value, so_far), best)
        b.store(b.or_(b.load(nan, typ=mask), b.zext(b.fcmp_unordered("!=", value, value), mask)), nan)

    with loop(b, i64(0), whole, lanes) as i:
        include(b.load(b.gep(x, [i], source_etype=type_), typ=vector, align=1), bests, nans, masks)
    with loop(b, whole, count) as i:
        include(b.load(b.gep(x, [i], source_etype=type_), typ=type_, align=1), best, nan, I8)
    values = b.load(bests, typ=vector)
    found = reduce(lambda a, c: b.select(b.fcmp_ordered(relation, c, a), c, a), [
        b.load(best, typ=type_), *[b.extract_element(values, ir.Constant(I32, lane)) for lane in range(lanes)]])
    any_nan = b.or_(b.load(nan, typ=I8), intrinsic(b, "vector.reduce.or", I8, [b.load(nans, typ=masks)], [masks]))
    unclear = b.or_(b.icmp_signed("!=", any_nan, ir.Constant(I8, 0)),
                    b.fcmp_ordered("==", found, ir.Constant(type_, 0.0)))
    with b.if_then(unclear, likely=False):
        f.leave(0)
    b.store(found, out, align=1)
    f.leave(1)
    return str(f.module)


def _generate_count(name: str, char: str) -> str:
    """The function `(result, array)`: the result, of int64: how many elements are not 0."""
    f = ArrayFunction(name, 1, 2, 0)
    b, (out, x) = f.b, f.data
    type_ = I8 if char == "?" else TYPES[char]
    lanes = 8
    vector, counts = ir.VectorType(type_, lanes), ir.VectorType(I64, lanes)
    count = f.word(0)
    whole = b.and_(count, i64(-lanes))
    total, totals = f.variable(I64, i64(0)), f.variable(counts, constant(0, counts))

    def is_set(value: Any) -> Any:
        zero = constant(0, value.type)
        return b.fcmp_unordered("!=", value, zero) if char in "fd" else b.icmp_signed("!=", value, zero)

    with loop(b, i64(0), whole, lanes) as i:
        several = b.load(b.gep(x, [i], source_etype=type_), typ=vector, align=1)
        b.store(b.add(b.load(totals, typ=counts), b.zext(is_set(several), counts)), totals)
    b.store(intrinsic(b, "vector.reduce.add", I64, [b.load(totals, typ=counts)], [counts]), total)
    with loop(b, whole, count) as i:
        one = b.load(b.gep(x, [i], source_etype=type_), typ=type_, align=1)
        b.store(b.add(b.load(total, typ=I64), b.zext(is_set(one), I64)), total)
    b.store(b.load(total, typ=I64), out, align=1)
    f.leave(0)
    return str(f.module)


@cache
def _sums_maker(char: str, kind: str, root: bool, strided: bool,
                many: bool) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"{'many' if many else 'few'}_{kind}_{char}{'_root' * root}{'_strided' * strided}"
    return entry_points.builtin_function_maker(name, _generate_sums(name, char, kind, root, strided, many))


@cache
def _extremum_maker(char: str, largest: bool) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"{'largest' if largest else 'smallest'}_of_few_{char}"
    return entry_points.builtin_function_maker(name, _generate_extremum(name, char, largest))


@cache
def _count_maker(char: str) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"count_of_few_{'b' if char == '?' else char}"
    return entry_points.builtin_function_maker(name, _generate_count(name, char))


def sums(dtype: np.dtype, rows: int, length: int, step: int = 1, row_step: int = 0, kind: str = PLAIN,
         root: bool = False) -> Callable[..., Any]:
    """The built-in function `(result, array)`: the sum of each row of an array of float32 or float64.

    Args:
        length: the terms of a row, at most `MOST_TERMS` unless they are plain.
        step, row_step: the elements from one term to the next, and from one row to the next.
        kind: what is summed.
        root: whether the result is the square root.
    """
    block = np.array([rows, length, step, row_step, *entry_points.block_fields()], np.int64)
    return _sums_maker(dtype.char, kind, root, step != 1, length > MOST_TERMS)(block)


def extremum(dtype: np.dtype, count: int, largest: bool) -> Callable[..., Any]:
    """The built-in function `(None, result, array)`: the largest or smallest element of a row-major array.

    It returns None where the result is 0, whose sign depends on the order, or there is NaN.
    """
    return _extremum_maker(dtype.char, largest)(np.array([count, *entry_points.block_fields()], np.int64))


def nonzero_count(dtype: np.dtype, count: int) -> Callable[..., Any]:
    """The built-in function `(result, array)`: how many elements of a row-major array are not 0.

    Args:
        dtype: float32, float64, int64 or bool.
    """
    return _count_maker(dtype.char)(np.array([count, *entry_points.block_fields()], np.int64))


__all__ = ["MAGNITUDES", "MOST_TERMS", "PLAIN", "SQUARES", "extremum", "nonzero_count", "sums"]
