"""Passes that are restricted to some inputs compute no other gradients of products and convolutions."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.engine.nodes.op_node import OpNode

F = torch.nn.functional

CASES = {
    "mm": (lambda x, w: x @ w, (4, 3), (3, 5)),
    "bmm": (lambda x, w: x @ w, (2, 4, 3), (2, 3, 5)),
    "linear": (lambda x, w: F.linear(x, w, torch.ones(5, requires_grad=True)), (4, 3), (5, 3)),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), (2, 3, 5, 5), (4, 3, 3, 3)),
    "layer_norm": (lambda x, w: F.layer_norm(x, (4,), w), (3, 4), (4,)),
    "cat": (lambda x, w: torch.cat([x, w, x]), (2, 3), (4, 3)),
    "embedding": (lambda x, w: F.embedding(torch.tensor([1, 0]), w) * x.sum(), (2,), (3, 2)),
    "index_put": (lambda x, w: x.index_put((torch.tensor([1, 0]),), w), (3, 2), (2, 2)),
    "attention": (lambda x, w: F.scaled_dot_product_attention(x, w, w), (1, 2, 4, 3), (1, 2, 4, 3)),
    "several results": (lambda x, w: torch.linalg.lstsq(x @ x.mT + torch.eye(3), w).solution, (3, 3), (3, 2)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("which", [0, 1])
def test_gradients_of_some_inputs_are_those_of_all(name, which):
    torch.manual_seed(0)
    function, *shapes = CASES[name]
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    out = function(*inputs)
    g = torch.randn_like(out)
    every = torch.autograd.grad(out, inputs, g, retain_graph=True)
    (one,) = torch.autograd.grad(out, inputs[which], g, retain_graph=True)
    assert torch.equal(one, every[which])
    (recorded,) = torch.autograd.grad(out, inputs[which], g, retain_graph=True, create_graph=True)
    assert torch.allclose(recorded, every[which], atol=1e-6)
    out.backward(g, inputs=[inputs[which]])
    assert torch.equal(inputs[which].grad, every[which])
    assert inputs[1 - which].grad is None


def test_other_gradients_are_not_computed(monkeypatch):
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, 4, requires_grad=True)
    out, asked, whole = (x @ w).sum(), [], OpNode.vjp

    def watched(node, cotangents, tensors, wanted=None):
        result = whole(node, cotangents, tensors, wanted)
        asked.append((node.name(), [each is not None for each in result]))
        return result
    monkeypatch.setattr(OpNode, "vjp", watched)
    torch.autograd.grad(out, x)
    assert ("MmBackward0", [True, False]) in asked


def test_hooks_and_captures_between_see_the_same():
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, 4, requires_grad=True)
    hidden = x @ w
    out = (hidden @ w.mT).sum()
    seen = []
    hidden.grad_fn.register_hook(lambda inputs, outputs: seen.append([each is not None for each in inputs]))
    of_x, of_hidden = torch.autograd.grad(out, [x, hidden], retain_graph=True)
    assert seen == [[True, False]]
    assert torch.equal(of_hidden, torch.full((2, 4), 3.))
    assert torch.equal(of_x, torch.full((2, 3), 12.))
    (of_w,) = torch.autograd.grad(out, w)
    assert torch.equal(of_w, torch.full((3, 4), 12.))
