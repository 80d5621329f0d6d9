"""Casts of large arrays against NumPy and PyTorch: values and layouts."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau import dtypes
from flambeau.backends.compiled.families import casting

#: float4_e2m1fn_x2 has no conversions
REAL = [each for each in dtypes.ALL if not each.is_complex and each is not dtypes.float4_e2m1fn_x2]


def numbers(dtype, n=4000):
    """Values of all magnitudes and NaN, without floats whose conversion is undefined."""
    rng = np.random.default_rng(0)
    if dtype is torch.bool:
        return rng.integers(0, 2, n).astype(bool)
    if not dtype.is_floating_point:
        return np.frombuffer(rng.bytes(n * dtype.itemsize), dtype.numpy).copy()
    values = rng.standard_normal(n) * np.exp(rng.standard_normal(n) * 3)
    values[:9] = [0, -0.0, np.inf, -np.inf, np.nan, 65519, 65520, -65520, 2.0**-25]
    with np.errstate(all="ignore"):
        return dtypes._converted(values, dtype.numpy)


def same(a, b):
    """Whether two arrays have equal dtypes, layouts and elements; all NaN are equal."""
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.strides == b.strides
    wide, other = dtypes.widen(a), dtypes.widen(b)
    return np.array_equal(wide, other, equal_nan=wide.dtype.kind == "f") and np.array_equal(
        np.signbit(wide[wide == 0]), np.signbit(other[other == 0])) if wide.dtype.kind == "f" else (a == b).all()


@pytest.mark.parametrize("source", REAL, ids=str)
def test_every_conversion(source, impls):
    x = numbers(source)
    for to in REAL:
        by_numpy, by_kernel = impls.both(lambda to=to: dtypes.cast(x, to.numpy))
        assert same(by_numpy, by_kernel), (source, to)
        if to is torch.float32 and source is not to:
            assert same(*impls.both(lambda: dtypes.widen(x)))


@pytest.mark.parametrize("of", [lambda x: x.T, lambda x: x[::2, 1:], lambda x: x[3], lambda x: x[:, :1],
                                lambda x: x[:0], lambda x: x[::-1, ::-2],
                                lambda x: x.reshape(5, 8, 30).transpose(2, 0, 1),
                                lambda x: np.broadcast_to(x[0], (7, 30)), lambda x: np.broadcast_to(x[:, :1], (40, 30)),
                                lambda x: x[5, 5]])
@pytest.mark.parametrize(("source", "to"), [("float32", "float16"), ("float16", "float32"),
                                              ("bfloat16", "float32"), ("float32", "bfloat16"), ("int64", "float32"),
                                              ("float32", "bool")])
def test_layouts(of, source, to, impls):
    x = of(numbers(getattr(torch, source), 1200).reshape(40, 30))
    assert same(*impls.both(lambda: dtypes.cast(x, getattr(torch, to).numpy)))


def test_casts_that_stay_in_numpy():
    assert casting._conversion(np.dtype(np.complex64), np.dtype(np.float32)) is None
    assert casting._conversion(np.dtype(np.float32), np.dtype(np.uint64)) is None
    assert casting._conversion(np.dtype(np.float32), np.dtype(np.uint16)) is not None


@pytest.mark.parametrize("narrow", [torch.float16, torch.bfloat16])
def test_gradients_pass_conversions(narrow, impls):
    def run():
        x = torch.arange(2000.0).view(40, 50).requires_grad_()
        y = (x.to(narrow).t() * 3).float().double()
        y.backward(torch.arange(2000.0, dtype=torch.float64).view(50, 40))
        return y.tolist(), x.grad.tolist(), x.grad.dtype, y.stride(), x.grad.stride()

    by_numpy, by_kernel = impls.both(run)
    assert by_numpy == by_kernel


def test_no_warning(impls):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for way in (impls.numpy, impls.kernels):
            assert way(lambda: torch.full((99,), 1e30).half().isinf().all())
            assert way(lambda: torch.full((99,), 1e300, dtype=torch.float64).float().isinf().all())


def test_float64_to_float16_rounds_through_float32(impls):
    """As in PyTorch, rounded twice."""
    x = torch.full((99,), 0.17755127099591697, dtype=torch.float64)
    for way in (impls.numpy, impls.kernels):
        assert way(lambda: x.half())[7].item() == 0.1774902343750000
