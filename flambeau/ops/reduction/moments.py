"""Moments: variance and standard deviation, with or without the mean."""

from __future__ import annotations

from ...shapes import AllDims
from ..declare import op
from .reductions import count_reduced, restore_keepdim

# ----- moments -----------------------------------------------------------------------------------------


def _unsupported_in_moments(name):
    error = RuntimeError(f"{name} only support floating point and complex dtypes")
    return {"bool": error, "integer": error}


_VAR = {"holomorphic": False, "batching_rule": "reduce", "unsupported_dtypes": _unsupported_in_moments("std and var")}


def _var_vjp(xp, g, input, dim, correction, keepdim):
    """2 (x - mean) g / (n - correction); PyTorch counts one element for `dim=()`."""
    n = 1 if dim == () and len(input.shape) else count_reduced(input.shape, dim)
    degrees_of_freedom = n - (1 if correction is None else correction)
    centered = input - xp.mean(input, dim, True)
    if degrees_of_freedom <= 0 and (dim is None or dim.__class__ is AllDims or not input.shape):
        g = restore_keepdim(xp, g, dim, keepdim, input.shape)
        return xp.where(xp.eq(centered, 0), g * float("nan"), g * float("inf"))
    factor = 2 / degrees_of_freedom if degrees_of_freedom else float("inf")
    return restore_keepdim(xp, g, dim, keepdim, input.shape) * factor * centered


def _var_jvp(xp, t_input, input, dim, correction, keepdim):
    degrees_of_freedom = count_reduced(input.shape, dim) - (1 if correction is None else correction)
    centered = input - xp.mean(input, dim, True)
    total = xp.sum(xp.real(xp.conj(t_input) * centered), dim, keepdim)
    factor = 2 / degrees_of_freedom if degrees_of_freedom > 0 else float("nan") if degrees_of_freedom else float("inf")
    return total * factor


def _std_vjp(xp, g, out):
    return xp.where(xp.eq(out, 0), 0, g / (2 * out))  # the gradient is 0 where the input is constant


@op(node="VarBackward0", saved="correction dim[] keepdim self", **_VAR)
def var(xp, input, *, dim=None, correction=None, keepdim=False):
    """The variance over the dimensions `dim` (all if None): Σ |x - mean|² / (n - correction).

    Args:
        correction: 1 if None, which makes the estimate unbiased; the deprecated `unbiased=` is accepted too.
        keepdim: whether the reduced dimensions are kept, with size 1.

    >>> import flambeau as torch
    >>> torch.var(torch.tensor([1., 2., 3.]))
    tensor(1.)
    """
    return xp.var(input, dim, correction, keepdim)


var.vjp(input=_var_vjp)
var.jvp(_var_jvp)


@op(node="StdBackward0", saved="correction dim[] keepdim result self", **_VAR)
def std(xp, input, *, dim=None, correction=None, keepdim=False):
    """The standard deviation √var over the dimensions `dim` (all if None); arguments as in `var`.

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


@op(outputs=("result0", "result1"), undefined_gradients=True, saved="correction dim[] keepdim self", **_VAR_MEAN)
def var_mean(xp, input, *, dim=None, correction=None, keepdim=False):
    """The variance and the mean over the dimensions `dim` (all if None); arguments as in `var`.

    >>> import flambeau as torch
    >>> torch.var_mean(torch.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """
    return xp.var_mean(input, dim, correction, keepdim)


def _with_mean_gradient(xp, first, g, input, dim, keepdim):
    """The sum of two gradients of `input`: `first`, and that of its mean, whose gradient is `g`; either may be None."""
    if g is None:
        return first
    second = _expand_mean_gradient(xp, g, input, dim, keepdim)
    return second if first is None else first + second


def _var_mean_vjp(xp, g0, g1, input, dim, correction, keepdim):
    first = None if g0 is None else _var_vjp(xp, g0, input, dim, correction, keepdim)
    return _with_mean_gradient(xp, first, g1, input, dim, keepdim)


var_mean.vjp(input=_var_mean_vjp)
var_mean.jvp(lambda xp, t_input, input, dim, correction, keepdim: (
    _var_jvp(xp, t_input, input, dim, correction, keepdim), xp.mean(t_input, dim, keepdim)))


@op(outputs=("result0", "result1"), undefined_gradients=True,
    saved="correction dim[] keepdim result0 self", **_STD_MEAN)
def std_mean(xp, input, *, dim=None, correction=None, keepdim=False):
    """The standard deviation and the mean over the dimensions `dim` (all if None); arguments as in `var`.

    >>> import flambeau as torch
    >>> torch.std_mean(torch.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """
    return xp.std_mean(input, dim, correction, keepdim)


def _std_mean_vjp(xp, g0, g1, input, result0, dim, correction, keepdim):
    first = None if g0 is None else _var_vjp(xp, _std_vjp(xp, g0, result0), input, dim, correction, keepdim)
    return _with_mean_gradient(xp, first, g1, input, dim, keepdim)


std_mean.vjp(input=_std_mean_vjp)
std_mean.jvp(lambda xp, t_input, input, result0, dim, correction, keepdim: (_std_vjp(
    xp, _var_jvp(xp, t_input, input, dim, correction, keepdim), result0), xp.mean(t_input, dim, keepdim)))
