"""Products of bfloat16, by AMX, AVX512-BF16 or widened: layouts, tails, biases, batches, gradients."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import flambeau as fb
from flambeau import codegen
from flambeau.backends.compiled.families import bfloat16_products
from flambeau.backends.compiled.launching import PlanCache
from flambeau.codegen.matmul import bfloat16, tiles

HAS_KERNEL = codegen.available() and bfloat16.is_available()
HAS_TILES = codegen.available() and tiles.is_available()


@pytest.fixture
def without_tiles(monkeypatch):
    """AVX512-BF16 also where there is AMX."""
    monkeypatch.setattr(bfloat16_products, "has_tiles", lambda: False)
    monkeypatch.setattr(bfloat16_products, "_plans", PlanCache())


def _numbers(*shape, seed=0):
    return fb.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32)).bfloat16()


def _exact(x, y):
    return (x.double() @ y.double()).numpy()


LAYOUTS = [("rows", "rows"), ("rows", "columns"), ("columns", "rows"), ("columns", "columns"), ("rows", "every other")]


def _matrices(m, k, n, left, right, batch=()):
    x = _numbers(*batch, m, k) if left == "rows" else _numbers(*batch, k, m).mT
    y = {"rows": lambda: _numbers(*batch, k, n, seed=1), "columns": lambda: _numbers(*batch, n, k, seed=1).mT,
         "every other": lambda: _numbers(*batch, k, 2 * n, seed=1)[..., ::2]}[right]()
    return x, y


def _check_layouts_and_tails():
    for m, k, n in [(4, 4096, 5), (13, 33, 70), (24, 64, 32), (100, 65, 97)]:
        for left, right in LAYOUTS:
            x, y = _matrices(m, k, n, left, right)
            found = bfloat16_products.mm(x._array, y._array)
            assert (found is not None) == HAS_KERNEL
            np.testing.assert_allclose((x @ y).double().numpy(), _exact(x, y), rtol=2 ** -8, atol=1e-4 * k)
            if HAS_KERNEL:
                np.testing.assert_array_equal(found, (x @ y)._array)


def test_layouts_and_tails():
    _check_layouts_and_tails()


def test_layouts_and_tails_without_tiles(without_tiles):
    _check_layouts_and_tails()


@pytest.mark.parametrize(("m", "k", "n"), [(1, 512, 70), (70, 512, 1), (40, 33, 49), (100, 1, 200), (33, 64, 16)])
def test_batches_and_single_lines(m, k, n):
    for left, right in LAYOUTS:
        x, y = _matrices(m, k, n, left, right, (3,))
        found = bfloat16_products.bmm(x._array, y._array)
        assert (found is not None) == HAS_TILES
        np.testing.assert_allclose(fb.bmm(x, y).double().numpy(), _exact(x, y), rtol=2 ** -8, atol=1e-4 * k)
        for one, a, b in zip(fb.bmm(x, y), x, y, strict=True):
            np.testing.assert_array_equal(one._array, (a @ b)._array)


def test_zeros_beyond_k_and_other_lines_do_not_meet_values_that_are_not_finite():
    x, y = _numbers(20, 40), _numbers(40, 20, seed=1)
    expected, close = (x @ y).float(), partial(np.testing.assert_allclose, rtol=2 ** -7, atol=1e-5)
    wide = fb.full((40, 72), float("nan")).bfloat16()
    wide[:20, :40] = x
    close((wide[:20, :40] @ y).float().numpy(), expected.numpy())
    close((y.t() @ wide[:20, :40].t()).float().numpy(), expected.t().numpy())
    x[3, 39] = float("inf")
    found = (x @ y).float()
    assert not found[3].isfinite().any()
    for rows in (slice(3), slice(4, None)):
        close(found[rows].numpy(), expected[rows].numpy())


def test_small_products_are_widened():
    assert bfloat16_products.mm(_numbers(4, 4)._array, _numbers(4, 4)._array) is None
    few = bfloat16_products.mm(_numbers(1, 2048)._array, _numbers(2048, 64)._array)
    assert (few is not None) == HAS_TILES
    assert bfloat16_products.mm(_numbers(64, 64)._array, _numbers(64, 64).float()._array) is None


@pytest.mark.parity
@pytest.mark.parametrize("bias", [True, False])
def test_linear_and_its_gradients_are_pytorchs(bias):
    torch = pytest.importorskip("torch")
    x, w, b, g = (np.random.default_rng(i).standard_normal(s).astype(np.float32)
                  for i, s in enumerate([(2, 48, 80), (96, 80), (96,), (2, 48, 96)]))
    results = []
    for library in (torch, fb):
        inputs = [library.tensor(a).bfloat16().requires_grad_() for a in ((x, w, b) if bias else (x, w))]
        out = library.nn.functional.linear(*inputs)
        gradients = library.autograd.grad(out, inputs, library.tensor(g).bfloat16())
        assert all(each.dtype == library.bfloat16 for each in gradients)
        results.append([each.detach().float().numpy() for each in (out, *gradients)])
    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=2 ** -7, atol=2 ** -6)
        assert (found == expected).mean() > 0.99


def test_second_derivatives_and_factors():
    x, y = _numbers(32, 32).requires_grad_(), _numbers(32, 32, seed=1).requires_grad_()
    [first] = fb.autograd.grad((x @ y).sum(), x, create_graph=True)
    [second] = fb.autograd.grad(first.sum(), y)
    np.testing.assert_array_equal(second.float().numpy(), 32 * np.ones((32, 32)))
    bias = _numbers(32, seed=2)
    [scaled] = fb.autograd.grad(fb.addmm(bias, x, y, alpha=2).sum(), x)
    np.testing.assert_allclose(scaled.float().numpy(), 2 * first.detach().float().numpy(), rtol=2 ** -6)
    narrow = fb.autograd.grad((x @ y.detach())[:0].sum(), x)[0]
    assert not narrow.any()
