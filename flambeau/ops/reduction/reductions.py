"""Reductions: many elements to one, along some dimensions."""

from __future__ import annotations

import math

from ..declare import composite, linear, op

# ----- what the rules share ----------------------------------------------------------------


def restore_dims(xp, g, dim, shape):
    """`g`, reduced without keepdim, with size 1 again in the dimensions it lost."""
    from ...shapes import wrap_dims

    axes = wrap_dims(dim, len(shape))
    return xp.reshape(g, tuple(1 if i in axes else s for i, s in enumerate(shape)))


def restore_keepdim(xp, g, dim, keepdim, shape):
    """`g`, a reduction's result or cotangent, in a shape that broadcasts to `shape`."""
    return g if keepdim or not shape else restore_dims(xp, g, dim, shape)


def count_reduced(shape, dim):
    """How many elements a reduction over `dim` (None: all) makes one of."""
    from ...shapes import wrap_dims

    return math.prod(shape[a] for a in wrap_dims(dim, len(shape)))


@composite(name="_expand_reduced", expose=())
def _expand_reduced(xp, input, *, size, dim, keepdim):
    """A reduction's result, or its cotangent, repeated over the dimensions it lost."""
    return xp.broadcast_to(restore_keepdim(xp, input, dim, keepdim, size), size)


@composite(name="_expand_mean", expose=())
def _expand_mean(xp, input, *, size, dim, keepdim, count):
    """The cotangent of a mean: repeated, and shared among `count` elements."""
    return xp._expand_reduced(input, size=size, dim=dim, keepdim=keepdim) / count


# ----- sums ----------------------------------------------------------------------------------


def vmap_over_all(name, several=True):
    """The batching rule of a reduction of all elements: the operator `name` over what shows."""
    def rule(xp, batch, input, **params):
        k = batch.k
        if not several or input.ndim == k:
            count = math.prod(input.shape[k:])
            return getattr(xp, name)(xp.reshape(input, (*batch.sizes, count)), dim=k, **params)
        return getattr(xp, name)(input, dim=tuple(range(k, input.ndim)), **params)

    return rule


@linear(batching_rule="reduce")
def sum(xp, input, *, dim=None, keepdim=False, dtype=None):
    """The sum of the elements over the dimensions `dim` (all if None).

    >>> import flambeau as torch
    >>> torch.sum(torch.ones(2, 3), dim=0)
    tensor([2., 2., 2.])
    """
    return xp.sum(input, dim, keepdim, dtype)


sum.node = "SumBackward1"
sum.vjp(input=lambda xp, g, input_shape, dim, keepdim: xp._expand_reduced(
    g, size=input_shape, dim=dim, keepdim=keepdim))


@linear(name="sum", key="_sum_all", node="SumBackward0", expose=())
def sum_all(xp, input, *, dtype=None):
    """The sum of all elements."""
    return xp.sum(input, None, False, dtype)


sum_all.vjp(input=lambda xp, g, input_shape: xp.broadcast_to(g, input_shape))
sum_all.vmap(vmap_over_all("sum"))


def _mean_unsupported(name, words):
    error = RuntimeError(f"{name}(): {words}")
    return {"bool": error, "integer": error}


_MEAN = _mean_unsupported("mean", "could not infer output dtype. Input dtype must be either a floating point or "
                                  "complex dtype. Got: {}")


@linear(unsupported_dtypes=_MEAN, batching_rule="reduce")
def mean(xp, input, *, dim=None, keepdim=False, dtype=None):
    """The mean of the elements over the dimensions `dim` (all if None).

    Raises:
        RuntimeError: of integers; `dtype=` converts them first.

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


@linear(name="mean", key="_mean_all", node="MeanBackward0", expose=(), unsupported_dtypes=_MEAN)
def mean_all(xp, input, *, dtype=None):
    """The mean of all elements."""
    return xp.mean(input, None, False, dtype)


mean_all.vjp(input=lambda xp, g, input_shape: _mean_vjp(xp, g, input_shape, None, False))
mean_all.vmap(vmap_over_all("mean"))


@op(batching_rule="reduce",
    unsupported_dtypes={"complex": RuntimeError("nansum on CPU does not support complex inputs")})
def nansum(xp, input, *, dim=None, keepdim=False, dtype=None):
    """The sum, with NaNs counted as zero.

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
    """The mean of what is not NaN.

    >>> import flambeau as torch
    >>> torch.nanmean(torch.tensor([1., float('nan'), 2.]))
    tensor(1.5000)
    """
    count = xp.sum(input == input, dim, keepdim)
    return xp.nansum(input, dim, keepdim, dtype=dtype) / count


# ----- products --------------------------------------------------------------------------------


@composite(name="_product_of_others", expose=())
def _product_of_others(xp, input, *, dim=None):
    """For each element the product of all others along `dim` (or of all): no division, so zeros are right too."""
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
    """The product of the elements along `dim`, or of all.

    >>> import flambeau as torch
    >>> torch.prod(torch.tensor([[1., 2.], [3., 4.]]), 1)
    tensor([ 2., 12.])
    """
    return xp.prod(input, dim, keepdim, dtype)


prod.vjp(input=lambda xp, g, input, out, dim, keepdim: restore_keepdim(xp, g, dim, keepdim, input.shape)
         * xp._product_of_others(input, dim=dim))
prod.jvp(lambda xp, t_input, input, dim, keepdim: xp.sum(
    t_input * xp._product_of_others(input, dim=dim), dim, keepdim))


# ----- truth -----------------------------------------------------------------------------------------


@op(differentiable=False, batching_rule="reduce")
def all(xp, input, *, dim=None, keepdim=False):
    """Whether all elements along `dim` (or all there are) are true.

    >>> import flambeau as torch
    >>> torch.all(torch.tensor([True, False]))
    tensor(False)
    """
    return xp.all(input, dim, keepdim)


@op(differentiable=False, batching_rule="reduce")
def any(xp, input, *, dim=None, keepdim=False):
    """Whether any element along `dim` (or any there is) is true.

    >>> import flambeau as torch
    >>> torch.any(torch.tensor([True, False]))
    tensor(True)
    """
    return xp.any(input, dim, keepdim)


@op(differentiable=False, batching_rule="reduce")
def count_nonzero(xp, input, *, dim=None):
    """How many elements along `dim` (or of all) are not zero.

    >>> import flambeau as torch
    >>> torch.count_nonzero(torch.tensor([1., 0., 2.]))
    tensor(2)
    """
    return xp.count_nonzero(input, dim)


# ----- logarithms of sums ----------------------------------------------------------------------------------


@op(promote="float", batching_rule="reduce")
def logsumexp(xp, input, *, dim, keepdim=False):
    """The logarithm of the sum of exponentials over `dim`, without overflow.

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
