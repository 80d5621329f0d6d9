"""The gradient layout: the strides of a dense leaf, else contiguous; gradients are copies."""

from __future__ import annotations

import pytest

import flambeau
from tests.autograd.differential import same

LEAVES = {
    "row-major": lambda torch: torch.ones(2, 3),
    "transposed": lambda torch: torch.ones(3, 2).t(),
    "with gaps": lambda torch: torch.ones(4, 3)[::2],
    "expanded": lambda torch: torch.ones(1, 3).expand(2, 3),
    "number": lambda torch: torch.ones(()),
    "empty": lambda torch: torch.ones(0, 3),
    "channels last": lambda torch: torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last),
}
USES = {
    "sum": lambda x, y: x.sum(),
    "product": lambda x, y: (x * y).sum(),
    "copied": lambda x, y: (x.contiguous() * y).sum(),
    "transposed": lambda x, y: (x.mT * y.mT).sum() if x.ndim > 1 else x * y,
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("leaf", LEAVES)
def test_the_first_gradients_strides(leaf, use, create_graph):
    def program(torch):
        x = LEAVES[leaf](torch).requires_grad_()
        y = torch.full(x.shape, 2.0, requires_grad=True)
        USES[use](x, y).backward(create_graph=create_graph)
        first = x.grad.stride(), x.grad.detach()
        USES[use](x, y).backward()
        return first, x.grad.stride(), x.grad.detach()

    same(program)


@pytest.mark.parametrize("times", [1, 2])
def test_its_history_is_a_copy(times):
    def program(torch):
        x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        for _ in range(times):
            (x.exp() * y).sum().backward(create_graph=True)
        return x.grad.grad_fn

    assert "CopyBackwards" in same(program)


def test_the_root_cotangent_is_not_modified():
    def program(torch):
        x, g = torch.ones(2, requires_grad=True), torch.ones(2)
        x.backward(g)
        x.grad.add_(1)
        return g, x.grad

    same(program)


@pytest.mark.parametrize("hooked", [False, True])  # another leaf, for whose hooks the engine goes another way
def test_the_policy_can_be_disabled(hooked):
    torch = flambeau
    other = torch.ones(1, requires_grad=True)
    if hooked:
        other.register_hook(lambda g: None)
    for enforced, strides in [(True, (1, 3)), (False, (2, 1))]:
        x = torch.ones(2, 3).t().requires_grad_()
        with torch.autograd.enforce_grad_layout_policy(enforced):
            (x * torch.ones(3, 2)).sum().backward()
        assert x.grad.stride() == strides
