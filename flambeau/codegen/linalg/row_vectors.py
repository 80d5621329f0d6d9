"""Cross products and distances of few rows in one call, with NumPy's bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm import numpy_sums
from ..llvm.array_function import TYPES, ArrayFunction
from ..llvm.loop_nests import i64, loop
from ..llvm.lowering import intrinsic

#: the most elements of a row whose distances are computed
MOST_TERMS = numpy_sums.MOST_TERMS
#: words of a block of distances: matrices, rows of the first and of the second one, the length of a row
_MATRICES, _ROWS, _COLUMNS, _LENGTH, _WORDS = range(5)


def _generate_products(name: str, char: str) -> str:
    """The function `(result, x, y)`: the result."""
    f = ArrayFunction(name, 1, 3, 0)
    b, (out, x, y), type_ = f.b, f.data, TYPES[char]

    def place(base: Any, start: Any, index: int) -> Any:
        return b.gep(base, [b.add(start, i64(index))], source_etype=type_)

    with loop(b, i64(0), f.word(0)) as number:
        start = b.mul(number, i64(3))
        u, v = ([b.load(place(base, start, i), typ=type_, align=1) for i in range(3)] for base in (x, y))
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            b.store(b.fsub(b.fmul(u[j], v[k]), b.fmul(u[k], v[j])), place(out, start, i), align=1)
    f.leave(0)
    return str(f.module)


def _generate_distances(name: str, char: str, of_pairs: bool) -> str:
    """The function `(result, x, y)`, or `(result, x)` of pairs: the result."""
    f = ArrayFunction(name, _WORDS, 2 if of_pairs else 3, 0)
    b, (out, x), type_ = f.b, f.data[:2], TYPES[char]
    y, vector = f.data[-1], ir.VectorType(type_, numpy_sums.TOGETHER)
    rows, columns, length = (f.word(each) for each in (_ROWS, _COLUMNS, _LENGTH))
    few = numpy_sums.few_terms(f, type_)
    place = f.variable(i64(0).type, i64(0))
    with loop(b, i64(0), f.word(_MATRICES)) as matrix, loop(b, i64(0), rows) as i:
        u = b.gep(x, [b.mul(b.add(b.mul(matrix, rows), i), length)], source_etype=type_)
        with loop(b, b.add(i, i64(1)) if of_pairs else i64(0), columns) as j:
            v = b.gep(y, [b.mul(b.add(b.mul(matrix, columns), j), length)], source_etype=type_)

            def square(index: Any, what: Any, u: Any = u, v: Any = v) -> Any:
                one, other = (b.load(b.gep(row, [index], source_etype=type_), typ=what, align=1) for row in (u, v))
                difference = b.fsub(one, other)
                return b.fmul(difference, difference)

            total = few(length, partial(square, what=type_), partial(square, what=vector))
            at = b.load(place, typ=i64(0).type)
            b.store(intrinsic(b, "sqrt", type_, [total]), b.gep(out, [at], source_etype=type_), align=1)
            b.store(b.add(at, i64(1)), place)
    f.leave(0)
    return str(f.module)


@cache
def _product_maker(char: str) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"cross_products_{char}"
    return entry_points.builtin_function_maker(name, _generate_products(name, char))


@cache
def _distance_maker(char: str, of_pairs: bool) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"distances_{char}{'_of_pairs' * of_pairs}"
    return entry_points.builtin_function_maker(name, _generate_distances(name, char, of_pairs))


def cross_products(dtype: np.dtype, rows: int) -> Callable[..., Any]:
    """The built-in function `(result, x, y)` of row-major arrays with rows of three elements: the cross products."""
    return _product_maker(dtype.char)(np.array([rows, *entry_points.block_fields()], np.int64))


def distances(dtype: np.dtype, matrices: int, rows: int, columns: int, length: int) -> Callable[..., Any]:
    """The built-in function `(result, x, y)` of row-major arrays: the Euclidean distances of rows of each two matrices.

    Args:
        length: of a row, from 1 to `MOST_TERMS`.
    """
    block = [matrices, rows, columns, length, *entry_points.block_fields()]
    return _distance_maker(dtype.char, False)(np.array(block, np.int64))


def distances_of_pairs(dtype: np.dtype, rows: int, length: int) -> Callable[..., Any]:
    """The built-in function `(result, x)`: the distances of each row from those after it (`distances`)."""
    block = [1, rows, rows, length, *entry_points.block_fields()]
    return _distance_maker(dtype.char, True)(np.array(block, np.int64))


__all__ = ["MOST_TERMS", "cross_products", "distances", "distances_of_pairs"]
