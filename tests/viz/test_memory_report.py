"""`x.graph().memory()`: bytes by node and line, and advice."""

from __future__ import annotations

import json

import pytest

import flambeau as torch
from flambeau.viz import watching


def report(program, *args):
    with watching(values=False):
        return program(*args).graph().memory()


def test_bytes_by_node_and_by_line():
    x = torch.ones(100, requires_grad=True)
    with watching():
        a = x.exp()
        b = (a * a).sin()
        c = b.sum()
    found = c.graph().memory()
    assert [(node.name, node.bytes) for node in found.nodes] == [("SinBackward0", 400), ("ExpBackward0", 400)]
    assert [(line.code, line.bytes, len(line.nodes)) for line in found.lines] == [
        ("b = (a * a).sin()", 400, 2), ("a = x.exp()", 400, 1)]
    assert found.total == 800
    assert found.leaves == 400
    assert str(found).startswith("memory kept for backward: 800 bytes in 2 of 4 nodes")
    assert "sin: self" in str(found)
    assert "SinBackward0" in str(found.by_node())
    json.dumps(found.to_dict())
    assert "<table" in found._repr_html_()


def test_reported_bytes_equal_retained_bytes():
    x = torch.ones(1000, requires_grad=True)
    y = x.exp().sin().cos().sum()
    graph = y.graph()
    arrays = {id(kept._array): kept._array.nbytes for node in graph if not node.is_leaf for kept in [
        getattr(node.node, name) for name in dir(node.node) if name.startswith("_saved_")] if hasattr(kept, "_array")}
    assert graph.memory().total == sum(arrays.values())


def test_without_recording_it_explains_how_to_get_lines():
    x = torch.ones(100, requires_grad=True)
    text = str(x.exp().graph().memory())
    assert "ExpBackward0" in text
    assert "viz.watching()" in text


def test_unrecorded_lines_are_summed():
    x = torch.ones(100, requires_grad=True)
    y = x.exp()
    with watching():
        z = y.tanh()
    assert "not recorded" in str(z.graph().memory())


def double():
    return torch.ones(100, dtype=torch.float64, requires_grad=True).exp()


def part_of_something_large():
    big = torch.ones(10000)
    return torch.ones(2, requires_grad=True) * big[:2]


def result_is_enough():
    x = torch.ones(100, requires_grad=True)
    return torch.tanh(x + x)


def input_is_needed():
    x = torch.ones(100, requires_grad=True)
    return torch.tanh(x.exp())


def running_total():
    w = torch.ones(10, requires_grad=True)
    total = 0
    for _ in range(50):
        total = total + w.exp().sum()
    return total


def several_layers():
    h = torch.ones(100, 10, requires_grad=True)
    return h.sin().cos().sin().cos()


@pytest.mark.parametrize(("program", "expected"), [
    (double, "float64: float32 keeps half"),
    (part_of_something_large, "keeps all that a view looks into: .clone() it"),
    (result_is_enough, "in place: tanh_()"),
    (input_is_needed, "utils.checkpoint around it"),
    (running_total, "50 times: .detach() what is carried over, or .item() what is only added up"),
    (several_layers, "utils.checkpoint around it"),
], ids=lambda value: getattr(value, "__name__", ""))
def test_advice(program, expected):
    assert report(program).lines[0].advice == expected


def test_following_the_advice_saves_what_it_says():
    y = torch.ones(100, dtype=torch.float64, requires_grad=True)
    assert y.float().exp().graph().bytes * 2 == y.exp().graph().bytes


def test_modules_are_named_for_checkpointing():
    model = torch.nn.Sequential(torch.nn.Linear(10, 50), torch.nn.GELU(), torch.nn.Linear(50, 50), torch.nn.GELU())
    with watching(model):
        y = model(torch.ones(20, 10)).sum()
    assert y.graph().memory().lines[0].advice == "checkpoint(Sequential, ...)"


def test_empty_reports():
    x = torch.ones(3, requires_grad=True)
    assert str((x + x).graph().memory()).startswith("memory kept for backward: 0 bytes in 0 of 1 nodes")
