"""Reflection and replication padding on arrays against `np.pad`, and their transposes."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau.backends.numpy.padding import _border_pad, _border_pad_backward, _widths


def padded(x, pad, mode):
    widths, cut = _widths(pad, x.shape)
    full = np.pad(x, widths, mode) if x.size else np.zeros([n + sum(w) for n, w in zip(x.shape, widths, strict=True)],
                                                           x.dtype)
    return full[cut]


@pytest.mark.parametrize("mode", ["edge", "reflect"])
@pytest.mark.parametrize("shape", [(2, 5), (1, 2, 4), (2, 3, 4, 5), (3, 2, 2, 2), (2, 1, 3), (2, 0, 3)])
def test_any_widths(shape, mode):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 50, shape)
    for dims in range(1, min(3, len(shape)) + 1):
        for _ in range(30):
            pad = tuple(int(v) for v in rng.integers(-2, 4, 2 * dims))
            try:
                expected = padded(x, pad, mode)
            except ValueError:  # no element to reflect
                continue
            found = _border_pad(x, pad, mode)
            assert found.flags.c_contiguous
            np.testing.assert_array_equal(found, expected, str(pad))
            if not x.size:
                continue
            g = rng.integers(0, 50, found.shape)
            whole = np.zeros_like(x)
            np.add.at(whole.reshape(-1), padded(np.arange(x.size).reshape(shape), pad, mode).reshape(-1), g.reshape(-1))
            back = _border_pad_backward(g, shape, pad, mode)
            assert back.flags.c_contiguous
            np.testing.assert_array_equal(back, whole, str(pad))


@pytest.mark.parametrize("mode", ["replicate", "reflect"])
def test_large_images(mode):
    x = torch.arange(2 * 3 * 200 * 180.0).view(2, 3, 200, 180).requires_grad_()
    y = torch.nn.functional.pad(x, (3, 0, 2, 5), mode=mode)
    expected = np.pad(x.detach().numpy(), ((0, 0), (0, 0), (2, 5), (3, 0)), "edge" if mode == "replicate" else mode)
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    g = torch.randn(y.shape)
    y.backward(g)
    assert (x.grad * x).sum().item() == pytest.approx((g * y).sum().item(), rel=1e-3)
