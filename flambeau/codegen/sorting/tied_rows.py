"""Selection and sorting of rows whose elements repeat, by the algorithms of C++ standard libraries.

The index among equal elements depends on each exchange, and is PyTorch's (`kernels.ties` does the same in Python).
Elements are compared as integer keys: NaN above all numbers, both zeros equal, complemented for descending order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm import kernel_entry
from ..llvm.array_function import ArrayFunction
from ..llvm.kernel_entry import FunctionPointer
from ..llvm.loop_nests import I64, POINTER, i64, local, loop, while_loop, word
from . import introsort

#: the bits of infinity, by the element's character: "g" is bfloat16
_INFINITY = {"g": 0x7F80, "e": 0x7C00, "f": 0x7F800000, "d": 0x7FF0000000000000}
_SIZE = {"g": 2, "e": 2, "f": 4, "d": 8, "b": 1, "h": 2, "i": 4, "l": 8}
#: characters of the dtypes of elements
KINDS = frozenset(_SIZE)
#: segments up to this length are left to the insertion sort
_LEAST = 16
#: segments on the stack of introsort, at most
_DEEPEST = 130
#: words of a block: rows, their length, elements of each that are wanted, whether rows are sorted, the segments that
#: may be left, the addresses of introsort's two functions
_ROWS, _LENGTH, _CHOSEN, _SORTS, _CAPACITY, _PARTITION, _INSERT, _WORDS = range(8)
_VOID = ir.VoidType()


class _Emitter:
    """The module of one kind of elements; functions of a heap take the keys and places from its first element on."""

    def __init__(self, char: str, descending: bool) -> None:
        self.module = ir.Module(f"tied rows {char}")
        self.char, self.descending = char, descending
        self.type = ir.IntType(8 * _SIZE[char])
        self.sift = self._function("sift", [I64] * 4, self._emit_sift)
        self.heap_select = self._function("heap_select", [I64] * 2, self._emit_heap_select)
        self.sort_heap = self._function("sort_heap", [I64], self._emit_sort_heap)
        self.split = self._function("split", [I64] * 2, self._emit_split, I64)
        self.introselect = self._function("introselect", [I64] * 3, self._emit_introselect)

    def _function(self, name: str, arguments: list[Any], emit: Callable[..., Any], result: Any = _VOID) -> ir.Function:
        function, b = kernel_entry.begin(self.module, name, ir.FunctionType(result, [POINTER, POINTER, *arguments]))
        function.linkage = "internal"
        self.b = b
        returned = emit(*function.args)
        if returned is None:
            self.b.ret_void()
        else:
            self.b.ret(returned)
        return function

    def _variable(self, value: Any) -> Any:
        memory = local(self.b, I64)
        self.b.store(value, memory)
        return memory

    def _read(self, memory: Any) -> Any:
        return self.b.load(memory, typ=I64)

    def at(self, pointer: Any, index: Any) -> Any:
        return self.b.gep(pointer, [index], source_etype=I64)

    def put(self, keys: Any, places: Any, index: Any, key: Any, place: Any) -> None:
        self.b.store(key, self.at(keys, index))
        self.b.store(place, self.at(places, index))

    def _move(self, keys: Any, places: Any, source: Any, target: Any) -> None:
        b = self.b
        self.put(keys, places, target, word(b, keys, source), word(b, places, source))

    def _exchange(self, keys: Any, places: Any, i: Any, j: Any) -> None:
        b = self.b
        first, second = ((word(b, keys, x), word(b, places, x)) for x in (i, j))
        self.put(keys, places, i, *second)
        self.put(keys, places, j, *first)

    def _emit_sift(self, keys: Any, places: Any, top: Any, length: Any, key: Any, place: Any) -> None:
        """Put an element into the heap's hole: the hole goes down to a leaf first, and then the element comes up."""
        b = self.b
        hole, child = self._variable(top), self._variable(top)
        half = b.sdiv(b.sub(length, i64(1)), i64(2))

        def fill(source: Any) -> None:
            b.store(source, child)
            self._move(keys, places, source, self._read(hole))
            b.store(source, hole)

        with while_loop(b, lambda: b.icmp_signed("<", self._read(child), half)):
            right = b.shl(b.add(self._read(child), i64(1)), i64(1))
            left = b.sub(right, i64(1))
            fill(b.select(b.icmp_signed("<", word(b, keys, right), word(b, keys, left)), left, right))
        is_even = b.icmp_signed("==", b.and_(length, i64(1)), i64(0))
        is_last = b.icmp_signed("==", self._read(child), b.sdiv(b.sub(length, i64(2)), i64(2)))
        with b.if_then(b.and_(is_even, is_last)):
            fill(b.add(b.shl(self._read(child), i64(1)), i64(1)))

        def rises() -> Any:
            at = self._read(hole)
            above = b.select(b.icmp_signed(">", at, top), b.ashr(b.sub(at, i64(1)), i64(1)), top)
            return b.and_(b.icmp_signed(">", at, top), b.icmp_signed("<", word(b, keys, above), key))

        with while_loop(b, rises):
            parent = b.ashr(b.sub(self._read(hole), i64(1)), i64(1))
            self._move(keys, places, parent, self._read(hole))
            b.store(parent, hole)
        self.put(keys, places, self._read(hole), key, place)

    def heapify(self, keys: Any, places: Any, count: Any) -> None:
        b = self.b
        parent = self._variable(b.ashr(b.sub(count, i64(2)), i64(1)))
        with while_loop(b, lambda: b.icmp_signed(">=", self._read(parent), i64(0))):
            at = self._read(parent)
            b.call(self.sift, [keys, places, at, count, word(b, keys, at), word(b, places, at)])
            b.store(b.sub(at, i64(1)), parent)

    def _emit_heap_select(self, keys: Any, places: Any, count: Any, length: Any) -> None:
        """Make a heap of the `count` smallest of `length` elements."""
        b = self.b
        self.heapify(keys, places, count)
        with loop(b, count, length) as i:
            key = word(b, keys, i)
            with b.if_then(b.icmp_signed("<", key, word(b, keys, 0))):
                place = word(b, places, i)
                self._move(keys, places, i64(0), i)
                b.call(self.sift, [keys, places, i64(0), count, key, place])

    def _emit_sort_heap(self, keys: Any, places: Any, count: Any) -> None:
        b = self.b
        end = self._variable(b.sub(count, i64(1)))
        with while_loop(b, lambda: b.icmp_signed(">", self._read(end), i64(0))):
            at = self._read(end)
            key, place = word(b, keys, at), word(b, places, at)
            self._move(keys, places, i64(0), at)
            b.call(self.sift, [keys, places, i64(0), at, key, place])
            b.store(b.sub(at, i64(1)), end)

    def _emit_split(self, keys: Any, places: Any, start: Any, end: Any) -> Any:
        """Hoare's partition around a median of three put first; the start of the upper part."""
        b = self.b
        low, high = b.add(start, i64(1)), b.sub(end, i64(1))
        middle = b.add(start, b.ashr(b.sub(end, start), i64(1)))
        first, second, third = (word(b, keys, at) for at in (low, middle, high))
        b_c, a_c = b.icmp_signed("<", second, third), b.icmp_signed("<", first, third)
        rising = b.select(b_c, middle, b.select(a_c, high, low))
        falling = b.select(a_c, low, b.select(b_c, high, middle))
        self._exchange(keys, places, start, b.select(b.icmp_signed("<", first, second), rising, falling))
        pivot = word(b, keys, start)
        i, j = self._variable(low), self._variable(high)

        def scan() -> Any:
            with while_loop(b, lambda: b.icmp_signed("<", word(b, keys, self._read(i)), pivot)):
                b.store(b.add(self._read(i), i64(1)), i)
            with while_loop(b, lambda: b.icmp_signed("<", pivot, word(b, keys, self._read(j)))):
                b.store(b.sub(self._read(j), i64(1)), j)
            return b.icmp_signed("<", self._read(i), self._read(j))

        with while_loop(b, scan):
            self._exchange(keys, places, self._read(i), self._read(j))
            b.store(b.add(self._read(i), i64(1)), i)
            b.store(b.sub(self._read(j), i64(1)), j)
        return self._read(i)

    def _emit_introselect(self, keys: Any, places: Any, nth: Any, length: Any, limit: Any) -> None:
        """Put the element of rank `nth` into its place, smaller ones before it; by a heap after `limit` partitions."""
        b = self.b
        first, last, depth = self._variable(i64(0)), self._variable(length), self._variable(limit)

        def is_long() -> Any:
            size = b.sub(self._read(last), self._read(first))
            return b.and_(b.icmp_signed(">", size, i64(3)), b.icmp_signed(">", self._read(depth), i64(0)))

        with while_loop(b, is_long):
            b.store(b.sub(self._read(depth), i64(1)), depth)
            cut = b.call(self.split, [keys, places, self._read(first), self._read(last)])
            is_above = b.icmp_signed("<=", cut, nth)
            b.store(b.select(is_above, cut, self._read(first)), first)
            b.store(b.select(is_above, self._read(last), cut), last)
        start, size = self._read(first), b.sub(self._read(last), self._read(first))
        part = self.at(keys, start), self.at(places, start)
        with b.if_else(b.icmp_signed(">", size, i64(3))) as (spent, short):
            with spent:
                rank = b.sub(nth, start)
                b.call(self.heap_select, [*part, b.add(rank, i64(1)), size])
                self._exchange(*part, i64(0), rank)
            with short:
                self._insertion_sort(*part, size)

    def _insertion_sort(self, keys: Any, places: Any, length: Any) -> None:
        b = self.b
        with loop(b, i64(1), length) as i:
            key, place, hole = word(b, keys, i), word(b, places, i), self._variable(i)

            def shifts(key: Any = key, hole: Any = hole) -> Any:
                at = self._read(hole)
                before = b.select(b.icmp_signed(">", at, i64(0)), b.sub(at, i64(1)), i64(0))
                return b.and_(b.icmp_signed(">", at, i64(0)), b.icmp_signed("<", key, word(b, keys, before)))

            with while_loop(b, shifts):
                at = self._read(hole)
                self._move(keys, places, b.sub(at, i64(1)), at)
                b.store(b.sub(at, i64(1)), hole)
            self.put(keys, places, self._read(hole), key, place)

    def key_of(self, row: Any, index: Any) -> Any:
        """The key of an element of a row."""
        b, type_ = self.b, self.type
        bits = b.load(b.gep(row, [index], source_etype=type_), typ=type_, align=_SIZE[self.char])
        if self.char in _INFINITY:
            largest = (1 << (type_.width - 1)) - 1
            magnitude = b.and_(bits, ir.Constant(type_, largest))
            negative = b.icmp_signed("<", bits, ir.Constant(type_, 0))
            key = b.select(negative, b.not_(magnitude), magnitude)
            key = b.select(b.icmp_signed("==", magnitude, ir.Constant(type_, 0)), magnitude, key)
            is_nan = b.icmp_signed(">", magnitude, ir.Constant(type_, _INFINITY[self.char]))
            bits = b.select(is_nan, ir.Constant(type_, largest), key)
        wide = bits if type_.width == 64 else b.sext(bits, I64)
        return b.not_(wide) if self.descending else wide

    def sort(self, keys: Any, places: Any, length: Any, memory: Any, addresses: Any) -> None:
        """Introsort; segments that were split too often are sorted by a heap.

        Args:
            memory: the stack, memory for these segments, and for how many.
            addresses: of the two functions of `introsort`.
        """
        b, (stack, left, capacity) = self.b, memory
        partition, insert = (FunctionPointer(b.inttoptr(address, POINTER), type_)
                             for address, type_ in zip(addresses, introsort.TYPES, strict=True))
        spent = b.call(partition, [keys, places, length, self.limit(length), i64(_LEAST), stack, left, capacity])
        with loop(b, i64(0), spent) as i:
            start = word(b, left, b.shl(i, i64(1)))
            size = b.sub(word(b, left, b.add(b.shl(i, i64(1)), i64(1))), start)
            part = self.at(keys, start), self.at(places, start)
            b.call(self.heap_select, [*part, size, size])
            b.call(self.sort_heap, [*part, size])
        b.call(insert, [keys, places, length])

    def limit(self, length: Any) -> Any:
        """How often a segment of a length is split: twice the logarithm to base 2, rounded down."""
        b = self.b
        count = b.ctlz(b.or_(length, i64(1)), ir.Constant(ir.IntType(1), 0))
        return b.shl(b.sub(i64(63), count), i64(1))


def _generate(name: str, char: str, descending: bool) -> str:
    """The function `(None, values, indices, scratch, rows)`: the values."""
    e = _Emitter(char, descending)
    f = ArrayFunction(name, _WORDS, 4, module=e.module)
    b = e.b = f.b
    values, indices, keys, rows = f.data
    count, length, chosen = f.word(_ROWS), f.word(_LENGTH), f.word(_CHOSEN)
    places = e.at(keys, length)
    stack = e.at(places, length)
    memory = stack, e.at(stack, i64(3 * _DEEPEST)), f.word(_CAPACITY)
    addresses = f.word(_PARTITION), f.word(_INSERT)
    whole = b.icmp_signed("!=", f.word(_SORTS), i64(0))
    few = b.and_(b.icmp_signed("<=", b.shl(chosen, i64(6)), length), b.not_(whole))
    with loop(b, i64(0), count) as number:
        row = b.gep(rows, [b.mul(number, length)], source_etype=e.type)
        with b.if_else(few) as (by_heap, by_splits):
            with by_heap:
                with loop(b, i64(0), chosen) as i:
                    e.put(keys, places, i, e.key_of(row, i), i)
                e.heapify(keys, places, chosen)
                with loop(b, chosen, length) as i:
                    key = e.key_of(row, i)
                    with b.if_then(b.icmp_signed("<", key, word(b, keys, 0)), likely=False):
                        b.call(e.sift, [keys, places, i64(0), chosen, key, i])
                b.call(e.sort_heap, [keys, places, chosen])
            with by_splits:
                with loop(b, i64(0), length) as i:
                    e.put(keys, places, i, e.key_of(row, i), i)
                last = b.sub(chosen, i64(1))
                with b.if_then(b.not_(whole)):
                    b.call(e.introselect, [keys, places, last, length, e.limit(length)])
                e.sort(keys, places, b.select(whole, length, last), memory, addresses)
        with loop(b, i64(0), chosen) as i:
            place, target = word(b, places, i), b.add(b.mul(number, chosen), i)
            b.store(place, e.at(indices, target))
            b.store(b.load(b.gep(row, [place], source_etype=e.type), typ=e.type, align=1),
                    b.gep(values, [target], source_etype=e.type), align=1)
    f.leave(1)
    return str(e.module)


@cache
def _maker(char: str, descending: bool) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"tied_rows_{char}_{'falling' if descending else 'rising'}"
    return entry_points.builtin_function_maker(name, _generate(name, char, descending))


def scratch_words(length: int) -> int:
    """How many int64 numbers the scratch memory for rows of a length has."""
    return 2 * length + 3 * _DEEPEST + 2 * _capacity(length)


def _capacity(length: int) -> int:
    """How many segments of a row may be sorted by a heap."""
    return length // _LEAST + 2


@lru_cache(256)
def function(char: str, rows: int, length: int, count: int, descending: bool, sort: bool) -> Callable[..., Any]:
    """The built-in function `(None, values, indices, scratch, rows)` of row-major arrays: the values.

    It puts the first elements of each row, in ascending or descending order, into `values`, their places into
    `indices`.

    Args:
        char: of the elements' dtype, one of `KINDS`; "g" is bfloat16.
        rows: how many; (rows, length) elements, (rows, count) values and int64 indices.
        sort: whether rows are sorted, and `count` is `length`; else elements are selected as PyTorch's `topk` does it.
    """
    addresses = [introsort.address(name) for name in ("introsort_partition", "introsort_insert")]
    block = [rows, length, count, int(sort), _capacity(length), *addresses, *entry_points.block_fields()]
    return _maker(char, descending)(np.array(block, np.int64))


__all__ = ["KINDS", "function", "scratch_words"]
