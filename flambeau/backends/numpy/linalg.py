"""Matmuls on arrays: by compiled kernels where these are faster than NumPy's BLAS.

NumPy passes transposed float operands to BLAS without a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ..compiled import bfloat16_products
from ..compiled.families import matmul as kernels
from .memory import check_scalar_fits, scalar_operand

_dot = np.dot
_kernel_threshold = kernels.MIN_ELEMENTS
_BLAS_DTYPES = frozenset("fd")


def _mm(x: Any, y: Any) -> Any:
    """x @ y for matrices and vectors."""
    if x.dtype.char not in _BLAS_DTYPES or x.dtype is not y.dtype:
        return _narrow_mm(x, y) if x.dtype == dtypes.BFLOAT16 else np.matmul(x, y)
    size = x.size + y.size
    if size > _kernel_threshold[0] and (y.ndim > 1 or size > kernels.most_by_blas_with_vector()) and (
            result := _mm_by_kernel(x, y)) is not None:
        return result
    return _dot(x, y)


def _narrow_mm(x: Any, y: Any) -> Any:
    """x @ y of bfloat16, rounded once."""
    products = bfloat16_products(x.size + y.size)
    result = None if products is None else products.mm(x, y)
    return dtypes.cast(_mm(dtypes.widen(x), dtypes.widen(y)), dtypes.BFLOAT16) if result is None else result


def _mm_by_kernel(x: Any, y: Any) -> Any:
    """Return x @ y by compiled kernels; None where NumPy computes it."""
    if x.ndim > 1 and y.ndim > 1:
        return kernels.mm(x, y) if x.ndim == y.ndim == 2 else kernels.bmm(x, y)
    if x.ndim == 2 and y.ndim == 1:
        return kernels.mm(x, y[:, None])[:, 0]
    return kernels.mm(x[None], y)[0] if x.ndim == 1 and y.ndim == 2 else None


def _matmul(x: Any, y: Any) -> Any:
    """x @ y for any numbers of dimensions."""
    if x.size + y.size > _kernel_threshold[0] and x.dtype is y.dtype and x.dtype.char in _BLAS_DTYPES:
        result = _mm_by_kernel(x, y)
        if result is not None:
            return result
    return np.matmul(x, y)


def _bmm(x: Any, y: Any) -> Any:
    """x @ y for batches of matrices."""
    if x.dtype == dtypes.BFLOAT16:
        return _narrow_bmm(x, y)
    b, n, k = x.shape
    if k == 1 and x.dtype.char in _BLAS_DTYPES:
        return x * y  # outer products
    if x.size + y.size > _kernel_threshold[0] and x.dtype.char in _BLAS_DTYPES:
        result = kernels.bmm(x, y)
        if result is not None:
            return result
    if y.strides[0] == 0 and b > 1 and n and y.strides[1] and y.strides[2] and x.dtype.char in _BLAS_DTYPES:
        return _dot(x.reshape(b * n, k), y[0]).reshape(b, n, y.shape[2])  # one matrix for all batch elements
    if 0 in x.strides or 0 in y.strides:
        return np.matmul(_blas_strides(x), _blas_strides(y))
    return np.matmul(x, y)


def _narrow_bmm(x: Any, y: Any) -> Any:
    """x @ y for batches of bfloat16, rounded once."""
    products = bfloat16_products(x.size + y.size)
    result = None if products is None else products.bmm(x, y)
    return dtypes.cast(_bmm(dtypes.widen(x), dtypes.widen(y)), dtypes.BFLOAT16) if result is None else result


def _blas_strides(x: Any) -> Any:
    """Return matrices with strides that BLAS supports: expanded dimensions are copied, a repeated matrix once."""
    s = x.strides
    if s[1] and s[2]:
        return x
    return np.broadcast_to(np.ascontiguousarray(x[:1]), x.shape) if s[0] == 0 else np.ascontiguousarray(x)


def _scalar(x: Any, value: Any) -> Any:
    """Return a scalar for arithmetic with the array: truncated for integer arrays.

    Raises:
        RuntimeError: it does not fit the array's dtype (PyTorch's text).
    """
    if x.dtype.kind in "iu":
        return x.dtype.type(scalar_operand(value, x.dtype))
    if value.__class__ is complex or not -60000 < value < 60000:
        check_scalar_fits(value, dtypes.of(x.dtype))
    return value


def _scaled_sum(input: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """Return beta · input + alpha · product(); as in BLAS, a factor 0 ignores NaN in its operand."""
    beta, alpha = _scalar(input, beta), _scalar(input, alpha)
    out = product()
    if alpha != 1:
        out = np.multiply(out, alpha, out=out) if alpha else np.zeros_like(out)
    if beta == 1:
        return np.add(out, input, out=out)
    if beta:
        return np.add(out, input * beta, out=out)
    return out


def _add_matmul(input: Any, x: Any, y: Any, beta: Any, alpha: Any) -> Any:
    def product() -> Any:
        out = _matmul(x, y)
        return out if out.ndim else out[...]

    return _scaled_sum(input, product, beta, alpha)


def _addbmm(input: Any, x: Any, y: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    def product() -> Any:
        b, n, m = x.shape
        # one matmul, of the batches concatenated
        return _matmul(x.transpose(1, 0, 2).reshape(n, b * m), y.reshape(b * m, y.shape[2]))

    return _scaled_sum(input, product, beta, alpha)


def _check_factor(name: str, value: Any, kind: str) -> None:
    """Check that a factor of `addr` is of the kind of the result.

    Raises:
        RuntimeError: it is a bool or floating-point where the result is not (PyTorch's text).
    """
    if value.__class__ is bool and kind != "b":
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if kind in "biu" and isinstance(value, (float, complex)):
        raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")


def _addr(input: Any, x: Any, y: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    kind = input.dtype.kind
    _check_factor("beta", beta, kind)
    _check_factor("alpha", alpha, kind)
    if kind == "b":
        out = np.logical_and(x[:, None], y) if alpha else np.zeros((x.size, y.size), bool)
        return np.logical_or(out, input) if beta else out
    # unlike in BLAS, only beta = 0 ignores NaN
    return _scaled_sum(input, lambda: np.multiply(x[:, None], y) * _scalar(x, alpha), beta, 1)


def _cross(x: Any, y: Any, dim: int) -> Any:
    """The cross product along `dim`; the other dimensions broadcast.

    Raises:
        RuntimeError: a length along `dim` is not 3 (PyTorch's text).
    """
    from ...shapes import broadcast_shapes, wrap_dim

    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
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
    "mm": _mm, "mv": _mm, "dot": _mm, "bmm": _bmm, "matmul": _matmul, "add_matmul": _add_matmul,
    "addbmm": _addbmm, "addr": _addr, "cross": _cross,
    "trilinear": _trilinear,
}
