from __future__ import annotations

import numpy as np
import pytest

from flambeau import dtypes
from flambeau.kernels import sorting, ties
from flambeau.kernels.sorting import argsort, kthvalue, median, mode, sort, topk

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("silent")

RNG = np.random.default_rng(0)
DTYPES = [np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64]
SIZES = [1, 2, 5, 16, 17, 40, 300, 700, 3000]


def sample(n: int, dtype: type, kind: str) -> np.ndarray:
    if kind == "ties":
        return RNG.integers(0, max(n // 4, 2), n).astype(dtype)
    x = RNG.permutation(n).astype(dtype) if kind == "permutation" else (RNG.standard_normal(n) * 50).astype(dtype)
    if kind == "special" and np.dtype(dtype).kind == "f":
        x[RNG.random(n) < 0.2] = np.nan
        x[RNG.random(n) < 0.2] = 0.0
        x[RNG.random(n) < 0.2] = -0.0
        x[RNG.random(n) < 0.1] = np.inf
    return x


def assert_same(found: tuple[np.ndarray, np.ndarray], expected: tuple) -> None:
    values, indices = found
    np.testing.assert_array_equal(values, expected[0])
    np.testing.assert_array_equal(np.signbit(values), np.signbit(expected[0].numpy()))
    np.testing.assert_array_equal(indices, expected[1])
    assert indices.dtype == np.int64


@pytest.mark.parametrize("kind", ["ties", "permutation", "normal", "special"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_and_indices_are_torchs(dtype: type, kind: str) -> None:
    for n in SIZES:
        x = sample(n, dtype, kind)
        t = torch.tensor(x)
        for descending in (False, True):
            for stable in (False, True):
                assert_same(sort(x, 0, descending, stable), t.sort(dim=0, descending=descending, stable=stable))
        for k in {1, max(n // 80, 1), n // 3 + 1, n}:
            assert_same(topk(x, k), t.topk(k))
            assert_same(topk(x, k, largest=False), t.topk(k, largest=False))
            assert_same(kthvalue(x, k), t.kthvalue(k))
        assert_same(median(x), t.median(0))
        assert_same(median(x, ignore_nan=True), t.nanmedian(0))
        if kind != "special":  # with NaNs PyTorch's mode sorts by an order that is none
            assert_same(mode(x), t.mode(0))


def test_unsigned_64_and_bool() -> None:
    x = RNG.integers(0, 1 << 63, 400).astype(np.uint64) * np.uint64(2)
    np.testing.assert_array_equal(sort(x)[0], np.sort(x))
    np.testing.assert_array_equal(sort(x, descending=True)[0], np.sort(x)[::-1])
    b = RNG.random(500) < 0.5
    for descending in (False, True):
        assert_same(sort(b, 0, descending), torch.tensor(b).sort(descending=descending, stable=True))
        assert_same(sort(b, 0, descending, False), torch.tensor(b).sort(descending=descending))
    assert_same(mode(b), torch.tensor(b).mode())


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_along_an_axis(axis: int) -> None:
    for shape in ((4, 300, 3), (300, 5, 2), (3, 4, 5)):
        x = RNG.integers(0, 9, shape).astype(np.float32)
        t = torch.tensor(x)
        assert_same(sort(x, axis), t.sort(dim=axis, stable=True))
        assert_same(sort(x, axis, True, False), t.sort(axis, descending=True))
        assert_same(topk(x, 2, axis), t.topk(2, axis))
        assert_same(kthvalue(x, 2, axis), t.kthvalue(2, axis))
        assert_same(median(x, axis), t.median(axis))
        assert_same(mode(x, axis), t.mode(axis))
        np.testing.assert_array_equal(argsort(x, axis, True), t.argsort(dim=axis, descending=True, stable=True))


def test_bfloat16() -> None:
    x = dtypes.cast(RNG.integers(0, 9, 50).astype(np.float32), dtypes.BFLOAT16)
    t = torch.tensor(dtypes.widen(x)).bfloat16()
    for found, expected in ((sort(x, stable=False), t.sort()), (topk(x, 9), t.topk(9)), (kthvalue(x, 9), t.kthvalue(9)),
                            (median(x), t.median(0)), (mode(x), t.mode())):
        assert found[0].dtype == dtypes.BFLOAT16
        np.testing.assert_array_equal(dtypes.widen(found[0]), expected[0].float())
        np.testing.assert_array_equal(found[1], expected[1])


def test_scalars_and_empty() -> None:
    for function in (sort, mode, median, lambda x: topk(x, 1), lambda x: kthvalue(x, 1)):
        values, indices = function(np.array(3.0))
        assert values.shape == indices.shape == ()
        assert isinstance(values, np.ndarray)
    assert sort(np.empty((0, 3)), 0)[1].shape == (0, 3)
    assert sort(np.empty((3, 0)), 1)[1].shape == (3, 0)
    assert topk(np.ones((3, 4)), 0, 1)[0].shape == (3, 0)
    assert kthvalue(np.empty((0, 3)), 1, 1)[0].shape == (0,)


@pytest.mark.parametrize("n", [20000])
def test_long_and_tied(n: int) -> None:
    x = RNG.integers(0, 50, n).astype(np.int32)
    t = torch.tensor(x)
    assert_same(sort(x, stable=False), t.sort())
    assert_same(topk(x, 5), t.topk(5))
    assert_same(topk(x, n // 2), t.topk(n // 2))
    assert_same(kthvalue(x, n // 2), t.kthvalue(n // 2))
    assert_same(mode(x), t.mode())


def test_patterns_that_exhaust_introsort() -> None:
    """A killer sequence for the median of three makes introsort fall back on its heap."""
    n = 2000
    killer = np.concatenate([np.arange(1, n, 2), np.arange(0, n, 2)]) // 3
    for x in (killer, killer[::-1].copy(), np.arange(n) // 7, np.abs(np.arange(n) - n // 2) // 2):
        t = torch.tensor(x)
        assert_same(sort(x, stable=False), t.sort())
        assert_same(topk(x, n // 2), t.topk(n // 2))


def test_depth_exhausted_is_still_a_sort() -> None:
    keys = RNG.integers(0, 40, 900)
    segment = ties.Segment(keys)
    original = ties._depth_limit
    ties._depth_limit = lambda length: 2
    try:
        ties._introsort(segment, 0, 900)
    finally:
        ties._depth_limit = original
    np.testing.assert_array_equal(segment.keys, np.sort(keys))
    np.testing.assert_array_equal(keys[segment.places], segment.keys)


def test_wide_keys_are_sorted_stably() -> None:
    x = RNG.integers(0, 30, (3, 1000))
    np.testing.assert_array_equal(sorting.stable_order(x), np.argsort(x, -1, kind="stable"))
    narrow = x.astype(np.uint32)
    np.testing.assert_array_equal(sorting.stable_order(narrow), np.argsort(x, -1, kind="stable"))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64, np.int16, np.uint8])
@pytest.mark.parametrize("n", [1, 23, 24, 25, 255, 256, 300])
def test_stable_orders_of_integers(dtype: type, n: int) -> None:
    """Signed and unsigned keys over their whole range, with many equal ones, in rows and in columns."""
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(n)
    ends = np.array([limits.min, limits.min + 1, 0, limits.max - 1, limits.max], dtype)
    for keys in (rng.choice(ends, (3, n)), rng.integers(limits.min, limits.max, (3, n), dtype, endpoint=True),
                 rng.choice(ends, (n, 3)).T):
        np.testing.assert_array_equal(sorting.stable_order(keys), np.argsort(keys, -1, kind="stable"))
