"""What factorizations and solutions return for matrices that have none: what LAPACK computed before it stopped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau

DTYPES = ["float32", "float64", "complex64", "complex128"]


def random(dtype: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(len(shape) + shape[-1])
    values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.startswith("c") else 0)
    return values.astype(dtype)


def matrices(dtype: str) -> list[np.ndarray]:
    """Singular and indefinite matrices, and some with NaN; no pivot is 0 by rounding alone."""
    zero_column, nan, nan_first, large = (random(dtype, n, n) for n in (4, 4, 5, 20))
    zero_column[:, 2], nan[1, 2], nan_first[0, 0], large[:, 7] = 0, np.nan, np.nan, 0
    zero_row, triangle = random(dtype, 3, 3), np.triu(np.ones((5, 5), dtype))
    zero_row[1], triangle[2, 2] = 0, 0
    several = random(dtype, 2, 3, 4, 4)
    several = several @ several.swapaxes(-1, -2).conj() + np.eye(4, dtype=dtype)
    several[0, 1] -= 7 * np.eye(4, dtype=dtype)
    several[1, 2, :, 1] = 0
    return [np.zeros((1, 1), dtype), np.zeros((3, 3), dtype), np.diag(np.array([1, 0, 2, 0], dtype)),
            np.diag(np.array([1, 3, 2, 0], dtype)), np.array([[1, 2], [2, 4]], dtype), np.full((3, 3), np.nan, dtype),
            zero_column, zero_row, nan, nan_first, large, triangle, several]


def agree(call: Any, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    for matrix in matrices(dtype):
        ours, theirs = call(flambeau, flambeau.tensor(matrix)), call(torch, torch.tensor(matrix))
        for x, y in zip(ours, theirs, strict=True):
            a, b = (each.resolve_conj().numpy() for each in (x, y))
            assert a.dtype == b.dtype
            assert x.stride() == y.stride()
            np.testing.assert_allclose(a, b, 2e-4 if matrix.dtype.char in "fF" else 1e-9, 1e-4, err_msg=str(matrix))


@pytest.mark.parity
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_factors_of_indefinite_matrices(dtype: str, upper: bool) -> None:
    agree(lambda lib, a: lib.linalg.cholesky_ex(a, upper=upper), dtype)


@pytest.mark.parity
@pytest.mark.parametrize("dtype", DTYPES)
def test_columns_behind_the_first_pivot_that_fails(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    base = random(dtype, 40, 40)
    base = base @ base.T.conj() + 40 * np.eye(40, dtype=dtype)
    for order in (1, 2, 17, 40):
        a = base.copy()
        a[order - 1, order - 1] = -1
        (low, info), (expected, code) = (lib.linalg.cholesky_ex(lib.tensor(a)) for lib in (flambeau, torch))
        assert info.item() == code.item() == order
        np.testing.assert_allclose(low.numpy(), expected.numpy(), 1e-4, 1e-4)


@pytest.mark.parity
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["lu_factor_ex", "ldl_factor_ex", "inv_ex"])
def test_singular_matrices(name: str, dtype: str) -> None:
    agree(lambda lib, a: getattr(lib.linalg, name)(a), dtype)


@pytest.mark.parity
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [False, True])
def test_solutions_of_singular_systems(dtype: str, left: bool) -> None:
    agree(lambda lib, a: lib.linalg.solve_ex(a, lib.ones_like(a), left=left), dtype)


@pytest.mark.parity
def test_codes_of_broadcast_systems() -> None:
    torch = pytest.importorskip("torch")
    for shape in ((3, 1, 2, 2), (2, 2), (4, 2, 2)):
        results = [lib.linalg.solve_ex(lib.zeros(shape), lib.ones(4, 2, 3)) for lib in (flambeau, torch)]
        assert [tuple(x.shape) for x in results[0]] == [tuple(x.shape) for x in results[1]]
        assert results[0].info.tolist() == results[1].info.tolist()


@pytest.mark.parity
@pytest.mark.parametrize("name", ["linalg.cholesky", "cholesky", "linalg.inv"])
@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
def test_errors_say_where_the_factorization_stopped(name: str) -> None:
    torch = pytest.importorskip("torch")
    for matrix in matrices("float64"):
        texts = []
        for lib in (flambeau, torch):
            function = getattr(lib.linalg, name[7:]) if "." in name else getattr(lib, name)
            for _ in range(4):  # known calls, too
                try:
                    texts.append(str(np.isnan(function(lib.tensor(matrix)).numpy()).tolist()))
                except RuntimeError as error:
                    texts.append(f"{type(error).__name__}: {error}")
        assert set(texts) == {texts[-1]}
