"""Cholesky and LU factorizations, and solutions by substitution, of batches of dense matrices; one thread a matrix.

Programs that are compiled ahead of time use them; the process calls LAPACK by NumPy.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.runtime import launch; from flambeau.codegen.linalg import elimination
>>> a, lower, info = np.float64([[[4, 2], [2, 2]]]), np.float64([[[2, 0], [1, 1]]]), np.zeros(1, np.int32)
>>> if codegen.available():
...     launch.run(elimination.cholesky(*map(launch.Spec.of, [lower, info, a])), [lower, info, a])
>>> print(lower[0].tolist(), info)
[[2.0, 0.0], [1.0, 1.0]] [0]
"""

from __future__ import annotations

from collections.abc import Callable

from ...runtime import compilation
from ...runtime.launch import Launch, Spec
from ..scalar.scalar_ir import FLOAT32, FLOAT64


def cholesky(lower: Spec, info: Spec, a: Spec) -> list[Launch]:
    """The launches of L with L Lᵀ = A; of A the lower triangle is read.

    Args:
        lower: output, (batch, n, n), contiguous.
        info: output, (batch,) int32: 0, or the order, from 1 on, of the first leading minor that is not positive.
        a: (batch, n, n) float32 or float64, contiguous.

    Returns:
        Launches over the pointers of these three.
    """
    return _launches("cholesky", a, (a.shape[-1],))


def lu(factors: Spec, order: Spec, parity: Spec, info: Spec, a: Spec) -> list[Launch]:
    """The launches of Gaussian elimination with partial pivoting.

    Args:
        factors: output, (batch, n, n), contiguous: L without its diagonal of ones, and U.
        order: output, (batch, n) int64: row i of L U is row order[i] of A.
        parity: output, (batch,) of A's dtype: 1 or -1, the sign of the permutation.
        info: output, (batch,) int32: 0, or the number, from 1 on, of the first pivot that is 0.
        a: (batch, n, n) float32 or float64, contiguous.

    Returns:
        Launches over the pointers of these five.
    """
    return _launches("lu", a, (a.shape[-1],))


def substitute(x: Spec, a: Spec, b: Spec, *, upper: bool, unit: bool) -> list[Launch]:
    """The launches that solve A X = B with a triangular A.

    Args:
        x: output, (batch, n, m), contiguous.
        a: (batch, n, n), contiguous; the other triangle is not read.
        b: (batch, n, m), contiguous.
        upper: whether A is upper triangular.
        unit: whether its diagonal counts as ones.

    Returns:
        Launches over the pointers of these three.
    """
    return _launches("substitute", a, (a.shape[-1], b.shape[-1]), upper, unit)


def _launches(name: str, a: Spec, words: tuple[int, ...], *variant: bool) -> list[Launch]:
    if a.dtype not in (FLOAT32, FLOAT64):
        raise TypeError(f"cannot factorize matrices of dtype {a.dtype}")

    def generate() -> str:
        from . import elimination_code

        emit: Callable[..., str] = getattr(elimination_code, name)
        return emit(a.dtype, *variant)

    library = compilation.load(f"{name} {a.dtype} {variant}", ("body",), generate, "few")
    return [Launch(library, library.symbol("body"), a.shape[0], words)] if a.size else []


__all__ = ["cholesky", "lu", "substitute"]
