"""Transcendental functions: errors in ulp, special values, all vector widths."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="machine code is made by llvmlite")

from flambeau.codegen.math import functions

from .driver import over_arrays
from .references import BY_ELEMENT, LONG, mpmath, reference, ulps
from .sweep import largest, patterns, samples

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
#: accurate absolutely near their zeros (`test_gamma`)
GAMMA = ("lgamma", "digamma")
MEASURED = [n for n in functions.FUNCTIONS if n not in ("remainder", *GAMMA)]

# The largest distance from the exact value in ulp; 2 ulp from the correctly rounded result is 2.5 from the exact one.
BOUND32 = {"tanh": 2.5, "sigmoid": 2.5, "tan": 2.5, "erfinv": 2.5, "pow": 0.6, "erfc": 0.6, "sqrt": 0.5, "fmod": 0.0}
BOUND64 = {"tanh": 2.5, "sigmoid": 2.5, "tan": 2.5, "erfinv": 2.5, "erfc": 3.0, "sqrt": 0.5, "fmod": 0.0}

EDGES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5, 1e-30,
                  -1e-30, 1e30, -1e30, 2.0**-149, -(2.0**-149), 2.0**24, 2.0**24 + 2, -(2.0**23 - 0.5)])


def needs_exact(name: str, dtype: np.dtype) -> None:
    if dtype == FLOAT64 and name in BY_ELEMENT and mpmath is None:
        pytest.skip("the exact error functions are mpmath's")
    if dtype == FLOAT64 and not LONG:
        pytest.skip("no format here is longer than double")


@pytest.mark.parametrize("fused", [None, False], ids=["host", "unfused"])
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("name", MEASURED)
def test_error_in_ulp(name: str, dtype: np.dtype, fused: bool | None) -> None:
    needs_exact(name, dtype)
    count = 6_000 if name in BY_ELEMENT and dtype == FLOAT64 else 30_000
    error, where = largest(name, samples(name, dtype, count), 512 // (8 * dtype.itemsize), fused)
    bound = BOUND32 if dtype == FLOAT32 else BOUND64
    assert error <= bound.get(name, 2.0), where


@pytest.mark.parametrize("name", [n for n in MEASURED if n not in functions.BINARY and n not in BY_ELEMENT])
def test_strided_sweep_of_all_float32(name: str) -> None:
    x = patterns(2**32 // 300_007)
    error = ulps(over_arrays(name, FLOAT32, 16)(x), reference(name, x))
    assert error.max() <= BOUND32.get(name, 2.0), x[np.argmax(error)]


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("name", list(functions.FUNCTIONS))
def test_results_do_not_depend_on_the_vector_width(name: str, dtype: np.dtype) -> None:
    args = samples("pow" if name in functions.BINARY else name, dtype, 600)
    if name in functions.BINARY:
        args = tuple(np.concatenate([a, e.astype(dtype)])
                     for a, e in zip(args, (EDGES.repeat(EDGES.size), np.tile(EDGES, EDGES.size)), strict=True))
    results = [over_arrays(name, dtype, lanes)(*args) for lanes in (0, 2, 4, 8, 16, 32)]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("name", sorted(functions.BINARY))
def test_special_values_of_two_arguments(name: str, dtype: np.dtype) -> None:
    x, y = (a.astype(dtype) for a in (EDGES.repeat(EDGES.size), np.tile(EDGES, EDGES.size)))
    oracle = {"pow": np.float_power if dtype == FLOAT64 else np.power, "atan2": np.arctan2, "fmod": np.fmod,
              "remainder": None}[name]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if oracle is None:  # PyTorch's definition; its float32 vectors give NaN for subnormal divisors
            wanted = np.fmod(x, y)
            wanted = np.where((wanted != 0) & ((y < 0) != (wanted < 0)), wanted + y, wanted)
        else:
            wanted = oracle(x, y)
    got = over_arrays(name, dtype, 8)(x, y)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    kept = ~np.isnan(wanted)
    np.testing.assert_allclose(got[kept], wanted[kept], rtol=4 * np.finfo(dtype).eps, atol=0)
    np.testing.assert_array_equal(np.signbit(got[kept]), np.signbit(wanted[kept]))


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("name", [n for n in MEASURED if n not in functions.BINARY])
def test_special_values(name: str, dtype: np.dtype) -> None:
    """Infinities, NaN and the sign of zero as in PyTorch."""
    torch = pytest.importorskip("torch")
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1.5, -1.5, 800.0, -800.0], dtype)
    oracle = {"softplus": torch.nn.functional.softplus, "log_sigmoid": torch.nn.functional.logsigmoid}.get(
        name) or getattr(torch, name)
    wanted = oracle(torch.from_numpy(x)).numpy()
    got = over_arrays(name, dtype, 0)(x)
    tiny = np.finfo(dtype).tiny
    np.testing.assert_allclose(got, wanted, rtol=8 * np.finfo(dtype).eps, atol=tiny)
    if name not in ("log_sigmoid", "softplus"):  # PyTorch's own zeros there have the sign of how it computes
        zero = wanted == 0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(wanted[zero]))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_angles(name: str) -> None:
    """The double that is closest to a multiple of π/2, and the neighbours of the bound between the two reductions."""
    if mpmath is None:
        pytest.skip("the exact values are mpmath's")
    x = np.array([float.fromhex("0x1.6ac5b262ca1ffp+849"), 1e22, 1e300, 1.7976931348623157e308, 2.0**30, -(2.0**30),
                  np.nextafter(2.0**30, 0), np.nextafter(2.0**30, 2.0**31), 2.0**31, 1e16, -1e16])
    got = over_arrays(name, FLOAT64, 8)(x)
    with mpmath.workprec(1400):
        exact = [getattr(mpmath, name)(mpmath.mpf(v)) for v in x.tolist()]
        away = [abs((mpmath.mpf(float(g)) - e) / mpmath.mpf(float(np.spacing(abs(float(e))))))
                for g, e in zip(got, exact, strict=True)]
    assert max(away) <= 2.5


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_fmod_is_exact_for_any_quotient(dtype: np.dtype) -> None:
    rng = np.random.default_rng(1)
    unsigned = np.uint32 if dtype == FLOAT32 else np.uint64
    x, y = (rng.integers(0, np.iinfo(unsigned).max, 20_000, dtype=unsigned).view(dtype) for _ in range(2))
    with np.errstate(all="ignore"):
        wanted = np.fmod(x, y)
    np.testing.assert_array_equal(over_arrays("fmod", dtype, 8)(x, y), wanted)


def test_other_types_raise() -> None:
    from llvmlite import ir

    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.HalfType()]), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    with pytest.raises(TypeError, match="float and double lanes"):
        functions.emit("exp", builder, [function.args[0]], ir.HalfType())
    with pytest.raises(KeyError):
        functions.emit("gamma", builder, [function.args[0]], ir.FloatType())
