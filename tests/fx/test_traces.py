"""Traces of `make_fx` do for other inputs what the function does: shapes that are changed in place, subclasses."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.fx.experimental.proxy_tensor import make_fx
from flambeau.testing._internal.logging_tensor import LoggingTensor
from flambeau.testing._internal.two_tensor import TwoTensor
from flambeau.utils._python_dispatch import TorchDispatchMode


@pytest.mark.parametrize("change", [
    lambda x: x.unsqueeze_(0), lambda x: x.t_(), lambda x: x.squeeze_(), lambda x: x.transpose_(0, 1),
    lambda x: x.swapaxes_(0, 1), lambda x: x.as_strided_((2, 3), (1, 2), 1), lambda x: x.unsqueeze_(1).squeeze_(1)])
@pytest.mark.parametrize("functional", [False, True])
def test_shapes_that_are_changed_in_place(change, functional):
    def f(x):
        y = x.clone()
        row = y[0]
        change(y)
        y.add_(1)
        return y, row

    def values():
        return torch.randn(3, 4)

    graph = make_fx(torch.func.functionalize(f) if functional else f)(values())
    x = values()
    for found, expected in zip(graph(x), f(x), strict=True):
        assert torch.equal(found, expected)
    assert not functional or not any(node.target._schema.is_mutable for node in graph.graph.nodes
                                     if node.op == "call_function")


def test_gradients_through_shapes_that_are_changed_in_place():
    def gradient(x):
        y = x * 2
        y.t_()
        return torch.autograd.grad((y * y * torch.arange(12.0).reshape(4, 3)).sum(), x)[0]

    graph = make_fx(gradient)(torch.randn(3, 4, requires_grad=True))
    x = torch.randn(3, 4, requires_grad=True)
    assert torch.allclose(graph(x), gradient(x))


def test_modes_see_them_and_the_tensor_changes_once():
    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    names: list[str] = []
    x = torch.zeros(2, 3)
    with Names():
        x.t_()
        x.unsqueeze_(0)
        x.squeeze_(0)
        x.transpose_(0, 1)
    assert names == ["aten.t_.default", "aten.unsqueeze_.default", "aten.squeeze_.dim", "aten.transpose_.default"]
    assert (x.shape, x._version) == ((2, 3), 4)


@pytest.mark.parametrize("f", [
    lambda x: (LoggingTensor(x) * 2).elem, lambda x: (x * LoggingTensor(x)).elem,
    lambda x: TwoTensor(x, x + 1).exp().a])
def test_operators_on_what_a_subclass_wraps_are_nodes(f):
    graph = make_fx(f)(torch.randn(3))
    assert not any(node.op == "get_attr" for node in graph.graph.nodes)
    x = torch.randn(3)
    assert torch.equal(graph(x), f(x))


@pytest.mark.parametrize("overload", ["t_.default", "transpose_.default", "squeeze_.default"])
def test_overloads_that_change_shapes(overload):
    name, _, kind = overload.partition(".")
    args = (0, 1) if name == "transpose_" else ()
    x = torch.zeros(1, 3)
    assert getattr(getattr(torch.ops.aten, name), kind)(x, *args) is x
    assert x.shape == ((3,) if name == "squeeze_" else (3, 1))
