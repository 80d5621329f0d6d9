"""Errors of custom Functions, with PyTorch's messages."""

from __future__ import annotations

import pytest

from tests.autograd.differential import function, same


def dirty(*which):
    def forward(ctx, x):
        ctx.mark_dirty(*(x if w is None else w for w in which))
        return x.mul_(2), x * 3

    return forward


def not_returned(ctx, x):
    ctx.mark_dirty(x)
    return x.clone()


def not_an_input(ctx, x):
    y = x.clone()
    ctx.mark_dirty(y)
    return y


def fixed_number(ctx, x):
    ctx.mark_non_differentiable(3)
    return x.clone()


def saved_number(ctx, x):
    ctx.save_for_backward(3)
    return x.clone()


FORWARDS = {"not returned": not_returned, "not an input": not_an_input, "dirty number": dirty(3),
            "dirty view, two outputs": dirty(None), "fixed number": fixed_number, "saved number": saved_number}


@pytest.mark.parametrize("name", FORWARDS)
def test_invalid_marks(name):
    def program(torch):
        x = torch.ones(3, requires_grad=True).clone()
        return function(torch, FORWARDS[name])(x[:2] if "view" in name else x)

    same(program)


def test_an_input_returned_as_it_is_is_not_saved_in_setup_context():
    def program(torch):
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        return function(torch, lambda x: x, setup_context=setup_context)(torch.ones(2, requires_grad=True))

    assert "returned as-is" in same(program)


BACKWARDS = {
    "number": lambda ctx, g: 3,
    "list": lambda ctx, g: [g, None],
    "too few": lambda ctx, g: g,
    "too many": lambda ctx, g: (g, None, g),
    "too many, but none": lambda ctx, g: (g, None, None),
    "for what is no tensor": lambda ctx, g: (g, 3),
    "another shape": lambda ctx, g: (g.new_ones(5), None),
    "a shape to sum over": lambda ctx, g: (g.expand(4, 2), None),
    "another dtype": lambda ctx, g: (g.double(), None),
}


@pytest.mark.parametrize("name", BACKWARDS)
def test_invalid_results_of_backward(name):
    def program(torch):
        x = torch.ones(2, requires_grad=True)
        return torch.autograd.grad(function(torch, lambda ctx, x, n: x * n, BACKWARDS[name])(x, 2).mul(2).sum(), x)

    same(program)


@pytest.mark.parametrize("parts", [{"vjp": lambda ctx, g: g}, {"backward": None}])
def test_backward_and_vjp_are_exclusive(parts):
    def program(torch):
        members = {"forward": lambda ctx, x: x * 2, "backward": lambda ctx, g: g, **parts}
        made = type("Made", (torch.autograd.Function,), {k: staticmethod(f) for k, f in members.items() if f})
        x = torch.ones(2, requires_grad=True)
        return torch.autograd.grad(made.apply(x).sum(), x)

    same(program)


def test_once_differentiable_errors_are_raised_late():
    def program(torch):
        backward = torch.autograd.function.once_differentiable(lambda ctx, g, h: (g * 2, None, h * 3))
        x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        outs = function(torch, lambda ctx, x, n, y: (x * n, y * n), backward)(x, 2, y)
        seed = torch.ones(2, requires_grad=True)
        gx, gy = torch.autograd.grad(outs, (x, y), (seed, seed), create_graph=True)
        return [gx, gx.grad_fn, gy, gy.grad_fn, (gx + gy).sum().backward()]

    assert "once_differentiable" in same(program)


def test_its_graph_shows_an_error_node():
    def program(torch):
        backward = torch.autograd.function.once_differentiable(lambda ctx, g: (g * 2, None))
        x = torch.ones(2, requires_grad=True)
        (function(torch, lambda ctx, x, n: x * n, backward)(x, 2) * x).sum().backward(create_graph=True)
        return x.grad.grad_fn

    assert "torch::autograd::Error(" in same(program)
