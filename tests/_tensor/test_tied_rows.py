"""Sorts and selections of rows whose elements repeat: PyTorch's values and indices, by the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau import codegen
from flambeau.backends.compiled import order_tied_rows
from flambeau.kernels import ties

DTYPES = ["float32", "bfloat16", "float16", "float64", "int64", "int16", "uint8"]


def repeating(shape: tuple[int, ...], dtype: str, levels: int) -> tuple[Any, Any]:
    torch = pytest.importorskip("torch")
    low = 0 if dtype == "uint8" else -levels
    numbers = np.random.default_rng(levels).integers(low, levels, shape)
    return tuple(lib.tensor(numbers).to(getattr(lib, dtype)) for lib in (flambeau, torch))


def same(ours: Any, theirs: Any) -> None:
    assert ours[1].tolist() == theirs[1].tolist()
    assert ours[0].tolist() == theirs[0].tolist()
    assert ours[0].stride() == theirs[0].stride()


@pytest.mark.parity
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dim"), [((2000,), 0), ((40, 40), 0), ((3, 700), 1), ((5, 20, 30), 1),
                                            ((200, 8), 1)])
def test_sorts_and_selections(shape: tuple[int, ...], dim: int, dtype: str) -> None:
    for levels in (3, 60):
        x, y = repeating(shape, dtype, levels)
        for falling in (True, False):
            for _ in range(3):
                same(x.sort(dim, falling), y.sort(dim, falling))
            assert x.argsort(dim, falling).tolist() == y.argsort(dim, falling).tolist()
            for k in (1, 3, shape[dim] // 2, shape[dim]):
                same(x.topk(k, dim, falling), y.topk(k, dim, falling))


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_nan_and_both_zeros(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    numbers = np.random.default_rng(0).integers(-4, 4, (40, 70)) / 2 * np.array([1, -1])[:, None, None]
    numbers[:, ::3, ::5] = np.nan
    numbers = numbers.reshape(80, 70)
    x, y = (lib.tensor(numbers).to(getattr(lib, dtype)) for lib in (flambeau, torch))
    for falling in (True, False):
        for k in (1, 20, 70):
            assert x.topk(k, 1, falling)[1].tolist() == y.topk(k, 1, falling)[1].tolist()
        assert x.sort(1, falling)[1].tolist() == y.sort(1, falling)[1].tolist()


def slow_for_medians(n: int) -> np.ndarray:
    """Numbers for which a median of three splits off few elements each time, with repetitions."""
    half = n // 2
    numbers = np.empty(n, np.int64)
    for i in range(half):
        numbers[i] = i + 1 if i % 2 == 0 else half + i
        numbers[half + i] = 2 * (i + 1)
    return numbers // 2


@pytest.mark.skipif(not codegen.available(), reason="kernels are not compiled")
@pytest.mark.parametrize("n", [64, 500, 3000])
def test_rows_that_are_split_too_often(n: int) -> None:
    keys = slow_for_medians(n)
    found = order_tied_rows(keys, n, False, True)
    assert found is not None
    assert found[1].tolist() == ties.sorted_places(keys).tolist()
    for k in (1, n // 3, n - 1, n):
        found = order_tied_rows(keys, k, False, False)
        assert found is not None
        assert found[1].tolist() == ties.topk_places(keys, k).tolist()
