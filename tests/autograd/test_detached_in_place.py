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


MADE = {
    "tanh": lambda torch, x: x.tanh(),
    "exp_": lambda torch, x: x.clone().exp_(),
    "max": lambda torch, x: x.reshape(1, 2).max(0)[0],
    "a Function's": lambda torch, x: exponential(torch).apply(x),
    "one with a view": lambda torch, x: keep(y := x.tanh(), y.view(2)),
}


def keep(y, view):
    y.kept = view
    return y


def exponential(torch):
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    return Exp


@pytest.mark.parametrize("then", ["sum", "times itself", "times itself, written to", "by a Function", "written to"])
@pytest.mark.parametrize("made", MADE)
def test_backward_after_detaching_what_its_node_saved(made, then):
    def program(torch):
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, g):
                return g * 2 * ctx.saved_tensors[0]

        x = torch.tensor([0.5, 1.0], requires_grad=True)
        y = MADE[made](torch, x)
        z = y * y if "itself" in then else Square.apply(y) if "Function" in then else y.sum()
        y.detach_()
        if "written" in then:
            y.mul_(2)
        saved = z.grad_fn._saved_self.requires_grad if then == "times itself" else None
        return saved, y._version, y.requires_grad, attempt(lambda: torch.autograd.grad(z.sum(), x))

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
