"""Kernels around the factorizations of libraries: tables of addresses, permutations, triangles, determinants.

Matrices are column-major and dense; complex numbers are pairs of real ones. Counts are numbers of the launch.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..scalar.scalar_ir import Node, apply, cast, compare, constant, select
from .coordinates import INT64, coordinates, count_blocks
from .kernel_ir import Kernel, KernelBuilder
from .launches import DeviceLaunch, launch

THREADS = 128


def _started(kernel: Kernel, threads: int, *scalars: int) -> DeviceLaunch:
    return launch(kernel, count_blocks(threads, THREADS), scalars=scalars)


def _thread(b: KernelBuilder) -> Node:
    return cast(b.block, INT64) * THREADS + cast(b.thread, INT64)


def addresses(base: int, step: int, count: int) -> DeviceLaunch:
    """Addresses (int64) in steps of bytes: base, base + step, ...

    >>> addresses(512, 64, 10).scalars
    (512, 64, 10)
    """
    return _started(_addresses(), count, base, step, count)


@lru_cache(1)
def _addresses() -> Kernel:
    b = KernelBuilder("addresses", THREADS)
    table = b.buffer(INT64)
    base, step, count = (b.scalar(INT64) for _ in range(3))
    i = _thread(b)
    with b.when(compare("lt", i, count)):
        b.store(table, i, base + i * step)
    return b.kernel()


def permutations(count: int, m: int, k: int) -> DeviceLaunch:
    """The orders of rows (count, m) that swaps (count, k), from 1 on, make of the identity; both int32."""
    return _started(_permutations(m, k), count, count)


@lru_cache(256)
def _permutations(m: int, k: int) -> Kernel:
    b = KernelBuilder("permutations", THREADS)
    order, pivots = b.buffer("int32"), b.buffer("int32")
    count = b.scalar(INT64)
    i = _thread(b)
    with b.when(compare("lt", i, count)):
        first = i * m
        with b.loop(0, m) as row:
            b.store(order, first + cast(row, INT64), row)
        if k:
            with b.loop(0, k) as row:
                here = first + cast(row, INT64)
                there = first + cast(b.load(pivots, i * k + cast(row, INT64)), INT64) - 1
                one, other = b.load(order, here), b.load(order, there)
                b.store(order, here, other)
                b.store(order, there, one)
    return b.kernel()


def permutation_matrices(count: int, m: int, dtype: np.dtype) -> DeviceLaunch:
    """Ones in row-major zeros (count, m, m), of a real or complex dtype: row order[i] has one in column i."""
    return _started(_permutation_matrices(m, np.dtype(dtype)), count * m, count * m)


@lru_cache(256)
def _permutation_matrices(m: int, dtype: np.dtype) -> Kernel:
    b = KernelBuilder("permutation_matrices", THREADS)
    real = np.dtype(dtype.char.lower())
    result, order = b.buffer(real), b.buffer("int32")
    count = b.scalar(INT64)
    i = _thread(b)
    with b.when(compare("lt", i, count)):
        column, element = coordinates(i, (m, 1 << 40))
        place = (element * m + cast(b.load(order, i), INT64)) * m + column
        b.store(result, place * 2 if dtype.kind == "c" else place, constant(1.0, real))
    return b.kernel()


def clear_triangle(count: int, n: int, dtype: np.dtype, upper: bool) -> DeviceLaunch:
    """Zeros above the diagonals of matrices (count, n, n), or below them, in place.

    Args:
        upper: whether it is the upper triangle that becomes zero.
    """
    return _started(_clear_triangle(n, np.dtype(dtype), upper), count * n * n, count * n * n)


@lru_cache(256)
def _clear_triangle(n: int, dtype: np.dtype, upper: bool) -> Kernel:
    b = KernelBuilder("clear_triangle", THREADS)
    real = np.dtype(dtype.char.lower())
    matrices = b.buffer(real)
    count = b.scalar(INT64)
    i = _thread(b)
    row, column, _ = coordinates(i, (n, n, 1 << 40))
    outside = compare("lt", row, column) if upper else compare("lt", column, row)
    with b.when(apply("and", compare("lt", i, count), outside)):
        zero = constant(0.0, real)
        if dtype.kind == "c":
            b.store(matrices, i * 2, zero)
            b.store(matrices, i * 2 + 1, zero)
        else:
            b.store(matrices, i, zero)
    return b.kernel()


def determinants(count: int, n: int, dtype: np.dtype) -> DeviceLaunch:
    """Determinants (count) of LU factors (count, n, n) with pivots (count, n) of int32, from 1 on."""
    return _started(_determinants(n, np.dtype(dtype), False), count, count)


def logarithms_of_determinants(count: int, n: int, dtype: np.dtype) -> DeviceLaunch:
    """Signs (count) and logarithms of absolute values (count, real) of determinants; operands as for `determinants`."""
    return _started(_determinants(n, np.dtype(dtype), True), count, count)


@lru_cache(256)
def _determinants(n: int, dtype: np.dtype, logarithms: bool) -> Kernel:
    b = KernelBuilder("log_determinants" if logarithms else "determinants", THREADS)
    real, pairs = np.dtype(dtype.char.lower()), dtype.kind == "c"
    width = 2 if pairs else 1
    result = b.buffer(real)
    logarithm = b.buffer(real) if logarithms else None
    factors, pivots = b.buffer(real), b.buffer("int32")
    count = b.scalar(INT64)
    i = _thread(b)
    with b.when(compare("lt", i, count)):
        x, y = b.local(constant(1.0, real)), b.local(constant(0.0, real))
        size = b.local(constant(0.0, real))
        with b.loop(0, n) as k:
            at = cast(k, INT64)
            place = (i * n * n + at * (n + 1)) * width
            sign = select(compare("ne", b.load(pivots, i * n + at), k + 1), constant(-1.0, real), constant(1.0, real))
            c = b.load(factors, place)
            d = b.load(factors, place + 1) if pairs else None
            if logarithms:
                absolute = apply("abs", c) if d is None else _hypot(c, d)
                b.set(size, b.get(size) + apply("log", absolute))
                scale = select(compare("eq", absolute, constant(0.0, real)), constant(0.0, real),
                               apply("recip", absolute))
                c, d = c * scale, None if d is None else d * scale
            a, e = b.get(x), b.get(y)
            if d is None:
                b.set(x, a * c * sign)
            else:
                b.set(x, (a * c - e * d) * sign)
                b.set(y, (a * d + e * c) * sign)
        b.store(result, i * width, b.get(x))
        if pairs:
            b.store(result, i * width + 1, b.get(y))
        if logarithm is not None:
            b.store(logarithm, i, b.get(size))
    return b.kernel()


def _hypot(x: Node, y: Node) -> Node:
    """√(x² + y²) without overflow."""
    a, b = apply("abs", x), apply("abs", y)
    larger, smaller = apply("maximum", a, b), apply("minimum", a, b)
    nothing = compare("eq", larger, constant(0.0, larger.dtype))
    ratio = smaller / select(nothing, constant(1.0, larger.dtype), larger)
    return larger * apply("sqrt", ratio * ratio + 1.0)


__all__ = ["addresses", "clear_triangle", "determinants", "logarithms_of_determinants", "permutation_matrices",
           "permutations"]
