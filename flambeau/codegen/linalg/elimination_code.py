"""Elimination code generation: a chunk is a matrix; inner loops run along contiguous rows.

Plan: rows of the matrix, columns of the right-hand side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from ..llvm import kernel_entry
from ..llvm.loop_nests import I32, I64, POINTER, i64, local, loop, word
from ..llvm.lowering import constant, intrinsic, value_type


class _Emitter:
    """Emits one module: `pointers` are those of the chunk's matrices and vectors."""

    def __init__(self, name: str, dtype: np.dtype, operands: int, words: int) -> None:
        self.module, self.kind, self.dtype = ir.Module(name), value_type(dtype), dtype
        body, self.b = kernel_entry.begin(self.module, "body", kernel_entry.BODY)
        pointers, plan, self.chunk = body.args
        self.pointers = [self.b.load(self.b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER)
                         for i in range(operands)]
        self.words = [word(self.b, plan, i) for i in range(words)]
        self.n = self.words[0]
        self.square = self.b.mul(self.n, self.n)

    def matrix(self, i: int, size: Any) -> Any:
        """The chunk's part of operand i, of `size` elements."""
        return self.b.gep(self.pointers[i], [self.b.mul(self.chunk, size)], source_etype=self.kind)

    def at(self, a: Any, row: Any, column: Any, width: Any = None) -> Any:
        """The address of an element."""
        place = self.b.add(self.b.mul(row, self.n if width is None else width), column)
        return self.b.gep(a, [place], source_etype=self.kind)

    def load(self, address: Any) -> Any:
        """An element."""
        return self.b.load(address, typ=self.kind, align=self.dtype.itemsize)

    def store(self, value: Any, address: Any) -> None:
        """Store an element."""
        self.b.store(value, address, align=self.dtype.itemsize)

    def store_info(self, operand: int, memory: Any) -> None:
        """Store the info code of the matrix."""
        b = self.b
        b.store(b.trunc(b.load(memory, typ=I64), I32), b.gep(self.pointers[operand], [self.chunk], source_etype=I32))

    def note(self, memory: Any, condition: Any, index: Any) -> None:
        """Keep index + 1 as the info code, if a condition holds and there is none."""
        b = self.b
        old = b.load(memory, typ=I64)
        first = b.and_(condition, b.icmp_signed("==", old, i64(0)))
        b.store(b.select(first, b.add(index, i64(1)), old), memory)

    def end(self) -> str:
        """The module's text."""
        self.b.ret_void()
        return str(self.module)


def cholesky(dtype: np.dtype) -> str:
    """The module of the Cholesky factorization, row by row."""
    e = _Emitter("cholesky", dtype, 3, 1)
    b, n = e.b, e.n
    lower, a = e.matrix(0, e.square), e.matrix(2, e.square)
    info, total = local(b, I64), local(b, e.kind)
    b.store(i64(0), info)
    with loop(b, i64(0), n) as i:
        with loop(b, i64(0), b.add(i, i64(1))) as j:
            b.store(e.load(e.at(a, i, j)), total)
            with loop(b, i64(0), j) as k:
                product = b.fmul(e.load(e.at(lower, i, k)), e.load(e.at(lower, j, k)))
                b.store(b.fsub(b.load(total, typ=e.kind), product), total)
            rest = b.load(total, typ=e.kind)
            with b.if_else(b.icmp_signed("==", i, j)) as (on_diagonal, below):
                with on_diagonal:
                    e.note(info, b.not_(b.fcmp_ordered(">", rest, constant(0.0, e.kind))), i)
                    e.store(intrinsic(b, "sqrt", e.kind, [rest]), e.at(lower, i, i))
                with below:
                    e.store(b.fdiv(rest, e.load(e.at(lower, j, j))), e.at(lower, i, j))
        with loop(b, b.add(i, i64(1)), n) as j:
            e.store(constant(0.0, e.kind), e.at(lower, i, j))
    e.store_info(1, info)
    return e.end()


def lu(dtype: np.dtype) -> str:
    """The module of Gaussian elimination with partial pivoting."""
    e = _Emitter("lu", dtype, 5, 1)
    b, n = e.b, e.n
    factors, a = e.matrix(0, e.square), e.matrix(4, e.square)
    order = b.gep(e.pointers[1], [b.mul(e.chunk, n)], source_etype=I64)
    info, parity, best, chosen = local(b, I64), local(b, e.kind), local(b, e.kind), local(b, I64)
    b.store(i64(0), info)
    b.store(constant(1.0, e.kind), parity)
    with loop(b, i64(0), e.square) as k:
        e.store(e.load(e.at(a, i64(0), k)), e.at(factors, i64(0), k))
    with loop(b, i64(0), n) as i:
        b.store(i, b.gep(order, [i], source_etype=I64))
    with loop(b, i64(0), n) as k:
        b.store(constant(-1.0, e.kind), best)
        b.store(k, chosen)
        with loop(b, k, n) as i:
            size = intrinsic(b, "fabs", e.kind, [e.load(e.at(factors, i, k))])
            is_larger = b.fcmp_ordered(">", size, b.load(best, typ=e.kind))
            b.store(b.select(is_larger, size, b.load(best, typ=e.kind)), best)
            b.store(b.select(is_larger, i, b.load(chosen, typ=I64)), chosen)
        row = b.load(chosen, typ=I64)
        with b.if_then(b.icmp_signed("!=", row, k)):
            b.store(b.fneg(b.load(parity, typ=e.kind)), parity)
            here, there = (b.gep(order, [i], source_etype=I64) for i in (k, row))
            first, second = b.load(here, typ=I64), b.load(there, typ=I64)
            b.store(second, here)
            b.store(first, there)
            with loop(b, i64(0), n) as j:
                here, there = e.at(factors, k, j), e.at(factors, row, j)
                x, y = e.load(here), e.load(there)
                e.store(y, here)
                e.store(x, there)
        pivot = e.load(e.at(factors, k, k))
        is_zero = b.fcmp_ordered("==", pivot, constant(0.0, e.kind))
        e.note(info, is_zero, k)
        with b.if_then(b.not_(is_zero)), loop(b, b.add(k, i64(1)), n) as i:
            factor = b.fdiv(e.load(e.at(factors, i, k)), pivot)
            e.store(factor, e.at(factors, i, k))
            with loop(b, b.add(k, i64(1)), n) as j:
                old = e.load(e.at(factors, i, j))
                e.store(b.fsub(old, b.fmul(factor, e.load(e.at(factors, k, j)))), e.at(factors, i, j))
    e.store(b.load(parity, typ=e.kind), b.gep(e.pointers[2], [e.chunk], source_etype=e.kind))
    e.store_info(3, info)
    return e.end()


def substitute(dtype: np.dtype, upper: bool, unit: bool) -> str:
    """The module of forward or backward substitution."""
    e = _Emitter("substitute", dtype, 3, 2)
    b, n, m = e.b, e.n, e.words[1]
    size = b.mul(n, m)
    x, a, right = e.matrix(0, size), e.matrix(1, e.square), e.matrix(2, size)
    last = b.sub(n, i64(1))
    with loop(b, i64(0), n) as step:
        i = b.sub(last, step) if upper else step
        with loop(b, i64(0), m) as j:
            e.store(e.load(e.at(right, i, j, m)), e.at(x, i, j, m))
        begin, end = (b.add(i, i64(1)), n) if upper else (i64(0), i)
        with loop(b, begin, end) as k:
            factor = e.load(e.at(a, i, k))
            with loop(b, i64(0), m) as j:
                old = e.load(e.at(x, i, j, m))
                e.store(b.fsub(old, b.fmul(factor, e.load(e.at(x, k, j, m)))), e.at(x, i, j, m))
        if not unit:
            pivot = e.load(e.at(a, i, i))
            with loop(b, i64(0), m) as j:
                e.store(b.fdiv(e.load(e.at(x, i, j, m)), pivot), e.at(x, i, j, m))
    return e.end()
