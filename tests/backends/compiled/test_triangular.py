"""Triangular systems by the kernel, compared with PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lead", [(), (3,), (2, 2)])
@pytest.mark.parametrize("sides", [1, 3, 7, 13, 40])
def test_solutions(dtype: str, lead: tuple[int, ...], sides: int) -> None:
    n = 36
    a = (RNG.standard_normal((*lead, n, n)) * 0.1 + np.eye(n) * 3).astype(dtype)
    for left in (True, False):
        b = RNG.standard_normal((*lead, n, sides) if left else (*lead, sides, n)).astype(dtype)
        for upper, unit, transposed in np.ndindex(2, 2, 2):
            found, wanted = (t.linalg.solve_triangular(
                t.from_numpy(a).mT if transposed else t.from_numpy(a), t.from_numpy(b), left=left, upper=bool(upper),
                unitriangular=bool(unit)) for t in (flambeau, torch))
            assert found.stride() == wanted.stride()
            scale = max(1.0, float(wanted.abs().max()))
            np.testing.assert_allclose(found.numpy() / scale, wanted.numpy() / scale,
                                       atol=2e-5 if dtype == "float32" else 1e-12)


def test_a_zero_on_the_diagonal_is_divided_by() -> None:
    a = np.tril(RNG.standard_normal((40, 40))).astype(np.float32)
    a[5, 5] = 0
    found, wanted = (t.linalg.solve_triangular(t.from_numpy(a), t.ones(40, 1), upper=False) for t in (flambeau, torch))
    np.testing.assert_allclose(found[:6].numpy(), wanted[:6].numpy(), rtol=1e-4)
    assert np.isinf(found[5].numpy()).all()


def test_gradients() -> None:
    a, b = np.eye(40) * 2 + np.tril(RNG.standard_normal((40, 40))) * 0.1, RNG.standard_normal((40, 1))
    gradients = []
    for t in (flambeau, torch):
        leaves = [t.from_numpy(x.copy()).requires_grad_() for x in (a, b)]
        t.linalg.solve_triangular(*leaves, upper=False).pow(2).sum().backward()
        gradients.append([x.grad.numpy() for x in leaves])
    for ours, theirs in zip(*gradients, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
