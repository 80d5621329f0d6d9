"""`x.graph()`: the graph as data and as text, with and without a recording."""

from __future__ import annotations

import json
import sys

import pytest

import flambeau as torch
from flambeau.viz import Graph, watching


def leaves(*shapes):
    return [torch.arange(1., 1 + torch.Size(shape).numel()).reshape(shape).requires_grad_() for shape in shapes]


def by_name(graph, name):
    return next(node for node in graph if node.name == name)


def test_nodes_come_newest_first_and_edges_lead_to_older_ones():
    x, w = leaves((2, 3), (3, 4))
    graph = ((x @ w).tanh() * 2).sum().graph(params={"x": x, "w": w})
    assert [node.name for node in graph] == ["SumBackward0", "MulBackward0", "TanhBackward0", "MmBackward0",
                                             "AccumulateGrad", "AccumulateGrad"]
    assert all(target > node.id for node in graph for target, _, _ in node.edges)
    assert [node.id for node in graph] == list(range(6))
    assert {node.label for node in graph if node.is_leaf} == {"x", "w"}
    assert by_name(graph, "MmBackward0").edges == [(5, 0, 0), (4, 1, 0)]


@pytest.mark.parametrize("watched", [False, True])
def test_shapes_from_saved_values(watched):
    x, w, b = leaves((2, 3), (3, 4), (4,))

    def program():
        return torch.relu(x @ w + b).reshape(4, 2)[1:].sum(0).exp().sum()

    if watched:
        with watching():
            y = program()
    else:
        y = program()
    graph = y.graph()
    shapes = {node.name: node.outputs[0] for node in graph if not node.is_leaf}
    if watched:
        assert shapes["MmBackward0"] == ((2, 4), "float32")
    assert shapes["ReluBackward0"] == ((2, 4), "float32")
    assert shapes["AddBackward0"] == ((2, 4), "float32")
    assert shapes["SumBackward0"] == ((), "float32")
    assert shapes["ExpBackward0"] == ((2,), "float32")
    assert shapes["SumBackward1"] == ((2,), "float32")


def test_shapes_of_several_outputs():
    x, = leaves((3, 4))
    a, b = x.max(1)[0], x.chunk(2, 1)[1]
    graph = Graph.of([a, b])
    assert by_name(graph, "SplitBackward0").outputs[1] == ((3, 2), "float32")
    assert len(graph.roots) == 2


def test_memory_that_is_shared_counts_once():
    x, = leaves((10,))
    h = x.exp()
    y = h * h + h.sin() + x * x
    nodes = {node.name: node for node in y.graph()}
    assert nodes["ExpBackward0"].bytes == 40
    assert nodes["SinBackward0"].bytes == 0
    assert nodes["SinBackward0"].saved[0].shared == f"node {nodes['ExpBackward0'].id}"
    assert y.graph().bytes == 40
    assert all(kept.shared == "leaf" for kept in by_name((x * x).graph(), "MulBackward0").saved)


def test_a_view_retains_its_base():
    big = torch.ones(1000)
    x, = leaves((2,))
    kept, = by_name((x * big[:2]).graph(), "MulBackward0").saved
    assert kept[:4] == ("other", (2,), "float32", 4000)


def test_freed_graphs_are_marked():
    x, = leaves((3,))
    y = x.exp().sum()
    assert not any(node.freed for node in y.graph())
    y.backward()
    assert [node.freed for node in y.graph()] == [False, True, False]  # a sum keeps nothing that could be freed
    assert y.graph().bytes == 0
    assert "freed 1 of its nodes" in str(y.graph())


def test_formulas_come_from_declarations():
    x, y = leaves((2,), (2,))
    graph = (torch.tanh(x * y) * 3 + x.reciprocal()).graph()
    told = {node.operator: (node.formula, node.pullbacks) for node in graph if node.operator not in ("leaf", "mul")}
    assert told == {"add": ("input + other", ["g", "g"]), "tanh": ("tanh input", ["g × (1 - out²)"]),
                    "reciprocal": ("1 / input", ["-g × out²"])}
    products = [node for node in graph if node.operator == "mul"]
    assert [(node.formula, node.pullbacks) for node in products] == [
        ("input × 3", ["g × other"]), ("input × other", ["g × other", "g × input"])]


def test_custom_functions_and_ctx_attributes():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.more = {"mask": torch.ones(5)}
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x, = leaves((5,))
    node = Twice.apply(x).graph().nodes[0]
    assert (node.name, node.operator) == ("TwiceBackward", "Twice")
    assert [(kept.name, kept.bytes, kept.shared) for kept in node.saved] == [
        ("saved_tensors[0]", 20, "leaf"), ("ctx.more['mask']", 20, "")]


def test_packed_tensors_are_not_unpacked():
    x, = leaves((4,))

    def unpack(packed):
        raise AssertionError("nobody asked for it")

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().to(torch.float64), unpack):
        y = x.exp()
    assert [(kept.dtype, kept.bytes) for kept in y.graph().nodes[0].saved] == [("float64", 32)]


def test_writes_through_views():
    x, = leaves((3, 2))
    with watching():
        y = x * 1
        y[:, 0].mul_(5)
        z = y.sum()
    nodes = z.graph().nodes
    assert [node.name for node in nodes[:3]] == ["SumBackward0", "CopySlices", "MulBackward0"]
    assert nodes[1].source[2] == "y[:, 0].mul_(5)"
    assert nodes[1].outputs == [((3, 2), "float32")]
    assert nodes[1].operator == "mul_"


def test_to_dict_is_json():
    x, w = leaves((2, 3), (3, 1))
    graph = torch.logsumexp(x @ w, 0).graph(params={"x": x, "w": w})
    found = json.loads(json.dumps(graph.to_dict(), allow_nan=False))
    assert [node["name"] for node in found["nodes"]] == [node.name for node in graph]
    assert found["nodes"][1]["saved"][0]["shape"] == [2, 3]
    assert set(found) == {"nodes", "roots", "bytes", "modules"}


def test_tensors_without_a_graph_are_refused():
    with pytest.raises(RuntimeError, match="the tensor has no graph"):
        torch.ones(2).graph()
    with pytest.raises(TypeError, match="behind tensors, not behind int"):
        Graph.of([3])
    x, = leaves((2,))
    with pytest.raises(TypeError, match=r"params\['x'\] is not a tensor but int"):
        x.graph(params={"x": 1})
    assert [node.name for node in x.graph()] == ["AccumulateGrad"]


def test_parameters_are_named_by_their_module():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    graph = model(torch.ones(1, 2)).graph(params=model)
    assert {node.label for node in graph if node.is_leaf} == {"0.weight", "0.bias", "1.weight", "1.bias"}


def test_reading_a_deep_graph_takes_as_long_as_it_is_deep():
    def calls(depth):
        y, = leaves((2,))
        for _ in range(depth):
            y = y * 1.0001
        count = 0

        def called(frame, event, arg):
            nonlocal count
            count += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(called)
        try:
            found = y.graph().to_dict()
        finally:
            sys.setprofile(before)
        assert len(found["nodes"]) == depth + 1
        return count

    assert calls(4000) < 4.5 * calls(1000)


def test_a_graph_as_text():
    x, w = leaves((2, 3), (3, 4))
    h = x @ w
    y = (h * h).sum() + x.sum()
    assert str(y.graph(params={"x": x, "w": w})) == """\
a graph of 5 nodes and 2 leaves, which keeps 32 bytes for backward
●─╮ AddBackward0  ()
│ ● SumBackward0  ()
● │ SumBackward0  ()
● │ MulBackward0  (2, 4)  keeps self, other (32 bytes)
●─┤ MmBackward0  (2, 4)  keeps self, mat2
○ │ w  (3, 4)
  ○ x  (2, 3)"""


def test_columns_of_the_text_join_and_part():
    from flambeau.viz.drawing.text import _drawn, _Row

    def drawn(**needs):
        return _drawn([_Row(key, "●", key, list(of)) for key, of in needs.items()])

    assert drawn(a="b", b="") == ["● a", "● b"]
    assert drawn(a="bc", b="d", c="d", d="") == ["●─╮ a", "● │ b", "├─● c", "● d"]
    assert drawn(a="bcd", b="e", c="e", d="e", e="") == ["●─┬─╮ a", "● │ │ b", "├─● │ c", "├───● d", "● e"]
    assert drawn(a="bc", b="cd", c="d", d="") == ["●─╮ a", "●─┤ b", "├─● c", "● d"]
    assert drawn(a="b", c="b", b="") == ["● a", "├─● c", "● b"]


def test_a_graph_with_very_many_lines_is_listed():
    x = leaves(*[(1,)] * 50)
    text = str(torch.stack([a * 2 for a in x]).graph())
    assert "too entangled" in text or "▣" in text
