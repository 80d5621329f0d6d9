"""Memory that a backward pass holds: buffers of large gradients are reused, and what kernels saved is freed."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import flambeau as torch
from flambeau.backends.compiled.allocator import allocator


def peak_of(run):
    """Bytes in use at the peak of a call, above those before it."""
    memory = allocator()
    if memory is None:
        pytest.skip("no such memory on this system")
    run()
    gc.collect()
    memory.trim()
    before = memory.memory().used
    run()
    return memory.memory().peak - before


def test_gradients_of_a_weight_that_is_used_twice_are_held_twice_at_most():
    weight = torch.randn(4096, 512, requires_grad=True)
    rows, x = torch.randint(0, 4096, (64,)), torch.randn(8, 512)

    def run():
        weight.grad = None
        loss = torch.nn.functional.linear(x, weight).sum() + torch.nn.functional.embedding(rows, weight).sum()
        loss.backward()

    assert peak_of(run) < 2.5 * weight.nbytes
    expected = np.broadcast_to(x.numpy().sum(0), weight.shape).copy()
    np.add.at(expected, rows.numpy(), np.float32(1))
    np.testing.assert_allclose(weight.grad.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_a_gradient_that_others_refer_to_is_not_written_to():
    x, y = (torch.randn(1024, 512, requires_grad=True) for _ in range(2))
    given = torch.randn(1024, 512)
    kept = given.clone()
    (x + y + x).backward(given)
    assert torch.equal(given, kept)
    assert torch.equal(x.grad, kept + kept)
    assert torch.equal(y.grad, kept)
    seen = []
    x.grad = None
    z = x * 1
    z.register_hook(lambda g: seen.append(g))
    (z + x * 2).backward(given)
    assert torch.equal(seen[0], kept)
    assert torch.equal(x.grad, kept * 3)


@pytest.mark.parametrize("retain", [False, True])
def test_what_attention_saved_is_freed_with_the_graph(retain):
    q, k, v = (torch.randn(1, 4, 128, 16, requires_grad=True) for _ in range(3))
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    (out * 2).sum().backward(retain_graph=retain)
    node = out.grad_fn
    saved = node.consts[node.plan.saved_list]
    assert bool(saved) is retain
    if retain:
        first = q.grad.clone()
        (out * 2).sum().backward()
        torch.testing.assert_close(q.grad, 2 * first)
    else:
        with pytest.raises(RuntimeError, match="a second time"):
            (out * 2).sum().backward()
