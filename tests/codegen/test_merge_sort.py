"""Merge sort and binary search against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen.sorting import binary_search, merge_sort
from flambeau.kernels.histogram import searchsorted
from flambeau.kernels.sorting import argsort
from flambeau.runtime import launch
from flambeau.runtime.launch import Spec


def sort(x: np.ndarray, descending: bool) -> tuple[np.ndarray, np.ndarray]:
    values, places = np.empty_like(x), np.empty(x.shape, np.int64)
    operands = [values, places, x]
    launch.run(merge_sort.order(*map(Spec.of, operands), descending=descending), operands)
    return values, places


@pytest.mark.parametrize("dtype", merge_sort.DTYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_equal_elements_keep_their_order(dtype, descending):
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 8, 9, 16, 17, 100, 1000):
        x = rng.integers(0, 2 if dtype == "bool" else 30, (3, n)).astype(dtype)
        if x.dtype.kind == "i":
            x -= 10
        if x.dtype.kind == "f" and n > 8:
            x[1, 3], x[1, 5], x[2, :2] = np.nan, -0.0, (np.inf, -np.inf)
        values, places = sort(x, descending)
        want = argsort(x, -1, descending, True)
        np.testing.assert_array_equal(places, want)
        np.testing.assert_array_equal(values, np.take_along_axis(x, want, -1))


def test_extreme_integers():
    x = np.array([[0, np.iinfo("i8").max, np.iinfo("i8").min, -1]])
    assert sort(x, False)[1].tolist() == [[2, 3, 0, 1]]
    assert sort(x, True)[1].tolist() == [[1, 0, 3, 2]]


@pytest.mark.parametrize("dtype", merge_sort.DTYPES)
@pytest.mark.parametrize("right", [False, True])
def test_positions_among_sorted_elements(dtype, right):
    rng = np.random.default_rng(0)
    for shape in ((5,), (3, 17), (0,)):
        high = 2 if dtype == "bool" else 20
        sequences = np.sort(rng.integers(0, high, shape).astype(dtype), -1)
        values = rng.integers(0, high, (3, 9)).astype(dtype)
        if values.dtype.kind == "f":
            values[0, 0] = np.nan
        places = np.empty(values.shape, np.int64)
        operands = [places, sequences, values]
        launch.run(binary_search.launches(*map(Spec.of, operands), right=right), operands)
        np.testing.assert_array_equal(places, searchsorted(sequences, values, right))


def test_other_dtypes_are_refused():
    x, places = Spec.dense((2, 3), np.dtype("c8")), Spec.dense((2, 3), np.dtype("i8"))
    with pytest.raises(TypeError, match="cannot sort elements of dtype complex64"):
        merge_sort.order(x, places, x, descending=False)
    with pytest.raises(TypeError, match="cannot search elements"):
        binary_search.launches(places, x, x, right=False)
