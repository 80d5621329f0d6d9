"""Matrix factorizations that NumPy lacks, LU, LDL and of indefinite matrices, and products of reflectors.

Arrays are batches of matrices (b, m, n).
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from . import lapack

Array = np.ndarray
#: eliminate(panels): the pivots from 0 on, (b, min(m, n)), of row-major panels that it overwrites; None: it cannot
Eliminate = Callable[[Array], "Array | None"]
#: substitute(a, b): the solution of triangular systems (b, n, n) with units on the diagonal of A; None: it cannot
Substitute = Callable[[Array, Array], "Array | None"]

_PANEL = 8  # columns that are eliminated one by one
_WIDE_PANEL = 32  # columns of panels that a kernel eliminates
_FEW = 16  # matrices whose rows are swapped one by one
_ALPHA = (1 + sqrt(17)) / 8  # Bunch and Kaufman's bound on the growth of elements


def _magnitude(x: Array) -> Array:
    """What LAPACK compares to choose pivots: |re| + |im|."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def _largest(sizes: Array) -> Array:
    """The positions of largest elements in the last dimension, as BLAS has them: it passes over NaN but the first."""
    if np.isnan(sizes).any():
        sizes = sizes.copy()
        sizes[..., 1:] = np.fmax(sizes[..., 1:], -1)
    return sizes.argmax(-1)


# ----- LU -----


def lu(a: Array, eliminate: Eliminate | None = None,
       substitute: Substitute | None = None) -> tuple[Array, Array, Array]:
    """LU factorization with partial pivoting, A = P L U.

    Args:
        eliminate: the kernel of panels.
        substitute: the kernel of lower triangles.

    Returns:
        LU: (b, m, n), the strict lower triangle L and the upper one U; the 1-based rows that step i swapped with row i,
        (b, min(m, n)), int32; and the 1-based index of the first zero on the diagonal of U, or 0.
    """
    a = a.copy()
    k = min(a.shape[-2:])
    pivots = np.zeros((len(a), k), np.int64)
    _eliminate(a, pivots, 0, eliminate, substitute)
    info = np.zeros(len(a), np.int32)
    is_zero = np.diagonal(a, 0, -2, -1) == 0
    if is_zero.any():
        info += np.where(is_zero.any(-1), is_zero.argmax(-1) + 1, 0).astype(np.int32)
    return a, (pivots + 1).astype(np.int32), info


def _eliminate(a: Array, pivots: Array, first: int, kernel: Eliminate | None, substitute: Substitute | None) -> None:
    """Factorize (b, m, n) in place, by halves of its columns; `pivots` receives rows counted from `first`."""
    m, n = a.shape[-2:]
    k = min(m, n)
    if kernel is not None and n <= _WIDE_PANEL:
        panels = np.ascontiguousarray(a)
        chosen = kernel(panels)
        if chosen is not None:
            np.add(chosen, first, out=pivots)
            if panels is not a:
                a[...] = panels
            return
    if k <= _PANEL:
        _eliminate_panel(a, pivots, first)
        return
    half = k // 2
    left, right = a[..., :half], a[..., half:]
    _eliminate(left, pivots[:, :half], first, kernel, substitute)
    _swap(right, pivots[:, :half] - first)
    solution = None if substitute is None else substitute(left[:, :half], right[:, :half])
    if solution is None:
        solve_unit_lower(left[:, :half], right[:, :half])
    else:
        right[:, :half] = solution
    rest = right[:, half:]
    rest -= left[:, half:] @ right[:, :half]
    _eliminate(rest, pivots[:, half:k], first + half, kernel, substitute)
    _swap(left[:, half:], pivots[:, half:k] - first - half)


def _eliminate_panel(a: Array, pivots: Array, first: int) -> None:
    m, n = a.shape[-2:]
    batch = np.arange(len(a))
    for i in range(min(m, n)):
        pivot = i + _largest(_magnitude(a[:, i:, i]))
        pivots[:, i] = pivot + first
        a[batch, i], a[batch, pivot] = a[batch, pivot], a[batch, i]
        diagonal = a[:, i, i]
        factors = a[:, i + 1:, i]
        np.divide(factors, np.where(diagonal == 0, 1, diagonal)[:, None], out=factors)
        a[:, i + 1:, i + 1:] -= factors[:, :, None] * a[:, i, None, i + 1:]


def _swap(a: Array, pivots: Array) -> None:
    """Swap row i with row `pivots[i]`, one after the other."""
    if len(a):
        order = permutation(pivots, a.shape[-2])
        a[...] = a[:, order[0]] if len(a) == 1 else np.take_along_axis(a, order[..., None], 1)


def permutation(pivots: Array, m: int) -> Array:
    """The order of the m rows after swapping row i with row `pivots[i]` (0-based), one after the other."""
    if len(pivots) <= _FEW:
        orders = []
        for swaps in pivots.tolist():
            rows = list(range(m))
            for i, j in enumerate(swaps):
                rows[i], rows[j] = rows[j], rows[i]
            orders.append(rows)
        return np.array(orders, np.intp).reshape(len(pivots), m)
    order = np.tile(np.arange(m), (len(pivots), 1))
    batch = np.arange(len(pivots))
    for i in range(pivots.shape[-1]):
        j = pivots[:, i]
        order[batch, i], order[batch, j] = order[batch, j], order[batch, i]
    return order


def solve_unit_lower(low: Array, b: Array) -> None:
    """Overwrite B with the solution of L X = B, L the unit lower triangle of a square matrix, by halves.

    Elements of L are at most 1, so that LAPACK's pivots are the ones of its diagonal.
    """
    n = low.shape[-1]
    if n > _PANEL and lapack.is_plain(low) and np.isfinite(low).all():
        triangle = np.where(np.tri(n, n, -1, bool), low, np.eye(n, dtype=low.dtype))
        b[...] = lapack.solve(triangle, np.ascontiguousarray(b))
        return
    if n <= _PANEL:
        for i in range(1, n):
            b[:, i] -= (low[:, i, None, :i] @ b[:, :i])[:, 0]
        return
    half = n // 2
    solve_unit_lower(low[:, :half, :half], b[:, :half])
    b[:, half:] -= low[:, half:, :half] @ b[:, :half]
    solve_unit_lower(low[:, half:, half:], b[:, half:])


def solve(a: Array, b: Array, transposed: bool) -> tuple[Array, Array]:
    """The solution X of A X = B, or of Aᵀ X = B, by LU factors, and the info codes of `lu`.

    A pivot that is 0 divides: where it does, X is infinite or NaN, and NaN where infinite elements are multiplied by 0.

    Args:
        a: (b, n, n).
        b: (b, n, k).
    """
    factors, pivots, info = lu(a)
    order = permutation(pivots.astype(np.int64) - 1, a.shape[-1])[..., None]
    if transposed:
        x = b.copy()
        rows = factors.swapaxes(-1, -2)
        _substitute(rows, x, False, False)
        _substitute(rows, x, True, True)
        result = np.empty_like(x)
        np.put_along_axis(result, order, x, 1)
        return result, info
    x = np.take_along_axis(b, order, 1)
    _substitute(factors, x, False, True)
    _substitute(factors, x, True, False)
    return x, info


def _substitute(a: Array, x: Array, upper: bool, unit: bool) -> None:
    """Overwrite B with the solution of A X = B for triangular A, column by column of A."""
    n = a.shape[-1]
    pivots = a[:, range(n), range(n)]
    if a.dtype.kind == "c":
        pivots[pivots == 0] = np.nan  # the reciprocal of a complex 0
    for i in reversed(range(n)) if upper else range(n):
        if not unit:
            x[:, i] /= pivots[:, i, None]
        rest = slice(0, i) if upper else slice(i + 1, n)
        x[:, rest] -= a[:, rest, i, None] * x[:, i, None]


# ----- Cholesky -----


def leading_cholesky(a: Array) -> tuple[Array, int]:
    """The Cholesky factor of the leading block of a matrix, up to the first pivot that is not positive.

    Columns behind it are those of A. float32 is computed in double precision.

    Args:
        a: (n, n), of which the lower triangle is read.

    Returns:
        The lower triangle, and the order of the leading minor that is not positive, or 0.
    """
    low = np.tril(a).astype(np.result_type(a, np.float64))
    for k in range(len(low)):
        row = low[k, :k]
        pivot = low[k, k].real - (row @ row.conj()).real
        low[k, k] = pivot
        if not pivot > 0:
            return low.astype(a.dtype), k + 1
        low[k, k] = np.sqrt(pivot)
        low[k + 1:, k] -= low[k + 1:, :k] @ row.conj()
        low[k + 1:, k] /= low[k, k].real
    return low.astype(a.dtype), 0


# ----- LDL -----


def ldl(a: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """Bunch and Kaufman's factorization of symmetric or Hermitian matrices given by their lower triangles.

    Returns:
        LD: (b, n, n), L and D; the pivots (b, n), int32: positive for a 1 x 1 block of D, whose row was swapped with
        that one (1-based), twice the same negative one for a 2 x 2 block; the 1-based index of the first zero block.
    """
    ld = np.tril(a)
    pivots = np.zeros(a.shape[:2], np.int32)
    info = np.zeros(len(a), np.int32)
    for i, matrix in enumerate(ld):
        info[i] = _ldl(matrix, pivots[i], hermitian and a.dtype.kind == "c")
    return ld, pivots, info


def _ldl(a: Array, pivots: Array, hermitian: bool) -> int:
    n, k, info = len(a), 0, 0
    while k < n:
        here = abs(a[k, k].real) if hermitian else _magnitude(a[k, k])
        largest, row = 0.0, k
        if k + 1 < n:
            column = _magnitude(a[k + 1:, k])
            row = k + 1 + int(_largest(column))
            largest = column[row - k - 1]
        # LAPACK asks for NaN in complex matrices only; in the others it takes a last pivot of NaN for 0
        if (largest == 0 and not here > 0) or (a.dtype.kind == "c" and np.isnan(here)):
            info = info or k + 1
            pivots[k] = k + 1
            if hermitian:
                a[k, k] = a[k, k].real
            k += 1
            continue
        size, pivot = _block_size(a, k, row, float(here), float(largest), hermitian)
        _swap_symmetric(a, k, k + size - 1, pivot, hermitian)
        (_eliminate_one if size == 1 else _eliminate_two)(a, k, hermitian)
        pivots[k:k + size] = pivot + 1 if size == 1 else -(pivot + 1)
        k += size
    return info


def _block_size(a: Array, k: int, row: int, here: float, largest: float, hermitian: bool) -> tuple[int, int]:
    """The size of the next block of D, and the row that is swapped with its last one."""
    if here >= _ALPHA * largest:
        return 1, k
    in_row = _magnitude(a[row, k:row]).max()
    if row + 1 < len(a):
        in_row = max(in_row, _magnitude(a[row + 1:, row]).max())
    if here >= _ALPHA * largest * (largest / in_row):
        return 1, k
    there = abs(a[row, row].real) if hermitian else _magnitude(a[row, row])
    return (1, row) if there >= _ALPHA * in_row else (2, row)


def _swap_symmetric(a: Array, k: int, i: int, j: int, hermitian: bool) -> None:
    """Swap rows and columns i and j >= i of the part of a lower triangle from k on."""
    if i == j:
        return
    conj = np.conj if hermitian else np.asarray
    a[j + 1:, [i, j]] = a[j + 1:, [j, i]]
    below = a[i + 1:j, i].copy()
    a[i + 1:j, i], a[j, i + 1:j] = conj(a[j, i + 1:j].copy()), conj(below)
    a[j, i] = conj(a[j, i])
    a[i, i], a[j, j] = a[j, j], a[i, i]
    if i > k:
        a[[i, j], k] = a[[j, i], k]


def _eliminate_one(a: Array, k: int, hermitian: bool) -> None:
    if hermitian:
        a[k, k] = a[k, k].real
    column = a[k + 1:, k]
    factors = column / a[k, k]
    a[k + 1:, k + 1:] -= np.tril(np.outer(column, factors.conj() if hermitian else factors))
    column[...] = factors
    if hermitian:
        _real_diagonal(a, k + 1)


def _eliminate_two(a: Array, k: int, hermitian: bool) -> None:
    corner = a[k + 1, k]
    block = np.array([[a[k, k], corner.conj() if hermitian else corner], [corner, a[k + 1, k + 1]]])
    if hermitian:
        block[0, 0], block[1, 1] = block[0, 0].real, block[1, 1].real
        a[k, k], a[k + 1, k + 1] = block[0, 0], block[1, 1]
    columns = a[k + 2:, k:k + 2]
    factors = columns @ _inverse(block)
    a[k + 2:, k + 2:] -= np.tril(columns @ (factors.conj() if hermitian else factors).T)
    columns[...] = factors
    if hermitian:
        _real_diagonal(a, k + 2)


def _inverse(block: Array) -> Array:
    """The inverse of a 2 x 2 block, scaled by the off-diagonal element, which is the largest."""
    scale = block.dtype.type(abs(block[1, 0]))
    scaled = block / scale
    determinant = scaled[0, 0] * scaled[1, 1] - scaled[0, 1] * scaled[1, 0]
    return np.array([[scaled[1, 1], -scaled[0, 1]], [-scaled[1, 0], scaled[0, 0]]]) / determinant / scale


def _real_diagonal(a: Array, start: int) -> None:
    index = np.arange(start, len(a))
    a[index, index] = a[index, index].real


def ldl_solve(ld: Array, pivots: Array, b: Array, hermitian: bool) -> Array:
    """The solution X of A X = B, A given by its factorization `ldl`; B is (b, n, k)."""
    x = b.copy()
    for i in range(len(x)):
        _ldl_solve(ld[i], pivots[i], x[i], hermitian and ld.dtype.kind == "c")
    return x


def _ldl_solve(a: Array, pivots: Array, x: Array, hermitian: bool) -> None:
    n, k = len(a), 0
    conj = np.conj if hermitian else np.asarray
    steps = []
    while k < n:
        size = 1 if pivots[k] > 0 else 2
        steps.append((k, size))
        last, pivot = k + size - 1, abs(int(pivots[k])) - 1
        if pivot != last:
            x[[last, pivot]] = x[[pivot, last]]
        x[k + size:] -= a[k + size:, k:k + size] @ x[k:k + size]
        if size == 1:
            x[k] /= a[k, k].real if hermitian else a[k, k]
        else:
            corner = a[k + 1, k]
            block = np.array([[a[k, k], conj(corner)], [corner, a[k + 1, k + 1]]])
            x[k:k + 2] = _inverse(block) @ x[k:k + 2]
        k += size
    for k, size in reversed(steps):
        x[k:k + size] -= conj(a[k + size:, k:k + size]).T @ x[k + size:]
        last, pivot = k + size - 1, abs(int(pivots[k])) - 1
        if pivot != last:
            x[[last, pivot]] = x[[pivot, last]]


# ----- reflectors -----


def apply_reflectors(v: Array, tau: Array, c: Array, adjoint: bool) -> Array:
    """Q C, or Qᴴ C, with Q = H₁ H₂ ..., Hᵢ = I - τᵢ vᵢ vᵢᴴ.

    Args:
        v: (b, m, k), whose columns hold vᵢ below row i; there vᵢ is 1, above it 0.
        tau: (b, k).
        c: (b, m, n).
    """
    c = c.copy()
    for i in range(tau.shape[-1]) if adjoint else reversed(range(tau.shape[-1])):
        factor = (tau[:, i].conj() if adjoint else tau[:, i])[:, None, None]
        w = v[:, i + 1:, i, None]
        head, tail = c[:, i:i + 1], c[:, i + 1:]
        projected = factor * (head + w.conj().swapaxes(-1, -2) @ tail)
        head -= projected
        tail -= w * projected
    return c
