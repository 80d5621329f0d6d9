"""Outputs of custom Functions: new tensors, inputs, views of inputs, non-tensors, repeated outputs."""

from __future__ import annotations

import pytest

from tests.autograd.differential import attempt, function, same

FORWARDS = {
    "new": lambda ctx, x: x * 2,
    "as it is": lambda ctx, x: x,
    "as it is, and more": lambda ctx, x: (x, x * 2),
    "view": lambda ctx, x: x[:1],
    "two views": lambda ctx, x: (x[:1], x[1:]),
    "view of its own": lambda ctx, x: x.clone()[:1],
    "view, written to inside": lambda ctx, x: x.clone()[:2].add_(1),
    "twice": lambda ctx, x: (lambda y: (y, y))(x * 2),
    "as it is, twice": lambda ctx, x: (x, x),
    "no tensors between": lambda ctx, x: (3, x * 2, None, x * 3, "word"),
    "a list": lambda ctx, x: [x * 2],
    "whole numbers": lambda ctx, x: (x.long(), x * 2),
    "nothing": lambda ctx, x: None,
}


def fixed(made):
    def forward(ctx, x):
        y = made(x)
        ctx.mark_non_differentiable(y)
        return y, x * 2

    return forward


FORWARDS |= {"fixed new": fixed(lambda x: x * 2), "fixed input": fixed(lambda x: x),
             "fixed view": fixed(lambda x: x[:1])}


@pytest.mark.parametrize("recording", [True, False])
@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize("requires_grad", [True, False])
@pytest.mark.parametrize("name", FORWARDS)
def test_output_histories_equal_pytorchs(name, requires_grad, leaf, recording):
    def program(torch):
        x = torch.ones(3, requires_grad=requires_grad)
        x = x if leaf else x.clone()
        with torch.set_grad_enabled(recording):
            outs = function(torch, FORWARDS[name])(x)
        outs = outs if isinstance(outs, tuple) else (outs,)
        seen = []
        for out in outs:
            if isinstance(out, torch.Tensor):
                seen.append([out, out.grad_fn and out.grad_fn.name(), out.output_nr, out._is_view(), out._base is x,
                             out is x, out is outs[0], out._version])
                if out.dtype == torch.float32:
                    seen.append(attempt(lambda out=out: out.add_(torch.ones(1, requires_grad=True)).grad_fn.name()))
            else:
                seen.append(out)
        return seen

    same(program)


@pytest.mark.parametrize("view", [True, False])
@pytest.mark.parametrize("requires_grad", [True, False])
@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize("recording", [True, False])
def test_dirty_inputs(view, requires_grad, leaf, recording):
    def double(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    def program(torch):
        x = torch.ones(3, requires_grad=requires_grad)
        x = x if leaf else x.clone()
        x = x[:2] if view else x
        with torch.set_grad_enabled(recording):
            out = function(torch, double)(x)
        return out is x, out, out._version, out.grad_fn and out.grad_fn.name(), out._is_view()

    same(program)


def test_hooks_of_a_dirty_input_are_on_the_output():
    def program(torch):
        def double(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        seen = []
        x = torch.ones(2, requires_grad=True).clone()
        x.retain_grad()
        x.register_hook(lambda g: seen.append(g))
        (function(torch, double)(x) * 3).sum().backward()
        return seen, x.grad

    same(program)


def test_gradients_of_other_outputs_than_tensors_are_none():
    def program(torch):
        seen = []

        def backward(ctx, *gs):
            seen.append(gs)
            return gs[1] + gs[3]

        x = torch.ones(2, requires_grad=True)
        outs = function(torch, lambda ctx, x: (3, x * 2, None, x * 3, "word"), backward)(x)
        return torch.autograd.grad(outs[3].sum(), x), seen

    same(program)


@pytest.mark.parametrize("materialize", [True, False])
def test_missing_gradients_of_outputs_without_one(materialize):
    def program(torch):
        seen = []

        def forward(ctx, x):
            ctx._materialize_non_diff_grads = materialize
            y = x.clone()
            ctx.mark_non_differentiable(y)
            return x * 2, y, x.long()

        def backward(ctx, *gs):
            seen.append(gs)
            return gs[0]

        x = torch.ones(2, requires_grad=True)
        function(torch, forward, backward)(x)[0].sum().backward()
        return x.grad, seen

    same(program)


def test_named_and_default_arguments_reach_setup_context():
    def program(torch):
        seen = []

        def setup_context(ctx, inputs, output):
            seen.append(inputs[1])
            ctx.factor = inputs[1]

        scale = function(torch, lambda x, factor=3: x * factor, lambda ctx, g: (g * ctx.factor, None),
                         setup_context=setup_context)
        x = torch.ones(2, requires_grad=True)
        return [torch.autograd.grad(y.sum(), x) for y in (scale(x), scale(x, 4), scale(x, factor=5))], seen

    same(program)
