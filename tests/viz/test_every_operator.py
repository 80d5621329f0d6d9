"""Recording, description, drawing and memory report of every operator's graph."""

from __future__ import annotations

import json

import pytest

import flambeau as torch
from flambeau.viz import Graph, make_dot, watching
from tests.ops.spec import Make, load, public

RECORDS = {name: record for name, record in load().items() if record.differentiable and record.floats}


def outputs_of(record, requires_grad=True):
    """The results of an operator's first sample that require grad."""
    for dtype in (torch.float32, torch.complex64) if record.complex else (torch.float32,):
        for sample in record.samples(Make(torch, dtype, requires_grad=requires_grad)):
            found = public(torch, record.name)(*sample.args, **sample.kwargs)
            found = [x for x in (found if isinstance(found, (tuple, list)) else [found]) if isinstance(x, torch.Tensor)]
            found = [x for x in found if x.grad_fn is not None]
            if found:
                return found
    return []


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_an_operators_graph_is_shown(name):
    with watching() as watch:
        outputs = outputs_of(RECORDS[name])
        if not outputs:
            pytest.skip("no sample of it requires a gradient")
        graph = Graph.of(outputs)
        total = sum(x.sum() if not x.is_complex() else x.abs().sum() for x in outputs)
        total.backward()
    for node in graph:
        if not node.is_leaf:
            assert node.source is not None, f"nobody noted where {node.name} was made"
            assert node.outputs, node.name
            assert all(shape is not None for shape, _ in node.outputs[:1]), node.name
        assert isinstance(node.formula, str)
        assert node.bytes <= sum(kept.bytes for kept in node.saved)
    json.dumps([graph.to_dict(), watch.events], allow_nan=False)
    assert str(graph).startswith("a graph of")
    assert graph.svg().startswith("<svg")
    assert str(graph.memory())
    assert make_dot(tuple(outputs), show_attrs=True, show_saved=True).source
    ran = {event["seq"] for event in watch.events if event["kind"] == "backward"}
    assert {node.seq for node in graph if not node.is_leaf} <= ran
