"""Sums of floats in the order of `numpy.add.reduce`, so that their bits are NumPy's.

Fewer than eight terms are added one after the other, up to 128 into eight sums whose sum is that of pairs, then what is
left; more are divided into halves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from . import kernel_entry
from .array_function import ArrayFunction
from .loop_nests import I32, I64, POINTER, as_opaque_pointer, i64, local, loop
from .lowering import constant

#: the most terms that are not divided
MOST_TERMS = 128
#: how many sums there are
TOGETHER = 8
Term = Callable[[Any], Any]


def few_terms(f: ArrayFunction, type_: ir.Type) -> Callable[[Any, Term, Term], Any]:
    """What emits the sum of at least one and at most `MOST_TERMS` terms, as often as it is called.

    Returns:
        `(length, one, several)` -> the sum; `one(index)` and `several(index)` give the term, or a vector of `TOGETHER`
        terms, from an index on.
    """
    return _Few(f.b, type_).sum


class _Few:
    def __init__(self, b: ir.IRBuilder, type_: ir.Type) -> None:
        self.b, self.type, self.vector = b, type_, ir.VectorType(type_, TOGETHER)
        self.total, self.totals = (as_opaque_pointer(b, local(b, each)) for each in (type_, self.vector))

    def sum(self, length: Any, one: Term, several: Term) -> Any:
        b, total, totals = self.b, self.total, self.totals
        whole = b.and_(length, i64(-TOGETHER))

        def add_rest(first: Any) -> None:
            with loop(b, first, length) as i:
                b.store(b.fadd(b.load(total, typ=self.type), one(i)), total)

        with b.if_else(b.icmp_signed(">=", length, i64(TOGETHER))) as (many, few):
            with many:
                b.store(several(i64(0)), totals)
                with loop(b, i64(TOGETHER), whole, TOGETHER) as i:
                    b.store(b.fadd(b.load(totals, typ=self.vector), several(i)), totals)
                sums = b.load(totals, typ=self.vector)
                lanes = [b.extract_element(sums, ir.Constant(I32, lane)) for lane in range(TOGETHER)]
                while len(lanes) > 1:
                    lanes = [b.fadd(lanes[i], lanes[i + 1]) for i in range(0, len(lanes), 2)]
                b.store(lanes[0], total)
                add_rest(whole)
            with few:
                b.store(one(i64(0)), total)
                add_rest(i64(1))
        return b.fadd(ir.Constant(self.type, 0.0), b.load(total, typ=self.type))  # NumPy begins with 0


def any_terms(module: ir.Module, type_: ir.Type) -> ir.Function:
    """The function `(elements, how many, the elements from one to the next)`: the sum of at least one, before NumPy's 0
    is added."""
    name = f"sum_of_{type_}"
    function, b = kernel_entry.begin(module, name, ir.FunctionType(type_, [POINTER, I64, I64]))
    function.linkage = "internal"
    x, count, step = function.args

    def at_index(index: Any) -> Any:
        return b.gep(x, [b.mul(index, step)], source_etype=type_)

    def one(index: Any) -> Any:
        return b.load(at_index(index), typ=type_, align=1)

    def several(index: Any) -> Any:
        values = constant(0, ir.VectorType(type_, TOGETHER))
        for lane in range(TOGETHER):
            values = b.insert_element(values, one(b.add(index, i64(lane))), ir.Constant(I32, lane))
        return values

    few = _Few(b, type_)
    with b.if_then(b.icmp_signed(">", count, i64(MOST_TERMS)), likely=False):
        half = b.and_(b.lshr(count, i64(1)), i64(-TOGETHER))
        first = b.call(function, [x, half, step])
        b.ret(b.fadd(first, b.call(function, [at_index(half), b.sub(count, half), step])))
    b.ret(few.sum(count, one, several))
    return function


__all__ = ["MOST_TERMS", "TOGETHER", "any_terms", "few_terms"]
