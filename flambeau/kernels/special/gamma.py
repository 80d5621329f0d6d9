"""The gamma function's logarithm and its derivative.

Each is divided by its positive zeros and fitted piece by piece up to 10 or 12, with Stirling's series
beyond and Euler's reflection below zero (Abramowitz and Stegun, 6.1.17, 6.1.40, 6.3.7, 6.3.18).
"""

from __future__ import annotations

import math

import numpy as np

from .approximation import Array, blockwise, blockwise_with_single, piecewise, polynomial, ratio

LOG_PI = 1.1447298858494002
HALF_LOG_TWO_PI = 0.9189385332046728

# B(2k) / (2k (2k-1)) and B(2k) / 2k, k = 1, 2, ...
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)

# digamma's positive zero, as a double and the rest of it
DIGAMMA_ZERO = (1.4616321449683622, 9.549995429965697e-17)

# on [0.0, 0.5], relative error 4.2e-17
LGAMMA_HALF = (
    (0.7631532572329335, 4.827884389632774, 11.93356070162503, 14.58551758890025, 9.190796896708811,
     2.8259257604810912, 0.3572925250353538, 0.011725095706912894),
    (1.0, 7.090086235966447, 20.112359179036744, 29.179692328385787, 22.97929392304508, 9.6248103789026,
     1.9547362239315247, 0.15559215474547933, 0.00276695894999891),
)
# on [0.0, 1.5], relative error 4.6e-17
LGAMMA_ONE = (
    (0.5772156649015329, 1.7439586271397718, 2.04037365624916, 1.1668261319382578, 0.33897968474548984,
     0.04718806396610953, 0.0026384815723250227, 3.7024474177910495e-05),
    (1.0, 3.4462162353159473, 4.729824230925762, 3.3025930607547678, 1.2445075821983607,
     0.24797426613142953, 0.023815469710103492, 0.000890933594661589, 7.403660443459729e-06),
)
# on [0.0, 3.5], relative error 7.3e-17
LGAMMA_TWO = (
    (0.37957716063055885, 0.4595180624540251, 0.2154245712365184, 0.049371987042305936,
     0.005750892755628456, 0.0003210603224276381, 7.191240047066068e-06, 4.014567278293981e-08),
    (1.0, 1.40730710910302, 0.7919180256554229, 0.22789969896391415, 0.03563082287776429,
     0.0029693429603425826, 0.0001203772439290974, 1.920303137823359e-06, 6.877619180649317e-09),
)
# on [0.0, 6.0], relative error 5.5e-17
LGAMMA_SIX = (
    (0.2393745871391023, 0.12419240951478168, 0.02509427052166875, 0.002496599015608086,
     0.00012734957767354796, 3.1461625739881136e-06, 3.154915925063915e-08, 7.961558651044356e-11),
    (1.0, 0.6124505197395679, 0.15110575462813347, 0.019239283915482817, 0.0013453576321438415,
     5.080237416996035e-05, 9.476933936739416e-07, 7.0826027359816944e-09, 1.2129020223055815e-11),
)
# on [0.0, 1.0], relative error 7.8e-17
DIGAMMA_ONE = (
    (1.2503801375034054, 2.0411087477806844, 1.2230507843318603, 0.34147280190464624, 0.04591029345598592,
     0.0027161996380116174, 5.23549255486597e-05, 6.368515133880996e-08),
    (1.0, 2.315937386980913, 1.9594031821041815, 0.7901860963473188, 0.1626356759950898,
     0.016650272465346456, 0.0007449827179226764, 1.0084992601278136e-05),
)
# on [0.0, 2.0], relative error 3.1e-17
DIGAMMA_TWO = (
    (0.7853075386041053, 0.8636631503805141, 0.35724560752596496, 0.06982983799846802,
     0.0066093282169650686, 0.0002745537295967062, 3.6706647350715946e-06, 2.912348270742141e-09),
    (1.0, 1.4317984353775024, 0.7915005107047296, 0.2160809208171654, 0.030785816089098406,
     0.002209442708998244, 6.962643036993912e-05, 6.622893769121392e-07),
)
# on [0.0, 6.0], relative error 7.2e-17
DIGAMMA_FOUR = (
    (0.4948524958436903, 0.3148244967060751, 0.0753786160350472, 0.008477494816920396,
     0.0004554948718310993, 1.0505179105575403e-05, 7.536886154924634e-08, 2.868688344677179e-11),
    (1.0, 0.8042000744905811, 0.2531073199374498, 0.03961919697087776, 0.0032379694120336544,
     0.00013243016555481717, 2.3446726780317557e-06, 1.2251032318313605e-08),
)


def lgamma_next(x: Array) -> Array:
    """``log(gamma(1 + x))`` for 0 <= x <= 1/2, without rounding 1 + x."""
    return x * (x - 1) * ratio(x, LGAMMA_ONE)


def _lgamma_tiny(x: Array) -> Array:
    return lgamma_next(x) - np.log(x)


def _lgamma_large(x: Array) -> Array:
    inverse = 1 / x
    series = polynomial(inverse * inverse, STIRLING) * inverse
    return (x - 0.5) * (np.log(x) - 1) + (series + (HALF_LOG_TWO_PI - 0.5))


def lgamma_positive(x: Array) -> Array:
    """``log(gamma(x))`` for x > 0."""
    return piecewise(
        x, (x < 0.5, _lgamma_tiny),
        ((x >= 0.5) & (x < 1), lambda x: (x - 1) * (x - 2) * ratio(x - 0.5, LGAMMA_HALF)),
        ((x >= 1) & (x < 2.5), lambda x: (x - 1) * (x - 2) * ratio(x - 1, LGAMMA_ONE) + 0.0),  # 0 at 1, not -0
        ((x >= 2.5) & (x < 6), lambda x: (x - 1) * (x - 2) * ratio(x - 2.5, LGAMMA_TWO)),
        ((x >= 6) & (x < 12), lambda x: (x - 1) * (x - 2) * ratio(x - 6, LGAMMA_SIX)),
        ((x >= 12) & (x < np.inf), _lgamma_large))


def _lgamma_negative(x: Array) -> Array:
    a = -x
    sine = np.abs(np.sin(np.pi * (a - np.round(a))))
    near = a < 2.0**-60
    reflected = (LOG_PI - np.log(np.where(near, 1.0, a) * sine)) - lgamma_positive(a)
    return np.where(near, -np.log(a), np.where((sine == 0) | np.isinf(a), np.inf, reflected))


@blockwise_with_single(None, math.lgamma)
def lgamma(x: Array) -> Array:
    """``log(abs(gamma(x)))``; infinite at zero and the negative integers.

    Around its zeros between the negative integers the result is accurate absolutely, not relatively.
    """
    return piecewise(x, (x > 0, lgamma_positive), (x <= 0, _lgamma_negative))


def _over_zero(x: Array, shift: float, u: Array, table: tuple) -> Array:
    return ((x - (DIGAMMA_ZERO[0] - shift)) - DIGAMMA_ZERO[1]) * ratio(u, table)


def _digamma_large(x: Array) -> Array:
    inverse = 1 / x
    square = inverse * inverse
    return np.log(x) - (0.5 * inverse + square * polynomial(square, DIGAMMA_SERIES))


def _digamma_next(x: Array) -> Array:
    """digamma(1 + x) for x >= 0."""
    return piecewise(
        x, (x < 1, lambda x: _over_zero(x, 1.0, x, DIGAMMA_ONE)),
        (x >= 1, lambda x: _digamma_above_one(x) + 1 / x))


def _digamma_above_one(x: Array) -> Array:
    return piecewise(
        x, (x < 2, lambda x: _over_zero(x, 0.0, x - 1, DIGAMMA_ONE)),
        ((x >= 2) & (x < 4), lambda x: _over_zero(x, 0.0, x - 2, DIGAMMA_TWO)),
        ((x >= 4) & (x < 10), lambda x: _over_zero(x, 0.0, x - 4, DIGAMMA_FOUR)),
        (x >= 10, _digamma_large))


def _digamma_negative(x: Array) -> Array:
    a = -x
    distance = a - np.round(a)
    out = _digamma_next(a) + np.pi / np.tan(np.pi * distance)
    return np.where(distance == 0, np.nan, out)


@blockwise
def digamma(x: Array) -> Array:
    """The logarithmic derivative of gamma; NaN at the negative integers, infinite at zero (sign opposite)."""
    return piecewise(
        x, (x >= 1, _digamma_above_one),
        ((x > 0) & (x < 1), lambda x: _over_zero(x, 1.0, x, DIGAMMA_ONE) - 1 / x),
        (x == 0, lambda x: np.copysign(np.inf, -x)), (x < 0, _digamma_negative))
