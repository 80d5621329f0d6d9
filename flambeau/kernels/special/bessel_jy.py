"""Bessel functions of the first and second kind, orders 0 and 1.

Up to 8, J over its first zeros is smooth, and Y is J times a logarithm, a pole, and a smooth rest; beyond,
both are a slowly varying amplitude times a wave (Abramowitz and Stegun, 9.1.13, 9.2.5). Near a zero of Y,
or of J beyond 8, results are accurate absolutely, not relatively.
"""

from __future__ import annotations

import numpy as np

from .approximation import Array, Coefficients, blockwise, piecewise, polynomial

NEAR = 8.0
HALF_SQRT = 0.7071067811865476
TWO_OVER_PI = 0.6366197723675814

# each zero as a double and the rest of it
J0_ZEROS = ((2.404825557695773, -1.176691651530894e-16),
            (5.520078110286311, 8.088597146146722e-17),
            (8.653727912911013, -2.92812607320779e-16))
J1_ZEROS = ((3.8317059702075125, -1.5269184090088067e-16),
            (7.015586669815619, -9.414165653410389e-17),
            (10.173468135062722, 4.482162274768888e-16))
# on [-1.0, 1.0], relative error 5.8e-17
J0_NEAR = (
    -2.6662941994458524e-05, 2.9532957425506736e-05, -1.4423681512582508e-05, 4.19663832256583e-06,
    -8.272804159783322e-07, 1.1892767699589659e-07, -1.3086636321133368e-08, 1.1411484161768882e-09,
    -8.094862284854645e-11, 4.768506902021294e-12, -2.371970729349927e-13, 1.010166384828084e-14,
    -3.7264452019055645e-16, 1.2026689487002463e-17, -3.4252979618236075e-19, 8.674367086362369e-21,
    -1.9697061636266925e-22, 4.0194462010229775e-24,
)
# on [-1.0, 1.0], relative error 4.8e-14
Y0_NEAR = (
    -0.382250654459425, -0.8284358903604587, 1.6470964788745466, 0.14412632369302442, -1.0775477338215995,
    0.6721770783431723, -0.2189574709617165, 0.046367047681347105, -0.0070257410572698254,
    0.0008061586060550243, -7.279541882784653e-05, 5.321318633837175e-06, -3.2185077885022706e-07,
    1.6391065111246523e-08, -7.130516940301903e-10, 2.681836493410209e-11, -8.81052546459933e-13,
    2.550861655159015e-14, -6.574806994171116e-16, 1.5111118382094027e-17,
)
# on [-1.0, 1.0], relative error 1.2e-17
P0 = (
    0.9994572757882519, -0.0005363673192130031, 6.137416080160061e-06, -2.0527448162090095e-07,
    1.280376064689144e-08, -1.2121175955617161e-09, 1.5501029146833626e-10, -2.4885526676969786e-11,
    4.77429276383159e-12, -1.0571045116407898e-12, 2.626188822141109e-13, -7.208285571757296e-14,
    2.2746407915071472e-14, -7.457815931893248e-15, 1.3841405724122948e-15, -4.103394751792107e-16,
    7.738162237337265e-16, -3.2981553665593325e-16,
)
# on [-1.0, 1.0], relative error 3.2e-17
Q0 = (
    -0.015555113879513518, 6.833149099343897e-05, -1.4771388326463965e-06, 7.106214858998255e-08,
    -5.668716124934196e-09, 6.432782320426347e-10, -9.470350542223054e-11, 1.7032680780590754e-11,
    -3.590859855701649e-12, 8.612947035139991e-13, -2.289605037869499e-13, 6.672163615688582e-14,
    -2.2619892004241512e-14, 7.817126566341328e-15, -1.2576915852256218e-15, 3.573944961828169e-16,
    -9.534996584378752e-16, 4.2047073280686396e-16,
)
# on [-1.0, 1.0], relative error 3.6e-16
J1_NEAR = (
    -5.4542897668822475e-06, 5.104476424929266e-06, -2.151863853608067e-06, 5.496604424964037e-07,
    -9.643728407015586e-08, 1.2478332252604516e-08, -1.2475314874135185e-09, 9.962086571853274e-11,
    -6.515320198017058e-12, 3.559244161511801e-13, -1.650203171702544e-14, 6.579730541801436e-16,
    -2.281431811497372e-17, 6.945105644189357e-19, -1.8716061524915516e-20, 4.497428903057304e-22,
    -9.713665385536177e-24, 1.8901294353546507e-25,
)
# on [-1.0, 1.0], relative error 9.6e-15
Y1_NEAR = (
    0.07075985882118005, -0.24337743079193114, 0.023367571720993584, 0.23507209206669755,
    -0.19639839859930425, 0.07854786922242545, -0.01962875683309943, 0.003422490739918046,
    -0.00044381734351146775, 4.46743301291431e-05, -3.6009998744473813e-06, 2.3804929913922317e-07,
    -1.31533223991362e-08, 6.16974257301963e-10, -2.48876602241918e-11, 8.728846992741433e-13,
    -2.6871218482682002e-14, 7.320632021158841e-16, -1.7815800257405252e-17, 3.879779789058402e-19,
)
# on [-1.0, 1.0], relative error 2.1e-17
P1 = (
    1.0009070262780821, 0.0008988049416705562, -7.959694698491693e-06, 2.453676622876467e-07,
    -1.4708512152886895e-08, 1.3603051607768686e-09, -1.7131564542250966e-10, 2.7207044022885744e-11,
    -5.177738753372899e-12, 1.1392865164252306e-12, -2.816412682111072e-13, 7.698990265802368e-14,
    -2.4191726819159886e-14, 7.907137428778842e-15, -1.4754114593099283e-15, 4.3762998394454984e-16,
    -8.133266008185064e-16, 3.460790874879462e-16,
)
# on [-1.0, 1.0], relative error 2.2e-17
Q1 = (
    0.04677687402744898, -9.621458822054437e-05, 1.8212018512275165e-06, -8.29196070847202e-08,
    6.420132578442558e-09, -7.151106055447689e-10, 1.0395031007322231e-10, -1.8524217005614084e-11,
    3.8780362545800604e-12, -9.250584475884515e-13, 2.4483680991222445e-13, -7.108738566389652e-14,
    2.4000237480281715e-14, -8.270342834482658e-15, 1.341592911168269e-15, -3.8226057253387942e-16,
    1.00071489871605e-15, -4.4061040869239787e-16,
)


def _j_near(x: Array, order: int) -> Array:
    """J(x) for 0 <= x <= 8."""
    zeros, table = ((J0_ZEROS, J0_NEAR), (J1_ZEROS, J1_NEAR))[order]
    out = polynomial(x * x * 0.03125 - 1, table)
    for high, low in zeros:
        out *= ((x - high) - low) * (x + high)
    return out * (0.5 * x) if order else out


def _y_near(x: Array, order: int) -> Array:
    rest = polynomial(x * x * 0.03125 - 1, (Y0_NEAR, Y1_NEAR)[order])
    wave = TWO_OVER_PI * np.log(x) * _j_near(x, order)
    return wave + (x * rest - TWO_OVER_PI / x) if order else wave + rest


def _amplitudes(x: Array, p: Coefficients, q: Coefficients) -> tuple[Array, Array]:
    inverse = 8 / x
    u = 2 * inverse * inverse - 1
    scale = np.sqrt(TWO_OVER_PI / x) * HALF_SQRT
    return scale * polynomial(u, p), scale * inverse * polynomial(u, q)


def _far(x: Array, order: int, second: bool) -> Array:
    """J or Y beyond 8: sin and cos of x - order·pi/2 - pi/4 by the addition theorem, exact for large x."""
    p, q = _amplitudes(x, *(((P0, Q0), (P1, Q1))[order]))
    sine, cosine = np.sin(x), np.cos(x)
    if order == 0:
        sine_chi, cosine_chi = sine - cosine, sine + cosine
    else:
        sine_chi, cosine_chi = -sine - cosine, sine - cosine
    return p * sine_chi + q * cosine_chi if second else p * cosine_chi - q * sine_chi


@blockwise
def bessel_j0(x: Array) -> Array:
    """The Bessel function of the first kind of order 0."""
    a = np.abs(x)
    return piecewise(a, (a <= NEAR, lambda a: _j_near(a, 0)), (a > NEAR, lambda a: _far(a, 0, False)))


@blockwise
def bessel_j1(x: Array) -> Array:
    """The Bessel function of the first kind of order 1."""
    a = np.abs(x)
    out = piecewise(a, (a <= NEAR, lambda a: _j_near(a, 1)), (a > NEAR, lambda a: _far(a, 1, False)))
    return np.where(np.signbit(x), -out, out)


@blockwise
def bessel_y0(x: Array) -> Array:
    """The Bessel function of the second kind of order 0; NaN below zero."""
    return _second(x, 0)


@blockwise
def bessel_y1(x: Array) -> Array:
    """The Bessel function of the second kind of order 1; NaN below zero."""
    return _second(x, 1)


def _second(x: Array, order: int) -> Array:
    return piecewise(x, (x < 0, lambda x: np.full_like(x, np.nan)), (x == 0, lambda x: np.full_like(x, -np.inf)),
                     ((x > 0) & (x <= NEAR), lambda x: _y_near(x, order)),
                     (x > NEAR, lambda x: _far(x, order, True)))
