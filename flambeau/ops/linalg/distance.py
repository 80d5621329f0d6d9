"""Pairwise distances of rows: the operators behind `cdist` and `pdist`."""

from __future__ import annotations

from ..declare import composite, not_implemented, op


@op(node="CdistBackward0", expose=(), unsupported_dtypes=not_implemented("cdist", "narrow"), saved="p result x1 x2")
def _cdist_forward(xp, x1, x2, *, p):
    """out[..., i, j] = ‖x1[..., i, :] - x2[..., j, :]‖ₚ; leading dimensions broadcast."""
    return xp.cdist(x1, x2, p)


@composite(expose=())
def _cdist_backward(xp, g, x1, x2, out, *, p):
    """The gradient of each difference x1[i] - x2[j], (..., P, R, M)."""
    d = xp.unsqueeze(x1, -2) - xp.unsqueeze(x2, -3)
    g, norm = xp.unsqueeze(g, -1), xp.unsqueeze(out, -1)
    if p == 0:
        return xp.zeros_like(d)
    if p == 1:
        return g * xp.sign(d)
    is_nonzero = norm != 0
    if p == float("inf"):
        return xp.where(xp.logical_and(is_nonzero, xp.abs(d) == norm), g * xp.sign(d), xp.zeros_like(d))
    safe_norm = xp.where(is_nonzero, norm, xp.ones_like(norm))
    if p == 2:
        return xp.where(is_nonzero, g * (d / safe_norm), xp.zeros_like(d))
    size = xp.abs(d)
    has_size = size != 0
    size = xp.where(has_size, size, xp.ones_like(size))
    slope = xp.sign(d) * xp.pow(size / safe_norm, p - 1)
    return xp.where(xp.logical_and(is_nonzero, has_size), g * slope, xp.zeros_like(d))


_cdist_forward.vjp(
    x1=lambda xp, g, x1, x1_shape, x2, out, p: xp.sum_to_size(
        xp.sum(xp._cdist_backward(g, x1, x2, out, p=p), -2), x1_shape),
    x2=lambda xp, g, x1, x2, x2_shape, out, p: xp.sum_to_size(
        -xp.sum(xp._cdist_backward(g, x1, x2, out, p=p), -3), x2_shape))


def _cdist_vmap(batch, x1, x2):
    ndim = max(len(x.shape) - batch.k * on for x, on in zip((x1, x2), batch.on, strict=True))
    return batch.padded(0, x1, ndim), batch.padded(1, x2, ndim)


_cdist_forward.vmap(lambda xp, batch, x1, x2, *, p: xp._cdist_forward(*_cdist_vmap(batch, x1, x2), p=p))


@op(node="EuclideanDistBackward0", expose=())
def _euclidean_dist(xp, x1, x2):
    """`_cdist_forward` for p = 2 by one matmul: faster, less accurate."""
    return xp.euclidean_dist(x1, x2)


def _euclidean_vjp(xp, g, x, other, out, x_shape):
    ratio = xp.where(out == 0, xp.zeros_like(out), g / xp.where(out == 0, xp.ones_like(out), out))
    return xp.sum_to_size(x * xp.sum(ratio, -1, True) - xp.matmul(ratio, other), x_shape)


_euclidean_dist.vjp(
    x1=lambda xp, g, x1, x1_shape, x2, out: _euclidean_vjp(xp, g, x1, x2, out, x1_shape),
    x2=lambda xp, g, x1, x2, x2_shape, out: _euclidean_vjp(
        xp, xp.transpose(g, -2, -1), x2, x1, xp.transpose(out, -2, -1), x2_shape))

_euclidean_dist.vmap(lambda xp, batch, x1, x2: xp._euclidean_dist(*_cdist_vmap(batch, x1, x2)))


@op(node="PdistBackward0", name="_pdist_forward", expose=(), unsupported_dtypes=not_implemented("pdist", "narrow"))
def _pdist_forward(xp, input, *, p):
    """‖input[i] - input[j]‖ₚ for all i < j, row by row."""
    return xp.pdist(input, p)


def _upper_triangle_indices(n):
    """Return the flat positions with i < j of an n x n matrix."""
    import numpy as np

    rows, columns = np.triu_indices(n, 1)
    return rows * n + columns


def _pdist_vjp(xp, g, input, out, p):
    n = input.shape[0]
    positions = _upper_triangle_indices(n)
    g_matrix, norms = (xp._scatter_flat(x, positions=positions, size=(n, n)) for x in (g, out))
    slope = xp._cdist_backward(g_matrix, input, input, norms, p=p)
    return xp.sum(slope, 1) - xp.sum(slope, 0)


_pdist_forward.vjp(input=lambda xp, g, input, out, p: _pdist_vjp(xp, g, input, out, p))


def _pdist_vmap(xp, batch, input, p):
    """Select the upper triangle of all pairs' distances."""
    n = input.shape[-2]
    distances = xp._cdist_forward(input, input, p=p)
    return xp.index_select(xp.reshape(distances, (*batch.sizes, n * n)), -1, xp.tensor(_upper_triangle_indices(n)))


_pdist_forward.vmap(lambda xp, batch, input, *, p: _pdist_vmap(xp, batch, input, p))
