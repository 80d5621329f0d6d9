"""Searches and counts of few numbers in one call: `searchsorted`, `isin` and `bincount`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm.array_function import TYPES, ArrayFunction
from ..llvm.loop_nests import I8, I64, i64, larger, loop, word
from ..llvm.lowering import constant, splat

#: words of a block: how many numbers there are, and boundaries or counts; the least number of counts
_COUNT, _LENGTH, _LEAST, _WORDS = range(4)
#: tables of a histogram; numbers from which other threads of Python run meanwhile
TABLES, _LONG = 4, 1 << 16


def _generate_search(name: str, char: str, right: bool) -> str:
    """The function `(None, result, boundaries, values)`; None where boundaries are not sorted, or have NaN."""
    f = ArrayFunction(name, _WORDS, 3)
    b, (out, boundaries, values), type_ = f.b, f.data, TYPES[char]
    length = f.word(_LENGTH)

    def compare(relation: str, x: Any, y: Any) -> Any:
        return b.icmp_signed(relation, x, y) if char == "l" else b.fcmp_ordered(relation, x, y)

    def element(base: Any, index: Any) -> Any:
        return b.load(b.gep(base, [index], source_etype=type_), typ=type_, align=1)

    last = b.sub(length, i64(1))
    with loop(b, i64(0), length) as i:  # the last one is compared with itself, which NaN is not equal to
        after = b.select(b.icmp_signed("<", i, last), b.add(i, i64(1)), last)
        with b.if_then(b.not_(compare("<=", element(boundaries, i), element(boundaries, after))), likely=False):
            f.leave(0)
    low, rest = (f.variable(I64, i64(0)) for _ in range(2))
    function = b.function
    with loop(b, i64(0), f.word(_COUNT)) as i:
        value = element(values, i)
        b.store(i64(0), low)
        b.store(length, rest)
        # the answer is within `rest` numbers after `low`
        head, body, done = (function.append_basic_block(each) for each in ("search", "halve", "found"))
        b.branch(head)
        b.position_at_end(head)
        b.cbranch(b.icmp_signed(">", b.load(rest, typ=I64), i64(0)), body, done)
        b.position_at_end(body)
        start, count = b.load(low, typ=I64), b.load(rest, typ=I64)
        half = b.lshr(count, i64(1))
        probe = element(boundaries, b.add(start, half))
        # NaN belongs after all boundaries
        before = b.not_(compare(">" if right else ">=", probe, value))
        after_probe = b.add(b.add(start, half), i64(1))
        b.store(b.select(before, after_probe, start), low)
        b.store(b.select(before, b.sub(count, b.add(half, i64(1))), half), rest)
        b.branch(head)
        b.position_at_end(done)
        b.store(b.load(low, typ=I64), b.gep(out, [i], source_etype=I64))
    f.leave(1)
    return str(f.module)


def _generate_count(name: str) -> str:
    """The function `(None, result, numbers)`; None where a number has no count, or the result is to be shorter."""
    f = ArrayFunction(name, _WORDS, 2)
    b, (out, numbers) = f.b, f.data
    length = f.word(_LENGTH)
    with loop(b, i64(0), length) as i:
        b.store(i64(0), b.gep(out, [i], source_etype=I64))
    most = f.variable(I64, i64(0))
    with loop(b, i64(0), f.word(_COUNT)) as i:
        number = word(b, numbers, i)
        with b.if_then(b.icmp_unsigned(">=", number, length), likely=False):  # negative ones are large
            f.leave(0)
        place = b.gep(out, [number], source_etype=I64)
        b.store(b.add(b.load(place, typ=I64), i64(1)), place)
        b.store(larger(b, b.load(most, typ=I64), number), most)
    needed = larger(b, b.add(b.load(most, typ=I64), i64(1)), f.word(_LEAST))
    with b.if_then(b.icmp_signed("!=", needed, length), likely=False):
        f.leave(0)
    f.leave(1)
    return str(f.module)


def _generate_histogram(name: str) -> str:
    """The function `(None, tables, numbers)`: the tables, of which the first has the counts; None: one has no count.

    Neighbours are counted in tables of their own, so that equal ones do not wait for each other.
    """
    f = ArrayFunction(name, _WORDS, 2)
    b, (tables, numbers) = f.b, f.data
    length, count = f.word(_LENGTH), f.word(_COUNT)
    with loop(b, i64(0), b.mul(length, i64(TABLES))) as i:
        b.store(i64(0), b.gep(tables, [i], source_etype=I64))
    starts = [b.gep(tables, [b.mul(length, i64(k))], source_etype=I64) for k in range(TABLES)]
    outside = f.variable(I64, i64(0))

    def add(position: Any, table: Any) -> None:
        number = word(b, numbers, position)
        inside = b.icmp_unsigned("<", number, length)
        with b.if_else(inside, likely=True) as (counted, refused):
            with counted:
                place = b.gep(table, [number], source_etype=I64)
                b.store(b.add(b.load(place, typ=I64), i64(1)), place)
            with refused:
                b.store(i64(1), outside)

    whole = b.and_(count, i64(-TABLES))
    with f.released(b.icmp_signed(">", count, i64(_LONG))):
        with loop(b, i64(0), whole, TABLES) as i:
            for k, table in enumerate(starts):
                add(b.add(i, i64(k)), table)
        with loop(b, whole, count) as i:
            add(i, starts[0])
        with loop(b, i64(0), length) as i:
            values = [b.load(b.gep(each, [i], source_etype=I64), typ=I64) for each in starts]
            b.store(functools.reduce(b.add, values), b.gep(tables, [i], source_etype=I64))
    with b.if_then(b.icmp_signed("!=", b.load(outside, typ=I64), i64(0)), likely=False):
        f.leave(0)
    f.leave(1)
    return str(f.module)


def _generate_membership(name: str, char: str, invert: bool) -> str:
    """The function `(result, elements, tests)`: the result."""
    f = ArrayFunction(name, _WORDS, 3, 0)
    b, (out, elements, tests), type_, lanes = f.b, f.data, TYPES[char], 8
    vector, masks = ir.VectorType(type_, lanes), ir.VectorType(I8, lanes)
    count, length = f.word(_COUNT), f.word(_LENGTH)
    whole = b.and_(count, i64(-lanes))
    found, founds = f.variable(I8, ir.Constant(I8, 0)), f.variable(masks, constant(0, masks))

    def search(start: Any, what: Any, memory: Any, mask: Any) -> None:
        values = b.load(b.gep(elements, [start], source_etype=type_), typ=what, align=1)
        b.store(constant(0, mask) if mask is masks else ir.Constant(I8, 0), memory)
        with loop(b, i64(0), length) as j:
            test = b.load(b.gep(tests, [j], source_etype=type_), typ=type_, align=1)
            test = splat(b, test, lanes) if mask is masks else test
            same = b.icmp_signed("==", values, test) if char == "l" else b.fcmp_ordered("==", values, test)
            b.store(b.or_(b.load(memory, typ=mask), b.zext(same, mask)), memory)
        result = b.load(memory, typ=mask)
        if invert:
            one = ir.Constant(I8, 1)
            result = b.xor(result, splat(b, one, lanes) if mask is masks else one)
        b.store(result, b.gep(out, [start], source_etype=I8), align=1)

    with loop(b, i64(0), whole, lanes) as i:
        search(i, vector, founds, masks)
    with loop(b, whole, count) as i:
        search(i, type_, found, I8)
    f.leave(0)
    return str(f.module)


@cache
def _membership_maker(char: str, invert: bool) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"membership_{char}{'_inverted' * invert}"
    return entry_points.builtin_function_maker(name, _generate_membership(name, char, invert))


@cache
def _search_maker(char: str, right: bool) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"search_{char}_{'right' if right else 'left'}"
    return entry_points.builtin_function_maker(name, _generate_search(name, char, right))


@cache
def _count_maker() -> Callable[[np.ndarray], Callable[..., Any]]:
    return entry_points.builtin_function_maker("count_numbers", _generate_count("count_numbers"))


@cache
def _histogram_maker() -> Callable[[np.ndarray], Callable[..., Any]]:
    return entry_points.builtin_function_maker("histogram_of_numbers", _generate_histogram("histogram_of_numbers"))


def _block(count: int, length: int, least: int = 0) -> np.ndarray:
    return np.array([count, length, least, *entry_points.block_fields()], np.int64)


def search(dtype: np.dtype, boundaries: int, values: int, right: bool) -> Callable[..., Any]:
    """The built-in function `(None, result, boundaries, values)` of row-major arrays, the result's of int64.

    It returns None where the boundaries are not sorted, or have NaN.

    Args:
        boundaries, values: how many there are.
        right: whether a value goes after equal boundaries.
    """
    return _search_maker(dtype.char, right)(_block(values, boundaries))


def membership(dtype: np.dtype, elements: int, tests: int, invert: bool) -> Callable[..., Any]:
    """The built-in function `(result, elements, tests)` of row-major arrays, the result of bool: whether each element
    equals a test, or if inverted none.

    Args:
        elements, tests: how many there are.
    """
    return _membership_maker(dtype.char, invert)(_block(elements, tests))


def count(numbers: int, length: int, least: int) -> Callable[..., Any]:
    """The built-in function `(None, result, numbers)`: how often each number occurs, both of int64.

    It returns None where a number is negative, or the result has another length than max(largest number + 1, least).

    Args:
        numbers: how many there are.
        length: of the result.
    """
    return _count_maker()(_block(numbers, length, least))


def histogram(numbers: np.ndarray, length: int) -> np.ndarray | None:
    """How often each number below `length` occurs in a row-major array of int64; None where one is no such number."""
    tables = np.empty((TABLES, length), np.int64)
    count = _histogram_maker()(_block(numbers.size, length))
    return None if count(None, tables, numbers) is None else tables[0].copy()


__all__ = ["count", "histogram", "membership", "search"]
