"""Unique floats with and without equal elements, zeros of both signs and NaNs, compared with PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["distinct", "rounded", "special"])
def test_unique(dtype, kind):
    rng = np.random.default_rng(0)
    for n in range(40):
        special = rng.choice([0.0, -0.0, np.nan, np.inf, 1.0], n)
        found = {"distinct": rng.standard_normal(n), "rounded": rng.standard_normal(n).round(), "special": special}
        x = found[kind].astype(dtype)
        ours, theirs = (t.unique(t.from_numpy(x), return_inverse=True, return_counts=True) for t in (flambeau, torch))
        for a, b in zip(ours, theirs, strict=True):
            assert tuple(a.shape) == tuple(b.shape)
            assert a.numpy().tobytes() == b.numpy().tobytes()


def test_failed_writes_change_nothing():
    """PyTorch writes up to the index that is out of bounds."""
    t = flambeau
    x = t.arange(6).view(2, 3)
    for key, value in ((t.tensor([0, 5]), 1), ((t.tensor([0, 1]), t.tensor([0, 3])), 1), (
            t.tensor([0, 1]), t.tensor([1, 2]))):
        with pytest.raises((IndexError, RuntimeError)):
            x[key] = value
        assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
