from __future__ import annotations

import numpy as np
import pytest

from flambeau.kernels.histogram import bincount, histc, searchsorted

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float32, np.float64])
def test_searchsorted(dtype: type, right: bool) -> None:
    for n in (0, 1, 2, 9, 100):
        boundaries = RNG.integers(0, 9, n).astype(dtype)
        values = RNG.integers(0, 10, (3, 4)).astype(dtype)
        if np.dtype(dtype).kind == "f":
            values[0, 0], values[1, 1], values[2, 2] = np.nan, np.inf, -np.inf
        ordered = np.sort(boundaries)
        for b in (boundaries, ordered, np.append(ordered, values[0, 0])):
            expected = torch.searchsorted(torch.tensor(b), torch.tensor(values), right=right)
            np.testing.assert_array_equal(searchsorted(b, values, right), expected)
    rows = RNG.integers(0, 9, (3, 7)).astype(dtype)
    order = np.argsort(rows, -1)
    expected = torch.searchsorted(torch.tensor(rows), torch.tensor(values), right=right, sorter=torch.tensor(order))
    np.testing.assert_array_equal(searchsorted(rows, values, right, order), expected)
    np.testing.assert_array_equal(searchsorted(np.sort(boundaries), values[0, 1], right),
                                  torch.searchsorted(torch.tensor(np.sort(boundaries)), torch.tensor(values[0, 1]),
                                                     right=right))


def test_bincount() -> None:
    x = RNG.integers(0, 9, 30)
    for minlength in (0, 4, 20):
        np.testing.assert_array_equal(bincount(x, None, minlength),
                                      torch.bincount(torch.tensor(x), minlength=minlength))
    for dtype in (np.float16, np.float32, np.float64, np.int32):
        weights = RNG.standard_normal(30).astype(dtype)
        expected = torch.bincount(torch.tensor(x), torch.tensor(weights)).numpy()
        found = bincount(x, weights)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected)
    np.testing.assert_array_equal(bincount(np.empty(0, np.int64), None, 3), [0, 0, 0])
    for bad in (np.array([1, -2]), np.array([[1]])):
        with pytest.raises(RuntimeError, match=r"bincount only supports 1-d non-negative integral inputs."):
            bincount(bad)
    with pytest.raises(RuntimeError, match=r"minlength should be >= 0"):
        bincount(x, None, -1)
    with pytest.raises(RuntimeError, match=r"weights should be 1-d and have the same length as input"):
        bincount(x, np.ones(2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_histc(dtype: type) -> None:
    x = RNG.standard_normal(500).astype(dtype)
    x[::50] = np.nan
    clean = x[~np.isnan(x)]
    for arguments in ((7,), (100,), (10, -1, 1), (3, 0.5, 0.5)):
        values = x if len(arguments) == 3 and arguments[1] != arguments[2] else clean
        np.testing.assert_array_equal(histc(values, *arguments), torch.histc(torch.tensor(values), *arguments))
    np.testing.assert_array_equal(histc(np.ones(2, dtype), 4), [0, 0, 2, 0])
    np.testing.assert_array_equal(histc(np.empty(0, dtype), 4), [0, 0, 0, 0])
    with pytest.raises(RuntimeError, match=r"torch.histc: range of \[1, inf\] is not finite"):
        histc(np.array([1, np.inf], dtype), 4)
    with pytest.raises(RuntimeError, match=r"torch.histc: max must be larger than min"):
        histc(np.ones(2, dtype), 4, 2, 1)
