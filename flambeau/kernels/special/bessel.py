"""Modified Bessel functions of the first kind, orders 0 and 1.

Up to 8 their power series in x², economised, all of whose terms are positive; beyond,
``sqrt(x) exp(-x) I(x)`` as two polynomials in 1/x (Abramowitz and Stegun, 9.6.10, 9.7.1).
"""

from __future__ import annotations

import numpy as np

from .approximation import Array, Coefficients, blockwise, piecewise, polynomial

SERIES_END = 8.0

# on [0.0, 64.0], relative error 2.9e-17
I0_SERIES = (
    1.0, 0.25, 0.015625000000000007, 0.00043402777777777445, 6.781684027778812e-06, 6.781684027758202e-08,
    4.709502797312111e-10, 2.4028075474081917e-12, 9.385967122158306e-15, 2.896902788810415e-17,
    7.242279005317181e-20, 1.4962822964042478e-22, 2.5987841051325663e-25, 3.829411247002327e-28,
    5.0327117729737235e-31, 4.601357767863732e-34, 8.487698345602824e-37,
)
# on [-1.0, 1.0], relative error 2.3e-17
I0_MIDDLE = (
    0.4038923361468227, 0.0017529912275184877, 3.891150885370118e-05, 1.8993825716393025e-06,
    1.7516541250049227e-07, 2.6439052699808046e-08, 3.5094050677772478e-09, -5.560875642430581e-10,
    -4.641070469952256e-10, -4.340619215538739e-11, 3.657474563238537e-11, 5.440382289588269e-12,
    -3.4954216472929987e-12, -2.8211946484034417e-13, 3.646367963482468e-13, -1.8898308647228315e-14,
    -3.14071478185168e-14, 4.466756658107407e-15, 1.5087055967772248e-15,
)
# on [-1.0, 1.0], relative error 5.3e-17
I0_FAR = (
    0.40052897918718267, 0.0016160154003827553, 3.035501346758237e-05, 1.094494208114387e-06,
    6.026316995519529e-08, 4.569801021242425e-09, 4.5056952883157554e-10, 5.574321491219059e-11,
    8.456077040146639e-12, 1.54930617559088e-12, 3.4007710378235185e-13, 9.044639453637095e-14,
    2.840694603922757e-14, 8.095351919467343e-15, 4.304737726249949e-15, 6.739998787339473e-15,
    3.500275158165008e-15, -2.1056813790627316e-15, -2.034408302508919e-15, 1.107352653762647e-16,
    2.9225531874702446e-16,
)
# on [0.0, 64.0], relative error 1.3e-17
I1_SERIES = (
    1.0, 0.125, 0.005208333333333334, 0.00010850694444444426, 1.3563368055556117e-06,
    1.1302806712952318e-08, 6.727861138801232e-11, 3.0035094357545814e-13, 1.0428852283187153e-15,
    2.8969030638547e-18, 6.583882515867172e-21, 1.2469169663060474e-23, 1.9988443379005918e-26,
    2.7375770594049053e-29, 3.3392781797800974e-32, 2.94211297720622e-35, 4.866978455872367e-38,
)
# on [-1.0, 1.0], relative error 6.4e-17
I1_MIDDLE = (
    0.38446685410720083, -0.004990571567455469, -6.12783517787007e-05, -2.4950764012173625e-06,
    -2.093444123080896e-07, -3.0141646910157064e-08, -4.052592778836261e-09, 5.312364754181058e-10,
    4.940078784548777e-10, 5.228959840811468e-11, -3.764487531114682e-11, -6.2407491835112704e-12,
    3.577804025930086e-12, 3.4762064382358263e-13, -3.7747702708223647e-13, 1.449469974121019e-14,
    3.316465184275958e-14, -4.308863147776606e-15, -1.6471108793663663e-15,
)
# on [-1.0, 1.0], relative error 4.0e-17
I1_FAR = (
    0.394220213406121, -0.004770398290913601, -4.976699102624876e-05, -1.5068432513086594e-06,
    -7.616856998730955e-08, -5.4886549895528135e-09, -5.230625569242766e-10, -6.315148515644627e-11,
    -9.404754280854912e-12, -1.6982923166699576e-12, -3.683881842454844e-13, -9.69567521070757e-14,
    -3.020545580939715e-14, -8.597430740130884e-15, -4.493537737811063e-15, -6.9766427877089854e-15,
    -3.657354893723556e-15, 2.138158011601735e-15, 2.098354760172823e-15, -1.0491788212806946e-16,
    -2.985429125740192e-16,
)


def _scaled(a: Array, middle: Coefficients, far: Coefficients) -> Array:
    """exp(-a) I(a) for a beyond the series."""
    inverse = 32 / a
    scaled = piecewise(inverse, (inverse >= 2, lambda u: polynomial(u - 3, middle)),
                       (inverse < 2, lambda u: polynomial(u - 1, far)))
    return scaled / np.sqrt(a)


@blockwise
def i0(x: Array) -> Array:
    """The modified Bessel function of order 0."""
    a = np.abs(x)
    return piecewise(a, (a <= SERIES_END, lambda a: polynomial(a * a, I0_SERIES)),
                     (a > SERIES_END, lambda a: np.exp(a) * _scaled(a, I0_MIDDLE, I0_FAR)))


@blockwise
def i0e(x: Array) -> Array:
    """``exp(-abs(x)) i0(x)``."""
    a = np.abs(x)
    return piecewise(a, (a <= SERIES_END, lambda a: np.exp(-a) * polynomial(a * a, I0_SERIES)),
                     (a > SERIES_END, lambda a: _scaled(a, I0_MIDDLE, I0_FAR)))


@blockwise
def i1(x: Array) -> Array:
    """The modified Bessel function of order 1."""
    a = np.abs(x)
    out = piecewise(a, (a <= SERIES_END, lambda a: 0.5 * a * polynomial(a * a, I1_SERIES)),
                    (a > SERIES_END, lambda a: np.exp(a) * _scaled(a, I1_MIDDLE, I1_FAR)))
    return np.where(x < 0, -out, out)


@blockwise
def i1e(x: Array) -> Array:
    """``exp(-abs(x)) i1(x)``."""
    a = np.abs(x)
    out = piecewise(a, (a <= SERIES_END, lambda a: 0.5 * a * np.exp(-a) * polynomial(a * a, I1_SERIES)),
                    (a > SERIES_END, lambda a: _scaled(a, I1_MIDDLE, I1_FAR)))
    return np.where(x < 0, -out, out)
