"""Attention of one query by a kernel: values in double, layouts of caches, special values, growing texts."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends.compiled import attention_of_rows

attention = torch.nn.functional.scaled_dot_product_attention
pytestmark = pytest.mark.skipif(not codegen.available(), reason="no generated code")


def expected(query, key, value, scale):
    q, k, v = (x.astype(np.float64) for x in (query, key, value))
    scores = q @ k.swapaxes(-2, -1) * scale
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("heads", [(1, 1), (2, 3)])
@pytest.mark.parametrize("keys", [129, 130, 131, 132, 700])
@pytest.mark.parametrize("widths", [(64, 64), (33, 33), (80, 17), (16, 130), (20, 1)])
def test_values(heads, keys, widths):
    query, key, value = numbers(*heads, 1, widths[0]), numbers(*heads, keys, widths[0], seed=1), numbers(
        *heads, keys, widths[1], seed=2)
    found = attention_of_rows(query, key, value, 0.3)
    assert found is not None
    np.testing.assert_allclose(found, expected(query, key, value, 0.3), rtol=1e-5, atol=2e-6)


def test_layouts_of_caches():
    """Heads that were split from rows, and the beginning of a cache that is longer."""
    query = torch.from_numpy(numbers(2, 1, 4, 32)).transpose(1, 2)
    cache = torch.from_numpy(numbers(2, 4, 500, 64, seed=1))
    key, value = cache[:, :, :321, :32], cache[:, :, :321, 32:]
    found = attention(query, key, value)
    wanted = expected(query.numpy(), key.numpy(), value.numpy(), 32 ** -0.5)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=2e-6)
    rows = torch.from_numpy(numbers(2, 300, 4, 32, seed=3)).transpose(1, 2)
    np.testing.assert_allclose(attention(query, rows, rows).numpy(), expected(
        query.numpy(), rows.numpy(), rows.numpy(), 32 ** -0.5), rtol=1e-5, atol=2e-6)
    reversed_ = numbers(1, 2, 200, 32)[..., ::-1]
    assert attention_of_rows(numbers(1, 2, 1, 32), reversed_, reversed_, 1.0) is None


def test_growing_texts():
    query = torch.from_numpy(numbers(1, 4, 1, 64))
    cache = torch.from_numpy(numbers(1, 4, 90, 64, seed=1))
    for count in range(1, 90):
        found = attention(query, cache[:, :, :count], cache[:, :, :count])
        wanted = expected(query.numpy(), cache[:, :, :count].numpy(), cache[:, :, :count].numpy(), 0.125)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=2e-6)


def test_special_values():
    query, key, value = numbers(1, 1, 1, 64), numbers(1, 1, 100, 64, seed=1), numbers(1, 1, 100, 64, seed=2)
    key[0, 0, 7] = np.nan
    assert np.isnan(attention_of_rows(query, key, value, 1.0)).all()
    key[0, 0, 7] = 0
    key[0, 0, 7, 0] = -np.inf * np.sign(query[0, 0, 0, 0])  # a weight of 0
    kept = np.arange(100) != 7
    np.testing.assert_allclose(attention_of_rows(query, key, value, 1.0), expected(
        query, key[:, :, kept], value[:, :, kept], 1.0), rtol=1e-5, atol=2e-6)
    value[0, 0, 3, 5] = np.inf
    found = attention_of_rows(query, key, value, 1.0)
    assert np.isinf(found[0, 0, 0, 5])
    assert np.isfinite(found).sum() == 63
    value[0, 0, 3, 5] = 0
    large = attention_of_rows(query * 1e4, key[:, :, kept], value[:, :, kept], 1.0)
    assert not np.isnan(large).any()


def test_gradients_take_the_general_path():
    query = torch.from_numpy(numbers(1, 2, 1, 64)).requires_grad_()
    key = torch.from_numpy(numbers(1, 2, 100, 64, seed=1))
    attention(query, key, key).sum().backward()
    assert query.grad.isfinite().all()
