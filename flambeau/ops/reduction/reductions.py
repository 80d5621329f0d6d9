"""Reductions: many elements to one, along some dimensions."""

from __future__ import annotations

import math

from ..declare import composite, linear, not_implemented, op

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


# ----- extrema -----------------------------------------------------------------------------------


@op(name="_tie_shares", expose=(), differentiable=False, batching_rule="reduce")
def _tie_shares(xp, input, out, *, dim=None, keepdim=False, nan=False):
    """Where the input equals its extremum `out`, 1 / (how many do); 0 elsewhere."""
    return xp._tie_shares(input, out, dim, keepdim, nan)


@linear("input", name="_gather_dim", expose=(), opmath=False, nondifferentiable_inputs=("index",), holomorphic=False)
def _gather_dim(xp, input, index, *, dim):
    """The elements at `index` along `dim`; the index may lack that dimension."""
    return xp._gather_dim(input, index, dim)


_gather_dim.vmap(lambda xp, batch, input, index, *, dim: _gather_dim_vmap(xp, batch, input, index, dim))
_gather_dim.vjp(input=lambda xp, g, index, input_shape, dim: xp._scatter_dim(g, index, dim=dim, size=input_shape))


@linear("input", name="_scatter_dim", expose=(), nondifferentiable_inputs=("index",), holomorphic=False)
def _scatter_dim(xp, input, index, *, dim, size, repeats=False):
    """Zeros of shape `size` with the input at `index` along `dim`, added up where an index repeats."""
    return xp._scatter_dim(input, index, dim, size, repeats)


_scatter_dim.vjp(input=lambda xp, g, index, dim: xp._gather_dim(g, index, dim=dim))


def _gather_dim_vmap(xp, batch, input, index, dim):
    from ...shapes import wrap_dim

    input, index = (x if on else batch.full(x) for x, on in zip((input, index), batch.on, strict=True))
    n = len(input.shape) - batch.k
    return xp._gather_dim(input, index, dim=batch.k + wrap_dim(dim, n)) if n else input


def _scatter_dim_vmap(xp, batch, input, index, dim, size, repeats):
    from ...shapes import wrap_dim

    input, index = (x if on else batch.full(x) for x, on in zip((input, index), batch.on, strict=True))
    if not size:
        return input
    return xp._scatter_dim(input, index, dim=batch.k + wrap_dim(dim, len(size)), size=(*batch.sizes, *size),
                           repeats=repeats)


_scatter_dim.vmap(lambda xp, batch, input, index, *, dim, size, repeats=False: _scatter_dim_vmap(
    xp, batch, input, index, dim, size, repeats))


def declare_selection(operator):
    """The rules of an operator whose `values` are the input's elements at `indices` along `dim`."""
    operator.vjp(input=lambda xp, g0, indices, input_shape, dim: xp._scatter_dim(
        g0, indices, dim=dim, size=input_shape))
    operator.jvp(lambda xp, t_input, indices, dim: (xp._gather_dim(t_input, indices, dim=dim), None))
    return operator


def declare_ties(operator, nan=False):
    """The rules of an extremum over several dimensions: ties share the gradient evenly."""
    operator.vjp(input=lambda xp, g, input, out, dim, keepdim: restore_keepdim(xp, g, dim, keepdim, input.shape)
                 * xp._tie_shares(input, out, dim=dim, keepdim=keepdim))
    operator.jvp(lambda xp, t_input, input, out, dim, keepdim: xp.sum(
        t_input * xp._tie_shares(input, out, dim=dim, keepdim=keepdim), dim, keepdim))
    return operator


def declare_ties_over_all(operator, by_rows):
    """The rules of an extremum of all elements; NaNs tie with each other.

    Args:
        by_rows: the name of the operator that finds it for each row (…, n), for batches.
    """
    operator.vjp(input=lambda xp, g, input, out: g * xp._tie_shares(input, out, nan=True))
    operator.jvp(lambda xp, t_input, input, out: xp.sum(t_input * xp._tie_shares(input, out, nan=True)))
    operator.vmap(lambda xp, batch, input: getattr(xp, by_rows)(
        xp.reshape(input, (*batch.sizes, math.prod(input.shape[batch.k:])))))
    return operator


def declare_ties_in_rows(operator):
    """The rules of an extremum of each row; NaNs tie with each other."""
    operator.batching_rule = "trailing"
    operator.vjp(input=lambda xp, g, input, out: xp.unsqueeze(g, -1) * xp._tie_shares(input, out, dim=-1, nan=True))
    operator.jvp(lambda xp, t_input, input, out: xp.sum(t_input * xp._tie_shares(input, out, dim=-1, nan=True), -1))
    return operator


@op(name="max", key="_max_all", node="MaxBackward1", expose=(),
    unsupported_dtypes=not_implemented("max_all", "unsigned", "complex"))
def max_all(xp, input):
    """The greatest element."""
    return xp._max_all(input)


@op(name="min", key="_min_all", node="MinBackward1", expose=(),
    unsupported_dtypes=not_implemented("min_all", "unsigned", "complex"))
def min_all(xp, input):
    """The least element."""
    return xp._min_all(input)


@op(name="max", key="_max_of_rows", expose=())
def max_of_rows(xp, input):
    """The greatest element of each row."""
    return xp.amax(input, -1, False)


@op(name="min", key="_min_of_rows", expose=())
def min_of_rows(xp, input):
    """The least element of each row."""
    return xp.amin(input, -1, False)


declare_ties_over_all(max_all, "_max_of_rows")
declare_ties_over_all(min_all, "_min_of_rows")
declare_ties_in_rows(max_of_rows)
declare_ties_in_rows(min_of_rows)


def _unsupported_in_dim(name):
    return not_implemented(f"{name}_cpu", "unsigned") | {
        "complex": RuntimeError(f"{name}(): does not support complex input")}


@op(name="max", key="_max_dim", outputs=("values", "indices"), expose=(),
    unsupported_dtypes=_unsupported_in_dim("max"))
def max_dim(xp, input, *, dim, keepdim=False):
    """The greatest elements along `dim`, and where they are."""
    return xp._max_dim(input, dim, keepdim)


@op(name="min", key="_min_dim", outputs=("values", "indices"), expose=(),
    unsupported_dtypes=_unsupported_in_dim("min"))
def min_dim(xp, input, *, dim, keepdim=False):
    """The least elements along `dim`, and where they are."""
    return xp._min_dim(input, dim, keepdim)


declare_selection(max_dim)
declare_selection(min_dim)


@op(batching_rule="reduce", unsupported_dtypes=not_implemented("max_values_cpu", "complex"))
def amax(xp, input, *, dim=(), keepdim=False):
    """The greatest elements over the dimensions `dim` (all if empty); ties share the gradient.

    >>> import flambeau as torch
    >>> torch.amax(torch.tensor([[1., 2.], [4., 3.]]), dim=1)
    tensor([2., 4.])
    """
    return xp.amax(input, dim, keepdim)


@op(batching_rule="reduce", unsupported_dtypes=not_implemented("min_values_cpu", "complex"))
def amin(xp, input, *, dim=(), keepdim=False):
    """The least elements over the dimensions `dim` (all if empty); ties share the gradient.

    >>> import flambeau as torch
    >>> torch.amin(torch.tensor([[1., 2.], [4., 3.]]), dim=1)
    tensor([1., 3.])
    """
    return xp.amin(input, dim, keepdim)


declare_ties(amax)
declare_ties(amin)


@op(outputs=("min", "max"), unsupported_dtypes=not_implemented("aminmax_cpu", "complex"))
def aminmax(xp, input, *, dim=None, keepdim=False):
    """The least and the greatest elements along `dim`, or of all.

    >>> import flambeau as torch
    >>> tuple(torch.aminmax(torch.tensor([2., 1., 3.])))
    (tensor(1.), tensor(3.))
    """
    return xp.aminmax(input, dim, keepdim)


def _aminmax_vjp(xp, g0, g1, input, min, max, dim, keepdim):
    shape = input.shape
    return (restore_keepdim(xp, g0, dim, keepdim, shape) * xp._tie_shares(input, min, dim=dim, keepdim=keepdim)
            + restore_keepdim(xp, g1, dim, keepdim, shape) * xp._tie_shares(input, max, dim=dim, keepdim=keepdim))


aminmax.vjp(input=_aminmax_vjp)
aminmax.jvp(lambda xp, t_input, input, min, max, dim, keepdim: tuple(
    xp.sum(t_input * xp._tie_shares(input, out, dim=dim, keepdim=keepdim), dim, keepdim) for out in (min, max)))


def _unsupported_in_arg(name):
    return {"bool": RuntimeError(f"{name}(): does not support bool input"),
            "complex": RuntimeError(f"{name}(): does not support complex input")}


@op(differentiable=False, unsupported_dtypes=_unsupported_in_arg("argmax"))
def argmax(xp, input, *, dim=None, keepdim=False):
    """The index of the greatest element along `dim`, or in the flattened input; the first of equals.

    >>> import flambeau as torch
    >>> torch.argmax(torch.tensor([1., 3., 2.]))
    tensor(1)
    """
    return xp.argmax(input, dim, keepdim)


@op(differentiable=False, unsupported_dtypes=_unsupported_in_arg("argmin"))
def argmin(xp, input, *, dim=None, keepdim=False):
    """The index of the least element along `dim`, or in the flattened input; the first of equals.

    >>> import flambeau as torch
    >>> torch.argmin(torch.tensor([2., 3., 1.]))
    tensor(2)
    """
    return xp.argmin(input, dim, keepdim)


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


# ----- moments -----------------------------------------------------------------------------------------


def _unsupported_in_moments(name):
    error = RuntimeError(f"{name} only support floating point and complex dtypes")
    return {"bool": error, "integer": error}


_VAR = {"holomorphic": False, "batching_rule": "reduce", "unsupported_dtypes": _unsupported_in_moments("std and var")}


def _var_vjp(xp, g, input, dim, correction, keepdim):
    """2 (x - mean) g / (n - correction)."""
    freedom = count_reduced(input.shape, dim) - (1 if correction is None else correction)
    off = input - xp.mean(input, dim, True)
    if freedom <= 0 and (dim is None or not input.shape):
        return g * xp.where(xp.eq(off, 0), float("nan"), float("inf"))
    return restore_keepdim(xp, g, dim, keepdim, input.shape) * (2 / freedom if freedom else float("inf")) * off


def _var_jvp(xp, t_input, input, dim, correction, keepdim):
    freedom = count_reduced(input.shape, dim) - (1 if correction is None else correction)
    off = input - xp.mean(input, dim, True)
    along = xp.sum(xp.real(xp.conj(t_input) * off), dim, keepdim)
    return along * (2 / freedom if freedom > 0 else float("nan") if freedom else float("inf"))


def _std_vjp(xp, g, out):
    return xp.where(xp.eq(out, 0), 0, g / (2 * out))  # a constant input has no slope


@op(node="VarBackward0", **_VAR)
def var(xp, input, *, dim=None, correction=None, keepdim=False):
    """The variance over the dimensions `dim` (all if None): Σ |x - mean|² / (n - correction).

    Args:
        correction: 1 if None, which makes the estimate unbiased; older code says `unbiased=`.

    >>> import flambeau as torch
    >>> torch.var(torch.tensor([1., 2., 3.]))
    tensor(1.)
    """
    return xp.var(input, dim, correction, keepdim)


var.vjp(input=_var_vjp)
var.jvp(_var_jvp)


@op(node="StdBackward0", **_VAR)
def std(xp, input, *, dim=None, correction=None, keepdim=False):
    """The standard deviation, √var.

    >>> import flambeau as torch
    >>> torch.std(torch.tensor([1., 2., 3.]))
    tensor(1.)
    """
    return xp.std(input, dim, correction, keepdim)


std.vjp(input=lambda xp, g, input, out, dim, correction, keepdim: _var_vjp(
    xp, _std_vjp(xp, g, out), input, dim, correction, keepdim))
std.jvp(lambda xp, t_input, input, out, dim, correction, keepdim: _std_vjp(
    xp, _var_jvp(xp, t_input, input, dim, correction, keepdim), out))


_VAR_MEAN = {"holomorphic": False, "batching_rule": "reduce", "unsupported_dtypes": _unsupported_in_moments("var_mean"),
             "expose": ("torch",), "returns_namedtuple": False}
_STD_MEAN = _VAR_MEAN | {"unsupported_dtypes": _unsupported_in_moments("std_mean")}


def _expand_mean_gradient(xp, g, input, dim, keepdim):
    return xp._expand_reduced(g, size=tuple(input.shape), dim=dim, keepdim=keepdim) / count_reduced(input.shape, dim)


@op(outputs=("result0", "result1"), **_VAR_MEAN)
def var_mean(xp, input, *, dim=None, correction=None, keepdim=False):
    """The variance and the mean.

    >>> import flambeau as torch
    >>> torch.var_mean(torch.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """
    return xp.var_mean(input, dim, correction, keepdim)


var_mean.vjp(input=lambda xp, g0, g1, input, dim, correction, keepdim: _var_vjp(
    xp, g0, input, dim, correction, keepdim) + _expand_mean_gradient(xp, g1, input, dim, keepdim))
var_mean.jvp(lambda xp, t_input, input, dim, correction, keepdim: (
    _var_jvp(xp, t_input, input, dim, correction, keepdim), xp.mean(t_input, dim, keepdim)))


@op(outputs=("result0", "result1"), **_STD_MEAN)
def std_mean(xp, input, *, dim=None, correction=None, keepdim=False):
    """The standard deviation and the mean.

    >>> import flambeau as torch
    >>> torch.std_mean(torch.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """
    return xp.std_mean(input, dim, correction, keepdim)


std_mean.vjp(input=lambda xp, g0, g1, input, result0, dim, correction, keepdim: _var_vjp(
    xp, _std_vjp(xp, g0, result0), input, dim, correction, keepdim)
    + _expand_mean_gradient(xp, g1, input, dim, keepdim))
std_mean.jvp(lambda xp, t_input, input, result0, dim, correction, keepdim: (_std_vjp(
    xp, _var_jvp(xp, t_input, input, dim, correction, keepdim), result0), xp.mean(t_input, dim, keepdim)))


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
