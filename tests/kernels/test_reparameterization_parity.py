"""Derivatives of gamma and Dirichlet samples by their concentrations, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.kernels.special import dirichlet_grad, standard_gamma_grad

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

N = 20000


def compared(ours: np.ndarray, theirs, rtol: float) -> np.ndarray:
    """The relative differences beyond `rtol`."""
    theirs = theirs.numpy()
    np.testing.assert_array_equal(np.isfinite(ours), np.isfinite(theirs))
    finite = np.isfinite(theirs)
    difference = np.abs(ours - theirs)[finite] / (np.abs(theirs[finite]) + 1e-30)
    return difference[difference > rtol]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma(dtype):
    numbers = np.random.default_rng(0)
    alpha = 10 ** numbers.uniform(-3, 3, N)
    for x in (numbers.gamma(alpha), alpha * 10 ** numbers.uniform(-0.5, 0.5, N), 10 ** numbers.uniform(-5, 2, N)):
        a, b = alpha.astype(dtype), np.maximum(x, 1e-37).astype(dtype)
        theirs = torch._standard_gamma_grad(torch.tensor(a), torch.tensor(b))
        assert compared(standard_gamma_grad(a, b), theirs, 0 if dtype == np.float32 else 1e-11).size == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dirichlet(dtype):
    """In float32 a logarithm of another C library may differ in the last digit, which a difference magnifies."""
    numbers = np.random.default_rng(0)
    alpha = 10 ** numbers.uniform(-3, 3, N)
    total = alpha + 10 ** numbers.uniform(-3, 3, N)
    for x in (numbers.beta(alpha, total - alpha), numbers.uniform(0, 1, N)):
        a, b, c = np.clip(x, 1e-37, 1 - 1e-7).astype(dtype), alpha.astype(dtype), total.astype(dtype)
        theirs = torch._dirichlet_grad(torch.tensor(a), torch.tensor(b), torch.tensor(c))
        if dtype == np.float32:
            beyond = compared(dirichlet_grad(a, b, c), theirs, 1e-6)
            assert beyond.size < N / 200
            assert beyond.size == 0 or beyond.max() < 1
        else:
            assert compared(dirichlet_grad(a, b, c), theirs, 1e-7).size == 0


def test_shapes_broadcast():
    x = np.full((2, 1), 0.25)
    assert dirichlet_grad(x, np.ones(3), np.full((), 2.5)).shape == (2, 3)
    assert dirichlet_grad(np.empty((0, 3)), np.ones(3), np.ones(3)).shape == (0, 3)
    assert standard_gamma_grad(np.ones((2, 1)), np.ones(3)).shape == (2, 3)
