"""Nodes with hooks, under a profiler and in anomaly mode use the same kernels, with bitwise equal results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends.compiled import compiled_operators
from flambeau.ops.declare import REGISTRY

pytestmark = pytest.mark.skipif(not codegen.available(), reason="there are no kernels")

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "gelu": torch.nn.functional.gelu, "tanh": torch.tanh, "product": lambda x: x * x.sin(),
    "broadcast": lambda x: x * x[0], "power": lambda x: x ** 3, "to float64": lambda x: x.double().exp()}


def hooked(x: Any, function: Callable[[Any], Any]) -> None:
    y = function(x)
    y.grad_fn.register_hook(lambda *_: None)
    y.register_hook(lambda g: None)
    y.retain_grad()
    y.sum().backward()


def profiled(x: Any, function: Callable[[Any], Any]) -> None:
    with torch.profiler.profile():
        function(x).sum().backward()


def suspected(x: Any, function: Callable[[Any], Any]) -> None:
    with torch.autograd.detect_anomaly(check_nan=True):
        function(x).sum().backward()


def plain(x: Any, function: Callable[[Any], Any]) -> None:
    function(x).sum().backward()


def gradient(how: Callable[[Any, Any], None], function: Callable[[Any], Any]) -> Any:
    torch.manual_seed(0)
    x = torch.randn(200, 300).requires_grad_()
    how(x, function)
    return x.grad


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("how", [hooked, profiled, suspected])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_observed_nodes_use_the_same_kernels(name: str, how: Any, monkeypatch: Any) -> None:
    expected = gradient(plain, FUNCTIONS[name])
    kernels = compiled_operators(REGISTRY)
    assert kernels is not None
    found = []
    run = kernels.gradients.run
    monkeypatch.setattr(kernels.gradients, "run", lambda node, *args: found.append(node.op.name) or run(node, *args))
    assert torch.equal(gradient(how, FUNCTIONS[name]), expected)
    assert found


def test_saved_tensors_are_unpacked_once() -> None:
    unpacked = []

    def unpack(x: Any) -> Any:
        unpacked.append(x)
        return x

    x = torch.randn(200, 300).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.tanh()
    hook = y.grad_fn.register_hook(lambda *_: None)
    y.sum().backward()
    hook.remove()
    assert len(unpacked) == 1
