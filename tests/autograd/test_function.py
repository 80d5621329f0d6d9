"""Custom Functions: contexts, several outputs, in-place, forward mode, errors."""

from __future__ import annotations

import importlib

import pytest

import flambeau as torch
from flambeau.autograd.function import once_differentiable


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g

    @staticmethod
    def jvp(ctx, t):
        return 2 * t


def test_forward_backward_and_the_names():
    x = torch.tensor([3.0], requires_grad=True)
    y = Square.apply(x)
    assert type(y.grad_fn).__name__ == "SquareBackward"
    assert y.grad_fn.name() == "SquareBackward"
    y.sum().backward()
    assert x.grad.tolist() == [6.0]


def test_double_backward():
    x = torch.tensor(3.0, requires_grad=True)
    first, = torch.autograd.grad(Square.apply(x) * x, x, create_graph=True)
    second, = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (27.0, 18.0)


def test_setup_context_and_saved_outputs():
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    x = torch.tensor(0.0, requires_grad=True)
    first, = torch.autograd.grad(Exp.apply(x), x, create_graph=True)
    second, = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (1.0, 1.0)


def test_several_outputs_other_arguments_and_missing_gradients():
    seen = []

    class Split(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, y):
            ctx.factor = factor
            return x * factor, y + 1

        @staticmethod
        def backward(ctx, gx, gy):
            seen.append((ctx.needs_input_grad, gy.tolist()))
            return gx * ctx.factor, None, gy

    x, y = torch.tensor([1.0], requires_grad=True), torch.tensor([2.0], requires_grad=True)
    a, _ = Split.apply(x, 3.0, y)
    a.sum().backward()
    assert seen == [((True, False, True), [0.0])]
    assert (x.grad.tolist(), y.grad.tolist()) == ([3.0], [0.0])


def test_unmaterialized_gradients_are_none():
    class Pair(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            assert a is None
            return b * 2

    x = torch.tensor(1.0, requires_grad=True)
    Pair.apply(x)[1].backward()
    assert x.grad.item() == 2.0


def test_mark_dirty_and_non_differentiable():
    class AddOne(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            flags = (x > 0).float()
            ctx.mark_non_differentiable(flags)
            return x, flags

        @staticmethod
        def backward(ctx, g, _):
            return g * 10

    x = torch.tensor([1.0], requires_grad=True)
    y = x * 1
    z, flags = AddOne.apply(y)
    assert z is y
    assert not flags.requires_grad
    assert z.grad_fn.name() == "AddOneBackward"
    z.sum().backward()
    assert x.grad.tolist() == [10.0]


def test_an_input_returned_unchanged():
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = torch.tensor([1.0], requires_grad=True)
    y = Same.apply(x)
    assert y is not x
    assert y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.tolist() == [7.0]


def test_saved_values_are_version_checked_and_freed():
    x = torch.tensor([1.0], requires_grad=True)
    y = x * 1
    z = Square.apply(y)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    z = Square.apply(x)
    z.sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        z.sum().backward()


def test_forward_mode_uses_jvp():
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        y = Square.apply(forward_ad.make_dual(torch.tensor(3.0), torch.tensor(5.0)))
        assert forward_ad.unpack_dual(y).tangent.item() == 10.0


def test_once_differentiable_raises_in_double_backward():
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = torch.tensor(3.0, requires_grad=True)
    assert torch.autograd.grad(Once.apply(x), x)[0].item() == 6.0
    first, = torch.autograd.grad(Once.apply(x) * x, x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.backward()


@pytest.mark.parametrize(("returned", "message"), [
    (lambda g: (g, g), "returned an incorrect number of gradients"),
    (lambda g: torch.ones(3), "returned an invalid gradient at index 0"),
])
def test_wrong_gradients_raise(returned, message):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return returned(g)

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=message):
        Wrong.apply(x).sum().backward()


def test_nothing_is_recorded_without_grad():
    with torch.no_grad():
        y = Square.apply(torch.tensor([1.0], requires_grad=True))
    assert y.grad_fn is None
    assert not y.requires_grad


def test_gradients_come_as_one_list_and_saved_tensors_are_read_once():
    class Product(torch.autograd.Function):
        boxed_grads_call = clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y, x + y

        @staticmethod
        def backward(ctx, grads):
            x, y = ctx.saved_tensors
            with pytest.raises(RuntimeError, match="saved_tensors can only be accessed once when"):
                ctx.saved_tensors
            a, b = grads
            grads.clear()
            return a * y + b, a * x + b

    x, y = torch.tensor([1.], requires_grad=True), torch.tensor([3.], requires_grad=True)
    a, b = Product.apply(x, y)
    (2 * a + b).sum().backward()
    assert (x.grad.item(), y.grad.item()) == (7, 3)
    with pytest.raises(RuntimeError, match="saved_tensors can only be accessed once when"):
        a.grad_fn.saved_tensors
    node = Product.apply(x, y)[0].grad_fn
    assert [g.item() for g in node.apply(torch.ones(1), torch.ones(1))] == [4, 2]


def test_legacy_names_of_contexts():
    with pytest.warns(FutureWarning, match="`mark_shared_storage` is deprecated"):
        torch.autograd.function.FunctionCtx().mark_shared_storage((1, 2))
    with pytest.raises(NotImplementedError):
        torch.autograd.function.NestedIOFunction.forward_extended(None)
    assert type(torch.autograd.Variable) is importlib.import_module("flambeau.autograd.variable").VariableMeta


def test_an_input_that_is_returned_keeps_its_class():
    import flambeau

    class Returned(flambeau.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    class Sub(flambeau.Tensor):
        pass

    x = flambeau.ones(2).requires_grad_().as_subclass(Sub)
    y = Returned.apply(x)
    assert type(y) is Sub
    assert y is not x
    assert y._is_view()
    assert str(y.grad_fn.name()) == "ReturnedBackward"
