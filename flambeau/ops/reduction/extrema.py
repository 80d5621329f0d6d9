"""Extrema: maxima and minima of all elements or along dimensions, and their indices."""

from __future__ import annotations

import math

from ...shapes import wrap_dim
from ..declare import linear, not_implemented, op
from ..unsupported_dtypes import after_shapes
from .reductions import kept_shape

# ----- operators of the gradients --------------------------------------------------------------


@op(name="_tie_shares", expose=(), differentiable=False, batching_rule="reduce")
def _tie_shares(xp, input, out, *, dim=None, keepdim=False, nan=False):
    """1 / (number of ties) where the input equals its extremum `out`, else 0."""
    return xp._tie_shares(input, out, dim, keepdim, nan)


@linear("input", name="_gather_dim", node="GatherBackward0", expose=(), opmath=False,
        nondifferentiable_inputs=("index",), holomorphic=False)
def _gather_dim(xp, input, index, *, dim):
    """The elements at `index` along `dim`; the index may have been reduced along it."""
    return xp._gather_dim(input, index, dim)


_gather_dim.vmap(lambda xp, batch, input, index, *, dim: _gather_dim_vmap(xp, batch, input, index, dim))
_gather_dim.vjp(input=lambda xp, g, index, input_shape, dim: xp._scatter_dim(g, index, dim=dim, size=input_shape))


@linear("input", name="_scatter_dim", node="ScatterBackward0", expose=(),
        nondifferentiable_inputs=("index",), holomorphic=False)
def _scatter_dim(xp, input, index, *, dim, size, repeated=False):
    """Zeros of shape `size` with the input at `index` along `dim`; repeated indices accumulate if `repeated`."""
    return xp._scatter_dim(input, index, dim, size, repeated)


_scatter_dim.vjp(input=lambda xp, g, index, dim: xp._gather_dim(g, index, dim=dim))


def _gather_dim_vmap(xp, batch, input, index, dim):
    input, index = (x if on else batch.expand_levels(x) for x, on in zip((input, index), batch.on, strict=True))
    n = len(input.shape) - batch.k
    return xp._gather_dim(input, index, dim=batch.k + wrap_dim(dim, n)) if n else input


def _scatter_dim_vmap(xp, batch, input, index, dim, size, repeated):
    input, index = (x if on else batch.expand_levels(x) for x, on in zip((input, index), batch.on, strict=True))
    if not size:
        return input
    return xp._scatter_dim(input, index, dim=batch.k + wrap_dim(dim, len(size)), size=(*batch.sizes, *size),
                           repeated=repeated)


_scatter_dim.vmap(lambda xp, batch, input, index, *, dim, size, repeated=False: _scatter_dim_vmap(
    xp, batch, input, index, dim, size, repeated))


def declare_selection(operator):
    """Declare the derivatives of an operator whose `values` are the input's elements at `indices` along `dim`."""
    operator.vjp(input=lambda xp, g0, indices, input_shape, dim: xp._scatter_dim(
        g0, indices, dim=dim, size=input_shape))
    operator.jvp(lambda xp, t_input, indices, dim: (xp._gather_dim(t_input, indices, dim=dim), None))
    return operator


def _restored(xp, g, dim, keepdim, shape):
    """Return `g` in a shape that broadcasts to `shape`; PyTorch's gradients of extrema have a view there."""
    return g if keepdim or not shape else xp.reshape(g, kept_shape(dim, shape))


def declare_ties(operator, nan=False):
    """Declare the derivatives of an extremum over several dimensions: ties share the gradient evenly."""
    operator.vjp(input=lambda xp, g, input, out, dim, keepdim: _restored(xp, g, dim, keepdim, input.shape)
                 * xp._tie_shares(input, out, dim=dim, keepdim=keepdim))
    operator.jvp(lambda xp, t_input, input, out, dim, keepdim: xp.sum(
        t_input * xp._tie_shares(input, out, dim=dim, keepdim=keepdim), dim, keepdim))
    return operator


def declare_ties_over_all(operator, row_operator):
    """Declare the derivatives and batching rule of an extremum of all elements; NaNs tie with each other.

    Args:
        row_operator: the name of the operator that computes it for each row (…, n).
    """
    operator.vjp(input=lambda xp, g, input, out: g * xp._tie_shares(input, out, nan=True))
    operator.jvp(lambda xp, t_input, input, out: xp.sum(t_input * xp._tie_shares(input, out, nan=True)))
    operator.vmap(lambda xp, batch, input: getattr(xp, row_operator)(
        xp.reshape(input, (*batch.sizes, math.prod(input.shape[batch.k:])))))
    return operator


def declare_ties_in_rows(operator):
    """Declare the derivatives and batching rule of an extremum of each row; NaNs tie with each other."""
    operator.batching_rule = "trailing"
    operator.vjp(input=lambda xp, g, input, out: xp.unsqueeze(g, -1) * xp._tie_shares(input, out, dim=-1, nan=True))
    operator.jvp(lambda xp, t_input, input, out: xp.sum(t_input * xp._tie_shares(input, out, dim=-1, nan=True), -1))
    return operator


# ----- extrema -----------------------------------------------------------------------------------

@op(name="max", key="_max_all", node="MaxBackward1", expose=(),
    unsupported_dtypes=after_shapes(not_implemented("max_all", "unsigned", "complex")))
def max_all(xp, input):
    """The maximum of all elements."""
    return xp._max_all(input)


@op(name="min", key="_min_all", node="MinBackward1", expose=(),
    unsupported_dtypes=after_shapes(not_implemented("min_all", "unsigned", "complex")))
def min_all(xp, input):
    """The minimum of all elements."""
    return xp._min_all(input)


@op(name="max", key="_max_of_rows", expose=())
def max_of_rows(xp, input):
    """The maximum of each row."""
    return xp.amax(input, -1, False)


@op(name="min", key="_min_of_rows", expose=())
def min_of_rows(xp, input):
    """The minimum of each row."""
    return xp.amin(input, -1, False)


declare_ties_over_all(max_all, "_max_of_rows")
declare_ties_over_all(min_all, "_min_of_rows")
declare_ties_in_rows(max_of_rows)
declare_ties_in_rows(min_of_rows)


def _unsupported_in_dim(name):
    return after_shapes(not_implemented(f"{name}_cpu", "unsigned") | {
        "complex": RuntimeError(f"{name}(): does not support complex input")}, "dim")


@op(name="max", key="_max_dim", outputs=("values", "indices"), expose=(),
    unsupported_dtypes=_unsupported_in_dim("max"), exact_out=True, saved="dim indices keepdim self_sym_sizes")
def max_dim(xp, input, *, dim, keepdim=False):
    """The maxima along `dim`, and their indices."""
    return xp._max_dim(input, dim, keepdim)


@op(name="min", key="_min_dim", outputs=("values", "indices"), expose=(),
    unsupported_dtypes=_unsupported_in_dim("min"), exact_out=True, saved="dim indices keepdim self_sym_sizes")
def min_dim(xp, input, *, dim, keepdim=False):
    """The minima along `dim`, and their indices."""
    return xp._min_dim(input, dim, keepdim)


declare_selection(max_dim)
declare_selection(min_dim)


_EXACT_OUT = ("Expected the dtype for input and out to match, but got {result} for input's dtype and {out} for out's "
              "dtype.")


@op(batching_rule="reduce", exact_out=_EXACT_OUT,
    unsupported_dtypes=after_shapes(not_implemented("max_values_cpu", "complex")), saved="dim[] keepdim result self")
def amax(xp, input, *, dim=(), keepdim=False):
    """The maximum over the dimensions `dim` (all if empty); ties share the gradient evenly.

    Args:
        dim: an int or a tuple of ints.
        keepdim: whether the reduced dimensions are kept, with size 1.

    >>> import flambeau as torch
    >>> torch.amax(torch.tensor([[1., 2.], [4., 3.]]), dim=1)
    tensor([2., 4.])
    """
    return xp.amax(input, dim, keepdim)


@op(batching_rule="reduce", exact_out=_EXACT_OUT,
    unsupported_dtypes=after_shapes(not_implemented("min_values_cpu", "complex")), saved="dim[] keepdim result self")
def amin(xp, input, *, dim=(), keepdim=False):
    """The minimum over the dimensions `dim` (all if empty); ties share the gradient evenly.

    Args:
        dim: an int or a tuple of ints.
        keepdim: whether the reduced dimensions are kept, with size 1.

    >>> import flambeau as torch
    >>> torch.amin(torch.tensor([[1., 2.], [4., 3.]]), dim=1)
    tensor([1., 3.])
    """
    return xp.amin(input, dim, keepdim)


declare_ties(amax)
declare_ties(amin)


def _unsupported_in_aminmax(input, *, dim=None, keepdim=False):
    """Return PyTorch's error for complex inputs; it has another text for 0-d tensors."""
    if dim is not None and not input.shape and dim in (0, -1):
        return RuntimeError("aminmax not implemented for {}")
    return _AMINMAX_ERRORS["complex"](input, dim=dim)


_AMINMAX_ERRORS = after_shapes(not_implemented("aminmax_cpu", "complex"), "dim")


@op(outputs=("min", "max"), undefined_gradients=True, unsupported_dtypes={"complex": _unsupported_in_aminmax})
def aminmax(xp, input, *, dim=None, keepdim=False):
    """The minima and maxima along `dim`, or of all elements if None.

    >>> import flambeau as torch
    >>> tuple(torch.aminmax(torch.tensor([2., 1., 3.])))
    (tensor(1.), tensor(3.))
    """
    return xp.aminmax(input, dim, keepdim)


def _aminmax_vjp(xp, g0, g1, input, min, max, dim, keepdim):
    shape = input.shape
    first, second = (None if g is None else _restored(xp, g, dim, keepdim, shape) * xp._tie_shares(
        input, out, dim=dim, keepdim=keepdim) for g, out in ((g0, min), (g1, max)))
    return second if first is None else first if second is None else first + second


aminmax.vjp(input=_aminmax_vjp)
aminmax.jvp(lambda xp, t_input, input, min, max, dim, keepdim: tuple(
    xp.sum(t_input * xp._tie_shares(input, out, dim=dim, keepdim=keepdim), dim, keepdim) for out in (min, max)))


def _unsupported_in_arg(name):
    return {"bool": RuntimeError(f"{name}(): does not support bool input"),
            "complex": RuntimeError(f"{name}(): does not support complex input")}


@op(differentiable=False, exact_out=True, unsupported_dtypes=_unsupported_in_arg("argmax"))
def argmax(xp, input, *, dim=None, keepdim=False):
    """The index of the maximum along `dim`, or in the flattened input if None; the first one at ties.

    >>> import flambeau as torch
    >>> torch.argmax(torch.tensor([1., 3., 2.]))
    tensor(1)
    """
    return xp.argmax(input, dim, keepdim)


@op(differentiable=False, exact_out=True, unsupported_dtypes=_unsupported_in_arg("argmin"))
def argmin(xp, input, *, dim=None, keepdim=False):
    """The index of the minimum along `dim`, or in the flattened input if None; the first one at ties.

    >>> import flambeau as torch
    >>> torch.argmin(torch.tensor([2., 3., 1.]))
    tensor(2)
    """
    return xp.argmin(input, dim, keepdim)
