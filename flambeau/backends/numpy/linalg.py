"""Products of matrices and vectors: large ones by compiled kernels where these are quicker.

NumPy hands a transposed float operand to BLAS as it lies, so nothing here copies first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled.families import matmul as kernels
from . import decomposition, distance

_dot = np.dot
_large = kernels.LEAST
_QUICK = frozenset("fd")  # what BLAS multiplies


def _mm(x: Any, y: Any) -> Any:
    """x @ y for matrices and vectors."""
    if x.dtype.char not in _QUICK or x.dtype is not y.dtype:
        return np.matmul(x, y)
    if x.size + y.size > _large[0] and (found := _of_large(x, y)) is not None:
        return found
    return _dot(x, y)


def _of_large(x: Any, y: Any) -> Any:
    """x @ y of one quick dtype, by the kernels or by NumPy as the size has it; None where NumPy is to do it."""
    if x.ndim > 1 and y.ndim > 1:
        return kernels.mm(x, y) if x.ndim == y.ndim == 2 else kernels.bmm(x, y)
    if x.ndim == 2 and y.ndim == 1:
        return kernels.mm(x, y[:, None])[:, 0]
    return kernels.mm(x[None], y)[0] if x.ndim == 1 and y.ndim == 2 else None


def _matmul(x: Any, y: Any) -> Any:
    """x @ y, whatever their dimensions."""
    if x.size + y.size > _large[0] and x.dtype is y.dtype and x.dtype.char in _QUICK:
        found = _of_large(x, y)
        if found is not None:
            return found
    return np.matmul(x, y)


def _bmm(x: Any, y: Any) -> Any:
    """x @ y for batches of matrices."""
    b, n, k = x.shape
    if k == 1 and x.dtype.char in _QUICK:
        return x * y  # outer products
    if x.size + y.size > _large[0] and x.dtype.char in _QUICK:
        found = kernels.bmm(x, y)
        if found is not None:
            return found
    if y.strides[0] == 0 and b > 1 and n and y.strides[1] and y.strides[2] and x.dtype.char in _QUICK:
        return _dot(x.reshape(b * n, k), y[0]).reshape(b, n, y.shape[2])  # one matrix for all rows
    if 0 in x.strides or 0 in y.strides:
        return np.matmul(_laid_out(x), _laid_out(y))
    return np.matmul(x, y)


def _laid_out(x: Any) -> Any:
    """A batch of matrices that BLAS can read: what is expanded within a matrix is filled in, a repeated matrix once."""
    s = x.strides
    if s[1] and s[2]:
        return x
    return np.broadcast_to(np.ascontiguousarray(x[:1]), x.shape) if s[0] == 0 else np.ascontiguousarray(x)


def _scalar(x: Any, number: Any) -> Any:
    """A number as the array's dtype takes it: integers are cut off."""
    kind = x.dtype.kind
    if kind in "iu":
        return x.dtype.type(int(number))
    return number


def _sum_of(input: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """beta · input + alpha · product(); what is multiplied by 0 is not looked at, as in BLAS."""
    beta, alpha = _scalar(input, beta), _scalar(input, alpha)
    out = product()
    if alpha != 1:
        out = np.multiply(out, alpha, out=out) if alpha else np.zeros_like(out)
    if beta == 1:
        return np.add(out, input, out=out)
    if beta:
        return np.add(out, input * beta, out=out)
    return out


def _add_product(input: Any, x: Any, y: Any, beta: Any, alpha: Any) -> Any:
    def product() -> Any:
        out = _matmul(x, y)
        return out if out.ndim else out[...]

    return _sum_of(input, product, beta, alpha)


def _add_batch_product(input: Any, x: Any, y: Any, beta: Any, alpha: Any) -> Any:
    def product() -> Any:
        b, n, m = x.shape
        # one product of the batches laid side by side
        return _matmul(x.transpose(1, 0, 2).reshape(n, b * m), y.reshape(b * m, y.shape[2]))

    return _sum_of(input, product, beta, alpha)


def _add_outer(input: Any, x: Any, y: Any, beta: Any, alpha: Any) -> Any:
    if input.dtype.kind == "b":
        out = np.logical_and(x[:, None], y) if alpha else np.zeros((x.size, y.size), bool)
        return np.logical_or(out, input) if beta else out
    # not BLAS: only the first term is left out where its factor is 0
    return _sum_of(input, lambda: np.multiply(x[:, None], y) * _scalar(x, alpha), beta, 1)


def _cross_product(x: Any, y: Any, dim: int) -> Any:
    """The cross product along `dim`; the other dimensions broadcast.

    Raises:
        RuntimeError: a length along `dim` is not 3 (PyTorch's text).
    """
    from ...shapes import broadcast_shapes, wrap_dim

    axis = wrap_dim(dim, x.ndim)
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {x.shape[axis]} and "
                           f"{y.shape[axis]}")
    out = np.empty(broadcast_shapes(x.shape, y.shape), x.dtype)
    lead: tuple[Any, ...] = (slice(None),) * axis
    a, b, c = ([v[(*lead, i, ...)] for i in range(3)] for v in (x, y, out))
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        np.multiply(a[j], b[k], out=c[i])
        c[i] -= a[k] * b[j]
    return out


def _trilinear(x: Any, w: Any, y: Any) -> Any:
    o, i, j = w.shape
    maps = np.matmul(y, w.transpose(2, 0, 1).reshape(j, o * i)).reshape(y.shape[0], o, i)
    return np.matmul(maps, x[:, :, None])[..., 0]


PRIMITIVES = {
    "mm": _mm, "mv": _mm, "dot": _mm, "bmm": _bmm, "matmul": _matmul, "add_product": _add_product,
    "add_batch_product": _add_batch_product, "add_outer": _add_outer, "cross_product": _cross_product,
    "trilinear": _trilinear, **decomposition.PRIMITIVES, **distance.PRIMITIVES,
}
