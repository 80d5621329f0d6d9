"""Vector norms, p-norm distance and renormalization."""

from __future__ import annotations

from ...dtypes import bool_
from ...shapes import broadcast_shapes, wrap_dim
from ..declare import op
from ..pointwise.arithmetic import NO_DIFFERENCE, no_bool_operand
from .reductions import restore_keepdim

_NORM_ERROR = RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}")


def norm_gradient(xp, g, input, out, ord, dim, keepdim):
    """Return the gradient of ‖input‖ by the input; 0 where it is undefined (at 0), as in PyTorch."""
    if ord == 0:
        return None
    shape = input.shape
    g, norm = restore_keepdim(xp, g, dim, keepdim, shape), restore_keepdim(xp, out, dim, keepdim, shape)
    if ord == 1:
        return g * xp.sgn(input)
    if ord == 2:
        return g * xp.where(xp.eq(norm, 0), 0, input / norm)
    size = xp.abs(input)
    if ord in (float("inf"), -float("inf")):
        return xp.sgn(input) * (g * xp._tie_shares(size, out, dim=dim, keepdim=keepdim, nan=True))
    if ord < 1:
        # the power is infinite where the element is 0
        return xp.where(xp.eq(input, 0), 0, xp.sgn(input) * xp.pow(size, ord - 1)) * (g * xp.pow(norm, 1 - ord))
    scale = xp.where(xp.eq(norm, 0), 0, g / xp.pow(norm, ord - 1))
    if ord < 2:
        return xp.sgn(input) * xp.pow(size, ord - 1) * scale
    return input * xp.where(xp.eq(input, 0), 0, xp.pow(size, ord - 2)) * scale


def norm_tangent(xp, t, input, out, ord, dim, keepdim):
    """Return the tangent of ‖input‖ for the input's tangent `t`."""
    if ord == 0:
        return xp.zeros_like(out)
    weights = norm_gradient(xp, xp.ones_like(out), input, out, ord, dim, keepdim)
    return xp.sum(xp.real(xp.conj(t) * weights), dim, keepdim)


@op(name="linalg_vector_norm", expose=("linalg",), holomorphic=False, batching_rule="reduce",
    unsupported_dtypes={"bool": _NORM_ERROR, "integer": _NORM_ERROR}, exact_out=True,
    saved="dim[] keepdim ord result self")
def linalg_vector_norm(xp, input, *, ord=2, dim=None, keepdim=False, dtype=None):
    """The vector norm (Σ |x|ᵖ)^(1/p) over the dimensions `dim` (all if None).

    Args:
        ord: p; inf and -inf give the largest and smallest magnitude, 0 the number of nonzero elements.
        keepdim: whether the reduced dimensions are kept, with size 1.
        dtype: converts the input first.

    >>> import flambeau as torch
    >>> torch.linalg.vector_norm(torch.tensor([3., 4.]))
    tensor(5.)
    """
    return xp.linalg_vector_norm(input, ord, dim, keepdim, dtype)


@op(name="norm", key="_norm_in_dims", node="NormBackward1", expose=(), holomorphic=False, batching_rule="reduce",
    unsupported_dtypes={"bool": _NORM_ERROR, "integer": _NORM_ERROR}, saved="dim[] keepdim p=ord result self")
def norm_in_dims(xp, input, *, ord=2, dim=None, keepdim=False, dtype=None):
    """`linalg_vector_norm`, as PyTorch's C++ calls it."""
    return xp.linalg_vector_norm(input, ord, dim, keepdim, dtype)


@op(name="norm", key="_norm_whole", node="NormBackward0", expose=(), holomorphic=False, batching_rule="reduce",
    unsupported_dtypes={"bool": _NORM_ERROR, "integer": _NORM_ERROR}, saved="p=ord result self")
def norm_whole(xp, input, *, ord=2, dim=None, keepdim=False, dtype=None):
    """`linalg_vector_norm` over all dimensions, as PyTorch's C++ calls it."""
    return xp.linalg_vector_norm(input, ord, dim, keepdim, dtype)


linalg_vector_norm.vjp(input=lambda xp, g, input, out, ord, dim, keepdim: norm_gradient(
    xp, g, input, out, ord, dim, keepdim))
linalg_vector_norm.jvp(lambda xp, t_input, input, out, ord, dim, keepdim: norm_tangent(
    xp, t_input, input, out, ord, dim, keepdim))
for _norm in (norm_in_dims, norm_whole):
    _norm.vjp(input=lambda xp, g, input, out, ord, dim, keepdim: norm_gradient(xp, g, input, out, ord, dim, keepdim))
    _norm.jvp(lambda xp, t_input, input, out, ord, dim, keepdim: norm_tangent(
        xp, t_input, input, out, ord, dim, keepdim))


_DIST_ERROR = RuntimeError("norm(): input dtype should be either floating point or complex. Got {} instead.")


def _check_dist(input, other):
    no_bool_operand(input, other)
    if input.dtype is not bool_:  # of two bools the difference is refused, whatever their shapes
        broadcast_shapes(input.shape, other.shape)


@op(promote="common", holomorphic=False, check=_check_dist,
    unsupported_dtypes={"integer": _DIST_ERROR, **NO_DIFFERENCE})
def dist(xp, input, other, *, p=2):
    """The p-norm of input - other.

    >>> import flambeau as torch
    >>> torch.dist(torch.tensor([1., 2.]), torch.tensor([4., 6.]))
    tensor(5.)
    """
    if isinstance(p, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    return xp.dist(input, other, p)


def _dist_vjp(xp, g, input, other, out, p, needs):
    result = norm_gradient(xp, g, input - other, out, p, None, False)
    return (xp.sum_to_size(result, tuple(input.shape)) if needs[0] else None,
            xp.sum_to_size(-result, tuple(other.shape)) if needs[1] else None)


dist.joint_vjp(_dist_vjp)
dist.jvp(lambda xp, t_input, t_other, input, other, out, p: norm_tangent(
    xp, xp.zeros_like(input) - t_other if t_input is None else t_input if t_other is None else t_input - t_other,
    input - other, out, p, None, False))


def _dist_vmap(xp, batch, input, other, p):
    ranks = [len(x.shape) - batch.k * on for x, on in zip((input, other), batch.on, strict=True)]
    ndim = max(*ranks, 1)
    difference = batch.padded(0, input, ndim) - batch.padded(1, other, ndim)
    return xp.linalg_vector_norm(difference, p, tuple(range(batch.k, batch.k + ndim)))


dist.vmap(lambda xp, batch, input, other, *, p=2: _dist_vmap(xp, batch, input, other, p))


def _check_real(p, maxnorm):
    for name, value in (("p", p), ("maxnorm", maxnorm)):
        if not isinstance(value, (int, float)):
            raise RuntimeError(f"renorm: {name} must be real-valued")


def _unsupported_in_renorm(input, *, p, dim, maxnorm):
    """Return the error of the norm inside; None for what the forward refuses."""
    rank = len(input.shape)
    if not (isinstance(p, (int, float)) and isinstance(maxnorm, (int, float))):
        return None
    return _NORM_ERROR if p > 0 and maxnorm >= 0 and rank > 1 and -rank <= dim < rank else None


@op(promote="none", exact_out=True, holomorphic=False, expose=("torch", "method", "inplace"),
    unsupported_dtypes=dict.fromkeys(("bool", "integer"), _unsupported_in_renorm))
def renorm(xp, input, *, p, dim, maxnorm):
    """input with each slice along `dim` scaled down to the p-norm `maxnorm` where its own is larger.

    >>> import flambeau as torch
    >>> torch.renorm(torch.tensor([[3., 4.], [0.3, 0.4]]), 2, 0, 1.)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    _check_real(p, maxnorm)
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if len(input.shape) < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {len(input.shape)} dimensions")
    return input * _renorm_factors(xp, _slice_norms(xp, input, p, dim), maxnorm)


def _all_dims_except(dim, ndim):
    return tuple(i for i in range(ndim) if i != wrap_dim(dim, ndim))


def _slice_norms(xp, input, p, dim):
    return xp.linalg_vector_norm(input, p, _all_dims_except(dim, len(input.shape)), True)


def _renorm_factors(xp, norms, maxnorm):
    return xp.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1)


def _renorm_vjp(xp, g, input, p, dim, maxnorm):
    others = _all_dims_except(dim, len(input.shape))
    norms = _slice_norms(xp, input, p, dim)
    inner = xp.sum(xp.real(xp.conj(input) * g), others, True)
    by_norm = norm_gradient(xp, inner, input, norms, p, others, True)
    denominator = norms + 1e-7
    scaled = maxnorm * (g / denominator - by_norm / (denominator * denominator))
    return xp.where(norms > maxnorm, scaled, g)


def _renorm_jvp(xp, t_input, input, p, dim, maxnorm):
    others = _all_dims_except(dim, len(input.shape))
    norms = _slice_norms(xp, input, p, dim)
    t_norms = norm_tangent(xp, t_input, input, norms, p, others, True)
    denominator = norms + 1e-7
    scaled = maxnorm * (t_input / denominator - input * t_norms / (denominator * denominator))
    return xp.where(norms > maxnorm, scaled, t_input)


renorm.vjp(input=_renorm_vjp)
renorm.jvp(_renorm_jvp)


def _renorm_vmap(xp, batch, input, p, dim, maxnorm):
    """Merge the batch dimensions into the sliced one."""
    k = batch.k
    axis = k + wrap_dim(dim, len(input.shape) - k)
    moved = xp.movedim(input, axis, k)
    flat = xp.reshape(moved, (batch.count * moved.shape[k], *moved.shape[k + 1:]))
    result = xp.renorm(flat, p=p, dim=0, maxnorm=maxnorm)
    return xp.movedim(xp.reshape(result, moved.shape), k, axis)


renorm.vmap(lambda xp, batch, input, *, p, dim, maxnorm: _renorm_vmap(xp, batch, input, p, dim, maxnorm))
