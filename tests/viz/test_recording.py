"""`watching()`: recorded lines, modules, values, adjoints, accumulation, freeing and steps; no effect outside."""

from __future__ import annotations

import json

import numpy as np
import pytest

import flambeau as torch
from flambeau.modes import special
from flambeau.viz import watching
from flambeau.viz.training.statistics import statistics


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x) * 2)


def kinds(watch):
    return [event["kind"] for event in watch.events]


def test_lines_and_modules_are_recorded():
    model = Net()
    with watching(model):
        loss = model(torch.ones(1, 3)).sum()
    made = {node.name: (node.module, node.source and node.source[2]) for node in loss.graph() if not node.is_leaf}
    assert made["SumBackward0"] == (None, "loss = model(torch.ones(1, 3)).sum()")
    assert made["MulBackward0"] == ("Net", "return self.head(self.body(x) * 2)")
    assert made["ReluBackward0"] == ("Net.body.1", "return self.head(self.body(x) * 2)")
    assert {node.label for node in loss.graph() if node.is_leaf} == {name for name, _ in model.named_parameters()}
    assert loss.graph().modules()["Net.body"] == "Sequential"


def test_without_a_model_the_outermost_module_names_what_is_in_it():
    first, second = Net(), Net()
    with watching():
        loss = second(torch.ones(1, 3)).sum() + first(torch.ones(1, 3)).sum()
    assert {node.module for node in loss.graph() if node.name == "ReluBackward0"} == {"Net.body.1", "Net(2).body.1"}


def test_a_training_step_in_events():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.ones(2, 3)
    with watching(model) as watch:
        for _ in range(2):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    assert kinds(watch).count("step") == 2
    assert [event["step"] for event in watch.events if event["kind"] == "step"] == [0, 1]
    grads = [event for event in watch.events if event["kind"] == "accumulate" and event["step"] == 1]
    assert {event["label"] for event in grads} == {name for name, _ in model.named_parameters()}
    bias = next(event for event in grads if event["label"] == "head.bias")
    assert bias["gradient"]["values"] == bias["grad"]["values"] == [2.0, 2.0]
    assert len(watch.graphs) == 2
    assert watch.graphs[1]["step"] == 1
    assert not any(node["freed"] for node in watch.graphs[0]["graph"]["nodes"])
    json.dumps([watch.events, watch.graphs], allow_nan=False)
    forward = [event for event in watch.events if event["kind"] == "forward" and event["step"] == 0]
    backward = [event for event in watch.events if event["kind"] == "backward" and event["step"] == 0]
    assert [event["seq"] for event in backward] == sorted((event["seq"] for event in forward), reverse=True)


def test_gradients_equal_those_without_recording():
    torch.manual_seed(0)
    model = Net()
    x = torch.randn(5, 3)
    model(x).pow(2).sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    with watching(model):
        model(x).pow(2).sum().backward()
    for p, g in zip(model.parameters(), expected, strict=True):
        assert torch.equal(p.grad, g)
    assert special[0] == 0


def test_adjoints_and_freeing():
    x = torch.tensor([1., 2.], requires_grad=True)
    with watching() as watch:
        y = (x * x).exp().sum()
        y.backward(retain_graph=True)
        assert "free" not in kinds(watch)
        y.backward()
    freed = [(event["name"], event["bytes"]) for event in watch.events if event["kind"] == "free"]
    assert freed == [("ExpBackward0", 8), ("MulBackward0", 8)]
    assert [event["pass"] for event in watch.events if event["kind"] == "accumulate"] == [0, 1]
    adjoint = next(event for event in watch.events if event["name"] == "ExpBackward0" and event["kind"] == "backward")
    assert adjoint["cotangents"][0]["values"] == [1.0, 1.0]
    assert adjoint["found"][0]["values"] == pytest.approx([np.e, np.exp(4)], rel=1e-6)


def test_results_of_autograd_grad_are_events():
    x = torch.tensor(3., requires_grad=True)
    with watching() as watch:
        g, = torch.autograd.grad(x ** 2, x, create_graph=True)
        torch.autograd.grad(g, x)
    assert g.item() == 6
    last = watch.events[-1]
    assert (last["kind"], last["captured"], last["grad"], last["gradient"]["values"]) == ("accumulate", True, None, 2.0)
    assert x.grad is None


def test_custom_functions_in_place_writes_and_no_grad():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(3, requires_grad=True)
    with watching() as watch:
        y = Twice.apply(x)
        y.mul_(4)
        with torch.no_grad():
            x.add_(1)
            x.sum()
        y[0] = 7.
    assert [event["operator"] for event in watch.events][:2] == ["Twice", "mul_"]
    assert len({event["seq"] for event in watch.events}) == len(watch.events)
    assert [event["written"] for event in watch.events][:2] == [False, True]
    assert watch.events[1]["outputs"][0]["values"] == [8.0, 8.0, 8.0]


def test_nothing_is_recorded_outside_the_block_or_after_an_error():
    x = torch.ones(2, requires_grad=True)
    watch = watching()
    with pytest.raises(ZeroDivisionError), watch:
        x * 2
        1 // 0
    (x * 3).sum().backward()
    assert len(watch.events) == 1
    assert special[0] == 0
    assert (x * 3).graph().nodes[0].source is None


def test_anomaly_mode_records_lines():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        y = x * 3
    assert y.graph().nodes[0].source[2] == "y = x * 3"


def test_without_values_only_shapes_are_recorded():
    x = torch.ones(2, 3, requires_grad=True)
    with watching(values=False, graphs=False) as watch:
        (x * 2).sum().backward()
    assert watch.events[0]["outputs"] == [{"shape": [2, 3], "dtype": "float32"}]
    assert watch.graphs == []


def test_recording_under_a_profiler():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.profiler.profile() as profile, watching() as watch:
        (x * 2).sum().backward()
    assert kinds(watch).count("backward") == 2
    assert any(event.name == "aten::mul" for event in profile.function_events)


@pytest.mark.parametrize("array", [
    np.zeros((0, 3), np.float32), np.array(3.5), np.array([1, 2, 3]), np.array([True, False]),
    np.array([np.nan, np.inf, 1.0]), np.array([1e308, -1e308]), np.array([3 + 4j]), np.full((5,), np.nan)],
    ids=["empty", "0-d", "int", "bool", "nan", "wide", "complex", "all nan"])
def test_statistics(array):
    found = statistics(array)
    json.dumps(found, allow_nan=False)
    real = np.abs(array) if array.dtype.kind == "c" else array.astype(float)
    finite = real[np.isfinite(real)]
    assert sum(found["bins"]) == finite.size
    assert found["nan"] + found["inf"] == array.size - finite.size
    if finite.size:
        assert (found["min"], found["max"]) == (finite.min(), finite.max())
