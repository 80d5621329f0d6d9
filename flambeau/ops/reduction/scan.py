"""Scans along one dimension: cumulative sums, products, extrema, and logsumexp."""

from __future__ import annotations

from ..declare import composite, linear, not_implemented, op
from ..unsupported_dtypes import after_shapes

_SCAN = {"expose": ("torch", "method", "inplace")}


# ----- sums --------------------------------------------------------------------------------


@linear(**_SCAN)
def cumsum(xp, input, *, dim, dtype=None):
    """Cumulative sums along `dim`.

    Args:
        dtype: converts the input first.

    >>> import flambeau as torch
    >>> torch.cumsum(torch.tensor([1., 2., 3.]), dim=0)
    tensor([1., 3., 6.])
    """
    return xp.cumsum(input, dim, dtype)


cumsum.vjp(input=lambda xp, g, dim: xp._cumsum_backward(g, dim=dim))


@linear(name="_cumsum_backward", node="FlipBackward0", expose=())
def _cumsum_backward(xp, input, *, dim):
    """Cumulative sums from the end, the vjp of `cumsum`."""
    return xp._cumsum_backward(input, dim)


_cumsum_backward.vjp(input=lambda xp, g, dim: xp.cumsum(g, dim))


# ----- products; their derivatives are linear recurrences, without division -----------------------------------


@linear(name="_shift_along", expose=(), opmath=False)
def _shift_along(xp, input, *, dim, by, edge=False):
    """The elements shifted by one position along `dim`; the vacated position keeps its element if `edge`, else is 0."""
    return xp._shift_along(input, dim, by, edge)


def _shift_along_vjp(xp, g, dim, by, edge):
    back = xp._shift_along(g, dim=dim, by=-by)
    return back + (g - xp._shift_along(back, dim=dim, by=by)) if edge else back


_shift_along.vjp(input=_shift_along_vjp)


@op(name="_recurrence", expose=())
def _recurrence(xp, input, factor, *, dim, reverse=False):
    """The linear recurrence r[k] = input[k] + factor[k] · r[k-1] along `dim`; with r[k+1] if `reverse`."""
    return xp._recurrence(input, factor, dim, reverse)


def _recurrence_vjp(xp, g, factor, out, dim, reverse, needs):
    step = 1 if reverse else -1
    back = xp._recurrence(g, xp._shift_along(factor, dim=dim, by=step), dim=dim, reverse=not reverse)
    return back, back * xp._shift_along(out, dim=dim, by=-step) if needs[1] else None


_recurrence.joint_vjp(_recurrence_vjp)


@op(name="_exclusive_cumprod", expose=())
def _exclusive_cumprod(xp, input, *, dim, reverse=False):
    """The product of all elements before each one along `dim`; after each one if `reverse`."""
    return xp._exclusive_cumprod(input, dim, reverse)


def _exclusive_cumprod_vjp(xp, g, input, out, dim, reverse):
    total = xp._recurrence(g, input, dim=dim, reverse=not reverse)
    return out * xp._shift_along(total, dim=dim, by=1 if reverse else -1)


_exclusive_cumprod.vjp(input=_exclusive_cumprod_vjp)


@op(**_SCAN)
def cumprod(xp, input, *, dim, dtype=None):
    """Cumulative products along `dim`.

    Args:
        dtype: converts the input first.

    >>> import flambeau as torch
    >>> torch.cumprod(torch.tensor([1., 2., 3.]), dim=0)
    tensor([1., 2., 6.])
    """
    return xp.cumprod(input, dim, dtype)


@composite(name="_cumprod_backward", expose=())
def _cumprod_backward(xp, g, input, out, *, dim):
    """The vjp of `cumprod`."""
    from math import prod

    if prod(input.shape) <= 1:
        return g
    total = xp._recurrence(g, xp._shift_along(input, dim=dim, by=-1), dim=dim, reverse=True)
    return xp._exclusive_cumprod(input, dim=dim) * total


cumprod.vjp(input=lambda xp, g, input, out, dim: xp._cumprod_backward(g, input, out, dim=dim))
cumprod.jvp(lambda xp, t_input, input, dim: t_input if not input.shape else xp._recurrence(
    t_input * xp._exclusive_cumprod(input, dim=dim), input, dim=dim))


# ----- extrema -----------------------------------------------------------------------------------


def _unsupported_in_cummax(kernel):
    """Return PyTorch's error for complex inputs; empty ones raise none."""
    return after_shapes(not_implemented(kernel, "complex"), scalars=False)


@op(outputs=("values", "indices"), unsupported_dtypes=_unsupported_in_cummax("cummax_cpu"),
    exact_out="expected scalar_type {result} but found {out}", saved="dim indices self")
def cummax(xp, input, *, dim):
    """Cumulative maxima along `dim`, and their last indices.

    >>> import flambeau as torch
    >>> torch.cummax(torch.tensor([1., 3., 2.]), dim=0).values
    tensor([1., 3., 3.])
    """
    return xp.cummax(input, dim)


@op(outputs=("values", "indices"), unsupported_dtypes=_unsupported_in_cummax("cummin_cpu"),
    exact_out="expected scalar_type {result} but found {out}", saved="dim indices self")
def cummin(xp, input, *, dim):
    """Cumulative minima along `dim`, and their last indices.

    >>> import flambeau as torch
    >>> torch.cummin(torch.tensor([3., 1., 2.]), dim=0).values
    tensor([3., 1., 1.])
    """
    return xp.cummin(input, dim)


for _extremum in (cummax, cummin):
    # saves the input as PyTorch does, which compares its version
    _extremum.vjp(input=lambda xp, g0, input, input_shape, indices, dim: xp._scatter_dim(
        g0, indices, dim=dim, size=input_shape, repeated=True))
    _extremum.jvp(lambda xp, t_input, indices, dim: (xp._gather_dim(t_input, indices, dim=dim), None))


# ----- logcumsumexp ----------------------------------------------------------------------------


@op(unsupported_dtypes=not_implemented("logcumsumexp_out_cpu", "bool", "integer"),
    exact_out="expected scalar_type {result} but found {out}")
def logcumsumexp(xp, input, *, dim):
    """log of the cumulative sums of exp(input) along `dim`, without overflow.

    >>> import flambeau as torch
    >>> torch.logcumsumexp(torch.tensor([0., 0., 0.]), dim=0)
    tensor([0.0000, 0.6931, 1.0986])
    """
    return xp.logcumsumexp(input, dim)


def _decay(xp, out, dim, by):
    """exp(out[k] - out[k+1]) for by = -1, exp(out[k-1] - out[k]) for by = 1; at most 1."""
    moved = xp._shift_along(out, dim=dim, by=by, edge=True)
    step = out - moved if by < 0 else moved - out
    return xp.exp(xp.where(out == moved, 0, step))  # inf - inf counts as 0


def _weight(xp, input, out):
    return xp.exp(input - out)


def _logcumsumexp_vjp(xp, g, input, out, dim):
    if not input.shape:
        return g
    return _weight(xp, input, out) * xp._recurrence(g, _decay(xp, out, dim, -1), dim=dim, reverse=True)


def _logcumsumexp_jvp(xp, t_input, input, out, dim):
    if not input.shape:
        return t_input
    return xp._recurrence(t_input * _weight(xp, input, out), _decay(xp, out, dim, 1), dim=dim)


logcumsumexp.vjp(input=_logcumsumexp_vjp)
logcumsumexp.jvp(_logcumsumexp_jvp)
