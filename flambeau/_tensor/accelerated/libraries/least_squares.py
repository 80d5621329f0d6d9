"""Least squares on a device by QR decompositions: PyTorch's driver gels on CUDA devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....backends.cuda_devices import current_runtime
from ....backends.cuda_devices.array import DeviceArray
from ....shapes import are_vectors
from .matrices import batched, lead_of, new_column_major, real_dtype, vectors
from .namespace import DeviceNamespace, primitive


@primitive
def lstsq(xp: DeviceNamespace, a: DeviceArray, b: DeviceArray, rcond: float, driver: str) -> Any:
    """The solutions of least norm of matrices of full rank, and sums of squared residuals.

    As in PyTorch, other ranks are not found.
    """
    if driver != "gels":
        return NotImplemented
    vector = are_vectors(a.shape, b.shape)
    right = b[..., None] if vector else b
    lead, (m, n), k = lead_of(a, right), a.shape[-2:], right.shape[-1]
    sides = xp.column_major(right, lead)
    count, solver = len(sides), current_runtime().linear_algebra
    residuals = xp.empty((0,), real_dtype(a))
    if m >= n:
        factors, tau = xp.column_major(a, lead), vectors(xp, lead, n, a.dtype)
        solver.geqrf(factors, tau)
        solver.ormqr(factors, tau, sides, True, True)
        solution = xp.column_major(sides[:, :n])
        solver.trsm(xp.column_major(factors[:, :n]), solution, True, False, False)
        if m > n:
            size = xp.abs(xp.copy(sides[:, n:]))
            squares = xp.sum(xp.mul(size, size), dim=(-2,), keepdim=False, dtype=None)
            residuals = squares.reshape(*lead, k)
    else:
        factors = xp.conjugate(xp.column_major(a.swapaxes(-1, -2), lead))
        tau = vectors(xp, lead, m, a.dtype)
        solver.geqrf(factors, tau)
        solver.trsm(xp.column_major(factors[:, :m]), sides, True, True, False)
        solution = new_column_major(xp, count, n, k, a.dtype)
        current_runtime().copy_between(solution[:, :m], sides)
        xp.fill(solution[:, m:], 0)
        solver.ormqr(factors, tau, solution, True, False)
    found = batched(solution, lead)
    return (found[..., 0] if vector else found, residuals, xp.empty((0,), np.int64), xp.empty((0,), real_dtype(a)))
