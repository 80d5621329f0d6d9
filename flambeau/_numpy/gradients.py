"""Derivatives of sampled functions by differences."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from . import _dtypes_impl, _util
from ._normalizations import ArrayLike, normalize_array_like, normalizer


def _spacings(f: Any, spacings: tuple[Any, ...], axes: tuple[int, ...]) -> list[Any]:
    """The distance of samples along each axis, or a tensor of distances.

    Raises:
        ValueError: coordinates of another length than the axis.
        TypeError: not one spacing for each axis.
    """
    if not spacings:
        return [1.0] * len(axes)
    values = [each if _dtypes_impl.is_scalar(each) else normalize_array_like(each) for each in spacings]
    if len(values) == 1 and (_dtypes_impl.is_scalar(values[0]) or values[0].ndim == 0):
        return values * len(axes)
    if len(values) != len(axes):
        raise TypeError("invalid number of arguments")
    found: list[Any] = []
    for value, axis in zip(values, axes, strict=True):
        if _dtypes_impl.is_scalar(value) or value.ndim == 0:
            found.append(value)
            continue
        coordinates = value
        if coordinates.ndim != 1:
            raise ValueError("distances must be either scalars or 1d")
        if len(coordinates) != f.shape[axis]:
            raise ValueError("when 1d, distances must match the length of the corresponding dimension")
        if not (coordinates.is_floating_point() or coordinates.is_complex()):
            coordinates = coordinates.double()
        distances = torch.diff(coordinates)
        found.append(distances[0] if (distances == distances[0]).all() else distances)
    return found


def _edge_weights(near: Any, far: Any) -> tuple[Any, Any, Any]:
    """Weights of a derivative of second order at the first of three samples."""
    both = near + far
    return -(2.0 * near + far) / (near * both), both / (near * far), -near / (far * both)


def _along(f: Any, axis: int, spacing: Any, edge_order: int) -> Any:
    """The derivative along the last dimension after `axis` was moved there."""
    f = torch.moveaxis(f, axis, -1)
    uniform = _dtypes_impl.is_scalar(spacing) or spacing.ndim == 0
    inner, outer = f[..., :-2], f[..., 2:]
    if uniform:
        middle = (outer - inner) / (2.0 * spacing)
        first = last = (spacing, spacing)
    else:
        before, after = spacing[:-1], spacing[1:]
        both = before + after
        middle = (-after / (before * both) * inner + (after - before) / (before * after) * f[..., 1:-1]
                  + before / (after * both) * outer)
        first, last = (spacing[0], spacing[min(1, len(spacing) - 1)]), (spacing[-1], spacing[max(-2, -len(spacing))])
    if edge_order == 1:
        left = (f[..., 1] - f[..., 0]) / first[0]
        right = (f[..., -1] - f[..., -2]) / last[0]
    else:
        left = sum(weight * f[..., at] for at, weight in enumerate(_edge_weights(*first)))
        right = -sum(weight * f[..., -1 - at] for at, weight in enumerate(_edge_weights(*last)))
    result = torch.cat((left.unsqueeze(-1), middle, right.unsqueeze(-1)), -1)
    return torch.moveaxis(result, -1, axis).to(f.dtype)


@normalizer
def gradient(f: ArrayLike, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """The derivative along each axis: central differences inside, differences to one side at the edges.

    Args:
        f: values of a function on a grid.
        varargs: one distance for all axes, or for each axis its distance or the coordinates of its samples.
        axis: the axis or axes; all by default.
        edge_order: 1 or 2, the order of accuracy at the edges.

    Raises:
        ValueError: too few samples, or another order.

    >>> import flambeau._numpy as np
    >>> np.gradient([1.0, 4.0, 9.0])
    torch.ndarray([3., 4., 5.], dtype=float64)
    """
    axes = tuple(range(f.ndim)) if axis is None else _util.normalize_axis_tuple(axis, f.ndim)
    spacings = _spacings(f, varargs, axes)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    if not (f.is_floating_point() or f.is_complex()):
        f = f.double()
    for each in axes:
        if f.shape[each] < edge_order + 1:
            raise ValueError("Shape of array too small to calculate a numerical gradient, "
                             "at least (edge_order + 1) elements are required.")
    results = [_along(f, each, spacing, edge_order) for each, spacing in zip(axes, spacings, strict=True)]
    return results[0] if len(results) == 1 else results


__all__ = ["gradient"]
