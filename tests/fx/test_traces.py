"""Traces of `make_fx` do for other inputs what the function does: shapes that are changed in place, subclasses."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._subclasses.fake_tensor import FakeTensorMode
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


OPERATORS = {
    "native_layer_norm": lambda x: torch.native_layer_norm(x, [3], None, None, 1e-5),
    "native_group_norm": lambda x: torch.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-5),
    "native_batch_norm": lambda x: torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5),
    "native_dropout": lambda x: torch.native_dropout(x, 0.5, True), "max_pool1d": lambda x: torch.max_pool1d(x, 2),
    "indices of maxima": lambda x: torch.nn.functional.max_pool1d(x, 2, return_indices=True),
    "cummax": lambda x: torch.cummax(x, 0), "kthvalue": lambda x: torch.kthvalue(x, 1),
    "aminmax": lambda x: torch.aminmax(x), "var_mean": lambda x: torch.var_mean(x), "frexp": lambda x: torch.frexp(x),
    "lu_factor": lambda x: torch.linalg.lu_factor(x[:, :3]), "geqrf": lambda x: torch.geqrf(x[0]),
    "slogdet": lambda x: torch.linalg.slogdet(x[:, :3]), "lstsq": lambda x: torch.linalg.lstsq(x[0], x[1]).solution,
    "instance_norm": lambda x: torch.nn.functional.instance_norm(x), "renorm": lambda x: torch.renorm(x, 2, 0, 0.1),
    "nanmedian": lambda x: torch.nanmedian(x, 0), "matrix_rank": lambda x: torch.linalg.matrix_rank(x),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_results_of_operators_are_computed_anew(name):
    """No result that an operator saved, such as a statistic or an index, is a constant of the graph."""
    f = OPERATORS[name]
    torch.manual_seed(0)
    inputs = torch.randn(2, 2, 4, 3)
    traced = make_fx(f)(inputs[0])
    results = []
    for function in (traced, f):
        torch.manual_seed(1)
        result = function(inputs[1])
        results.append(result if isinstance(result, (tuple, list)) else [result])
    for x, y in zip(*results, strict=True):
        torch.testing.assert_close(x, y)


def test_statistics_of_fake_tensors_have_their_shapes():
    with FakeTensorMode():
        x = torch.ones(2, 4, 3)
        assert [y.shape for y in torch.native_layer_norm(x, [3], None, None, 1e-5)] == [(2, 4, 3), (2, 4, 1), (2, 4, 1)]
        assert [y.shape for y in torch.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-5)] == [
            (2, 4, 3), (2, 2), (2, 2)]


TRANSFORMS = {
    "jacrev": (torch.func.jacrev(lambda x: x @ x), (3, 3)), "jacfwd": (torch.func.jacfwd(torch.sin), (5,)),
    "hessian": (torch.func.hessian(lambda x: (x.sin() * x).sum()), (3,)),
    "gradients of samples": (torch.func.vmap(torch.func.grad(lambda x: x.sin().sum())), (3, 2)),
    "detach": (torch.func.vmap(lambda x: x.detach() * x), (3, 2)),
    "tensors like a sample": (torch.func.vmap(lambda x: torch.zeros_like(x) + x.new_ones(2) * x), (3, 2)),
    "written samples": (torch.func.vmap(lambda x: x.clone().fill_(1) * x), (3, 2)),
    "vectorized jacobian": (lambda x: torch.autograd.functional.jacobian(torch.sin, x, vectorize=True), (3,)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_traced_through(name):
    f, shape = TRANSFORMS[name]
    torch.manual_seed(0)
    traced, x = make_fx(f)(torch.randn(shape)), torch.randn(shape)
    torch.testing.assert_close(traced(x), f(x))


def test_operators_that_raise_are_no_nodes():
    def f(x):
        try:
            return x.t().view(6) * 2
        except RuntimeError:
            return x * 3

    traced = make_fx(f)(torch.ones(2, 3))
    assert [str(node.target) for node in traced.graph.nodes if "view" in str(node.target)] == []
    assert traced(torch.ones(2, 3)).tolist() == [[3] * 3] * 2
