"""Attention by blocks of queries: equal to attention at once, for causal and added masks and other numbers of keys."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as fb
from flambeau.ir.decompositions import attention_blocks

attend = fb.nn.functional.scaled_dot_product_attention


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 64 queries, and a list of the shapes of queries that were attended to by blocks."""
    shapes = []
    for name, value in {"MIN_WEIGHTS": 1 << 10, "MIN_CAUSAL": 1 << 10, "BLOCK_WEIGHTS": 1}.items():
        monkeypatch.setattr(attention_blocks, name, value)
    whole = attention_blocks.attention_in_blocks
    monkeypatch.setattr(attention_blocks, "attention_in_blocks",
                        lambda *args: (shapes.append(args[1].shape), whole(*args))[1])
    return shapes


def _reference(q, k, v, mask):
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-2, -1) / np.sqrt(q.shape[-1]) + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize(("queries", "keys"), [(200, 200), (200, 130), (150, 330)])
@pytest.mark.parametrize("kind", ["plain", "causal", "added", "one row"])
def test_blocks_are_attention(queries, keys, kind, small_blocks):
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((2, 2, n, 16)).astype(np.float32) for n in (queries, keys, keys))
    mask = {"plain": np.zeros(()), "causal": np.where(np.tri(queries, keys, dtype=bool), 0, -np.inf),
            "added": random.standard_normal((2, 1, queries, keys)), "one row": random.standard_normal((1, keys))}[kind]
    given = fb.tensor(mask.astype(np.float32)) if kind in ("added", "one row") else None
    found = attend(*map(fb.tensor, (q, k, v)), given, is_causal=kind == "causal")
    np.testing.assert_allclose(found.numpy(), _reference(q, k, v, mask), rtol=1e-4, atol=1e-5)
    assert small_blocks == [(2, 2, queries, 16)]


def test_weights_are_kept_for_gradients(small_blocks):
    q, k, v = (fb.randn(1, 2, 200, 8, requires_grad=True) for _ in range(3))
    attend(q, k, v, is_causal=True).sum().backward()
    assert q.grad is not None
    assert not small_blocks
    with fb.no_grad():
        attend(q, k, v, is_causal=True)
    assert len(small_blocks) == 1
