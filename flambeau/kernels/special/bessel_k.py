"""Modified Bessel functions of the second kind, orders 0 and 1.

Up to 2, a logarithm times I, a pole and a power series in x²; beyond, ``sqrt(x) exp(x) K(x)`` is a polynomial in 1/x
(Abramowitz and Stegun, 9.6.11, 9.7.2).
"""

from __future__ import annotations

import numpy as np

from .approximation import Array, blockwise, piecewise, polynomial
from .bessel import I0_SERIES, I1_SERIES

NEAR = 2.0

# on [0.0, 4.0], relative error 1.8e-14
K0_NEAR = (
    -0.5772156649015329, 0.10569608377461678, 0.014418505235913549, 0.0005451899602568578,
    1.0214014135957835e-05, 1.157035094151527e-07, 8.819883064282991e-10, 4.843198570338065e-12,
    2.0091986308109725e-14, 6.523212572493825e-17, 1.7015004122596214e-19, 3.8158114536818844e-22,
)
# on [-1.0, 1.0], relative error 1.3e-17
K0_FAR = (
    1.2185953385133905, -0.031071461824889523, 0.0030328918102739454, -0.0004797690567658713,
    9.956054748575022e-05, -2.473520457096165e-05, 7.0022444255986085e-06, -2.191177672686996e-06,
    7.427918745301117e-07, -2.6890740183537945e-07, 1.028875394812628e-07, -4.133603551539714e-08,
    1.7288102250486044e-08, -7.294807830568568e-09, 3.237899704197692e-09, -1.9163886235149194e-09,
    9.50126795470238e-10, 1.6249121403085222e-10, -1.2974622316235225e-10, -5.425392268826551e-10,
    3.1302580587365775e-10, 2.1672329094976382e-10, -1.286822465377347e-10, -6.82912231113288e-11,
    3.96355256263508e-11,
)
# on [0.0, 4.0], relative error 7.7e-15
K1_NEAR = (
    0.03860783245076643, -0.042049020943654196, -0.002837111983763369, -7.493042905988501e-05,
    -1.0892182538735621e-06, -1.0112909397635354e-08, -6.540197229494923e-11, -3.1208587740163205e-13,
    -1.145190560926349e-15, -3.3340175152663595e-18, -7.884828456733714e-21, -1.611593601839662e-23,
)
# on [-1.0, 1.0], relative error 2.3e-17
K1_FAR = (
    1.363151890371342, 0.10334973775386523, -0.005566729880073094, 0.0007357241549077615,
    -0.00013959021963384766, 3.284386556850026e-05, -8.961206061895131e-06, 2.730041309124799e-06,
    -9.067215327593673e-07, 3.229820302740851e-07, -1.219592991740941e-07, 4.84585048883485e-08,
    -2.0078990564218355e-08, 8.418479670972575e-09, -3.7119962979184724e-09, 2.1600738070102857e-09,
    -1.064142272258912e-09, -1.6214964652946646e-10, 1.3403129134884593e-10, 5.917703107429806e-10,
    -3.4052380863530667e-10, -2.3491838521262873e-10, 1.392647707395567e-10, 7.437054315558186e-11,
    -4.3071978473211124e-11,
)


def _near(x: Array, order: int) -> Array:
    square, logarithm = x * x, np.log(0.5 * x)
    if order == 0:
        return polynomial(square, K0_NEAR) - logarithm * polynomial(square, I0_SERIES)
    return 1 / x + x * (polynomial(square, K1_NEAR) + 0.5 * logarithm * polynomial(square, I1_SERIES))


def _far(x: Array, order: int) -> Array:
    """exp(x) K(x) beyond 2."""
    return polynomial(4 / x - 1, (K0_FAR, K1_FAR)[order]) / np.sqrt(x)


def _second_kind(x: Array, order: int, scaled: bool) -> Array:
    def near(x: Array) -> Array:
        return np.exp(x) * _near(x, order) if scaled else _near(x, order)

    def far(x: Array) -> Array:
        return _far(x, order) if scaled else np.exp(-x) * _far(x, order)

    return piecewise(x, (x < 0, lambda x: np.full_like(x, np.nan)), (x == 0, lambda x: np.full_like(x, np.inf)),
                     ((x > 0) & (x <= NEAR), near), (x > NEAR, far))


@blockwise
def bessel_k0(x: Array) -> Array:
    """The modified Bessel function of the second kind of order 0; NaN below zero."""
    return _second_kind(x, 0, False)


@blockwise
def bessel_k1(x: Array) -> Array:
    """The modified Bessel function of the second kind of order 1; NaN below zero."""
    return _second_kind(x, 1, False)


@blockwise
def bessel_k0e(x: Array) -> Array:
    """``exp(x) bessel_k0(x)``."""
    return _second_kind(x, 0, True)


@blockwise
def bessel_k1e(x: Array) -> Array:
    """``exp(x) bessel_k1(x)``."""
    return _second_kind(x, 1, True)
