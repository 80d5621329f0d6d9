from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
import scipy.special

from flambeau import dtypes
from flambeau.kernels import special

pytestmark = pytest.mark.usefixtures("silent")
INF, NAN = np.inf, np.nan


def spread(*ranges: tuple[float, float], n: int = 60) -> np.ndarray:
    """Random points: uniform in each range, or log-uniform where its ends are far apart."""
    rng = np.random.default_rng(0)
    parts = []
    for a, b in ranges:
        far = a > 0 and b / a > 1e3
        parts.append(np.exp(rng.uniform(np.log(a), np.log(b), n)) if far else rng.uniform(a, b, n))
    return np.concatenate(parts)


def ulps(found: np.ndarray, exact: list) -> np.ndarray:
    return np.array([float(abs(mpmath.mpf(float(f)) - e) / mpmath.mpf(float(np.spacing(abs(float(e))))))
                     for f, e in zip(found, exact, strict=True)])


def normal(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def inverse_normal(p: mpmath.mpf) -> mpmath.mpf:
    z = mpmath.mpf(float(special.ndtri(np.array(float(p)))))
    for _ in range(3):
        z -= (normal(z) - p) * mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(z * z / 2)
    return z


BOTH_SIDES = spread((1e-300, 6), (0, 1.2), (0.8, 6))
ACCURACY = {
    # name: exact function, points, largest error in units of the last place
    "erf": (mpmath.erf, np.concatenate([BOTH_SIDES, -BOTH_SIDES]), 3),
    "erfc": (mpmath.erfc, spread((1e-10, 26.5), (-6, 26.5), (-1, 1)), 4),
    "erfcx": (lambda x: mpmath.exp(x * x) * mpmath.erfc(x), spread((1e-10, 100), (-26, 10)), 4.5),
    "erfinv": (mpmath.erfinv, np.concatenate([spread((1e-30, 0.9), (-1, 1)), 1 - spread((1e-16, 0.3))]), 4),
    "ndtr": (normal, spread((-37, 0), (-2, 9), (1e-10, 1)), 4.5),
    "log_ndtr": (lambda x: mpmath.log1p(-normal(-x)) if x > 0 else mpmath.log(normal(x)),
                 spread((-100, 0), (-2, 9), (1e-10, 30)), 4.5),
    "ndtri": (inverse_normal, spread((1e-300, 0.5), (0, 1), (0.1, 0.15)), 5),
    "lgamma": (mpmath.loggamma, spread((1e-300, 1), (0.4, 3), (2.5, 14), (10, 1e300), (0.99, 1.01)), 4.5),
    "digamma": (lambda x: mpmath.psi(0, x), spread((1e-300, 1), (0.3, 4), (1.45, 1.47), (2, 14), (10, 1e10)), 4.5),
    "trigamma": (lambda x: mpmath.psi(1, x), spread((1e-5, 1), (-5, 14), (10, 1e5)), 6),
    "i0": (lambda x: mpmath.besseli(0, x), spread((1e-10, 700), (-20, 20)), 5),
    "i0e": (lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), spread((1e-10, 700), (-20, 20)), 5),
    "i1": (lambda x: mpmath.besseli(1, x), spread((1e-10, 700), (-20, 20)), 5),
    "i1e": (lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), spread((1e-10, 700), (-20, 20)), 5),
    "bessel_j0": (lambda x: mpmath.besselj(0, x), spread((1e-8, 8), (-8, 8)), 6),
    "bessel_j1": (lambda x: mpmath.besselj(1, x), spread((1e-8, 8), (-8, 8)), 6),
}


@pytest.mark.parametrize("name", ACCURACY)
def test_error_in_ulp(name: str) -> None:
    exact, points, limit = ACCURACY[name]
    with mpmath.workdps(50):
        errors = ulps(getattr(special, name)(points), [exact(mpmath.mpf(float(x))) for x in points])
    assert errors.max() <= limit, points[errors.argmax()]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20])
def test_polygamma(n: int) -> None:
    points = spread((1e-3, 1), (0.3, 14), (10, 1e5), n=30)
    with mpmath.workdps(40):
        errors = ulps(special.polygamma(n, points), [mpmath.psi(n, mpmath.mpf(float(x))) for x in points])
        assert errors.max() < 12
        negative = -spread((0.01, 12), n=30)
        exact = [float(mpmath.psi(n, mpmath.mpf(float(x)))) for x in negative]
    np.testing.assert_allclose(special.polygamma(n, negative), exact, rtol=1e-11)


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1"])
def test_bessel_functions_anywhere(name: str) -> None:
    x = spread((1e-8, 8), (0, 20), (8, 1e7))
    exact = mpmath.besselj if name[0] == "j" else mpmath.bessely
    with mpmath.workdps(30):
        expected = np.array([float(exact(int(name[1]), mpmath.mpf(float(v)))) for v in x])
    scale = np.maximum(np.abs(expected), np.minimum(np.sqrt(2 / (np.pi * x)), 1))  # the wave's amplitude
    assert (np.abs(getattr(special, "bessel_" + name)(x) - expected) / scale).max() < 2e-15


def test_incomplete_gamma() -> None:
    rng = np.random.default_rng(0)
    a = np.exp(rng.uniform(np.log(1e-3), np.log(1e4), 3000))
    x = np.where(rng.random(3000) < 0.5, a * np.exp(rng.normal(0, 1, 3000)),
                 np.abs(a * (1 + rng.normal(0, 2, 3000) / np.sqrt(a))))
    for name in ("gammainc", "gammaincc"):
        np.testing.assert_allclose(getattr(special, name)(a, x), getattr(scipy.special, name)(a, x), rtol=1e-11,
                                   atol=1e-300)
    tiny = special.gammaincc(np.array(1e-300), np.array(0.5))
    np.testing.assert_allclose(tiny, 0.5597735947761608e-300, rtol=1e-14)  # a E1(1/2), where PyTorch gives twice that


@pytest.mark.parametrize("name", [
    "erf", "erfc", "erfinv", "erfcx", "lgamma", "digamma", "i0", "i0e", "i1", "i1e", "ndtr", "log_ndtr", "ndtri",
    "sinc", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"])
def test_shapes_and_half_precision(name: str) -> None:
    function = getattr(special, name)
    assert function(np.array(0.5)).shape == ()
    assert isinstance(function(np.array(0.5, np.float32)), np.ndarray)
    assert function(np.empty((0, 3), np.float32)).shape == (0, 3)
    strided = np.linspace(0.1, 0.9, 24).reshape(4, 6)[:, ::2].T
    np.testing.assert_array_equal(function(strided), function(strided.copy()))
    for stored in (np.dtype(np.float16), dtypes.BFLOAT16):
        x = dtypes.cast(np.linspace(0.1, 0.9, 7, dtype=np.float32), stored)
        found = function(x)
        assert found.dtype == stored
        np.testing.assert_array_equal(dtypes.widen(found), dtypes.widen(dtypes.cast(function(dtypes.widen(x)), stored)))


@pytest.mark.parametrize(("name", "function"), [("erf", math.erf), ("erfc", math.erfc), ("lgamma", math.lgamma)])
@pytest.mark.parametrize("count", [5, 500])
def test_few_numbers_and_many(name: str, function: Callable[[float], float], count: int) -> None:
    x = np.linspace(0.1, 4, count, dtype=np.float32)
    expected = np.array([function(v) for v in x.tolist()], np.float32)
    np.testing.assert_array_max_ulp(getattr(special, name)(x), expected, 1)
    rare = np.array([0.0, -0.0, -2, np.inf, -np.inf, np.nan], np.float32)  # poles of lgamma among them
    np.testing.assert_array_equal(getattr(special, name)(rare), getattr(special, name)(np.tile(rare, 100))[:6])
