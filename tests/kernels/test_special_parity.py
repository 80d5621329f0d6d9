"""Special functions compared with PyTorch: special values, typical values, float32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from flambeau.kernels import special

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("silent")

INF, NAN = np.inf, np.nan


EDGES = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, -2.457, 5e-324, 1e-310, -1e-310, 1e-30, 27, 26.5, -38, 40,
                  1e30, -1e30, 1e306, INF, -INF, NAN])
UNARY: dict[str, Callable] = {
    "erf": torch.erf, "erfc": torch.erfc, "erfinv": torch.erfinv, "erfcx": torch.special.erfcx,
    "lgamma": torch.lgamma, "digamma": torch.digamma, "i0": torch.i0, "i0e": torch.special.i0e, "i1": torch.special.i1,
    "i1e": torch.special.i1e, "ndtr": torch.special.ndtr, "log_ndtr": torch.special.log_ndtr,
    "ndtri": torch.special.ndtri,
    "sinc": torch.sinc, "bessel_j0": torch.special.bessel_j0, "bessel_j1": torch.special.bessel_j1,
    "bessel_y0": torch.special.bessel_y0, "bessel_y1": torch.special.bessel_y1,
}
# PyTorch's own errors: its Bessel functions are good to seven digits only
TOLERANCE = {name: 2e-6 for name in UNARY if name.startswith("bessel")}
BEYOND_TORCH = {"sinc": 1e15} | dict.fromkeys(TOLERANCE, 1e15)


@pytest.mark.parametrize("name", UNARY)
def test_edges_and_middle_as_torch(name: str) -> None:
    middle = np.random.default_rng(1).standard_normal(500) * 3
    x = np.concatenate([EDGES, middle, middle / 10])
    x = x[~(np.isfinite(x) & (np.abs(x) > BEYOND_TORCH.get(name, INF)))]
    found, expected = getattr(special, name)(x), UNARY[name](torch.tensor(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE.get(name, 1e-11), atol=TOLERANCE.get(name, 1e-13))
    zero = (found == 0) & (x == 0)
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("name", UNARY)
def test_single_precision_as_torch(name: str) -> None:
    x = (np.random.default_rng(1).standard_normal(2000) * 3).astype(np.float32)
    found = getattr(special, name)(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, UNARY[name](torch.tensor(x)), rtol=1e-5, atol=3e-6)
    exact = getattr(special, name)(x.astype(np.float64)).astype(np.float32)
    if name != "sinc":
        both = np.isfinite(exact)
        assert (np.abs(found - exact)[both] <= np.spacing(np.abs(exact[both]))).all()


def test_zeta() -> None:
    s = np.array([1, 0.5, 2, 2, 2, 2, INF, 2, NAN, 2, 2.5, 3, INF, INF, INF, INF, INF, -INF, 1, 2, 3, 1.1, 30, 1.5])
    q = np.array([2, 2, 0, -1, -1.5, INF, 2, NAN, 2, -INF, -1.5, -0.0, 0.5, 1, 2, -1.5, -1, 2, -1, 0.3, 7, 2, 0.7, 1e6])
    expected = torch.special.zeta(torch.tensor(s), torch.tensor(q))
    np.testing.assert_allclose(special.zeta(s, q), expected, rtol=1e-13)


def test_polygamma_edges_as_torch() -> None:
    x = np.array([0.0, -0.0, INF, -INF, NAN, 1e306, -0.5, -2.3])
    for n in (1, 2, 3):
        np.testing.assert_allclose(special.polygamma(n, x), torch.polygamma(n, torch.tensor(x)), rtol=1e-9)
    assert np.isinf(special.trigamma(np.array([-1.0, -2.0]))).all()  # the pole, where PyTorch gives 6.6e32


def test_incomplete_gamma() -> None:
    rng = np.random.default_rng(0)
    a = np.exp(rng.uniform(np.log(1e-3), np.log(1e4), 3000))
    x = np.where(rng.random(3000) < 0.5, a * np.exp(rng.normal(0, 1, 3000)),
                 np.abs(a * (1 + rng.normal(0, 2, 3000) / np.sqrt(a))))
    edges = (np.array([0, 0, 1, -1, 2, INF, 2, INF, NAN, 0.0, 0.5]),
             np.array([0, 1, 0, 1, INF, 2, -1, INF, 1, INF, 1e-300]))
    for name in ("gammainc", "gammaincc"):
        for shape, limit, digits in ((a, x, 1e-8), (*edges, 1e-13)):  # PyTorch's are good to nine digits only
            np.testing.assert_allclose(getattr(special, name)(shape, limit),
                                       getattr(torch.special, name)(torch.tensor(shape), torch.tensor(limit)),
                                       rtol=digits)
