"""Batches of tiny matrices by one kernel over their elements: values, layouts, broadcast batches, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends.compiled.families import matmul, tiny_matmuls

pytestmark = pytest.mark.skipif(not codegen.available(), reason="kernels cannot be compiled")
SHAPES = [(2, 2, 2), (1, 3, 1), (3, 1, 2), (3, 3, 3), (4, 4, 1), (1, 4, 4), (2, 5, 1), (1, 13, 1)]


def _random(*shape, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def _expected(x, y):
    return (x.astype(np.float64)[..., :, :, None] * y.astype(np.float64)[..., None, :, :]).sum(-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k", "m"), SHAPES)
def test_every_layout(n, k, m, dtype):
    assert tiny_matmuls.is_tiny((1000, n, m), k)
    x, y = _random(1000, n, k, dtype=dtype), _random(1000, k, m, dtype=dtype)
    tolerance = 1e-6 if dtype == np.float32 else 1e-14
    for a in (x, np.ascontiguousarray(x.transpose(0, 2, 1)).transpose(0, 2, 1), x[::-1], x[:1]):
        for b in (y, np.ascontiguousarray(y.transpose(1, 2, 0)).transpose(2, 0, 1), y[::2].repeat(2, 0)):
            found = np.empty((1000, n, m), dtype)
            tiny_matmuls.TinyMatmul(found.shape, a, b).run((found, a, b))
            np.testing.assert_allclose(found, _expected(a, b), rtol=tolerance, atol=8 * tolerance)


def test_products_that_have_other_ways():
    assert not tiny_matmuls.is_tiny((255, 2, 2), 2)
    assert not tiny_matmuls.is_tiny((1000, 4, 4), 4)
    assert not tiny_matmuls.is_tiny((1000, 2, 0), 2)
    assert tiny_matmuls.is_tiny((16, 16, 2, 2), 2)


def test_bmm_and_its_gradients():
    torch.ones(64, 64).exp()
    x = torch.from_numpy(_random(2000, 2, 3)).requires_grad_()
    y = torch.from_numpy(_random(2000, 3, 2)).requires_grad_()
    g = torch.from_numpy(_random(2000, 2, 2))
    torch.bmm(x, y).backward(g)
    arrays = [t.detach().numpy() for t in (x, y)]
    np.testing.assert_allclose(torch.bmm(x, y).detach().numpy(), _expected(*arrays), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), _expected(g.numpy(), arrays[1].transpose(0, 2, 1)), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(y.grad.numpy(), _expected(arrays[0].transpose(0, 2, 1), g.numpy()), rtol=1e-5, atol=1e-5)
    plans = [each.plan for each in matmul.kernels().dispatches.values()]
    assert any(isinstance(each, tiny_matmuls.TinyMatmul) for each in plans)


def test_batches_of_dot_products_are_left_to_blas():
    x, y = torch.from_numpy(_random(1000, 1, 64)), torch.from_numpy(_random(1000, 64, 1))
    np.testing.assert_allclose(torch.bmm(x, y).numpy(), _expected(x.numpy(), y.numpy()), rtol=1e-4, atol=1e-4)
    key = x.numpy().shape, x.numpy().strides, y.numpy().shape, y.numpy().strides, 4
    assert matmul.kernels().dispatches[key].plan is None
