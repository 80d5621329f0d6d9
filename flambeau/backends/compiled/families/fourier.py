"""Kernels of Fourier transforms along one dimension.

Functions return None where NumPy or SciPy has to compute the result: there is no kernel of the length or dtype.
"""

from __future__ import annotations

import numpy as np

from ....codegen.fourier import transforms
from .. import empty_array
from ..launching import Plan, PlanCache
from .copying import new_copy

ndarray = np.ndarray
_plans = PlanCache()
#: dtype of an array -> that of its real parts
_PARTS: dict[np.dtype, np.dtype] = {np.dtype(kind): np.dtype(part) for kind, part in (
    (np.float32, np.float32), (np.float64, np.float64), (np.complex64, np.float32), (np.complex128, np.float64))}
_COMPLEX: dict[np.dtype, np.dtype] = {
    np.dtype(np.float32): np.dtype(np.complex64), np.dtype(np.float64): np.dtype(np.complex128)}
_FROM_SPECTRA = ("c2r", "r2c_adjoint")
_TO_SPECTRA = ("r2c", "c2r_adjoint")


def _two_dimensions(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Dimensions merged with their neighbours where those are contiguous: two of them if that suffices."""
    extents: list[int] = []
    steps: list[int] = []
    for n, stride in zip(shape, strides, strict=True):
        if n == 1:
            continue
        if steps and steps[-1] == n * stride:
            extents[-1] *= n
            steps[-1] = stride
        else:
            extents.append(n)
            steps.append(stride)
    missing = 2 - len(extents)
    return [1] * missing + extents, [0] * missing + steps


def transform(kind: str, x: ndarray, axis: int, length: int, scale: float) -> ndarray | None:
    """The transforms along one dimension, contiguous if it is the last one.

    Args:
        kind: of `codegen.fourier.transforms.KINDS`.
        x: complex, or real for "r2c" and "c2r_adjoint".
        axis: the dimension.
        length: of the signal.
        scale: multiplies the result.
    """
    part = _PARTS.get(x.dtype)
    if part is None or x.__class__ is not ndarray or not transforms.is_supported(kind, length, part):
        return None
    if kind in _FROM_SPECTRA and x.shape[axis] != length // 2 + 1:
        return None
    rows = x if axis == x.ndim - 1 else x.swapaxes(axis, -1)
    if rows.strides[-1] != rows.itemsize:
        rows = new_copy(rows)
    extents, steps = _two_dimensions(rows.shape[:-1], rows.strides[:-1])
    if len(extents) > 2:
        rows = new_copy(rows)
        extents, steps = _two_dimensions(rows.shape[:-1], rows.strides[:-1])
    key = kind, length, part, *extents, *steps, scale
    plan = _plans.plans.get(key)
    if plan is None:
        plan = _plans.insert(key, Plan((), transforms.launches(
            kind, length, part, (extents[0], extents[1]), (steps[0], steps[1]), scale)))
    count = length // 2 + 1 if kind in _TO_SPECTRA else length
    dtype: np.dtype = part if kind in _FROM_SPECTRA else _COMPLEX[part]
    out = empty_array((*rows.shape[:-1], count), dtype)
    table = transforms.table(kind, length, part)
    plan.run((out, rows, table))
    return out if axis == x.ndim - 1 else out.swapaxes(axis, -1)


__all__ = ["transform"]
