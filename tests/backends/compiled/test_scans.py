"""Scan kernels against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flambeau as torch

SCANS = ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"]
SHAPES = [(1,), (37,), (5, 40), (40, 5), (70, 33), (3, 20, 33), (1, 300), (300, 1), (0, 4), (4, 0), (2, 3, 4, 5),
          (3, 700), (700, 3)]


def array(shape, dtype=torch.float32, seed=0):
    random = np.random.default_rng(seed)
    if dtype.is_floating_point:
        return torch.tensor(random.standard_normal(shape)).to(dtype)
    return torch.tensor(random.integers(0, 3, shape)).to(dtype)


def plainly(found):
    return tuple(found) if isinstance(found, tuple) else (found,)


def same(both, rtol=0.0):
    for a, b in zip(*both, strict=True):
        assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
        np.testing.assert_allclose(b.double().numpy(), a.double().numpy(), rtol=rtol, atol=rtol)
        if a.dtype.is_floating_point:
            some = ~a.isnan()  # whose sign says nothing
            np.testing.assert_array_equal(torch.signbit(a[some]).numpy(), torch.signbit(b[some]).numpy())


def accuracy(name, dtype):
    return 0.0 if name != "logcumsumexp" else 1e-6 if dtype is torch.float32 else 1e-13


def layouts(x):
    yield x
    yield x.transpose(0, -1)
    if x.numel() > 1:
        yield x[::2]
        yield x[..., 1:]
        yield x[..., ::2]
        yield x[..., :1].expand(x.shape)
        yield x[:1].expand(x.shape)


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_scans(impls, name, dtype, shape):
    f = getattr(torch, name)
    for x in layouts(array(shape, dtype)):
        for dim in range(x.ndim):
            if 0 in x.shape and name.startswith("cumm"):
                continue
            same(impls.both(lambda x=x, d=dim: plainly(f(x, d))), accuracy(name, dtype))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool, torch.bfloat16, torch.float16],
                         ids=str)
def test_dtypes(impls, name, dtype):
    for x in layouts(array((6, 35), dtype)):
        for dim in (0, 1):
            same(impls.both(lambda x=x, d=dim: plainly(getattr(torch, name)(x, d))))
            if name in ("cumsum", "cumprod"):
                for to in (torch.int32, torch.int64, torch.float32):
                    same(impls.both(lambda x=x, d=dim, t=to: (getattr(torch, name)(x, d, dtype=t),)))


@pytest.mark.parametrize("name", SCANS)
def test_nan_infinities_and_zeros(impls, name):
    x = array((9, 50))
    x[1, 7] = x[1, 9] = math.nan
    x[2, 3] = x[7, 40] = math.inf
    x[3, 3] = x[4, 0] = -math.inf
    x[5] = -math.inf
    x[6] = 0.0
    x[6, ::3] = -0.0
    for y in (x, -x):
        for dim in (0, 1):
            same(impls.both(lambda y=y, d=dim: plainly(getattr(torch, name)(y, d))), accuracy(name, torch.float32))


def test_ties_return_the_last_index(impls):
    found = impls.kernels(lambda: torch.cummax(torch.ones(50, 20), 1))
    assert found.indices[3].tolist() == list(range(20))


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("shape", [(37,), (5, 40), (40, 5), (3, 20, 33)], ids=str)
def test_gradients(impls, name, shape):
    weight = array(shape, torch.float64, 1)

    def run(dim, values, weight):
        x = values.clone().requires_grad_()
        y = plainly(getattr(torch, name)(x, dim))[0]
        (y.sum() if weight is None else (y * weight).sum()).backward()
        return (x.grad,)

    values = array(shape, torch.float64)
    zero = values.clone()
    zero[..., 3] = 0
    for dim in range(len(shape)):
        for each in (values, zero):
            for w in (weight, None):
                same(impls.both(lambda d=dim, e=each, w=w: run(d, e, w)), 1e-11)


def test_many_lines_in_several_threads(impls):
    x = array((600, 700))
    for f in (lambda x: x.cumsum(0), lambda x: x.cumsum(1), lambda x: x.t().cumsum(1), lambda x: x.t().cumsum(0),
              lambda x: x.view(-1).cumsum(0), lambda x: x.view(2, 300, 700).cumsum(1)):
        same(impls.both(lambda f=f: (f(x),)))
