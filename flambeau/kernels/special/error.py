"""The error function's family: erf, erfc, erfcx, the normal distribution function, and their inverses.

Near zero ``erf(x) = x R(x²)``; everywhere else ``erfcx(x) = exp(x²) erfc(x)`` carries the family, since
``(1 + 2x) erfcx(x)`` is one smooth function of ``(x - 3)/(x + 3)`` from 0 to infinity (Shepherd and
Laframboise, Mathematics of Computation 36, 1981). The inverses follow Wichura (Applied Statistics 37,
1988): rational in x² in the middle, and in ``sqrt(-log p)`` in the tail.
"""

from __future__ import annotations

import math

import numpy as np

from .approximation import Array, blockwise, blockwise_with_single, piecewise, polynomial, ratio

HALF_SQRT = 0.7071067811865476
SQRT_2 = 1.4142135623730951
ERFCX_OVERFLOWS = -26.62873571375149

# on [0.0, 1.0], relative error 3.2e-17
ERF = (
    (1.1283791670955126, 0.14214874428063382, 0.04530431496553584, 0.0018273246406360385,
     0.00019496984753178997),
    (1.0, 0.45930937793412957, 0.09325302973969972, 0.010582353560685183, 0.0006812436819785099,
     2.029955528683424e-05),
)
# on [0.0, 16.0], relative error 4.5e-15
ERF_SINGLE = (
    (1.1283791670955177, 0.20386795641340386, 0.06185409051980608, 0.005732362565510398,
     0.0006961384291117151, 3.8875086339458725e-05, 2.4135801812674024e-06, 7.595636737580048e-08,
     2.2364972490609447e-09, 1.6257028956800206e-11, 2.0631839502073732e-15),
    (1.0, 0.5140066055441721, 0.12615229564702704, 0.019539802532305042, 0.0021235974285037126,
     0.00016987936643233085, 1.0161989909593434e-05, 4.487202325181149e-07, 1.3807065970849831e-08,
     2.496673927459756e-10, 4.856075324239559e-13),
)
# on [-1.0, 1.0], relative error 5.0e-17
ERFCX = (
    1.2530080582697296, -0.13562110612458117, -0.04756229435345087, 0.1296451587027606,
    -0.11927366341530699, 0.06830802734397848, -0.023770514918645888, 0.002529391816066239,
    0.0018886903591561553, -0.0007798322721083991, -0.00010515979981501177, 0.00012509935235563107,
    4.949484992570595e-06, -2.0100567931289227e-05, -7.315105164159062e-07, 3.472414602875686e-06,
    3.5683839153992204e-07, -6.166496077604353e-07, -1.4160064940265987e-07, 1.0187000600072885e-07,
    4.180784698845582e-08, -1.3326364813003834e-08, -8.500397929772615e-09, 9.885798831139365e-10,
    8.864219016427092e-10,
)
# on [-1.0, 1.0], relative error 1.8e-13
ERFCX_SINGLE = (
    1.2530080582697296, -0.1356211061208497, -0.047562294352507764, 0.12964515847824745,
    -0.1192736634721992, 0.0683080313220015, -0.023770513904139614, 0.0025293596278562493,
    0.0018886820608398581, -0.0007796903107536676, -0.00010512258573368832, 0.0001247281353066936,
    4.8496923036467334e-06, -1.950471307214092e-05, -5.650045317455558e-07, 2.8869709884584873e-06,
    1.8268338386983095e-07, -2.798421357795291e-07, -2.983942535318685e-08,
)
# on [0.0, 0.5625], relative error 6.7e-17
ERFINV = (
    (1.0845597967968248, 7.160921199707379, 18.039487150473597, 21.727106021614006, 12.832151510619875,
     3.408658782601145, 0.31730417194039606, 0.004629517836199464),
    (1.0, 7.121354241112377, 19.70783200731746, 26.78300806716227, 18.607684554381887, 6.247619308964538,
     0.8535064285470091, 0.030108495873496597),
)
# on [0.0, 2.56], relative error 4.6e-17
TAIL_NEAR = (
    (0.810909423831463, 3.130190692472554, 4.593265573114737, 3.5029250556267835, 1.5606964258143035,
     0.42215074894730276, 0.06723977408015706, 0.005554328068802241, 0.00017005063155223744),
    (1.0, 2.332452651011768, 2.235970811011161, 1.151288801470155, 0.34605118807706176, 0.06005394514979086,
     0.00531133058258087, 0.00017002753654815067, 2.411219161757633e-10),
)
# on [0.0, 7.0], relative error 5.6e-17
TAIL_MIDDLE = (
    (3.6609330855588467, 4.189605538448694, 1.9881923209520103, 0.5109593888031538, 0.07765554521385892,
     0.007104026821424401, 0.0003761284885386338, 1.0208421301524587e-05, 1.029526690576748e-07),
    (1.0, 0.8560304468368806, 0.2991130590083993, 0.05520611515174135, 0.005779385885963666,
     0.00033727770450533745, 9.796989162993389e-06, 1.0295107070696412e-07, 5.8517025887933074e-15),
)
# on [0.0, 17.0], relative error 3.2e-17
TAIL_FAR = (
    (10.832714379630772, 4.7617994634323955, 0.8728090969841513, 0.0863493141533861, 0.00498372194715161,
     0.00016910624703725025, 3.2225113385528985e-06, 3.0558746767596815e-08, 1.0542094806700715e-10),
    (1.0, 0.3462317180731843, 0.048330192516230545, 0.0034805223871267215, 0.00013730019397819443,
     2.8995219648495118e-06, 2.9399247503890914e-08, 1.0542075863651137e-10, 2.4133766094586636e-19),
)


def _erf_single(x: Array) -> Array:
    x = np.minimum(np.maximum(x, -4.0), 4.0)  # erf(4) rounds to 1
    total = ratio(x * x, ERF_SINGLE)
    total *= x
    return total


def _erfc_single(x: Array) -> Array:
    a = np.minimum(np.abs(x), 30.0)
    tail = polynomial((a - 3) / (a + 3), ERFCX_SINGLE)
    tail *= np.exp(-a * a)
    tail /= 2 * a + 1
    return np.where(x < 0, 2 - tail, tail)


def _erfcx_positive(x: Array) -> Array:
    bounded = np.minimum(x, 1e300)
    return polynomial((bounded - 3) / (bounded + 3), ERFCX) / (2 * x + 1)


def _exp_square(x: Array, scale: float) -> Array:
    """exp(scale · x²) for scale a power of two: x² is split so that its rounding does not grow with x."""
    high = x.astype(np.float32).astype(np.float64)  # 24 bits: its square is exact
    low = (x - high) * (x + high)
    low *= scale
    total = np.exp(high * high * scale)
    return total + total * np.expm1(low)


def _erfc_positive(x: Array) -> Array:
    x = np.minimum(x, 30.0)  # erfc(30) underflows
    return _exp_square(x, -1.0) * _erfcx_positive(x)


def _erf_small(x: Array) -> Array:
    return x * ratio(x * x, ERF)


@blockwise_with_single(_erf_single, math.erf)
def erf(x: Array) -> Array:
    """``2/sqrt(pi) · integral of exp(-t²) from 0 to x``."""
    return piecewise(x, (np.abs(x) < 1, _erf_small), (x >= 1, lambda x: 1 - _erfc_positive(x)),
                     (x <= -1, lambda x: _erfc_positive(-x) - 1))


@blockwise_with_single(_erfc_single, math.erfc)
def erfc(x: Array) -> Array:
    """``1 - erf(x)``, without cancellation."""
    return piecewise(x, (x >= 0.5, _erfc_positive), (np.abs(x) < 0.5, lambda x: 1 - _erf_small(x)),
                     (x <= -0.5, lambda x: 2 - _erfc_positive(-x)))


@blockwise
def erfcx(x: Array) -> Array:
    """``exp(x²) erfc(x)``, which falls as ``1/(x sqrt(pi))``."""
    return piecewise(x, (x >= 0, _erfcx_positive), (x < ERFCX_OVERFLOWS, lambda x: np.full_like(x, np.inf)),
                     ((x < 0) & (x >= ERFCX_OVERFLOWS),
                      lambda x: 2 * _exp_square(x, 1.0) - _erfcx_positive(-x)))


def _normal_tail(x: Array) -> Array:
    """The normal distribution's mass beyond x >= 0."""
    x = np.minimum(x, 40.0)
    return 0.5 * _exp_square(x, -0.5) * _erfcx_positive(x * HALF_SQRT)


def _ndtr(x: Array) -> Array:
    return piecewise(x, (np.abs(x) < 1, lambda x: 0.5 + 0.5 * _erf_small(x * HALF_SQRT)),
                     (x >= 1, lambda x: 1 - _normal_tail(x)), (x <= -1, lambda x: _normal_tail(-x)))


@blockwise
def ndtr(x: Array) -> Array:
    """The standard normal distribution function, ``erfc(-x/sqrt(2))/2``."""
    return _ndtr(x)


@blockwise
def log_ndtr(x: Array) -> Array:
    """``log(ndtr(x))``, finite far into the left tail."""
    return piecewise(x, (x < -1, lambda x: np.log(0.5 * _erfcx_positive(-x * HALF_SQRT)) - 0.5 * x * x),
                     (x >= -1, lambda x: np.log1p(-_ndtr(-x))))


def _inverse_tail(p: Array) -> Array:
    """The y with erfc(y)/2 = p, for 0 < p <= 1/8."""
    r = np.sqrt(-np.log(p))
    return piecewise(r, (r < 4, lambda r: ratio(r - 1.44, TAIL_NEAR)),
                     ((r >= 4) & (r < 11), lambda r: ratio(r - 4, TAIL_MIDDLE)),
                     ((r >= 11) & (r < np.inf), lambda r: ratio(r - 11, TAIL_FAR)))


@blockwise
def erfinv(x: Array) -> Array:
    """The inverse of erf on [-1, 1]; NaN outside."""
    a = np.abs(x)
    out = piecewise(x, (a <= 0.75, lambda x: x * ratio(0.5625 - x * x, ERFINV)),
                    (a > 0.75, lambda x: np.copysign(_inverse_tail((1 - np.abs(x)) * 0.5), x)))
    return np.where(a > 1, np.nan, out)


@blockwise
def ndtri(p: Array) -> Array:
    """The inverse of ndtr on [0, 1]; NaN outside."""
    q = p - 0.5
    middle = np.abs(q) <= 0.375

    def near_half(p: Array) -> Array:
        x = 2 * (p - 0.5)
        return SQRT_2 * (x * ratio(0.5625 - x * x, ERFINV))

    out = piecewise(p, (middle, near_half), (q < -0.375, lambda p: -SQRT_2 * _inverse_tail(p)),
                    (q > 0.375, lambda p: SQRT_2 * _inverse_tail(1 - p)))
    return np.where((p < 0) | (p > 1), np.nan, out)
