"""Function transforms composed in all orders give the analytical derivatives."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

F64 = torch.float64


def forward(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: jvp(f, (x,), (torch.ones_like(x),))[1]


def backward(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: vjp(f, x)[1](torch.ones_like(x))[0]


def linearized(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: linearize(f, x)[1](torch.ones_like(x))


def batched(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: vmap(f)(torch.stack([x, x + 1]))[0]


DERIVATIVES = {"grad": grad, "jvp": forward, "vjp": backward, "jacrev": jacrev, "jacfwd": jacfwd,
               "linearize": linearized}


@pytest.mark.parametrize("order", list(itertools.product(DERIVATIVES, repeat=3)), ids="-".join)
def test_third_derivatives_in_every_order(order: tuple[str, ...]) -> None:
    f: Callable[..., Any] = lambda x: torch.sin(x ** 3)
    for name in order:
        f = DERIVATIVES[name](f)
    x = torch.tensor(0.7, dtype=F64)
    x3 = x ** 3
    expected = 6 * x3.cos() - 54 * x3 * x3.sin() - 27 * x3 ** 2 * x3.cos()
    torch.testing.assert_close(f(x), expected)
    torch.testing.assert_close(vmap(f)(torch.stack([x, x]))[1], expected)


@pytest.mark.parametrize("outer", DERIVATIVES)
@pytest.mark.parametrize("inner", DERIVATIVES)
def test_levels_are_not_confused(outer: str, inner: str) -> None:
    # d/dx (x * d/dy (x + y)) = 1: the inner derivative must not see the outer perturbation of x
    def f(x: Any) -> Any:
        return x * DERIVATIVES[inner](lambda y: x + y)(torch.ones_like(x))

    assert DERIVATIVES[outer](f)(torch.tensor(3., dtype=F64)).item() == 1.0


@pytest.mark.parametrize("outer", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("inner", ["jacrev", "jacfwd"])
def test_hessians(outer: str, inner: str) -> None:
    a = torch.tensor([[2., 1., 0.], [1., 3., -1.], [0., -1., 1.]], dtype=F64)

    def f(x: Any) -> Any:
        return 0.5 * x @ a @ x + torch.logsumexp(x, 0)

    x = torch.tensor([0.3, -0.2, 0.9], dtype=F64)
    p = torch.softmax(x, 0)
    expected = a + torch.diag(p) - torch.outer(p, p)
    torch.testing.assert_close(DERIVATIVES[outer](DERIVATIVES[inner](f))(x), expected)
    torch.testing.assert_close(hessian(f)(x), expected)
    torch.testing.assert_close(vmap(DERIVATIVES[outer](DERIVATIVES[inner](f)))(torch.stack([x, x]))[1], expected)


def test_a_weight_that_is_not_batched_has_a_gradient_for_each_element() -> None:
    w, xs = torch.randn(4, 3, dtype=F64), torch.randn(5, 4, dtype=F64)

    def loss(w: Any, x: Any) -> Any:
        return torch.tanh(x @ w).square().sum()

    found = vmap(grad(loss), in_dims=(None, 0))(w, xs)
    torch.testing.assert_close(found, torch.stack([grad(loss)(w, x) for x in xs]))
    torch.testing.assert_close(grad(lambda w: vmap(loss, in_dims=(None, 0))(w, xs).sum())(w), found.sum(0))


def test_gradients_of_gradients_of_each_element() -> None:
    w, xs = torch.randn(3, dtype=F64), torch.randn(5, 3, dtype=F64)

    def inner(w: Any, x: Any) -> Any:
        return (w * x).sin().sum()

    def adapted(w: Any, x: Any) -> Any:
        """A loss after one step of gradient descent: its gradient needs second derivatives."""
        return inner(w - 0.1 * grad(inner)(w, x), x)

    found = vmap(grad(adapted), in_dims=(None, 0))(w, xs)
    torch.testing.assert_close(found, torch.stack([grad(adapted)(w, x) for x in xs]))


def test_transforms_in_a_graph_of_autograd() -> None:
    x = torch.tensor([0.5, 1.5], dtype=F64, requires_grad=True)
    y = grad(lambda v: (v ** 3).sum())(x)
    assert y.requires_grad
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], 6 * x.detach())
    captured = torch.tensor(2., dtype=F64, requires_grad=True)
    g = grad(lambda v: (captured ** 2 * v).sum())(torch.ones(2, dtype=F64))
    torch.testing.assert_close(torch.autograd.grad(g.sum(), captured)[0], torch.tensor(8., dtype=F64))


def test_no_grad_outside_leaves_the_inner_derivative_and_no_history() -> None:
    x = torch.tensor(2., dtype=F64, requires_grad=True)
    with torch.no_grad():
        y = grad(lambda v: v ** 2)(x)
    assert y.item() == 4.0
    assert not y.requires_grad


def test_no_grad_inside_makes_constants() -> None:
    def f(x: Any) -> Any:
        with torch.no_grad():
            c = x ** 2
        return x * c

    x = torch.tensor(2., dtype=F64)
    assert grad(f)(x).item() == 4.0


def test_batches_of_cotangents() -> None:
    x = torch.randn(3, dtype=F64, requires_grad=True)
    y = (x ** 2).cumsum(0)
    found, = torch.autograd.grad(y, x, torch.eye(3, dtype=F64), is_grads_batched=True)
    torch.testing.assert_close(found, torch.tril(torch.ones(3, 3, dtype=F64)) * 2 * x.detach())


def test_linearize_runs_the_function_once() -> None:
    runs = []

    def f(x: Any) -> Any:
        runs.append(1)
        return (x * x).sum()

    _, push = linearize(f, torch.ones(3))
    push(torch.ones(3))
    assert push(torch.tensor([1., 2., 3.])).item() == 12.0
    assert len(runs) == 1


def test_tangents_of_writes_reach_views_and_bases() -> None:
    def f(x: Any, y: Any) -> Any:
        x = x.clone()
        row = x[0]
        x.mul_(y)
        return row

    x, y, t = torch.ones(2, 3), torch.tensor(3.), torch.tensor(1.)
    value, tangent = jvp(lambda y: f(x, y), (y,), (t,))
    assert value.tolist() == [3., 3., 3.]
    assert tangent.tolist() == [1., 1., 1.]


def test_a_captured_tensor_may_not_be_written_to() -> None:
    captured = torch.zeros(3)
    for derivative in (grad, jacrev):
        with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
            derivative(lambda x: captured.copy_(x).sum())(torch.ones(3))
    assert not captured.any()
    assert not captured.requires_grad


def test_an_argument_may_be_written_to_and_keeps_no_history() -> None:
    buffer = torch.zeros(3)
    found = jacrev(lambda x, y: y.copy_(x), argnums=0)(torch.ones(3), buffer)
    assert found.tolist() == torch.eye(3).tolist()
    assert buffer.tolist() == [1., 1., 1.]
    assert not buffer.requires_grad


@pytest.mark.parametrize("call", ["requires_grad_", "retain_grad"])
def test_calls_that_are_invalid_inside_transforms_raise(call: str) -> None:
    with pytest.raises(RuntimeError, match="inside of a function being transformed by a functorch transform"):
        grad(lambda x: getattr(x.clone(), call)().sum())(torch.ones(2))
    with pytest.raises(RuntimeError, match="called inside a functorch transform"):
        grad(lambda x: x.sum().backward())(torch.ones(2))
    torch.ones(2, requires_grad=True).sum().backward()  # and outside all is as before


def test_pulled_back_function_takes_the_graphs_options_by_position() -> None:
    _, pull_back = torch.func.vjp(torch.sin, torch.zeros(2))
    assert pull_back(torch.ones(2), True, False)[0].tolist() == [1.0, 1.0]


@pytest.fixture
def make_fx() -> Any:
    from flambeau.functorch import make_fx

    yield make_fx
    gc.collect()  # the metadata of graphs are meta tensors, with which operators leave the fast paths


def test_transformed_functions_are_traced_by_functorchs_make_fx(make_fx: Any) -> None:
    traced = make_fx(torch.vmap(torch.sin))(torch.ones(5, 3))
    assert [node.name for node in traced.graph.nodes] == ["arg0_1", "sin", "output"]


@pytest.mark.parametrize(("argnums", "text"), [
    ((0.0,), "argnum must be int, got: <class 'float'>"), (5, "Got argnum=5, but only 2 positional inputs"),
    ((0, -2), "argnums elements must be unique, got (0, 0)"), ((), "argnums must be non-empty")])
def test_arguments_are_selected_by_number(argnums: Any, text: str) -> None:
    from flambeau.compiler.functorch.eager_transforms import _slice_argnums

    assert _slice_argnums((1, 2), -1) == (2,)
    with pytest.raises(RuntimeError) as raised:
        _slice_argnums((1, 2), argnums)
    assert str(raised.value) == text


def _writes(x: Any) -> Any:
    y = torch.zeros(2, 2)
    z = y.view(4)
    z.add_(x)
    z[0].mul_(2)
    x.unbind(0)[1].add_(1)
    return y, x.view(2, 2)


def test_functionalized_traces_have_no_writes_but_those_of_inputs(make_fx: Any) -> None:
    for copies, suffix in (("mutations", ""), ("mutations_and_views", "_copy")):
        traced = make_fx(torch.func.functionalize(_writes, remove=copies))(torch.arange(4.0))
        names = [node.target._opname for node in traced.graph.nodes if hasattr(node.target, "_opname")]
        assert [name for name in names if name.endswith("_")] == ["copy_"]
        assert {"select_scatter", f"view{suffix}", f"unbind{suffix}"} <= set(names)
        x, expected_x = torch.arange(1.0, 5.0), torch.arange(1.0, 5.0)
        expected = _writes(expected_x)
        for found, value in zip((*traced(x), x), (*expected, expected_x), strict=True):
            assert found.equal(value)


@pytest.mark.parametrize("view", [
    lambda x: x.t(), lambda x: x.transpose(0, 1)[1], lambda x: x.permute(1, 0)[0:1], lambda x: x.diagonal(),
    lambda x: x.unsqueeze(0).squeeze(0), lambda x: x.split(1, 1)[1], lambda x: x.detach()[0]])
def test_writes_to_views_are_carried_back_to_the_whole(view: Any, make_fx: Any) -> None:
    def function(x: Any) -> Any:
        y = x.clone()
        view(y).mul_(3)
        return y

    x = torch.arange(4.0).reshape(2, 2)
    assert make_fx(torch.func.functionalize(function))(x)(x + 1).equal(function(x + 1))
