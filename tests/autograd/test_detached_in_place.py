"""`detach_`: backward raises an error for nodes that saved the tensor with its history, not for others."""

from __future__ import annotations

import pytest

import flambeau
from tests.autograd.differential import attempt, same

USES = {
    "saved": lambda x: x.sin(),
    "saved twice": lambda x: x * x,
    "saved as the result": lambda x: x.exp(),
    "not saved": lambda x: x + 1,
    "a view of it saved": lambda x: x.view(2).sin(),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("use", USES)
def test_backward_after_detaching(use, create_graph):
    def program(torch):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x.clone()
        z = USES[use](y)
        y.detach_()
        weights = torch.tensor([1.0, 3.0])
        found = attempt(lambda: torch.autograd.grad((z * weights).sum(), x, create_graph=create_graph))
        return y.requires_grad, y.grad_fn, y._version, found if isinstance(found, str) else found[0].detach()

    same(program)


def test_the_version_counter_continues():
    def program(torch):
        y = torch.ones(2, requires_grad=True).clone()
        y.add_(1)
        y.detach_()
        y.requires_grad_()
        z = y * y
        with torch.no_grad():
            y.add_(1)
        return y._version, attempt(lambda: z.sum().backward())

    said = same(program)
    assert said[0] == 2
    assert "is at version 2; expected version 1" in said[1]


def test_a_tensor_with_views_keeps_its_version_with_theirs():
    torch = flambeau
    y = torch.ones(2, requires_grad=True).clone()
    view = y[:1]
    y.detach_()
    with torch.no_grad():
        y.add_(1)
    assert view._version == y._version == 1


@pytest.mark.parametrize("how", ["detach_", "requires_grad_(False)"])
def test_requires_grad_false_leaves_get_no_gradient(how):
    def program(torch):
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        if how == "detach_":
            x.detach_()
        else:
            x.requires_grad_(False)
        y.sum().backward()
        return x.grad

    same(program)
