"""Quantiles, covariance and correlation, composites of other operators."""

from __future__ import annotations

from ...shapes import wrap_dim
from ..declare import composite

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _everywhere(condition):
    """Return whether all elements of a bool tensor are true, those of all batch elements under `vmap`."""
    return getattr(condition, "_value", condition).all().item()


def _check_quantile(input, q, interpolation):
    if isinstance(q, (int, float)) and not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError("quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but "
                           f"got {interpolation}")
    if not input.numel():
        raise RuntimeError("quantile() input tensor must be non-empty")
    if not isinstance(q, (int, float)) and len(q.shape) > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if input.dtype.name not in ("float32", "float64"):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if isinstance(q, (int, float)):
        return
    if q.dtype is not input.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if q.numel() and not _everywhere((q >= 0) & (q <= 1)):
        raise RuntimeError("quantile() q values must be in the range [0, 1]")


def _quantile(xp, name, input, q, dim, keepdim, interpolation):
    shape = tuple(input.shape)
    _check_quantile(input, q, interpolation)
    axis = None if dim is None else wrap_dim(dim, len(shape))
    if isinstance(q, (int, float)):
        q = xp.tensor(float(q), dtype=input.dtype)
    if axis is None:
        lead = (1,) * len(shape) if keepdim else ()
        ordered = xp.sort(input if len(shape) == 1 else xp.reshape(input, (-1,)), -1)[0]
    else:
        lead = (*shape[:axis], 1, *shape[axis + 1:]) if keepdim else shape[:axis] + shape[axis + 1:]
        last = axis == len(shape) - 1
        ordered = xp.sort(input if last else xp.transpose(xp.unsqueeze(input, -1), axis, -1), -1)[0]
    eager = hasattr(ordered, "squeeze_")
    rows = (xp.view if eager else xp.reshape)(ordered, (*lead, ordered.shape[-1]))
    n = rows.shape[-1]
    nan = rows != rows
    if name == "nanquantile":
        counts = xp.sum(xp.logical_not(nan), -1, True)
        ranks = xp.clamp(q * (counts - 1), min=0)
    else:
        ranks = xp.where(xp.any(nan, -1, True), xp.tensor(n - 1, dtype=q.dtype), q * (n - 1))
    rounding = {"lower": xp.floor, "higher": xp.ceil, "nearest": xp.round}.get(interpolation)
    if rounding is not None:
        ranks = rounding(ranks)
    below, above = ranks.long(), xp.ceil(ranks).long()
    weights = xp.full_like(ranks, 0.5) if interpolation == "midpoint" else ranks - below
    values = xp.gather(rows, -1, below)
    if interpolation in ("linear", "midpoint"):
        values = xp.lerp(values, xp.gather(rows, -1, above), weights)
    if eager:  # in place, so that the result is no view
        return values.unsqueeze_(0).transpose_(0, -1).squeeze_(-1) if len(q.shape) else values.squeeze_(-1)
    if len(q.shape):
        values = xp.transpose(xp.unsqueeze(values, 0), 0, -1)
    return xp.squeeze(values, -1)


@composite(scalar_inputs=("q",))
def quantile(xp, input, q, *, dim=None, keepdim=False, interpolation="linear"):
    """The q-th quantiles along `dim` (of all elements if None).

    Args:
        q: in [0, 1], a float or a vector; a vector adds a first dimension to the result.
        keepdim: whether the reduced dimension is kept, with size 1.
        interpolation: between two elements, "linear", "lower", "higher", "midpoint" or "nearest".

    >>> import flambeau as torch
    >>> torch.quantile(torch.tensor([0., 1., 2., 3.]), 0.5)
    tensor(1.5000)
    """
    return _quantile(xp, "quantile", input, q, dim, keepdim, interpolation)


@composite(scalar_inputs=("q",))
def nanquantile(xp, input, q, *, dim=None, keepdim=False, interpolation="linear"):
    """`quantile` of the elements that are not NaN.

    >>> import flambeau as torch
    >>> torch.nanquantile(torch.tensor([0., float('nan'), 1.]), 0.5)
    tensor(0.5000)
    """
    return _quantile(xp, "nanquantile", input, q, dim, keepdim, interpolation)


def _check_weights(name, weights, count, floating):
    kind, expected = ("aweights", "floating point") if floating else ("fweights", "integral")
    if len(weights.shape) > 1:
        raise RuntimeError(f"{name}(): expected {kind} to have one or fewer dimensions but got {kind} with "
                           f"{len(weights.shape)} dimensions")
    if weights.is_floating_point() != floating or weights.is_complex() or str(weights.dtype).endswith(".bool"):
        raise RuntimeError(f"{name}(): expected {kind} to have {expected} dtype but got {kind} with "
                           f"{weights.dtype.scalar_name} dtype")
    if weights.numel() != count:
        raise RuntimeError(f"{name}(): expected {kind} to have the same numel as there are observations in the input "
                           f"but got {weights.numel()} != {count}")
    if weights.numel() and weights.min().item() < 0:
        raise RuntimeError(f"{name}(): {kind} cannot be negative")


@composite
def cov(xp, input, fweights=None, aweights=None, *, correction=1):
    """The covariance matrix of variables in the rows, observations in the columns.

    Args:
        correction: is subtracted from the number of observations.
        fweights: the number of times that each observation counts, integers.
        aweights: the weights of the observations.

    >>> import flambeau as torch
    >>> torch.cov(torch.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    import warnings

    if len(input.shape) > 2:
        raise RuntimeError("cov(): expected input to have two or fewer dimensions but got an input with "
                           f"{len(input.shape)} dimensions")
    if str(input.dtype).endswith(".bool"):
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = xp.reshape(input, (1, -1)) if len(input.shape) < 2 else input
    count = rows.shape[1]
    weights = None
    if fweights is not None:
        _check_weights("cov", fweights, count, False)
        weights = fweights
    if aweights is not None:
        _check_weights("cov", aweights, count, True)
        weights = aweights if weights is None else weights * aweights
    if weights is not None and weights.numel() and not weights.sum().item():
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    total = xp.tensor(count) if weights is None else weights.sum()
    if aweights is None or correction == 0:
        factor = total - correction
    else:
        factor = total - correction * (weights * aweights).sum() / total
    degrees = count - correction if weights is None else factor.item()
    if degrees <= 0:
        warnings.warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of "
                      "observations.", UserWarning, stacklevel=4)
        factor = xp.zeros_like(factor)
    mean = xp.sum(rows if weights is None else rows * weights, 1) / total
    rows = rows - xp.unsqueeze(mean, 1)
    weighted = rows if weights is None else rows * weights
    return xp.squeeze(xp.mm(rows, xp.conj(xp.t(weighted))) / factor)


@composite
def corrcoef(xp, input):
    """The correlation coefficients of the variables in the rows.

    >>> import flambeau as torch
    >>> torch.corrcoef(torch.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if len(input.shape) > 2:
        raise RuntimeError("corrcoef(): expected input to have two or fewer dimensions but got an input with "
                           f"{len(input.shape)} dimensions")
    c = xp.cov(input)
    if not len(c.shape):
        return c / c
    variances = xp.diagonal(c)
    deviations = xp.sqrt(xp.real(variances) if c.is_complex() else variances)
    c = c / xp.reshape(deviations, (-1, 1)) / xp.reshape(deviations, (1, -1))
    if c.is_complex():
        return xp.complex(xp.clamp(xp.real(c), -1, 1), xp.clamp(xp.imag(c), -1, 1))
    return xp.clamp(c, -1, 1)
