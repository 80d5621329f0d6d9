"""Forward mode of custom Functions: arguments and results of `jvp`."""

from __future__ import annotations

import pytest

from tests.autograd.differential import function, same


def dirty(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(2)


def fixed(ctx, x):
    y = x.clone()
    ctx.mark_non_differentiable(y)
    return x.clone(), y


NEW = lambda ctx, x: x.clone()
CASES = {
    "new": (NEW, lambda ctx, t: t * 2),
    "the tangent itself": (NEW, lambda ctx, t: t),
    "too many": (NEW, lambda ctx, t: (t, t)),
    "too few": (lambda ctx, x: (x.clone(), x.clone()), lambda ctx, t: t),
    "a number": (NEW, lambda ctx, t: 3),
    "a list": (NEW, lambda ctx, t: [t]),
    "another shape": (NEW, lambda ctx, t: t.sum()),
    "no tensor between": (lambda ctx, x: (x.clone(), "word", x * 2), lambda ctx, t: (t, None, t * 2)),
    "input as it is, view": (lambda ctx, x: x, lambda ctx, t: t.view_as(t)),
    "input as it is, itself": (lambda ctx, x: x, lambda ctx, t: t),
    "input as it is, new": (lambda ctx, x: x, lambda ctx, t: t * 2),
    "view": (lambda ctx, x: x[:1], lambda ctx, t: t[:1]),
    "view, copied": (lambda ctx, x: x[:1], lambda ctx, t: t[:1].clone()),
    "view of a copy": (lambda ctx, x: x[:1], lambda ctx, t: t.clone()[:1]),
    "in place": (dirty, lambda ctx, t: t.mul_(2)),
    "in place, new": (dirty, lambda ctx, t: t * 2),
    "in place, untouched": (dirty, lambda ctx, t: t),
    "fixed": (fixed, lambda ctx, t: (t, None)),
    "fixed, with a tangent": (fixed, lambda ctx, t: (t, t)),
    "whole numbers, with a tangent": (lambda ctx, x: (x.clone(), x.long()), lambda ctx, t: (t, t)),
    "nothing": (NEW, None),
}


@pytest.mark.parametrize("of_a_view", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_return_values_of_jvp(name, of_a_view):
    forward, jvp = CASES[name]

    def program(torch):
        forward_ad = torch.autograd.forward_ad
        with forward_ad.dual_level():
            x = forward_ad.make_dual(torch.ones(2), torch.full((2,), 2.0))
            x = x.view_as(x) if of_a_view else x
            outs = function(torch, forward, **({"jvp": jvp} if jvp else {}))(x)
            outs = outs if isinstance(outs, tuple) else (outs,)
            return [forward_ad.unpack_dual(out) if isinstance(out, torch.Tensor) else out for out in outs], outs[0] is x

    same(program)


@pytest.mark.parametrize("materialize", [True, False])
def test_arguments_of_jvp(materialize):
    def program(torch):
        forward_ad = torch.autograd.forward_ad
        seen = []

        def forward(ctx, x, n, y, whole):
            ctx.set_materialize_grads(materialize)
            ctx.save_for_backward(x)
            ctx.save_for_forward(y)
            return x * n * y

        def jvp(ctx, *tangents):
            seen.append((tangents, ctx.saved_tensors, ctx.needs_input_grad))
            return tangents[0] * 3

        with forward_ad.dual_level():
            x = forward_ad.make_dual(torch.ones(2), torch.full((2,), 2.0))
            out = function(torch, forward, jvp=jvp)(x, 3, torch.ones(2, dtype=torch.float64), torch.tensor(1))
            return forward_ad.unpack_dual(out).tangent, seen

    same(program)


def test_jvp_has_no_tensors_saved_for_backward_only():
    def program(torch):
        forward_ad = torch.autograd.forward_ad
        seen = []

        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        def jvp(ctx, t):
            seen.append(len(ctx.saved_tensors))
            return t

        def backward(ctx, g):
            seen.append(len(ctx.saved_tensors))
            return g

        with forward_ad.dual_level():
            x = torch.ones(2, requires_grad=True)
            out = function(torch, forward, backward, jvp=jvp)(forward_ad.make_dual(x, torch.ones(2)))
            out.sum().backward()
        return seen, x.grad

    same(program)


def test_a_tensor_written_to_keeps_its_tangent_object():
    def program(torch):
        forward_ad = torch.autograd.forward_ad
        with forward_ad.dual_level():
            t = torch.ones(2)
            x = forward_ad.make_dual(torch.ones(2), t)
            out = function(torch, dirty, jvp=lambda ctx, t: t.mul_(2))(x)
            return out is x, forward_ad.unpack_dual(out).tangent is t, t, t._version, x._version

    same(program)


def test_a_saved_output_has_its_tangents_in_backward():
    def program(t):
        class Exp(t.autograd.Function):
            generate_vmap_rule = True

            @staticmethod
            def forward(x):
                return x.exp()

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(output)
                ctx.save_for_forward(output)

            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0]

            @staticmethod
            def jvp(ctx, tangent):
                return tangent * ctx.saved_tensors[0]

        f = lambda x: Exp.apply(x).sum()
        x = t.tensor([0.5, 1.0])
        return t.func.jvp(t.func.grad(f), (x,), (x,)), t.func.hessian(f)(x)

    same(program)
