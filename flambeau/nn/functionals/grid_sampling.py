"""Sampling of images at the points of a grid: `grid_sample`, `affine_grid`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.fastpath.repeated_calls import repeated
from ...warning_location import user_stacklevel

__all__ = ["affine_grid", "grid_sample"]

MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


@repeated
def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:
    """The pixels of images, interpolated at the points of a grid.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W).
        grid: (N, H', W', 2) or (N, D', H', W', 3), coordinates in [-1, 1], x first.
        mode: "bilinear" (trilinear for volumes), "nearest" or "bicubic" (images only).
        padding_mode: values outside of the image: "zeros", "border" or "reflection".
        align_corners: whether -1 and 1 are the centers of the outermost pixels, not their borders; False by default,
            with a warning.

    Returns:
        (N, C, H', W') or (N, C, D', H', W').

    Raises:
        ValueError: a mode is unknown.
        RuntimeError: shapes or dtypes do not match.

    >>> import flambeau as torch
    >>> image = torch.tensor([[[[1., 2.], [3., 4.]]]])
    >>> torch.nn.functional.grid_sample(image, torch.tensor([[[[0., -0.5]]]]), align_corners=False)
    tensor([[[[1.5000]]]])
    """
    if mode not in MODES:
        raise ValueError("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
                         f"but got: '{mode}'")
    if padding_mode not in PADDING_MODES:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
                         f"but got: '{padding_mode}'")
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
                      "Please specify align_corners=True if the old behavior is desired. "
                      "See the documentation of grid_sample for details.", stacklevel=user_stacklevel())
        align_corners = False
    return fn.grid_sampler(input, grid, MODES[mode], PADDING_MODES[padding_mode], align_corners)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid of points for `grid_sample` that affine maps make from a regular one.

    Args:
        theta: (N, 2, 3) or (N, 3, 4), the maps.
        size: the shape of the result of `grid_sample`, (N, C, H, W) or (N, C, D, H, W).
        align_corners: as in `grid_sample`.

    Returns:
        (N, H, W, 2) or (N, D, H, W, 3).

    Raises:
        ValueError: `theta` is not floating-point, or its shape or `size` is wrong.
        NotImplementedError: `size` has neither 4 nor 5 entries.

    >>> import flambeau as torch
    >>> identity = torch.tensor([[[1., 0., 0.], [0., 1., 0.]]])
    >>> torch.nn.functional.affine_grid(identity, (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
                      "Please specify align_corners=True if the old behavior is desired. "
                      "See the documentation of grid_sample for details.", stacklevel=user_stacklevel())
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) == 4:
        if theta.dim() != 3 or tuple(theta.shape[-2:]) != (2, 3):
            raise ValueError(f"Expected a batch of 2D affine matrices of shape Nx2x3 for size {size}. "
                             f"Got {theta.shape}.")
    elif len(size) == 5:
        if theta.dim() != 3 or tuple(theta.shape[-2:]) != (3, 4):
            raise ValueError(f"Expected a batch of 3D affine matrices of shape Nx3x4 for size {size}. "
                             f"Got {theta.shape}.")
    else:
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
                                  f"respectively. Got size {size}.")
    if align_corners and min(size[2:]) == 1:
        warnings.warn("Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
                      "align_corners=True. This is not an intended use case of affine_grid. "
                      "See the documentation of affine_grid for details.", stacklevel=user_stacklevel())
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return fn.affine_grid_generator(theta, size, align_corners)
