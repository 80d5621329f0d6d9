"""Products of bfloat16, by AVX512-BF16 or widened: layouts, tails, biases, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as fb
from flambeau import codegen
from flambeau.backends.compiled.families import bfloat16_products
from flambeau.codegen.matmul import bfloat16

HAS_KERNEL = codegen.available() and bfloat16.is_available()


def _numbers(*shape, seed=0):
    return fb.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32)).bfloat16()


def _exact(x, y):
    return (x.double() @ y.double()).numpy()


@pytest.mark.parametrize(("m", "k", "n"), [(4, 4096, 5), (13, 33, 70), (24, 64, 32), (100, 65, 97)])
@pytest.mark.parametrize("left", ["rows", "columns"])
@pytest.mark.parametrize("right", ["rows", "columns", "every other"])
def test_layouts_and_tails(m, k, n, left, right):
    x = _numbers(m, k) if left == "rows" else _numbers(k, m).t()
    y = {"rows": lambda: _numbers(k, n, seed=1), "columns": lambda: _numbers(n, k, seed=1).t(),
         "every other": lambda: _numbers(k, 2 * n, seed=1)[:, ::2]}[right]()
    found = bfloat16_products.mm(x._array, y._array)
    assert (found is not None) == HAS_KERNEL
    expected = _exact(x, y)
    np.testing.assert_allclose((x @ y).double().numpy(), expected, rtol=2 ** -8, atol=1e-4 * k)
    if HAS_KERNEL:
        np.testing.assert_array_equal(found, (x @ y)._array)


def test_small_products_are_widened():
    assert bfloat16_products.mm(_numbers(4, 4)._array, _numbers(4, 4)._array) is None
    assert bfloat16_products.mm(_numbers(1, 2048)._array, _numbers(2048, 64)._array) is None
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
