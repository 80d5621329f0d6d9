"""Sampling of images at the points of a grid, and grids of affine maps.

The interpolated value is Σ Π_d w_d(t_d) · pixel over taps, a product of one-dimensional weights. Kernels compute it and
its first derivatives on arrays. Elsewhere taps, fractions t and their slopes by the grid are arrays in the list
`saved`, axis by axis, and formulas write t as a function of the grid, so that they can be differentiated again.
"""

from __future__ import annotations

from itertools import product

from ..declare import composite, linear, not_implemented, op

_NOT_REAL = ("bool", "integer", "complex")
_CUBIC = -0.75
_NEAREST = 1


def _near(x):
    """The cubic kernel at distances |x| ≤ 1."""
    return ((_CUBIC + 2) * x - (_CUBIC + 3)) * x * x + 1


def _far(x):
    """The cubic kernel at distances 1 ≤ |x| ≤ 2."""
    return ((x - 5) * x + 8) * x * _CUBIC - 4 * _CUBIC


def _near_slope(x):
    return (3 * (_CUBIC + 2) * x - 2 * (_CUBIC + 3)) * x


def _far_slope(x):
    return ((3 * x - 10) * x + 8) * _CUBIC


def _position(xp, grid, axis, x, fraction, negative, slope):
    """The position between pixels, as a function of the grid: a derivative may compute no array that is not saved."""
    if isinstance(grid, type(fraction)):
        return fraction
    moved = xp._shift_and_scale(grid[..., grid.shape[-1] - 1 - axis], shift=x, factor=slope)
    return xp._shift_and_scale(moved, shift=negative, factor=1.0)


def _axis_weights(xp, grid, axis, arrays, by_grid):
    """The weights of an axis' taps, or their derivatives by the grid."""
    if len(arrays) == 1:  # the nearest pixel
        return arrays
    n = (len(arrays) - 4) // 2
    factors = arrays[4 + n:] if by_grid else arrays[4:4 + n]
    if by_grid and n == 2:
        return factors
    t = _position(xp, grid, axis, *arrays[:4])
    if n == 2:
        weights = [1 - t, t]
    elif by_grid:
        weights = [_far_slope(t + 1), _near_slope(t), -_near_slope(1 - t), -_far_slope(2 - t)]
    else:
        weights = [_far(t + 1), _near(t), _near(1 - t), _far(2 - t)]
    return [xp._shift_and_scale(w, shift=None, factor=factor) for w, factor in zip(weights, factors, strict=True)]


def _scaled(xp, x, factor):
    """The product, where `factor` may be an array without gradient."""
    from numpy import ndarray

    if isinstance(factor, ndarray) and not isinstance(x, ndarray):
        return xp._shift_and_scale(x, shift=None, factor=factor)
    return x * factor


def _combined(xp, grid, saved, channels, by_axis=None):
    """The flat index (..., C, *points) and the weight (..., 1, *points) of each combination of taps.

    Args:
        by_axis: the axis by whose coordinate the weights are differentiated.
    """
    import numpy as np

    rank = grid.shape[-1]
    indices, axes = _split(saved, rank)
    weights = [_axis_weights(xp, grid, axis, arrays, axis == by_axis) for axis, arrays in enumerate(axes)]
    for flat, choice in zip(indices, product(*weights), strict=True):
        total, *others = sorted(choice, key=lambda w: isinstance(w, np.ndarray))
        for w in others:
            total = _scaled(xp, total, w)
        lead, points = flat.shape[:-rank], flat.shape[-rank:]
        total = total.reshape((*lead, 1, *points))
        yield np.broadcast_to(flat.reshape((*lead, 1, *points)), (*lead, channels, *points)), total


def _split(saved, rank):
    """The flat indices, and the arrays by axis, of a list that `grid_taps` filled."""
    if len(saved) == 2:  # the nearest pixel
        return saved[:1], [saved[1:]]
    taps = 2 if len(saved) == 2 ** rank + 8 * rank else 4
    count, n = taps ** rank, 4 + 2 * taps
    return saved[:count], [saved[count + axis * n: count + (axis + 1) * n] for axis in range(rank)]


def _sample(xp, input, grid, *, mode, padding, align_corners, saved):
    rank = grid.shape[-1]
    taps = _taps(xp, grid, input.shape[-rank:], mode, padding, align_corners)
    if saved is not None:
        saved[:] = taps
    total = None
    for index, weight in _combined(xp, grid, taps, input.shape[-rank - 1]):
        part = _scaled(xp, xp._gather_planes(input, index=index, dims=rank), weight)
        total = part if total is None else total + part
    return total


def _taps(xp, grid, sizes, mode, padding, align_corners):
    """The arrays of `saved`."""
    indices, axes = xp.grid_taps(grid, tuple(sizes), mode, padding, align_corners)
    return [*indices, *(array for arrays in axes for array in arrays)]


@op(expose=(), differentiable=False, batching_rule="trailing")
def _store_grid_taps(xp, grid, *, sizes, mode, padding, align_corners, saved):
    """The grid; `saved` receives its taps in an image of these sizes."""
    saved[:] = _taps(xp, grid, sizes, mode, padding, align_corners)
    return grid


def _known_taps(xp, input, grid, mode, padding, align_corners, saved):
    """The taps that the forward stored, or those of the grid."""
    if saved is None:
        saved = []
        xp._store_grid_taps(grid, sizes=tuple(input.shape[-grid.shape[-1]:]), mode=mode, padding=padding,
                            align_corners=align_corners, saved=saved)
    return saved


@op(node="GridSampler2DBackward0", expose=(),
    unsupported_dtypes=not_implemented("grid_sampler_2d_cpu_kernel_impl", *_NOT_REAL),
    saved="align_corners grid input interpolation_mode=mode padding_mode=padding")
def _grid_sampler_2d(xp, input, grid, *, mode, padding, align_corners, saved):
    """The pixels of images (..., C, H, W), interpolated at the points of a grid (..., H', W', 2).

    Args:
        saved: a list that receives the taps; None: derivatives find them again.
    """
    return _sample(xp, input, grid, mode=mode, padding=padding, align_corners=align_corners, saved=saved)


@op(node="GridSampler3DBackward0", expose=(), unsupported_dtypes=not_implemented("grid_sampler3d_cpu", *_NOT_REAL),
    saved="align_corners grid input interpolation_mode=mode padding_mode=padding")
def _grid_sampler_3d(xp, input, grid, *, mode, padding, align_corners, saved):
    """The voxels of volumes (..., C, D, H, W), interpolated at the points of a grid (..., D', H', W', 3)."""
    return _sample(xp, input, grid, mode=mode, padding=padding, align_corners=align_corners, saved=saved)


@composite(expose=())
def _grid_sampler_input_gradient(xp, g, input, grid, *, mode, padding, align_corners, saved):
    """The gradient of the input; arguments are those of the forward."""
    rank = grid.shape[-1]
    taps = _known_taps(xp, input, grid, mode, padding, align_corners, saved)
    total = None
    for index, weight in _combined(xp, grid, taps, input.shape[-rank - 1]):
        part = xp._scatter_planes(_scaled(xp, g, weight), input, index=index, dims=rank, overlapping=True)
        total = part if total is None else total + part
    return total


@composite(expose=())
def _grid_sampler_grid_gradient(xp, g, input, grid, *, mode, padding, align_corners, saved):
    """The gradient of the grid; arguments are those of the forward."""
    if mode == _NEAREST:  # constant between jumps
        return xp.zeros_like(grid)
    rank = grid.shape[-1]
    taps = _known_taps(xp, input, grid, mode, padding, align_corners, saved)
    parts = []
    for axis in reversed(range(rank)):
        total = None
        for index, weight in _combined(xp, grid, taps, input.shape[-rank - 1], axis):
            part = xp.sum(_scaled(xp, g * xp._gather_planes(input, index=index, dims=rank), weight), (-rank - 1,))
            total = part if total is None else total + part
        parts.append(total)
    return xp.stack(parts, dim=-1)


def _vmap(name):
    def rule(xp, batch, input, grid, **params):
        expanded = [x if on else batch.expand_levels(x) for x, on in zip((input, grid), batch.on, strict=True)]
        return getattr(xp, name)(*expanded, **params)

    return rule


for _op, _name in ((_grid_sampler_2d, "_grid_sampler_2d"), (_grid_sampler_3d, "_grid_sampler_3d")):
    _op.vjp(
        input=lambda xp, g, input, grid, mode, padding, align_corners, saved: xp._grid_sampler_input_gradient(
            g, input, grid, mode=mode, padding=padding, align_corners=align_corners, saved=saved),
        grid=lambda xp, g, input, grid, mode, padding, align_corners, saved: xp._grid_sampler_grid_gradient(
            g, input, grid, mode=mode, padding=padding, align_corners=align_corners, saved=saved))
    _op.vmap(_vmap(_name))


@linear("theta", node="AffineGridGeneratorBackward0", expose=(), nondifferentiable_inputs=("base",))
def _affine_grid(xp, theta, base, *, size):
    """The points base (..., N, points, D + 1) under the affine maps theta (..., N, D, D + 1), in shape `size`."""
    return xp.reshape(xp.matmul(base, xp.transpose(theta, -2, -1)), size)


def _affine_grid_vjp(xp, g, base):
    points = xp.reshape(g, (*base.shape[:-1], base.shape[-1] - 1))
    return xp.matmul(xp.transpose(points, -2, -1), base)


_affine_grid.vjp(theta=_affine_grid_vjp)
_affine_grid.vmap(lambda xp, batch, theta, base, *, size: xp._affine_grid(
    theta if batch.on[0] else batch.expand_levels(theta), base if batch.on[1] else batch.expand_levels(base),
    size=(*batch.sizes, *size)))
