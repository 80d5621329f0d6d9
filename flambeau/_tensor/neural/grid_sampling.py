"""`grid_sampler` and `affine_grid_generator`: checks of shapes, and the points of regular grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...engine.tensor_interface import layer
from ...modes import active_tracer, special
from ...ops.declare import REGISTRY
from ...shapes import wrap_dim
from ..dispatch.apply import apply
from ..fastpath.repeated_calls import observing
from ..tensor import Tensor

__all__ = ["affine_grid_generator", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d"]


def _check(input: Tensor, grid: Tensor, mode: int) -> None:
    shape, points = list(input.shape), list(grid.shape)
    if not shape or not points or shape[0] != points[0]:
        raise RuntimeError("grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
                           f"{shape} and grid with sizes {points}")
    if points[-1] != len(shape) - 2:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {len(shape) - 2} in last dimension, "
                           f"but got grid with sizes {points}")
    for i in range(2, len(shape)):
        if shape[i] == 0:
            raise RuntimeError("grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
                               f"sizes {shape} with dimension {i} being empty")
    for rank in (4, 5):
        if len(shape) == rank and len(points) != rank:
            raise RuntimeError(f"grid_sampler(): expected {rank}D input and grid with same number of dimensions, but "
                               f"got input with sizes {shape} and grid with sizes {points}")
    if len(shape) not in (4, 5):
        raise RuntimeError("grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got "
                           f"input with sizes {shape} and grid with sizes {points}")
    if len(shape) == 5 and mode == 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")


def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
                 align_corners: bool) -> Tensor:
    """`nn.functional.grid_sample` with numbers for the modes.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W).
        grid: (N, H', W', 2) or (N, D', H', W', 3), coordinates in [-1, 1], x first.
        interpolation_mode: 0 bilinear, 1 nearest, 2 bicubic.
        padding_mode: 0 zeros, 1 border, 2 reflection.
        align_corners: whether -1 and 1 are the centers of the outermost pixels, not their borders.

    >>> import flambeau as torch
    >>> torch.grid_sampler(torch.tensor([[[[1., 2.]]]]), torch.tensor([[[[0., 0.]]]]), 0, 0, False)
    tensor([[[[1.5000]]]])
    """
    _check(input, grid, interpolation_mode)
    if input.dtype is not grid.dtype:
        names = [x.type().rpartition(".")[2].removesuffix("Tensor") for x in (input, grid)]
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")
    op = REGISTRY["_grid_sampler_2d" if input.dim() == 4 else "_grid_sampler_3d"]
    tracer = active_tracer.get() if special[0] else None
    finds_taps_again = special[0] == observing[0] or (tracer is not None and op.name in tracer.lowered_whole)
    saved: Any = None if finds_taps_again else []
    return apply(op, [input, grid], {"mode": interpolation_mode, "padding": padding_mode,
                                     "align_corners": bool(align_corners), "saved": saved})


def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
                    align_corners: bool) -> Tensor:
    """`grid_sampler` of images.

    >>> import flambeau as torch
    >>> torch.grid_sampler_2d(torch.tensor([[[[1., 2.]]]]), torch.tensor([[[[0., 0.]]]]), 0, 0, False)
    tensor([[[[1.5000]]]])
    """
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
                    align_corners: bool) -> Tensor:
    """`grid_sampler` of volumes.

    >>> import flambeau as torch
    >>> torch.grid_sampler_3d(torch.tensor([[[[[1., 2.]]]]]), torch.zeros(1, 1, 1, 1, 3), 0, 0, False)
    tensor([[[[[1.5000]]]]])
    """
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """The points of a regular grid under affine maps; see `nn.functional.affine_grid`.

    Args:
        theta: (N, 2, 3) or (N, 3, 4).
        size: the shape of the images, (N, C, H, W) or (N, C, D, H, W).
        align_corners: whether -1 and 1 are the centers of the outermost pixels, not their borders.

    >>> import flambeau as torch
    >>> torch.affine_grid_generator(torch.tensor([[[1., 0., 0.], [0., 1., 0.]]]), (1, 1, 1, 2), False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    fn = layer.functions
    if len(size) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    spatial = tuple(size[2:])
    rank = len(spatial)
    options: dict[str, Any] = {"dtype": theta.dtype, "device": theta.device}
    columns = []
    for axis in reversed(range(rank)):
        steps = spatial[axis]
        line = fn.linspace(-1, 1, steps, **options) if steps > 1 else fn.zeros(steps, **options)
        if not align_corners:
            line = line * (steps - 1) / steps
        columns.append(line.reshape([-1 if d == axis else 1 for d in range(rank)]).expand(spatial))
    base = fn.stack([*columns, fn.ones(spatial, **options)], dim=-1)
    base = base.reshape(1, -1, rank + 1).expand(size[0], -1, -1)
    wrap_dim(2, theta.dim())
    if theta.dim() == 3 and (theta.size(0), theta.size(2)) != (size[0], rank + 1):
        raise RuntimeError("Expected size for first two dimensions of batch2 tensor to be: "
                           f"[{size[0]}, {rank + 1}] but got: [{theta.size(0)}, {theta.size(2)}].")
    return apply(REGISTRY["_affine_grid"], [theta, base], {"size": (size[0], *spatial, rank)})
