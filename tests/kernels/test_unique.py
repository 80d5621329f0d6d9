from __future__ import annotations

import numpy as np
import pytest

from flambeau.kernels.unique import unique, unique_consecutive, unique_slices

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
DTYPES = [np.bool_, np.uint8, np.int64, np.float16, np.float32, np.float64]


def assert_same(found: tuple, expected: tuple) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.numpy().dtype
    np.testing.assert_array_equal(np.signbit(found[0].astype(float)), np.signbit(expected[0].double().numpy()))


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique(dtype: type) -> None:
    with np.errstate(all="ignore"):
        for n in (0, 1, 2, 7, 16, 40, 400):
            x = RNG.integers(0, max(n // 3, 2), n).astype(dtype)
            if np.dtype(dtype).kind == "f" and n > 5:
                x[RNG.random(n) < 0.2] = np.nan
                x[RNG.random(n) < 0.3] *= -1
            for y in (x, x.reshape(2, -1) if n % 2 == 0 else x[None]):
                t = torch.tensor(y)
                assert_same(unique(y), torch.unique(t, return_inverse=True, return_counts=True))
                assert_same(unique_consecutive(y),
                            torch.unique_consecutive(t, return_inverse=True, return_counts=True))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_slices(dtype: type, axis: int) -> None:
    for shape in ((9, 2, 2), (3, 12, 1), (1, 1, 6), (5, 4, 3)):
        x = RNG.integers(0, 2, shape).astype(dtype)
        t = torch.tensor(x)
        assert_same(unique_slices(x, axis), torch.unique(t, dim=axis, return_inverse=True, return_counts=True))
        assert_same(unique_consecutive(x, axis),
                    torch.unique_consecutive(t, dim=axis, return_inverse=True, return_counts=True))
