from __future__ import annotations

import itertools

import numpy as np
import pytest

from flambeau import dtypes
from flambeau.kernels import pooling
from flambeau.kernels.pooling import (
    adaptive_avg_pool,
    adaptive_avg_pool_backward,
    adaptive_max_pool,
    avg_pool,
    avg_pool_backward,
    max_pool,
    max_pool_backward,
    max_unpool,
)

torch = pytest.importorskip("torch")
F = torch.nn.functional

MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVG = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
ADAPTIVE_MAX = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
ADAPTIVE_AVG = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}

CASES = [
    # spatial, kernel, stride, padding, dilation
    ((9,), (3,), (2,), (1,), (1,)),
    ((10,), (2,), (3,), (1,), (3,)),
    ((11,), (3,), (1,), (0,), (2,)),
    ((8, 8), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((7, 9), (3, 3), (2, 2), (1, 1), (1, 1)),
    ((7, 9), (3, 2), (3, 1), (1, 0), (1, 2)),
    ((5, 5), (5, 5), (5, 5), (2, 2), (1, 1)),
    ((12, 12), (9, 9), (1, 2), (4, 3), (1, 1)),
    ((40, 20), (20, 20), (20, 20), (0, 0), (1, 1)),
    ((5, 6, 7), (2, 3, 2), (2, 1, 3), (1, 1, 0), (1, 1, 2)),
]


@pytest.fixture(params=[1 << 16, 1])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run again plane by plane."""
    monkeypatch.setattr(pooling, "BLOCK_ELEMENTS", request.param)


def sample(shape: tuple[int, ...], kind: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    if kind == "ties":
        return rng.integers(0, 3, shape).astype(np.float32)
    if kind == "nan":
        return np.where(rng.random(shape) < 0.2, np.nan, rng.standard_normal(shape)).astype(np.float32)
    if kind == "lowest":
        return np.where(rng.random(shape) < 0.9, -np.inf, rng.standard_normal(shape)).astype(np.float32)
    if kind == "zeros":
        return np.where(rng.random(shape) < 0.5, -0.0, 0.0).astype(np.float32)
    return rng.standard_normal(shape)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("kind", ["normal", "ties", "nan", "lowest", "zeros"])
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_max_pool(case: tuple, ceil_mode: bool, kind: str) -> None:
    spatial, kernel, stride, padding, dilation = case
    x = sample((2, 3, *spatial), kind)
    tx = torch.tensor(x, requires_grad=True)
    expected, where = MAX[len(spatial)](tx, kernel, stride, padding, dilation, ceil_mode, return_indices=True)
    values, indices = max_pool(x, kernel, stride, padding, dilation, ceil_mode)
    np.testing.assert_array_equal(indices, where)
    np.testing.assert_array_equal(values, expected.detach())
    np.testing.assert_array_equal(np.signbit(values), np.signbit(expected.detach().numpy()))
    g = np.random.default_rng(1).standard_normal(values.shape).astype(x.dtype)
    expected.backward(torch.tensor(g))
    np.testing.assert_allclose(max_pool_backward(g, indices, spatial), tx.grad, rtol=1e-5, atol=1e-5)
    if all(d * (k - 1) < s for k, s, d in zip(kernel, stride, dilation, strict=True)):
        np.testing.assert_array_equal(max_pool_backward(g, indices, spatial, overlapping=False), tx.grad)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16])
def test_max_pool_dtypes(dtype: type) -> None:
    x = np.random.default_rng(0).integers(-128, 128, (2, 9, 9)).astype(dtype)
    x[0] = np.iinfo(dtype).min if np.dtype(dtype).kind in "iu" else -np.inf
    expected, where = F.max_pool2d(torch.tensor(x), 3, 2, 1, return_indices=True)
    values, indices = max_pool(x, (3, 3), (2, 2), (1, 1), (1, 1))
    assert values.dtype == dtype
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(indices, where)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(("ceil_mode", "include", "override"),
                         list(itertools.product([False, True], [False, True], [None, 3])))
@pytest.mark.parametrize("case", CASES)
def test_avg_pool(case: tuple, ceil_mode: bool, include: bool, override: int | None) -> None:
    spatial, kernel, stride, padding, _ = case
    d = len(spatial)
    if d == 1 and override is not None:
        pytest.skip("avg_pool1d has no divisor_override")
    x = sample((2, 3, *spatial), "normal")
    tx = torch.tensor(x, requires_grad=True)
    extra = () if d == 1 else (override,)
    expected = AVG[d](tx, kernel, stride, padding, ceil_mode, include, *extra)
    out = avg_pool(x, kernel, stride, padding, ceil_mode, include, override)
    np.testing.assert_allclose(out, expected.detach(), rtol=1e-13, atol=1e-13)
    g = np.random.default_rng(1).standard_normal(out.shape)
    expected.backward(torch.tensor(g))
    np.testing.assert_allclose(avg_pool_backward(g, spatial, kernel, stride, padding, include, override),
                               tx.grad, rtol=1e-12, atol=1e-12)


def test_avg_pool_of_integers_truncates() -> None:
    x = np.arange(32).reshape(2, 1, 4, 4) - 20
    expected = F.avg_pool2d(torch.tensor(x), 3, 2, 1, True, False)
    np.testing.assert_array_equal(avg_pool(x, (3, 3), (2, 2), (1, 1), True, False), expected)


@pytest.mark.parametrize("kind", ["normal", "ties", "nan", "lowest", "zeros"])
@pytest.mark.parametrize(("spatial", "out"), [((9,), (4,)), ((3,), (7,)), ((8, 8), (4, 2)), ((7, 10), (3, 4)),
                                          ((3, 2), (5, 7)), ((8, 9), (1, 1)), ((5, 6, 7), (2, 4, 3)),
                                          ((4, 6, 8), (2, 3, 4))])
def test_adaptive(spatial: tuple[int, ...], out: tuple[int, ...], kind: str) -> None:
    d = len(spatial)
    x = sample((2, 3, *spatial), kind)
    tx = torch.tensor(x, requires_grad=True)
    expected, where = ADAPTIVE_MAX[d](tx, out, return_indices=True)
    values, indices = adaptive_max_pool(x, out)
    np.testing.assert_array_equal(indices, where)
    np.testing.assert_array_equal(values, expected.detach())
    g = np.random.default_rng(1).standard_normal(values.shape).astype(x.dtype)
    expected.backward(torch.tensor(g))
    np.testing.assert_allclose(max_pool_backward(g, indices, spatial), tx.grad, rtol=1e-5, atol=1e-5)
    tx.grad = None
    expected = ADAPTIVE_AVG[d](tx, out)
    np.testing.assert_allclose(adaptive_avg_pool(x, out), expected.detach(), rtol=1e-6, atol=1e-6)
    expected.backward(torch.tensor(g))
    np.testing.assert_allclose(adaptive_avg_pool_backward(g, spatial), tx.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("stored", [np.dtype(np.float16), dtypes.BFLOAT16])
def test_half_precision(stored: np.dtype) -> None:
    x = dtypes.cast(np.random.default_rng(0).standard_normal((2, 3, 9, 9), dtype=np.float32), stored)
    tx = torch.tensor(dtypes.widen(x)).to(torch.bfloat16 if stored == dtypes.BFLOAT16 else torch.float16)
    values, indices = max_pool(x, (3, 3), (2, 2), (1, 1), (1, 1))
    expected, where = F.max_pool2d(tx, 3, 2, 1, return_indices=True)
    np.testing.assert_array_equal(indices, where)
    np.testing.assert_array_equal(dtypes.widen(values), expected.float())
    for out, expected in [(avg_pool(x, (3, 3), (2, 2), (1, 1)), F.avg_pool2d(tx, 3, 2, 1)),
                          (adaptive_avg_pool(x, (4, 2)), F.adaptive_avg_pool2d(tx, (4, 2))),
                          (adaptive_max_pool(x, (4, 2))[0], F.adaptive_max_pool2d(tx, (4, 2)))]:
        assert out.dtype == stored
        np.testing.assert_allclose(dtypes.widen(out), expected.float(), rtol=1e-2)
    for out in (max_pool_backward(values, indices, (9, 9)), avg_pool_backward(x, (27, 27), (3, 3), (3, 3), (0, 0)),
                adaptive_avg_pool_backward(x, (20, 20))):
        assert out.dtype == stored


def test_unpool() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 6))
    values, indices = max_pool(x, (2, 2), (2, 2), (0, 0), (1, 1))
    np.testing.assert_array_equal(max_unpool(values, indices, (6, 6)),
                                  F.max_unpool2d(torch.tensor(values), torch.tensor(indices), 2))
    with pytest.raises(RuntimeError, match=r"Found an invalid max index: 99 \(output volumes are of size 6x6\)"):
        max_unpool(values, np.where(indices == indices.max(), 99, indices), (6, 6))


def test_empty_and_non_contiguous() -> None:
    empty = np.ones((0, 3, 8, 8), np.float32)
    for out in (max_pool(empty, (2, 2), (2, 2), (0, 0), (1, 1))[0], avg_pool(empty, (2, 2), (2, 2), (0, 0)),
                adaptive_avg_pool(empty, (4, 4)), adaptive_max_pool(empty, (4, 4))[0]):
        assert out.shape == (0, 3, 4, 4)
    assert max_pool_backward(empty, empty.astype(np.int64), (9, 9)).shape == (0, 3, 9, 9)
    assert avg_pool_backward(empty, (16, 16), (2, 2), (2, 2), (0, 0)).shape == (0, 3, 16, 16)
    assert adaptive_avg_pool_backward(empty, (5, 5)).shape == (0, 3, 5, 5)
    x = np.random.default_rng(0).standard_normal((4, 8, 8, 3))
    strided = np.moveaxis(x, 3, 1)
    for function in (lambda a: max_pool(a, (3, 3), (2, 2), (1, 1), (1, 1))[1],
                     lambda a: avg_pool(a, (3, 3), (2, 2), (1, 1)), lambda a: adaptive_avg_pool(a, (3, 3))):
        np.testing.assert_array_equal(function(strided), function(strided.copy()))
