"""Traces warn of tensors that become constants; calls of scripted functions and of Functions are one node."""

import warnings

import pytest

import flambeau as torch
from flambeau.jit import TracerWarning, _get_trace_graph


@pytest.mark.parametrize(("function", "text"), [
    (lambda x: x.sum().item(), "Python number"), (lambda x: bool(x.sum() > 0), "Python boolean"),
    (lambda x: float(x.sum()), "Python float"), (lambda x: int(x.sum()), "Python integer"),
    (lambda x: x.tolist(), "Python list"), (lambda x: x.numpy(), "NumPy array"), (len, "Using len"),
    (lambda x: torch.tensor(2.0), "torch.tensor results"), (lambda x: torch.as_tensor([1]), "torch.as_tensor results"),
])
def test_a_trace_warns_of_constants(function, text):
    def traced(x):
        function(x)
        return x * 2

    with pytest.warns(TracerWarning, match=text) as caught:
        torch.jit.trace(traced, (torch.ones(3),))
    assert caught[0].filename == __file__
    with pytest.warns(TracerWarning, match=text):
        _get_trace_graph(traced, (torch.ones(3),))


def test_nothing_else_is_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = torch.jit.trace(lambda x: x.chunk(3)[0] * x.shape[0], (torch.ones(3),))
        float(torch.ones(()))
    assert "aten::mul" in str(traced.graph)


def test_making_the_graph_later_does_not_warn_again():
    with pytest.warns(TracerWarning):
        traced = torch.jit.trace(lambda x: x * x.sum().item(), (torch.ones(3),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "aten::mul" in str(traced.graph)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x + x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_function_is_one_node(requires_grad):
    x = torch.ones(3, requires_grad=requires_grad)
    graph, out = _get_trace_graph(lambda x: Doubled.apply(x).exp(), (x,))
    kinds = [node.kind() for node in graph.nodes()]
    assert kinds == ["prim::PythonOp", "aten::exp"]
    assert next(graph.nodes()).pyname() == "Doubled"
    assert out.requires_grad is requires_grad
    assert torch.equal(Doubled.apply(x), 2 * x)  # afterwards nothing is recorded


def test_a_scripted_function_is_one_node():
    scripted = torch.jit.script(lambda x: x @ x)
    graph, out = _get_trace_graph(lambda x: scripted(x * 2), (torch.eye(2),))
    assert "prim::CallFunction" in [node.kind() for node in graph.nodes()]
    assert "aten::matmul" not in str(graph)
    assert torch.equal(out, 4 * torch.eye(2))


@pytest.mark.parity
def test_calls_of_a_traced_function_take_the_branches_of_the_trace():
    pytorch = pytest.importorskip("torch")

    def run(module):
        class Branch(module.nn.Module):
            def forward(self, x):
                return x * 2 if module.jit.is_tracing() else x

        x = module.ones(1)
        traced = module.jit.trace(lambda x: x * 3 if module.jit.is_tracing() else x, (x,), check_trace=False)
        return traced(x).item(), module.jit.trace(Branch(), (x,), check_trace=False)(x).item(), module.jit.is_tracing()

    assert run(torch) == run(pytorch)
