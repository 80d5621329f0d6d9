"""Connectionist temporal classification by the kernel: PyTorch's losses and gradients, and those of NumPy's loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau import codegen
from flambeau.backends.numpy import ctc

SIZES = [(10, 2, 5, 3), (50, 4, 20, 10), (60, 3, 8, 25), (1, 1, 3, 1), (5, 2, 4, 4)]


def arguments(sizes: tuple[int, ...], dtype: str, seed: int) -> tuple[np.ndarray, ...]:
    steps, samples, classes, labels = sizes
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((steps, samples, classes)).astype(dtype), rng.integers(1, classes, (samples, labels)),
            rng.integers(seed != 2, steps + 1, samples), rng.integers(0, labels + 1, samples))


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_losses_and_gradients(sizes: tuple[int, ...], dtype: str, zero_infinity: bool) -> None:
    torch = pytest.importorskip("torch")
    for seed in range(3):
        scores, *rest = arguments(sizes, dtype, seed)
        found: list[Any] = []
        for lib in (flambeau, torch):
            x = lib.tensor(scores).requires_grad_()
            loss = lib.nn.functional.ctc_loss(x.log_softmax(-1), *map(lib.tensor, rest), reduction="none",
                                              zero_infinity=zero_infinity)
            loss.sum().backward()
            found.append((loss.detach().numpy(), x.grad.numpy()))
        tolerance = 5e-5 if dtype == "float32" else 1e-11
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, tolerance, tolerance)


@pytest.mark.skipif(not codegen.available(), reason="kernels are not compiled")
@pytest.mark.parametrize("sizes", SIZES)
def test_paths_by_loops(sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    scores, targets, steps, lengths = arguments(sizes, "float64", 0)
    found = []
    for by_kernel in (True, False):
        if by_kernel:
            flambeau.ones(3000).exp()  # loads kernels
        else:
            monkeypatch.setattr(ctc, "label_paths", lambda *_: None)
        saved: list[Any] = []
        with np.errstate(all="ignore"):
            loss = ctc._ctc_loss(scores, targets, steps, lengths, 0, saved)
            g = np.ones_like(loss)
            found.append((loss, ctc._ctc_loss_backward(g, scores, targets, steps, lengths, 0, True, saved)))
    for x, y in zip(*found, strict=True):
        np.testing.assert_allclose(x, y, 1e-11, 1e-11)
