"""Kernels of `grid_sample` and its gradients.

Every function returns None where NumPy has to compute the result: there is no kernel for the dtype, or a plane is too
large for offsets of 32 bits.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np

from ....codegen.grid_sampling import grid_sampling
from ....codegen.grid_sampling.grid_sampling import NEAREST, Sampling
from ....runtime.launch import Spec
from .. import empty_array
from ..launching import Plan, PlanCache, launch_of_result

ndarray = np.ndarray
_plans = PlanCache()


@cache
def _sampling(rank: int, mode: int, padding: int, align_corners: bool) -> Sampling:
    return Sampling(rank, mode, padding, align_corners)


def _run(kind: str, modes: tuple[int, int, bool], image: ndarray, grid: ndarray, arrays: tuple[ndarray, ...]) -> bool:
    """Run a kernel on arrays, of which `image` is (N, C, *spatial); whether there is one."""
    key = kind, modes, image.dtype, image.shape, image.strides, grid.shape
    plan = _plans.plans.get(key)
    if plan is None:
        spec = Spec.of(image)
        if not grid_sampling.is_addressable(spec):
            return False
        launches = grid_sampling.launches(kind, _sampling(grid.shape[-1], *modes), spec, prod(grid.shape[1:-1]))
        plan = _plans.insert(key, Plan((), launches))
    plan.run(arrays)
    return True


def _is_supported(grid: ndarray, *others: ndarray) -> bool:
    dtype = grid.dtype
    return dtype.char in "fd" and dtype.isnative and grid.size > 0 and all(
        x.__class__ is ndarray and x.dtype == dtype and x.size for x in others)


def _as_images(x: ndarray, rank: int) -> ndarray:
    """An array (*batch, C, *spatial) with one batch dimension."""
    return x if x.ndim == rank + 2 else x.reshape(-1, *x.shape[x.ndim - rank - 1:])


def _as_points(grid: ndarray, rank: int) -> ndarray:
    """A row-major grid (N, *points, rank)."""
    grid = np.ascontiguousarray(grid)
    return grid if grid.ndim == rank + 2 else grid.reshape(-1, *grid.shape[grid.ndim - rank - 1:])


def sample(input: ndarray, grid: ndarray, modes: tuple[int, int, bool]) -> ndarray | None:
    """The pixels (*batch, C, *points) of `input` (*batch, C, *spatial) at the points of `grid` (*batch, *points, rank).

    Args:
        modes: mode, padding and align_corners.
    """
    if not _is_supported(grid, input):
        return None
    rank = grid.shape[-1]
    out = empty_array((*input.shape[:input.ndim - rank], *grid.shape[grid.ndim - rank - 1:-1]), input.dtype)
    images, points = _as_images(input, rank), _as_points(grid, rank)
    return out if _run("forward", modes, images, points, (out, images, points)) else None


def sample_launch(input: ndarray, grid: ndarray, modes: tuple[int, int, bool]) -> Any:
    """`sample` of images and points of these layouts, with one batch dimension; None if there is none."""
    rank = grid.shape[-1]
    spec = Spec.of(input)
    if not _is_supported(grid, input) or not (input.ndim == grid.ndim == rank + 2) or not (
            grid.flags.c_contiguous and grid_sampling.is_addressable(spec)):
        return None
    launches = grid_sampling.launches("forward", _sampling(rank, *modes), spec, prod(grid.shape[1:-1]))
    return launch_of_result((*input.shape[:2], *grid.shape[1:-1]), input.dtype, launches, 2)


def image_gradient(g: ndarray, input: ndarray, grid: ndarray, modes: tuple[int, int, bool]) -> ndarray | None:
    """The gradient of the input by the gradient `g` of the result."""
    if not _is_supported(grid, g):
        return None
    rank = grid.shape[-1]
    out = empty_array(input.shape, g.dtype)
    images, points, g = _as_images(out, rank), _as_points(grid, rank), np.ascontiguousarray(g)
    return out if _run("image", modes, images, points, (images, g, points)) else None


def grid_gradient(g: ndarray, input: ndarray, grid: ndarray, modes: tuple[int, int, bool]) -> ndarray | None:
    """The gradient of the grid by the gradient `g` of the result."""
    if modes[0] == NEAREST:
        return np.zeros(grid.shape, grid.dtype)
    if not _is_supported(grid, g, input):
        return None
    rank = grid.shape[-1]
    out = empty_array(grid.shape, grid.dtype)
    images, points, g = _as_images(input, rank), _as_points(grid, rank), np.ascontiguousarray(g)
    return out if _run("grid", modes, images, points, (out, g, images, points)) else None


__all__: list[Any] = ["grid_gradient", "image_gradient", "sample", "sample_launch"]
