from __future__ import annotations

import numpy as np
import pytest

from flambeau import dtypes
from flambeau.kernels.linalg import cummax, cummin, logcumsumexp, matmul, vector_norm

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("silent")

RNG = np.random.default_rng(0)
SHAPES = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)),
          ((2, 1, 2, 3), (5, 3, 4)), ((2, 0), (0, 3)), ((4, 2, 0), (0, 3)), ((0, 2), (2, 3)), ((5, 2, 3), (3,)),
          ((40, 50), (50, 60)), ((0, 2, 3), (3, 4))]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64, np.float16, np.float32, np.float64, np.complex64])
def test_matmul(shapes: tuple, dtype: type) -> None:
    a, b = (RNG.integers(-9, 9, shape).astype(dtype) for shape in shapes)
    expected = torch.tensor(a) @ torch.tensor(b)
    for left in (a, np.array(a, order="F"), np.repeat(a, 2, -1)[..., ::2]):
        for right in (b, np.array(b, order="F"), np.repeat(b, 2, 0)[::2]):
            found = matmul(left, right)
            assert isinstance(found, np.ndarray)
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_matmul_of_expanded_and_large_integers() -> None:
    row = np.broadcast_to(np.arange(3.0), (4, 3))
    np.testing.assert_array_equal(matmul(row, np.eye(3)), row)
    column = np.broadcast_to(np.arange(4.0)[:, None], (4, 3))
    np.testing.assert_array_equal(matmul(np.eye(4), column), column)
    a = RNG.integers(-(1 << 62), 1 << 62, (64, 64))
    np.testing.assert_array_equal(matmul(a, a), torch.tensor(a) @ torch.tensor(a))
    lowest = np.full((64, 64), np.iinfo(np.int64).min)
    np.testing.assert_array_equal(matmul(lowest, lowest), np.matmul(lowest, lowest))


def test_half_matmul_accumulates_in_single() -> None:
    ones = dtypes.cast(np.ones((1, 4096), np.float32), dtypes.BFLOAT16)
    assert dtypes.widen(matmul(ones, ones.T))[0, 0] == 4096


@pytest.mark.parametrize("axes", [None, (0,), (1,), (0, 1), (-1,)])
@pytest.mark.parametrize("p", [0, 1, 2, 3, 0.5, -1, np.inf, -np.inf, 2.5])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
def test_vector_norm(dtype: type, p: float, axes: tuple | None) -> None:
    for x in (RNG.standard_normal((5, 6)), np.zeros((2, 3)), np.where(np.eye(3), np.nan, 1.0)):
        x = x.astype(dtype)
        for keepdims in (False, True):
            expected = torch.linalg.vector_norm(torch.tensor(x), p, dim=axes, keepdim=keepdims).numpy()
            found = vector_norm(x, p, axes, keepdims)
            assert found.dtype == expected.dtype
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == np.float16 else 1e-5)


def test_vector_norm_of_nothing() -> None:
    for p in (0, 1, 2, 0.5):
        assert vector_norm(np.empty(0), p) == 0
    assert vector_norm(np.zeros((3, 0)), np.inf, (0,)).shape == (0,)
    for p, text in ((-1, "-1"), (np.inf, "inf"), (-np.inf, "-inf")):
        with pytest.raises(RuntimeError, match=f"cannot compute the {text} norm on an empty tensor because"):
            vector_norm(np.empty(0), p)
        with pytest.raises(RuntimeError, match=f"cannot compute the {text} norm on the dimension 1because"):
            vector_norm(np.zeros((3, 0)), p, (1,))
    assert vector_norm(np.array(-3.0)) == 3


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64, np.float16, np.float32])
def test_running_extrema(dtype: type, axis: int) -> None:
    for _ in range(20):
        x = RNG.integers(-2, 3, (5, 6)).astype(dtype)
        if np.dtype(dtype).kind == "f":
            x[RNG.random(x.shape) < 0.1] = np.nan
            x *= np.where(RNG.random(x.shape) < 0.5, -1, 1).astype(dtype)
        for found, expected in ((cummax(x, axis), torch.cummax(torch.tensor(x), axis)),
                                (cummin(x, axis), torch.cummin(torch.tensor(x), axis))):
            np.testing.assert_array_equal(found[0], expected[0])
            np.testing.assert_array_equal(found[1], expected[1])
    assert cummax(np.array(3.0), 0)[1].shape == ()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
def test_logcumsumexp(dtype: type) -> None:
    x = RNG.standard_normal((5, 6)) * 10
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.standard_normal((5, 6))
    else:
        x[0, :3], x[1, 2], x[3, 4] = -np.inf, np.inf, np.nan
    x = x.astype(dtype)
    for axis in (0, 1, -1):
        np.testing.assert_allclose(logcumsumexp(x, axis), torch.logcumsumexp(torch.tensor(x), axis),
                                   rtol=1e-3 if dtype == np.float16 else 2e-5)
    assert logcumsumexp(np.array(3.0), 0) == 3
    assert logcumsumexp(np.empty((0, 2)), 0).shape == (0, 2)
