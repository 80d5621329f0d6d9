"""Factorizations and substitutions against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flambeau.codegen.linalg import elimination
from flambeau.runtime import launch
from flambeau.runtime.launch import Spec


def call(family: Callable[..., list[Any]], *operands: np.ndarray, **options: bool) -> None:
    launch.run(family(*map(Spec.of, operands), **options), list(operands))


def matrices(dtype: str, n: int = 7) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(3, n, n)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cholesky(dtype):
    a = matrices(dtype)
    a = a @ a.swapaxes(1, 2) + np.eye(7, dtype=dtype)
    a[1, 3, 3] = -1
    lower, info = np.full_like(a, 7), np.full(3, 7, np.int32)
    call(elimination.cholesky, lower, info, a)
    assert info.tolist() == [0, 4, 0]
    np.testing.assert_allclose(lower[::2], np.linalg.cholesky(a[::2]), 1e-3, 1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lu(dtype):
    a = matrices(dtype)
    a[1, :, 2] = 0
    factors, order, parity, info = np.empty_like(a), np.empty((3, 7), np.int64), np.empty(3, dtype), np.empty(3, "i4")
    call(elimination.lu, factors, order, parity, info, a)
    assert info.tolist() == [0, 3, 0]
    for each, rows, matrix in zip(factors, order, a, strict=True):
        lower = np.tril(each, -1) + np.eye(7)
        np.testing.assert_allclose(lower @ np.triu(each), matrix[rows], 1e-3, 1e-4)
    np.testing.assert_allclose(parity * np.diagonal(factors, 0, 1, 2).prod(1), np.linalg.det(a), 1e-3, 1e-6)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_substitution(upper, unit):
    a, b = matrices("float64"), np.random.default_rng(1).normal(size=(3, 7, 4))
    x = np.empty_like(b)
    call(elimination.substitute, x, a, b, upper=upper, unit=unit)
    triangle = np.triu(a) if upper else np.tril(a)
    if unit:
        triangle[:, range(7), range(7)] = 1
    np.testing.assert_allclose(triangle @ x, b, 1e-6, 1e-6)


def test_other_dtypes_are_refused():
    a, info = Spec.dense((1, 2, 2), np.dtype("i8")), Spec.dense((1,), np.dtype("i4"))
    with pytest.raises(TypeError, match="cannot factorize matrices of dtype int64"):
        elimination.cholesky(a, info, a)
