"""Reductions over dimensions: sums, means, products, all, any, counts, logsumexp."""

from __future__ import annotations

import math

from ...shapes import wrap_dims
from ..declare import composite, linear, op

# ----- shared by the derivative formulas ----------------------------------------------------------------


def kept_shape(dim, shape):
    """Return a shape with size 1 in the reduced dimensions."""
    axes = wrap_dims(dim, len(shape))
    return tuple(1 if i in axes else s for i, s in enumerate(shape))


def restore_keepdim(xp, g, dim, keepdim, shape):
    """Return `g`, a reduction's result or gradient, in a shape that broadcasts to `shape`."""
    return g if keepdim or not shape or dim is None else xp._unsqueeze_to(g, size=kept_shape(dim, shape))


def count_reduced(shape, dim):
    """Return the number of elements that a reduction over `dim` (None: all) reduces to one."""
    return math.prod(shape[a] for a in wrap_dims(dim, len(shape)))


@composite(name="_expand_reduced", expose=())
def _expand_reduced(xp, input, *, size, dim, keepdim):
    """A reduction's result, or its gradient, broadcast over the reduced dimensions."""
    return xp.broadcast_to(restore_keepdim(xp, input, dim, keepdim, size), size)


@composite(name="_expand_mean", expose=())
def _expand_mean(xp, input, *, size, dim, keepdim, count):
    """The gradient of a mean: broadcast over the reduced dimensions and divided by `count`."""
    return xp._div_scalar(xp._expand_reduced(input, size=size, dim=dim, keepdim=keepdim), other=count)


# ----- sums ----------------------------------------------------------------------------------


def vmap_over_all(name, several=True):
    """Return the batching rule of a reduction of all elements: `name` over the dimensions behind the batch dimensions.

    Args:
        name: the operator that reduces over `dim`.
        several: whether that operator reduces several dimensions; else they are flattened."""
    def rule(xp, batch, input, **params):
        k = batch.k
        if not several or input.ndim == k:
            count = math.prod(input.shape[k:])
            return getattr(xp, name)(xp.reshape(input, (*batch.sizes, count)), dim=k, **params)
        return getattr(xp, name)(input, dim=k if input.ndim == k + 1 else tuple(range(k, input.ndim)), **params)

    return rule


@linear(batching_rule="reduce", saved="dim[] keepdim self_sym_sizes", moves_gradients=True)
def sum(xp, input, *, dim=None, keepdim=False, dtype=None):
    """The sum of the elements over the dimensions `dim` (all if None).

    Args:
        dim: an int or a tuple of ints.
        keepdim: whether the reduced dimensions are kept, with size 1.
        dtype: converts the input first.

    >>> import flambeau as torch
    >>> torch.sum(torch.ones(2, 3), dim=0)
    tensor([2., 2., 2.])
    """
    return xp.sum(input, dim, keepdim, dtype)


sum.node = "SumBackward1"
sum.vjp(input=lambda xp, g, input_shape, dim, keepdim: xp._expand_reduced(
    g, size=input_shape, dim=dim, keepdim=keepdim))


@linear(name="sum", key="_sum_all", node="SumBackward0", expose=(), moves_gradients=True)
def sum_all(xp, input, *, dtype=None):
    """The sum of all elements."""
    return xp.sum(input, None, False, dtype)


sum_all.vjp(input=lambda xp, g, input_shape: xp.broadcast_to(g, input_shape))
sum_all.vmap(vmap_over_all("sum"))


def _mean_unsupported(name, message):
    error = RuntimeError(f"{name}(): {message}")
    return {"bool": error, "integer": error}


_MEAN = _mean_unsupported("mean", "could not infer output dtype. Input dtype must be either a floating point or "
                                  "complex dtype. Got: {}")


@linear(unsupported_dtypes=_MEAN, batching_rule="reduce", saved="dim[] keepdim self_sym_numel self_sym_sizes")
def mean(xp, input, *, dim=None, keepdim=False, dtype=None):
    """The mean of the elements over the dimensions `dim` (all if None).

    Args:
        dim: an int or a tuple of ints.
        keepdim: whether the reduced dimensions are kept, with size 1.
        dtype: converts the input first.

    Raises:
        RuntimeError: the input's dtype is neither floating point nor complex.

    >>> import flambeau as torch
    >>> torch.mean(torch.tensor([[1., 2.], [3., 6.]]), dim=1)
    tensor([1.5000, 4.5000])
    """
    return xp.mean(input, dim, keepdim, dtype)


def _mean_vjp(xp, g, input_shape, dim, keepdim):
    count = count_reduced(input_shape, dim)
    return xp._expand_mean(g, size=input_shape, dim=dim, keepdim=keepdim, count=count or float("nan"))


mean.node = "MeanBackward1"
mean.vjp(input=_mean_vjp)


@linear(name="mean", key="_mean_all", node="MeanBackward0", expose=(), unsupported_dtypes=_MEAN,
        saved="self_sym_numel self_sym_sizes")
def mean_all(xp, input, *, dtype=None):
    """The mean of all elements."""
    return xp.mean(input, None, False, dtype)


mean_all.vjp(input=lambda xp, g, input_shape: _mean_vjp(xp, g, input_shape, None, False))
mean_all.vmap(vmap_over_all("mean"))


@op(batching_rule="reduce",
    unsupported_dtypes={"complex": RuntimeError("nansum on CPU does not support complex inputs")},
    saved="dim[] keepdim self")
def nansum(xp, input, *, dim=None, keepdim=False, dtype=None):
    """The sum over the dimensions `dim` (all if None), with NaN counted as 0.

    >>> import flambeau as torch
    >>> torch.nansum(torch.tensor([1., float('nan'), 2.]))
    tensor(3.)
    """
    return xp.nansum(input, dim, keepdim, dtype)


nansum.vjp(input=lambda xp, g, input, dim, keepdim: xp.where(
    input != input, 0, restore_keepdim(xp, g, dim, keepdim, input.shape)))
nansum.jvp(lambda xp, t_input, input, dim, keepdim: xp.sum(xp.where(input != input, 0, t_input), dim, keepdim))


@composite
def nanmean(xp, input, *, dim=None, keepdim=False, dtype=None):
    """The mean over the dimensions `dim` (all if None) of the elements that are not NaN.

    >>> import flambeau as torch
    >>> torch.nanmean(torch.tensor([1., float('nan'), 2.]))
    tensor(1.5000)
    """
    count = xp.sum(input == input, dim, keepdim)
    return xp.nansum(input, dim, keepdim, dtype=dtype) / count


# ----- products --------------------------------------------------------------------------------


@composite(name="_product_of_others", expose=())
def _product_of_others(xp, input, *, dim=None):
    """For each element the product of all others along `dim` (or of all); no division, so zeros are handled."""
    if not input.shape:
        return xp.ones_like(input)
    flat = xp.reshape(input, (-1,)) if dim is None else input
    along = 0 if dim is None else dim
    before = xp._exclusive_cumprod(flat, dim=along, reverse=False)
    after = xp._exclusive_cumprod(flat, dim=along, reverse=True)
    return xp.reshape(before * after, input.shape)


@op(name="prod", key="_prod_all", node="ProdBackward0", expose=())
def prod_all(xp, input, *, dtype=None):
    """The product of all elements."""
    return xp._prod_all(input, None, False, dtype)


prod_all.vjp(input=lambda xp, g, input, out: g * xp._product_of_others(input))
prod_all.jvp(lambda xp, t_input, input: xp.sum(t_input * xp._product_of_others(input)))
prod_all.vmap(vmap_over_all("prod", several=False))


@op(node="ProdBackward1")
def prod(xp, input, *, dim, keepdim=False, dtype=None):
    """The product of the elements along `dim`, or of all elements.

    >>> import flambeau as torch
    >>> torch.prod(torch.tensor([[1., 2.], [3., 4.]]), 1)
    tensor([ 2., 12.])
    """
    return xp.prod(input, dim, keepdim, dtype)


prod.vjp(input=lambda xp, g, input, out, dim, keepdim: restore_keepdim(xp, g, dim, keepdim, input.shape)
         * xp._product_of_others(input, dim=dim))
prod.jvp(lambda xp, t_input, input, dim, keepdim: xp.sum(
    t_input * xp._product_of_others(input, dim=dim), dim, keepdim))


# ----- all, any, counts -----------------------------------------------------------------------------------------


@op(differentiable=False, batching_rule="reduce")
def all(xp, input, *, dim=None, keepdim=False):
    """Whether all elements over the dimensions `dim` (all if None) are nonzero.

    >>> import flambeau as torch
    >>> torch.all(torch.tensor([True, False]))
    tensor(False)
    """
    return xp.all(input, dim, keepdim)


@op(differentiable=False, batching_rule="reduce")
def any(xp, input, *, dim=None, keepdim=False):
    """Whether any element over the dimensions `dim` (all if None) is nonzero.

    >>> import flambeau as torch
    >>> torch.any(torch.tensor([True, False]))
    tensor(True)
    """
    return xp.any(input, dim, keepdim)


@op(differentiable=False, batching_rule="reduce")
def count_nonzero(xp, input, *, dim=None):
    """The number of nonzero elements over the dimensions `dim` (all if None).

    >>> import flambeau as torch
    >>> torch.count_nonzero(torch.tensor([1., 0., 2.]))
    tensor(2)
    """
    return xp.count_nonzero(input, dim)


# ----- logsumexp ----------------------------------------------------------------------------------


@op(promote="float", batching_rule="reduce", saved="dim[] keepdim result self")
def logsumexp(xp, input, *, dim, keepdim=False):
    """log Σ exp(input) over the dimensions `dim`, without overflow.

    >>> import flambeau as torch
    >>> torch.logsumexp(torch.tensor([1000., 1000.]), dim=0)
    tensor(1000.6932)
    """
    return xp.logsumexp(input, dim, keepdim)


def _logsumexp_weights(xp, input, out, dim, keepdim):
    """exp(x - logsumexp): the softmax."""
    return xp.exp(input - restore_keepdim(xp, out, dim, keepdim, input.shape))


logsumexp.vjp(input=lambda xp, g, input, out, dim, keepdim: restore_keepdim(xp, g, dim, keepdim, input.shape)
              * _logsumexp_weights(xp, input, out, dim, keepdim))
logsumexp.jvp(lambda xp, t_input, input, out, dim, keepdim: xp.sum(
    t_input * _logsumexp_weights(xp, input, out, dim, keepdim), dim, keepdim))
