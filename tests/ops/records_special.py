"""Records of Bessel functions, orthogonal polynomials and incomplete gamma functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre

from tests.ops.spec import Make, Sample, record, sample

_NONE: dict[str, Any] = {"differentiable": False, "integers": True}


def over(low: float, high: float) -> Callable[[Make], Iterable[Sample]]:
    """One tensor with elements in [low, high): a matrix, a 0-d and an empty one."""
    def samples(make: Make) -> Iterable[Sample]:
        for shape in ((3, 4), (), (0, 2)):
            yield sample(make(*shape, low=low, high=high))
    return samples


def integral(integrand: Callable[[float], float], end: float) -> float:
    """The integral from 0 to `end`, by the midpoint rule (exponentially accurate for periodic integrands)."""
    count = 400
    return sum(integrand(end * (i + 0.5) / count) for i in range(count)) * end / count


def by_element(function: Callable[[float], float]) -> Callable[..., Any]:
    return np.vectorize(function, otypes=[np.float64])


def bessel_j(order: int) -> Callable[..., Any]:
    return by_element(lambda x: integral(lambda t: math.cos(order * t - x * math.sin(t)), math.pi) / math.pi)


def bessel_k(order: int, scaled: bool) -> Callable[..., Any]:
    return by_element(lambda x: integral(
        lambda t: math.exp(x * (scaled - math.cosh(t))) * math.cosh(order * t), 6.0))


for _order in (0, 1):
    record(f"special.bessel_j{_order}", over(-12, 12), reference=bessel_j(_order), **_NONE)
    record(f"special.bessel_y{_order}", over(0.5, 12), **_NONE)
    record(f"special.modified_bessel_k{_order}", over(0.5, 5), reference=bessel_k(_order, False), **_NONE)
    record(f"special.scaled_modified_bessel_k{_order}", over(0.5, 5), reference=bessel_k(_order, True), **_NONE)
record("special.modified_bessel_i0", over(-2, 2), reference=np.i0, **_NONE)
record("special.modified_bessel_i1", over(-2, 2), **_NONE)
record("special.spherical_bessel_j0", over(-9, 9), reference=lambda x: np.sinc(x / np.pi), **_NONE)
record("special.airy_ai", over(-8, 5), **_NONE)


def degrees(make: Make) -> Iterable[Sample]:
    for degree in (0, 1, 2, 5):
        yield sample(make(3, low=-1.5, high=1.5), degree)
    yield sample(make(3, 1), make.integers(4, low=0, high=9))
    yield sample(0.5, make(4, low=0, high=9))


def series(value: Callable[..., Any], argument: Callable[[Any], Any] = lambda x: x) -> Callable[..., Any]:
    """The polynomial of degree n of a family, by NumPy's evaluation of a series."""
    return np.vectorize(lambda x, n: value(argument(x), [0] * int(n) + [1]), otypes=[np.float64])


def second_kind(shift: int) -> Callable[..., Any]:
    """U, V (-1) and W (1): the Chebyshev recurrence from 2x + shift."""
    def value(x: float, n: float) -> float:
        before, last = 1.0, 2 * x + shift
        for _ in range(int(n)):
            before, last = last, 2 * x * last - before
        return before
    return np.vectorize(value, otypes=[np.float64])


for _kind, _reference in (("t", series(chebyshev.chebval)), ("u", second_kind(0)), ("v", second_kind(-1)),
                          ("w", second_kind(1))):
    record(f"special.chebyshev_polynomial_{_kind}", degrees, reference=_reference, **_NONE)
    record(f"special.shifted_chebyshev_polynomial_{_kind}", degrees,
           reference=lambda x, n, f=_reference: f(2 * np.asarray(x) - 1, n), **_NONE)
record("special.hermite_polynomial_h", degrees, reference=series(hermite.hermval), **_NONE)
record("special.hermite_polynomial_he", degrees, reference=series(hermite_e.hermeval), **_NONE)
record("special.laguerre_polynomial_l", degrees, reference=series(laguerre.lagval), **_NONE)
record("special.legendre_polynomial_p", degrees, reference=series(legendre.legval), **_NONE)


def gamma_pairs(make: Make) -> Iterable[Sample]:
    for shapes in (((3, 4), (3, 4)), ((3, 1), (4,)), ((), (3,))):
        a, x = (make(*shape, low=0.5, high=3, requires_grad=make.requires_grad and i > 0)
                for i, shape in enumerate(shapes))
        yield sample(a, x)


def samples_and_concentrations(make: Make) -> Iterable[Sample]:
    for shape in ((3, 4), (), (0, 2)):
        yield sample(make(*shape, low=0.5, high=9), make(*shape, low=0.1, high=9))


record("_standard_gamma_grad", samples_and_concentrations, differentiable=False)
record("_dirichlet_grad", lambda make: [
    sample(make(3, 4, low=0.1, high=0.9), make(3, 4, low=0.5, high=3), make(3, 4, low=3, high=9))],
       differentiable=False)
record("igamma", gamma_pairs)
record("igammac", gamma_pairs)
