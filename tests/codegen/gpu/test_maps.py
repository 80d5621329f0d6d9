"""Elementwise functions with loops, and of the bits of floats, on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen.gpu.emulation import emulator
from flambeau.codegen.gpu.maps import maps
from flambeau.dtypes import BFLOAT16
from flambeau.kernels.special import gammainc, gammaincc, orthogonal_polynomials
from flambeau.runtime.launch import Spec
from tests.codegen.gpu.assembling import assemble, kernels_of

RANDOM = np.random.default_rng(0)
POLYNOMIALS = [f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"] + [
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]


def computed(name, outs, ins, **params):
    emulator.run_launches(maps.launches(name, *([Spec.of(x) for x in each] for each in (outs, ins)), **params),
                          [*outs, *ins])
    return outs


@pytest.mark.parametrize("dtype", ["i8", "i4", "u1", "i2"])
def test_integers(dtype):
    limits = np.iinfo(dtype)
    x, y = RANDOM.integers(limits.min, limits.max, (2, 50), dtype=dtype, endpoint=True)
    x[:3], y[1:4] = 0, 0
    [found] = computed("gcd", [np.empty_like(x)], [x, y])
    np.testing.assert_array_equal(found, np.gcd(x, y))
    bits = 8 * x.itemsize
    by = RANDOM.integers(0, bits, 50).astype(dtype)
    for name, function in (("shift_left", np.left_shift), ("shift_right", np.right_shift)):
        [found] = computed(name, [np.empty_like(x)], [x, by])
        np.testing.assert_array_equal(found, function(x, by))
    [found] = computed("shift_right", [np.empty_like(x)], [x, np.full_like(x, bits)])
    np.testing.assert_array_equal(found, np.where(x < 0, -1, 0))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_bits_of_floats(dtype):
    info = np.finfo(dtype)
    x = np.array([0.0, -0.0, 1.0, -3.5, info.tiny, info.smallest_subnormal, -info.tiny / 8, info.max, np.inf, np.nan,
                  *RANDOM.standard_normal(20)], dtype)
    mantissa, exponent = computed("frexp", [np.empty_like(x), np.empty(x.shape, np.int32)], [x])
    expected = np.frexp(x)
    np.testing.assert_array_equal(mantissa, expected[0])
    np.testing.assert_array_equal(exponent, np.where(np.isfinite(x), expected[1], 0))
    y = x[::-1].copy()
    [found] = computed("nextafter", [np.empty_like(x)], [x, y])
    np.testing.assert_array_equal(found, np.nextafter(x, y))


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    x, n = RANDOM.uniform(-2, 2, 40), RANDOM.integers(-2, 12, 40).astype("f8")
    x[:4] = 1, -1, 0, 0.5
    [found] = computed("polynomial", [np.empty_like(x)], [x, n], of=name)
    np.testing.assert_allclose(found, getattr(orthogonal_polynomials, name)(x, n), rtol=1e-10, atol=1e-12)


def test_all_of_them_are_assembled():
    def spec(dtype):
        return Spec.dense((70,), np.dtype(dtype))

    launches = [*maps.launches("frexp", [spec("f8"), spec("i4")], [spec("f8")])]
    launches += [each for dtype in ("i8", "u1") for name in ("gcd", "shift_left", "shift_right")
                 for each in maps.launches(name, [spec(dtype)], [spec(dtype)] * 2)]
    launches += maps.launches("nextafter", [spec(BFLOAT16)], [spec(BFLOAT16)] * 2)
    launches += [each for name in POLYNOMIALS[3::4]
                 for each in maps.launches("polynomial", [spec("f4")], [spec("f4")] * 2, of=name)]
    assemble(kernels_of(launches))


@pytest.mark.parametrize("upper", [False, True])
def test_incomplete_gamma_functions(upper):
    a, x = 10 ** RANDOM.uniform(-2, 1.5, (2, 30))
    a[:5], x[3:8], a[8], x[8:15] = (0, 1, np.inf, np.nan, 2), (0, np.inf, np.nan, 3, 0.5), 50, a[8:15] * 1.1
    [found] = computed("incomplete_gamma", [np.empty_like(a)], [a, x], upper=upper)
    with np.errstate(all="ignore"):
        expected = (gammaincc if upper else gammainc)(a, x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    spec = Spec.of(a)
    if upper:
        assemble(kernels_of(maps.launches("incomplete_gamma", [spec], [spec, spec], upper=upper)))
