"""Divergences of univariate distributions of different families.

Where p has mass outside of the support of q, the divergence is infinite.
"""

from __future__ import annotations

import math
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..bernoulli import Bernoulli
from ..beta import Beta
from ..binomial import Binomial
from ..continuous_bernoulli import ContinuousBernoulli
from ..exponential import Exponential
from ..gamma import Gamma
from ..gumbel import Gumbel
from ..laplace import Laplace
from ..normal import Normal
from ..pareto import Pareto
from ..poisson import Poisson
from ..uniform import Uniform
from ..utils import euler_constant as _euler_gamma
from .registry import register_kl, register_pairs


def _infinite_like(tensor: Tensor) -> Tensor:
    filled: Tensor = fn.full_like(tensor, math.inf)
    return filled


def _x_log_x(tensor: Tensor) -> Tensor:
    product: Tensor = fn.xlogy(tensor, tensor)
    return product


def _gamma_normalizer(q: Any) -> Tensor:
    """log Γ(α) - α log β."""
    result: Tensor = q.concentration.lgamma() - q.concentration * q.rate.log()
    return result


# ----- infinite -----

@register_pairs((Beta, Pareto))
def _kl_beta_infinity(p: Beta, q: Any) -> Tensor:
    return _infinite_like(p.concentration1)


@register_pairs((ContinuousBernoulli, Pareto))
def _kl_continuous_bernoulli_infinity(p: ContinuousBernoulli, q: Any) -> Tensor:
    return _infinite_like(p.probs)


_ON_INTERVALS = (Beta, ContinuousBernoulli, Pareto, Uniform)


@register_pairs(*((Exponential, q) for q in _ON_INTERVALS))
def _kl_exponential_infinity(p: Exponential, q: Any) -> Tensor:
    return _infinite_like(p.rate)


@register_pairs(*((Gamma, q) for q in _ON_INTERVALS))
def _kl_gamma_infinity(p: Gamma, q: Any) -> Tensor:
    return _infinite_like(p.concentration)


@register_pairs(*((p, q) for p in (Gumbel, Laplace, Normal) for q in (*_ON_INTERVALS, Exponential, Gamma)))
def _kl_real_infinity(p: Any, q: Any) -> Tensor:
    return _infinite_like(p.loc)


@register_pairs((Pareto, Beta), (Pareto, ContinuousBernoulli), (Pareto, Uniform))
def _kl_pareto_infinity(p: Pareto, q: Any) -> Tensor:
    return _infinite_like(p.scale)


@register_pairs((Poisson, Bernoulli), (Poisson, Binomial))
def _kl_poisson_infinity(p: Poisson, q: Any) -> Tensor:
    return _infinite_like(p.rate)


# ----- Bernoulli, beta, continuous Bernoulli -----

@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Tensor:
    return -p.entropy() - p.mean * q.logits - fn.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
def _kl_beta_exponential(p: Beta, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * (p.concentration1 / (p.concentration1 + p.concentration0))


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p: Beta, q: Gamma) -> Tensor:
    total = p.concentration1 + p.concentration0
    t3 = (q.concentration - 1) * (p.concentration1.digamma() - total.digamma())
    t4 = q.rate * p.concentration1 / total
    return -p.entropy() + _gamma_normalizer(q) - t3 + t4


@register_kl(Beta, Normal)
def _kl_beta_normal(p: Beta, q: Normal) -> Tensor:
    total = p.concentration1 + p.concentration0
    mean = p.concentration1 / total
    variance = q.scale.pow(2)
    t2 = 0.5 * (variance * 2 * math.pi).log()
    t3 = (mean * (1 - mean) / (total + 1) + mean.pow(2)) * 0.5
    return -p.entropy() + t2 + (t3 - q.loc * mean + q.loc.pow(2) * 0.5) / variance


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p: Beta, q: Uniform) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    result[(q.low > p.support.lower_bound) | (q.high < p.support.upper_bound)] = math.inf
    return result


@register_kl(ContinuousBernoulli, Exponential)
def _kl_continuous_bernoulli_exponential(p: ContinuousBernoulli, q: Exponential) -> Tensor:
    return -p.entropy() - fn.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _kl_continuous_bernoulli_normal(p: ContinuousBernoulli, q: Normal) -> Tensor:
    t2 = 0.5 * (math.log(2.0 * math.pi) + fn.square(q.loc / q.scale)) + fn.log(q.scale)
    t3 = (p.variance + fn.square(p.mean) - 2.0 * q.loc * p.mean) / (2.0 * fn.square(q.scale))
    return -p.entropy() + t2 + t3


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    outside = fn.max(fn.ge(q.low, p.support.lower_bound), fn.le(q.high, p.support.upper_bound))
    bounded: Tensor = fn.where(outside, fn.ones_like(result) * math.inf, result)
    return bounded


# ----- exponential, gamma -----

@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    ratio = q.rate / p.rate
    t1 = -q.concentration * fn.log(ratio)
    result: Tensor = (t1 + ratio + q.concentration.lgamma() + q.concentration * _euler_gamma
                      - (1 + _euler_gamma))
    return result


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    product = p.rate * q.scale
    loc = q.loc / q.scale
    t2 = fn.exp(loc) * product / (product + 1)
    result: Tensor = product.log() - 1 - loc + t2 + product.reciprocal()
    return result


@register_kl(Exponential, Normal)
def _kl_exponential_normal(p: Exponential, q: Normal) -> Tensor:
    variance, rate = q.scale.pow(2), p.rate.pow(2)
    t1 = 0.5 * fn.log(rate * variance * 2 * math.pi)
    result: Tensor = t1 - 1 + (rate.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5) / variance
    return result


@register_kl(Gamma, Exponential)
def _kl_gamma_exponential(p: Gamma, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    product = p.rate * q.scale
    loc = q.loc / q.scale
    t1 = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
    t2 = product.log() + p.concentration / product
    t3 = fn.exp(loc) * (1 + product.reciprocal()).pow(-p.concentration) - loc
    result: Tensor = t1 + t2 + t3
    return result


@register_kl(Gamma, Normal)
def _kl_gamma_normal(p: Gamma, q: Normal) -> Tensor:
    variance, rate = q.scale.pow(2), p.rate.pow(2)
    t1 = 0.5 * fn.log(rate * variance * 2 * math.pi) - p.concentration - p.concentration.lgamma()
    t2 = 0.5 * (p.concentration.pow(2) + p.concentration) / rate
    t3 = q.loc * p.concentration / p.rate
    result: Tensor = t1 + (p.concentration - 1) * p.concentration.digamma() + (
        t2 - t3 + 0.5 * q.loc.pow(2)) / variance
    return result


# ----- Gumbel, Laplace, normal -----

@register_kl(Gumbel, Normal)
def _kl_gumbel_normal(p: Gumbel, q: Normal) -> Tensor:
    ratio = p.scale / q.scale
    t1 = (ratio / math.sqrt(2 * math.pi)).log()
    t2 = (math.pi * ratio * 0.5).pow(2) / 3
    t3 = ((p.loc + p.scale * _euler_gamma - q.loc) / q.scale).pow(2) * 0.5
    result: Tensor = -t1 + t2 + t3 - (_euler_gamma + 1)
    return result


@register_kl(Laplace, Normal)
def _kl_laplace_normal(p: Laplace, q: Normal) -> Tensor:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    t1 = 0.5 * fn.log(2 * ratio / math.pi)
    squares = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    result: Tensor = -t1 + ratio + squares / variance - 1
    return result


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    mean, variance, loc = p.loc / q.scale, (p.scale / q.scale).pow(2), q.loc / q.scale
    t3 = fn.exp(-mean + 0.5 * variance + loc)
    result: Tensor = -(variance.log() * 0.5) + (mean - loc) + t3 - (0.5 * (1 + math.log(2 * math.pi)))
    return result


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p: Normal, q: Laplace) -> Tensor:
    distance = p.loc - q.loc
    scaled = distance / p.scale
    t1 = fn.log(p.scale / q.scale)
    t2 = math.sqrt(2 / math.pi) * p.scale * fn.exp(-0.5 * scaled.pow(2))
    t3 = distance * fn.erf(math.sqrt(0.5) * scaled)
    result: Tensor = -t1 + (t2 + t3) / q.scale - (0.5 * (1 + math.log(0.5 * math.pi)))
    return result


# ----- Pareto -----

@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    product = p.scale * q.rate
    t1 = (p.alpha / product).log()
    result: Tensor = t1 - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    result[p.alpha <= 1] = math.inf
    return result


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    log_mean = p.scale.log() + p.alpha.reciprocal()  # the mean of log x
    t1 = p.alpha.log() - log_mean
    t3 = (1 - q.concentration) * log_mean
    t4 = q.rate * p.alpha * p.scale / (p.alpha - 1)
    result: Tensor = t1 + _gamma_normalizer(q) + t3 + t4 - 1
    result[p.alpha <= 1] = math.inf
    return result


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p: Pareto, q: Normal) -> Tensor:
    variance = 2 * q.scale.pow(2)
    part = p.scale / (p.alpha - 1)
    t1 = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log()
    t3 = p.alpha * part.pow(2) / (p.alpha - 2)
    t4 = (p.alpha * part - q.loc).pow(2)
    result: Tensor = t1 - p.alpha.reciprocal() + (t3 + t4) / variance - 1
    result[p.alpha <= 2] = math.inf
    return result


# ----- uniform -----

@register_kl(Uniform, Beta)
def _kl_uniform_beta(p: Uniform, q: Beta) -> Tensor:
    width = p.high - p.low
    t2 = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    t3 = (q.concentration0 - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    t4 = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    result: Tensor = t3 + t4 - fn.log(width) - t2
    result[(p.high > q.support.upper_bound) | (p.low < q.support.lower_bound)] = math.inf
    return result


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    result = -p.entropy() - p.mean * q.logits - fn.log1p(-q.probs) - q._cont_bern_log_norm()
    outside = fn.max(fn.ge(p.high, q.support.upper_bound), fn.le(p.low, q.support.lower_bound))
    bounded: Tensor = fn.where(outside, fn.ones_like(result) * math.inf, result)
    return bounded


@register_kl(Uniform, Exponential)
def _kl_uniform_exponetial(p: Uniform, q: Exponential) -> Tensor:
    result: Tensor = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    result[p.low < q.support.lower_bound] = math.inf
    return result


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    width = p.high - p.low
    t3 = (1 - q.concentration) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result: Tensor = -width.log() + _gamma_normalizer(q) + t3 + q.rate * (p.high + p.low) / 2
    result[p.low < q.support.lower_bound] = math.inf
    return result


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    ratio = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    t1 = ratio.log() + 0.5 * (high + low)
    result: Tensor = t1 - ratio * (fn.exp(-high) - fn.exp(-low))
    return result


@register_kl(Uniform, Normal)
def _kl_uniform_normal(p: Uniform, q: Normal) -> Tensor:
    width = p.high - p.low
    t1 = (math.sqrt(math.pi * 2) * q.scale / width).log()
    t3 = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    result: Tensor = t1 + 0.5 * (width.pow(2) / 12 + t3) / q.scale.pow(2)
    return result


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    width = p.high - p.low
    t1 = (q.alpha * q.scale.pow(q.alpha) * width).log()
    t2 = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result: Tensor = t2 * (q.alpha + 1) - t1
    result[p.low < q.support.lower_bound] = math.inf
    return result
