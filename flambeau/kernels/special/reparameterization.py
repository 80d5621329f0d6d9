"""Derivatives of gamma and Dirichlet samples by their parameters (implicit reparameterization).

A sample x of a distribution function F(x; α) moves with its parameter as dx/dα = −(∂F/∂α) / (∂F/∂x). There is no closed
form; each region has its own approximation, in float64: a Taylor series near 0, a saddle-point expansion for large
parameters, and a rational function fitted in logarithms elsewhere. The regions and fits are PyTorch's, which limit
the accuracy of its gradients to about three digits.
"""

from __future__ import annotations

import numpy as np

from .approximation import BLOCK, Array, blockwise
from .gamma import DIGAMMA_SERIES, digamma

#: coefficients in u = log(x / α) (rows, ascending) of the polynomials in v = log α of numerator and denominator
GAMMA_FIT = np.array((
    (0.16009398, -0.094634809, 0.025146376, -0.0030648343, 1, 0.32668115, 0.10406089, 0.0014179084),
    (0.53487893, 0.1298071, 0.065735949, -0.0015649758, 0.16639465, 0.020070113, -0.0035938915, -0.00058392623),
    (0.040121004, -0.0065914022, -0.0026286047, -0.0013441777,
     0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07),
))

#: numerator and denominator: coefficients of log(x)^i · (log α − log x)^j, each a cubic in the third logarithm
DIRICHLET_FIT = np.array((
    (((1.003668233, -0.01061107488, -0.0657888334, 0.01201642863),
      (0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033),
      (-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013)),
     ((0.221950385, -0.3187676331, 0.01799915743, 0.01074823814),
      (-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057),
      (0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05)),
     ((-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565),
      (0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181),
      (0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05))),
    (((1, -0.02924021934, -0.04438342661, 0.007285809825),
      (0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521),
      (-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149)),
     ((0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273),
      (0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956),
      (-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05)),
     ((0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05),
      (0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05),
      (-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06))),
))


def _select(regions: tuple[Array, ...], functions: tuple, *arrays: Array) -> Array:
    """Each function on the elements of its region, disjoint from the regions before it; the last on the rest."""
    out = np.empty_like(arrays[0])
    left = np.ones(out.shape, bool)
    for region, function in zip((*regions, left), functions, strict=True):
        mask = region & left
        left = left & ~mask
        if mask.any():
            out[mask] = function(*(array[mask] for array in arrays))
    return out


def _nan_to_zero(x: Array) -> Array:
    return np.where(np.isnan(x), x.dtype.type(0), x)


# ----- gamma -----

@blockwise
def standard_gamma_grad(alpha: Array, x: Array) -> Array:
    """dx/dα of samples `x` of gamma distributions with shape `alpha` and rate 1."""
    with np.errstate(all="ignore"):
        near = (x >= float(np.float32(0.9)) * alpha) & (x <= float(np.float32(1.1)) * alpha)
        large = alpha > 8.0
        return _select((x < float(np.float32(0.8)), large & near, large),
                       (_gamma_small, _gamma_at_mean, _gamma_large, _gamma_fitted), alpha, x)


def _gamma_small(alpha: Array, x: Array) -> Array:
    """Taylor series of the distribution function in x."""
    term: Array = np.ones_like(x)
    shifted = alpha
    first, second = 1 / shifted, 1 / (shifted * shifted)
    for i in range(1, 6):
        term = term * (-x / i)
        shifted = shifted + 1
        first = first + term / shifted
        second = second + term / (shifted * shifted)
    power = np.power(x, alpha)
    density = np.power(x, alpha - 1) * np.exp(-x)
    slope = (np.log(x) - digamma(alpha)) * (power * first) - power * second
    return _nan_to_zero(-slope / density)


def _gamma_at_mean(alpha: Array, x: Array) -> Array:
    """The saddle-point expansion around its removable singularity x = α."""
    first = 1 + 24 * alpha * (1 + 12 * alpha)
    second = (1440 * (alpha * alpha) + 6 * x * (53 - 120 * x) - 65 * x * x / alpha + alpha * (107 + 3600 * x))
    return first * second / (1244160 * (alpha * alpha) * (alpha * alpha))


def _gamma_large(alpha: Array, x: Array) -> Array:
    """Rice's saddle-point expansion."""
    log_ratio = np.log(x / alpha)
    root = np.sqrt(8 * alpha)
    linear = root / (alpha - x)
    power = np.power(x - alpha - alpha * log_ratio, -1.5)
    both = np.where(x < alpha, linear - power, linear + power)
    bracket = log_ratio * both - np.sqrt(2 / alpha) * (alpha + x) / ((alpha - x) * (alpha - x))
    stirling = 1 + 1 / (12 * alpha) * (1 + 1 / (24 * alpha))
    return -stirling * (x * bracket) / root


def _gamma_fitted(alpha: Array, x: Array) -> Array:
    u, v = np.log(x / alpha), np.log(alpha)
    c = [a + u * (b + u * d) for a, b, d in GAMMA_FIT.T]
    numerator = c[0] + v * (c[1] + v * (c[2] + v * c[3]))
    denominator = c[4] + v * (c[5] + v * (c[6] + v * c[7]))
    return np.exp(numerator / denominator)


# ----- Dirichlet: a component x is a Beta(α, β) sample, α + β = total -----

def dirichlet_grad(x: Array, alpha: Array, total: Array) -> Array:
    """The derivative of components `x` by their concentration `alpha` of the sum `total`, divided by 1 − x.

    Near 0 and 1, float32 numbers are computed in float32, as in PyTorch: its last digits are rounding errors there.
    """
    x, alpha, total = np.broadcast_arrays(x, alpha, total)
    flat = [array.reshape(-1) for array in (x, alpha, total)]
    out = np.empty(x.shape, x.dtype)
    target = out.reshape(-1)
    for start in range(0, target.size, BLOCK):
        target[start:start + BLOCK] = _dirichlet_block(*(array[start:start + BLOCK] for array in flat))
    return out


def _dirichlet_block(x: Array, alpha: Array, total: Array) -> Array:
    one = x.dtype.type(1)
    with np.errstate(all="ignore"):
        beta = total - alpha
        boundary = total * x * (one - x)
        regions = ((x <= 0.5) & (boundary < 2.5), (x >= 0.5) & (boundary < 0.75), (alpha > 6) & (beta > 6))
        return _select(regions, (
            lambda x, alpha, beta, total: _beta_by_alpha_at_zero(x, alpha, beta),
            lambda x, alpha, beta, total: -_beta_by_beta_at_zero(one - x, beta, alpha),
            lambda x, alpha, beta, total: _beta_by_alpha_large(*(a.astype(np.float64) for a in (x, alpha, beta))),
            _dirichlet_fitted), x, alpha, beta, total)


def _digamma(x: Array) -> Array:
    """digamma(x), in float32 by recurrence from x + n >= 10, with PyTorch's roundings; infinity at the poles."""
    if x.dtype == np.float64:
        return digamma(x)
    negative, pole = x < 0, (x <= 0) & (x == np.floor(x))
    total = np.where(negative, -np.pi / np.tan(np.pi * x.astype(np.float64)), 0.0)
    # the recurrence would not end from -inf, nor from numbers that adding 1 leaves unchanged
    x = np.where(negative, np.float32(1) - x, x)
    below = x < 10
    while below.any():
        total = np.where(below, total - (1 / x).astype(np.float64), total)
        x = np.where(below, x + np.float32(1), x)
        below = x < 10
    inverse = 1.0 / (x * x).astype(np.float64)
    series: Array = np.zeros(x.shape)
    for c in DIGAMMA_SERIES[::-1]:
        series = series * inverse + c
    result = (total + _log(x) - np.float32(0.5) / x - inverse * series).astype(np.float32)
    return np.where(pole, np.float32(np.inf), result)


def _log(x: Array) -> Array:
    return np.log(x.astype(np.float64)).astype(x.dtype)


def _power(x: Array, y: Array) -> Array:
    return np.power(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)


def _beta_by_alpha_at_zero(x: Array, alpha: Array, beta: Array) -> Array:
    number = x.dtype.type
    factor = _digamma(alpha) - _digamma(alpha + beta) - _log(x)
    term: Array = np.ones_like(x)
    series = term / alpha * (factor + number(1) / alpha)
    for i in map(number, range(1, 11)):
        term = term * ((i - beta) * x / i)
        shifted = alpha + i
        series = series + term / shifted * (factor + number(1) / shifted)
    return _nan_to_zero(x * _power(number(1) - x, -beta) * series)


def _beta_by_beta_at_zero(x: Array, alpha: Array, beta: Array) -> Array:
    number = x.dtype.type
    factor = _digamma(alpha + beta) - _digamma(beta)
    term: Array = np.ones_like(x)
    product, slope = np.ones_like(x), np.zeros_like(x)
    series = factor / alpha
    for i in map(number, range(1, 9)):
        term = term * (-x / i)
        slope = slope * (beta - i) + product
        product = product * (beta - i)
        series = series + term / (alpha + i) * (slope + factor * product)
    return _nan_to_zero(-_power(number(1) - x, number(1) - beta) * series)


def _beta_by_alpha_large(x: Array, alpha: Array, beta: Array) -> Array:
    total = alpha + beta
    mean = alpha / total
    deviation = np.sqrt(alpha * beta / (total + 1)) / total
    near = (mean - 0.1 * deviation <= x) & (x <= mean + 0.1 * deviation)
    return _select((near,), (_beta_at_mean, _beta_away_from_mean), x, alpha, beta)


def _beta_at_mean(x: Array, alpha: Array, beta: Array) -> Array:
    """The expansion around its removable singularity at the mean."""
    total = alpha + beta
    square = beta * beta
    polynomial = 47 * x * square * square + alpha * (
        (43 + 20 * (16 + 27 * beta) * x) * square * beta + alpha * (
            3 * (59 + 180 * beta - 90 * x) * square + alpha * (
                (453 + 1620 * beta * (1 - x) - 455 * x) * beta + alpha * (8 * (1 - x) * (135 * beta - 11)))))
    above = (1 + 12 * alpha) * (1 + 12 * beta) / (total * total)
    below = 12960 * alpha * alpha * alpha * beta * beta * (1 + 12 * total)
    return above / (1 - x) * polynomial / below


def _stirling(x: Array) -> Array:
    return 1 + 1 / (12 * x) + 1 / (288 * x * x)


def _beta_away_from_mean(x: Array, alpha: Array, beta: Array) -> Array:
    total = alpha + beta
    prefactor = -x / np.sqrt(2 * alpha * beta / total)
    stirling = _stirling(alpha) * _stirling(beta) / _stirling(total)
    distance = alpha * (x - 1) + beta * x
    first = (2 * (alpha * alpha) * (x - 1) + alpha * beta * (x - 1) - x * (beta * beta)) / (
        np.sqrt(2 * alpha / beta) * np.power(total, 1.5) * distance * distance)
    linear = np.sqrt(8 * alpha * beta / total) / (beta * x + alpha * (x - 1))
    power = np.power(beta * np.log(beta / (total * (1 - x))) + alpha * np.log(alpha / (total * x)), -1.5)
    both = linear + np.where(x < alpha / total, power, -power)
    return stirling * prefactor * (first + 0.5 * np.log(alpha / (total * x)) * both)


def _dirichlet_fitted(x: Array, alpha: Array, beta: Array, total: Array) -> Array:
    """A rational correction of the quotient of derivatives at x = 1."""
    slope = _digamma(total).astype(np.float64) - _digamma(alpha)
    x, alpha, beta, total = (array.astype(np.float64) for array in (x, alpha, beta, total))
    u = np.log(x)
    a = np.log(alpha) - u
    b = np.log(total) - a
    fits = [np.zeros_like(x), np.zeros_like(x)]
    for i, power_u in enumerate((1.0, u, u * u)):
        for j, power_a in enumerate((1.0, a, a * a)):
            both = power_u * power_a
            for k, c in enumerate(DIRICHLET_FIT[:, i, j]):
                fits[k] = fits[k] + both * (c[0] + b * (c[1] + b * (c[2] + b * c[3])))
    return fits[0] / fits[1] * (x * slope / beta)
