"""lgamma and digamma as instructions, compared with the array functions, whose fits they share, and with PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flambeau.kernels import special

from .driver import over_arrays
from .sweep import samples

EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, 2, -1, -2, -0.5, -1.5, 12, 11.999, 6, 2.5, 0.5, 10, 4, 1e300, -1e300,
         2.0**52 + 1, -(2.0**52) - 1, 1e-310, -1e-310, 2.0**-61, -(2.0**-61), *range(-20, 40)]


@pytest.mark.parametrize("fused", [None, False], ids=["host", "unfused"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_results_are_those_of_arrays(name: str, dtype: type, fused: bool | None) -> None:
    x, = samples(name, np.dtype(dtype), 10_000)
    with np.errstate(all="ignore"):
        x = np.concatenate([x, np.array(EDGES).astype(dtype)])
        wanted = getattr(special, name)(x)
    got = over_arrays(name, np.dtype(dtype), 8, fused)(x)
    np.testing.assert_allclose(got, wanted, rtol=1e-7 if dtype == np.float32 else 4e-15,
                               atol=1e-9 if dtype == np.float32 else 4e-15)
    zero = wanted == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(wanted[zero]))


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_special_values_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    x = np.array(EDGES)
    np.testing.assert_allclose(over_arrays(name, np.dtype(np.float64), 0)(x), getattr(torch, name)(
        torch.from_numpy(x)).numpy(), rtol=1e-13)


def test_large_tensors_and_compiled_functions_use_them() -> None:
    import flambeau

    x = flambeau.linspace(-3.3, 20, 10_000)
    one_by_one = flambeau.cat([flambeau.lgamma(part) for part in x.split(100)])
    flambeau.testing.assert_close(flambeau.lgamma(x), one_by_one, rtol=1e-6, atol=1e-6)

    def gradient(x: Any) -> Any:
        return flambeau.func.grad(lambda x: flambeau.lgamma(x).sum())(x)

    assert "is one program of 1 kernel" in str(flambeau._dynamo.explain(gradient)(x))
    flambeau.testing.assert_close(flambeau.compile(gradient)(x), flambeau.digamma(x))
