"""Reduction kernels against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flambeau as torch
from flambeau.backends.compiled import reduce_arrays
from flambeau.backends.compiled.families import reductions

SHAPE = (6, 20, 30)
DIMS = [None, 0, 1, -1, (0, 2), (1, 2), (0, 1, 2)]


def array(dtype, seed=0):
    random = np.random.default_rng(seed)
    if dtype == torch.bool:
        return torch.tensor(random.random(SHAPE) < 0.5)
    if dtype.is_floating_point:
        return torch.tensor(random.standard_normal(SHAPE)).to(dtype)
    return torch.tensor(random.integers(0, 7, SHAPE)).to(dtype)


def plainly(found):
    return tuple(found) if isinstance(found, tuple) else found


def same(expected, found, rtol):
    if isinstance(expected, tuple):
        for a, b in zip(expected, found, strict=True):
            same(a, b, rtol)
        return
    assert (found.dtype, found.shape, found.stride()) == (expected.dtype, expected.shape, expected.stride())
    np.testing.assert_allclose(found.double().numpy(), expected.double().numpy(), rtol=rtol, atol=rtol)


SUMS = {"sum": torch.sum, "mean": torch.mean, "nansum": torch.nansum, "var": torch.var, "std": torch.std,
        "logsumexp": torch.logsumexp, "norm": torch.linalg.vector_norm, "norm1": lambda x, *a, **k: torch.linalg.
        vector_norm(x, 1, *a, **k)}
EXTREMA = {"amax": torch.amax, "amin": torch.amin}


@pytest.mark.parametrize("dim", DIMS, ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_sums(impls, dim, turned):
    x = array(torch.float32)
    if turned:
        x = x.permute(2, 0, 1)
    for name, f in SUMS.items():
        if name == "logsumexp" and dim is None:
            continue
        for keepdim in (False, True):
            if dim is None:
                arguments = (x,)
                if name not in ("sum", "mean", "nansum", "var", "std"):
                    continue
            else:
                arguments = (x, dim)
            options = {} if dim is None else {"keepdim": keepdim}
            if name == "norm1" or name == "norm":
                options = {"dim": dim, **options}
                arguments = (x,)
            expected, found = impls.both(lambda f=f, a=arguments, o=options: f(*a, **o))
            same(expected, found, 1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool],
                         ids=str)
@pytest.mark.parametrize("dim", [None, 0, 2, (0, 1)], ids=str)
def test_sums_of_dtypes(impls, dtype, dim):
    x = array(dtype)
    expected, found = impls.both(lambda: x.sum(dim))
    same(expected, found, 1e-12 if not dtype.is_floating_point or dtype is torch.float64 else 0.02)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.uint8, torch.int8], ids=str)
@pytest.mark.parametrize("dim", [None, 0, 1, 2], ids=str)
def test_extrema_and_their_indices(impls, dtype, dim):
    x = array(dtype)
    fs = [torch.max, torch.min, torch.argmax, torch.argmin] if dim is None else [
        torch.amax, torch.amin, torch.max, torch.min, torch.argmax, torch.argmin, torch.aminmax]
    for f in fs:
        if f is torch.aminmax:
            same(*impls.both(lambda: plainly(torch.aminmax(x, dim=dim))), 0)
            continue
        arguments = () if dim is None else (dim,)
        same(*impls.both(lambda f=f, a=arguments: plainly(f(x, *a))), 0)


@pytest.mark.parametrize("dim", [None, 0, 1, 2], ids=str)
def test_any_all_and_prod(impls, dim):
    x = array(torch.int64)
    arguments = () if dim is None else (dim,)
    for f in (torch.any, torch.all, torch.count_nonzero):
        for values in (x, x > 2, x.float(), x.to(torch.uint8)):
            same(*impls.both(lambda f=f, v=values: f(v, *arguments)), 0)
    same(*impls.both(lambda: torch.prod(x % 3 + 1, *arguments)), 0)
    y = 1 + array(torch.float64) * 1e-3
    same(*impls.both(lambda: torch.prod(y, *arguments)), 1e-11)


def test_nan_and_infinities(impls):
    for special in (math.nan, math.inf, -math.inf):
        x = array(torch.float32)
        x[2, 3, 4] = special
        for f in (torch.sum, torch.amax, torch.amin, torch.argmax, torch.argmin, torch.logsumexp, torch.var, torch.max):
            for dim in (0, 1, 2):
                same(*impls.both(lambda f=f, d=dim, x=x: plainly(f(x, d))), 1e-5)


def test_argmax_returns_the_first_of_equal_elements(impls):
    x = torch.zeros(300, 5)
    assert impls.kernels(lambda: torch.argmax(x, 0)).tolist() == [0] * 5
    assert impls.kernels(lambda: torch.max(x, 0)).indices.tolist() == [0] * 5


def test_empty_dimensions(impls):
    x = torch.ones(0, 500)
    for f in (torch.sum, torch.prod, torch.any, torch.all):
        same(*impls.both(lambda f=f: f(x, 0)), 0)
        same(*impls.both(lambda f=f: f(x, 1)), 0)

    def said(f):
        with pytest.raises((RuntimeError, IndexError)) as caught:
            f(x, 0)
        return str(caught.value)

    for f in (torch.amax, torch.argmax, torch.max):
        expected, found = impls.both(lambda f=f: said(f))
        assert expected == found


def test_invalid_dimensions_raise_the_same_errors(impls):
    x = array(torch.float32)
    for dims in (5, (0, 0), (1, -2), -4):
        def said(dims=dims):
            with pytest.raises((RuntimeError, IndexError)) as caught:
                torch.sum(x, dims)
            return str(caught.value)

        expected, found = impls.both(said)
        assert expected == found


def test_long_sums_are_accurate(impls):
    x = np.random.default_rng(0).random(1 << 20, dtype=np.float32)
    exact = math.fsum(x.tolist())
    found = impls.kernels(lambda: torch.from_numpy(x).sum().item())
    assert abs(found - exact) < 1e-6 * exact
    columns = impls.kernels(lambda: torch.from_numpy(x.reshape(-1, 4)).sum(0))
    np.testing.assert_allclose(columns.numpy(), x.reshape(-1, 4).astype("f8").sum(0), rtol=1e-6)


def test_unsupported_reductions_use_numpy():
    x = np.ones((100, 100), np.float32)
    assert reduce_arrays(("argmax",), "", (x,), 1, False) is None
    assert reduce_arrays(("argmax",), "", (x,), 0, False) is not None
    assert reduce_arrays(("argmax",), "", (x.T,), 0, False) is None
    assert reductions.reduce_arrays(("sum",), "", (x.astype(np.complex64),), 0, False) is None


def test_gradients_of_reductions(impls):
    def run(f):
        x = array(torch.float64).requires_grad_()
        f(x).sum().backward()
        return x.grad

    for f in (lambda x: (x * x).sum(1), lambda x: x.mean((0, 2)), lambda x: x.amax(1), lambda x: x.var(2),
              lambda x: x.logsumexp(0), lambda x: x.max(2).values, lambda x: torch.linalg.vector_norm(x, dim=1)):
        same(*impls.both(lambda f=f: run(f)), 1e-10)
