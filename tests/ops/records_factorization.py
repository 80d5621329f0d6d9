"""Records of LU, LDL and compact QR factorizations, and of linear systems and products with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from flambeau import warning_location
from flambeau._tensor.linalg import factorizations
from tests.ops.spec import Make, Sample, record, sample

warning_location.given.update(factorizations.DEPRECATIONS)


def well_conditioned(make: Make, *shape: int) -> Any:
    """Matrices whose pivots are apart: the rows in another order than that of their size."""
    x = make(*shape, low=-0.3, high=0.3, requires_grad=False)
    m, n = shape[-2:]
    diagonal = np.zeros((m, n))
    for i in range(min(m, n)):
        diagonal[(i + 1) % min(m, n), i] = 2.0 + i
    x = x + make.module.tensor(diagonal, dtype=make.dtype)
    return x.requires_grad_() if make.requires_grad else x


def matrices(make: Make) -> Iterable[Sample]:
    for shape in ((3, 3), (2, 3, 3), (2, 4), (4, 2), (2, 0, 0)):
        yield sample(well_conditioned(make, *shape))


record("linalg.lu", matrices, complex=True, covers=("linalg_lu",))
record("linalg.lu_factor", matrices, complex=True)
record("linalg.lu_factor_ex", matrices, complex=True)
record("lu", matrices, complex=True)


def factored(make: Make, *shape: int) -> tuple[Any, Any]:
    """An LU factorization as if it were independent of a matrix, and its pivots."""
    m = shape[-2]
    k = min(shape[-2:])
    lu = make(*shape, low=-0.5, high=0.5, requires_grad=False) + make.module.tensor(
        np.eye(*shape[-2:]) * 2, dtype=make.dtype)
    pivots = np.broadcast_to(np.minimum(np.arange(k) + 2, m), (*shape[:-2], k))
    return (lu.requires_grad_() if make.requires_grad else lu), make.module.tensor(
        pivots.copy(), dtype=make.module.int32)


record("lu_unpack", lambda make: [sample(*factored(make, *shape)) for shape in ((3, 3), (2, 4), (4, 2), (2, 3, 3))],
       complex=True, covers=("_lu_unpack",))
record("linalg.lu_solve", lambda make: [
    sample(*factored(make, 3, 3), make(3, 2)), sample(*factored(make, 3, 3), make(2, 3), left=False),
    sample(*factored(make, 3, 3), make(3, 2), adjoint=True),
    sample(*factored(make, 3, 3), make(2, 3), left=False, adjoint=True),
    sample(*factored(make, 2, 3, 3), make(3, 1))], complex=True)
record("lu_solve", lambda make: [sample(make(3, 2), *factored(make, 3, 3))], complex=True)


def symmetric(make: Make, *shape: int) -> Any:
    x = make(*shape, requires_grad=False)
    return x + x.mT


record("linalg.ldl_factor", lambda make: [sample(symmetric(make, 3, 3)), sample(symmetric(make, 2, 4, 4))],
       differentiable=False, complex=True)
record("linalg.ldl_factor_ex", lambda make: [sample(symmetric(make, 3, 3)), sample(symmetric(make, 2, 4, 4))],
       differentiable=False, complex=True)


def ldl_systems(make: Make) -> Iterable[Sample]:
    for shape in ((3, 3), (2, 4, 4)):
        a = symmetric(make, *shape)
        # the factors of narrow dtypes, too, in which no matrix is factored
        wide = a.to(make.module.complex128 if a.is_complex() else make.module.float64)
        ld, pivots = make.module.linalg.ldl_factor(wide)
        yield sample(ld.to(a.dtype), pivots, make(shape[-1], 2, requires_grad=False))


record("linalg.ldl_solve", ldl_systems, differentiable=False, complex=True)
record("geqrf", lambda make: [
    sample(make(*shape, requires_grad=False)) for shape in ((3, 3), (2, 4), (4, 2), (2, 3, 3))],
       differentiable=False, complex=True)
record("linalg.householder_product", lambda make: [
    sample(make(4, 3), make(3)), sample(make(4, 3), make(2)), sample(make(2, 3, 3), make(2, 3))], complex=True)
record("orgqr", lambda make: [sample(make(4, 3), make(3))], complex=True)
record("ormqr", lambda make: [
    sample(make(4, 2), make(2), make(4, 3)), sample(make(4, 2), make(2), make(4, 3), transpose=True),
    sample(make(4, 2), make(2), make(3, 4), left=False),
    sample(make(2, 3, 2), make(2, 2), make(2, 2, 3), left=False, transpose=True)], complex=True)
record("triangular_solve", lambda make: [
    sample(make(3, 2), well_conditioned(make, 3, 3).roll(-1, -2), upper, transpose, unit)
    for upper in (True, False) for transpose in (True, False) for unit in (True, False)] + [
        sample(make(3, 2), well_conditioned(make, 2, 3, 3).roll(-1, -2))], complex=True, covers=("_triangular_solve",))
