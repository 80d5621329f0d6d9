"""Graphs of traced calls: nodes, types, constants and scopes are PyTorch's."""

from __future__ import annotations

import re
from typing import Any

import pytest

import flambeau as torch

nn = torch.nn


def shown(graph: Any) -> list[str]:
    """The nodes, without names of values and places in source files."""
    return [re.sub(r"%[\w.]+", "%", line.split(" #")[0]).strip() for line in str(graph).splitlines()]


def test_graph_of_a_function() -> None:
    def function(x: Any, y: Any) -> Any:
        x.exp()  # not needed
        return (x + y * 2).sum(1, keepdim=True)

    graph = torch.jit.trace(function, (torch.ones(2, 3), torch.ones(2, 3))).graph
    assert shown(graph) == [
        "graph(% : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu),",
        "% : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)):",
        "% : Long(requires_grad=0, device=cpu) = prim::Constant[value={2}]()",
        "% : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) = aten::mul(%, %)",
        "% : int = prim::Constant[value=1]()",
        "% : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) = aten::add(%, %, %)",
        "% : int = prim::Constant[value=1]()",
        "% : int[] = prim::ListConstruct(%)",
        "% : bool = prim::Constant[value=1]()",
        "% : NoneType = prim::Constant()",
        "% : Float(2, 1, strides=[1, 1], requires_grad=0, device=cpu) = aten::sum(%, %, %, %)",
        "return (%)"]
    assert [value.debugName() for value in graph.inputs()] == ["x", "y"]


def test_writes_are_kept_where_their_memory_is_needed() -> None:
    def function(x: Any) -> Any:
        torch.zeros(2).add_(1)
        x[0] = 1
        return x * 2

    kinds = [node.kind() for node in torch.jit.trace(function, torch.ones(2)).graph.nodes()]
    assert [kind for kind in kinds if kind.startswith("aten")] == ["aten::select", "aten::copy_", "aten::mul"]


@pytest.fixture
def model() -> Any:
    return nn.Sequential(nn.Sequential(nn.Linear(2, 3)), nn.ReLU())


def test_graph_of_a_module_has_a_node_for_each_childs_call(model: Any) -> None:
    model(torch.ones(1, 2))
    traced = torch.jit.trace(model, torch.ones(1, 2))
    assert [(node.kind(), node.s("name")) for node in traced.graph.nodes()] == [
        (kind, name) for at in "01" for kind, name in (("prim::GetAttr", at), ("prim::CallMethod", "forward"))]
    linear = traced.inlined_graph.findNode("aten::linear")
    assert linear.scopeName() == "__module.0/__module.0.0"
    assert [value.node().s("name") for value in list(linear.inputs())[1:]] == ["weight", "bias"]
    assert next(traced.inlined_graph.inputs()).type().str() == "__torch__.torch.nn.modules.container.Sequential"


def test_inputs_of_a_trace_graph_are_arguments_and_state() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding="same"), nn.BatchNorm2d(4))
    graph, result = torch.jit._get_trace_graph(model, (torch.ones(1, 3, 4, 4),))
    assert len(list(graph.inputs())) == 1 + len(model.state_dict())
    convolution = graph.findNode("aten::_convolution")
    values = list(convolution.inputs())
    assert [value.type().sizes() for value in values[:3]] == [[1, 3, 4, 4], [4, 3, 3, 3], [4]]
    assert [value.toIValue() for value in values[6:9:2]] == [False, 1]
    assert convolution.output().isCompleteTensor()
    assert [use.user.kind() for use in convolution.output().uses()] == ["aten::batch_norm"]
    assert next(graph.outputs()).type().sizes() == list(result.shape)
    assert model[1].num_batches_tracked == 1


def test_scopes_are_those_that_the_program_pushes() -> None:
    def function(x: Any) -> Any:
        state = torch._C._get_tracing_state()
        state.push_scope("a")
        state.push_scope("b")
        y = x.exp()
        state.pop_scope()
        state.pop_scope()
        return y + x

    graph, _ = torch.jit._get_trace_graph(function, torch.ones(2))
    assert [node.scopeName() for node in graph.nodes() if node.kind().startswith("aten")] == ["a/b", ""]
    assert torch._C._get_tracing_state() is None


def test_making_the_graph_leaves_buffers_and_random_numbers_as_they_are() -> None:
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5))
    traced = torch.jit.trace(model, torch.ones(3, 2))
    mean, state = model[0].running_mean.clone(), torch.get_rng_state()
    assert traced.inlined_graph.findNode("aten::dropout").isNondeterministic()
    assert model[0].running_mean.equal(mean)
    assert torch.get_rng_state().equal(state)


def test_scripted_programs_have_no_graph(model: Any) -> None:
    with pytest.raises(NotImplementedError, match="has no TorchScript"):
        torch.jit.script(model).graph


@pytest.mark.filterwarnings("ignore::flambeau.jit.TracerWarning")
def test_leading_dimensions_of_assigned_values_are_dropped() -> None:
    def function(x: Any) -> Any:
        y = torch.zeros(2, 3)
        y[torch.tensor([0, 1])] = x
        y[:, 0] = x[..., 0]
        return y

    x = torch.ones(1, 1, 2, 3)
    graph, result = torch.jit._get_trace_graph(function, x)
    assert [node.kind() for node in graph.nodes() if "view" in node.kind()] == ["aten::view"] * 2
    assert result.equal(function(x))


@pytest.mark.parametrize(("make", "kind", "outputs"), [
    (nn.LSTM, "aten::lstm", 3), (nn.GRU, "aten::gru", 2), (nn.RNN, "aten::rnn_tanh", 2)])
def test_a_recurrent_network_is_one_node(make: Any, kind: str, outputs: int) -> None:
    graph = torch.jit.trace(make(8, 4, 2, batch_first=True), torch.ones(2, 5, 8)).inlined_graph
    (node,) = [node for node in graph.nodes() if node.kind().startswith("aten::") and node.kind() != "aten::zeros"]
    assert (node.kind(), node.inputsSize(), node.outputsSize()) == (kind, 9, outputs)
    assert str(node.schema()).startswith(f"{kind}.input(Tensor input, ")


def test_operators_of_a_recurrent_cell_are_nodes() -> None:
    graph = torch.jit.trace(nn.RNNCell(8, 4), torch.ones(2, 8)).inlined_graph
    kinds = [node.kind() for node in graph.nodes() if node.kind().startswith("aten::")]
    assert kinds == ["aten::zeros", "aten::linear", "aten::linear", "aten::add", "aten::tanh"]
