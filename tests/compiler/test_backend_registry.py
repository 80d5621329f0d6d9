"""The registry of backends, beside PyTorch's."""

from __future__ import annotations

import importlib
from importlib import metadata
from typing import Any

import pytest

import flambeau
from flambeau.compiler import backend_registry


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_functions", "_entry_points"):
        monkeypatch.setattr(backend_registry, name, dict(getattr(backend_registry, name)))
    monkeypatch.setattr(backend_registry, "_searched", [True])


def _program(torch: Any) -> list[Any]:
    dynamo, seen = torch._dynamo, []

    def first(graph: Any, inputs: Any) -> Any:
        seen.append(len(inputs))
        return graph.forward

    name = f"first_{torch.__name__}"
    dynamo.register_backend(first, name)
    decorate = dynamo.register_backend(name=f"second_{torch.__name__}", tags=("debug",))
    second = decorate(lambda graph, inputs: graph.forward)
    found = [torch.compile(lambda x: x + 1, backend=each)(torch.ones(2)).tolist() for each in (name, second)]
    for call in (lambda: dynamo.register_backend(first, name), lambda: dynamo.register_backend(3),
                 lambda: dynamo.lookup_backend("missing"), lambda: torch.compile(first, backend="missing")):
        with pytest.raises((AssertionError, dynamo.exc.InvalidBackend)) as info:
            call()
        found.append((info.type.__name__, str(info.value).replace(torch.__name__, "torch")))
    hidden = f"second_{torch.__name__}"
    return [*found, seen, first._tags, second._tags, dynamo.lookup_backend(name) is first,
            dynamo.lookup_backend(first) is first, name in dynamo.list_backends(), hidden in dynamo.list_backends(),
            hidden in dynamo.list_backends(None), callable(dynamo.lookup_backend("eager"))]


@pytest.mark.parity
def test_backends_are_registered_as_in_pytorch() -> None:
    assert _program(flambeau) == _program(pytest.importorskip("torch"))


def test_backends_of_installed_packages_are_loaded_when_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_registry, "_searched", [])
    entry = metadata.EntryPoint("of_a_package", "flambeau.compiler.inductor.compile_fx:compile_fx",
                                backend_registry.ENTRY_POINTS)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [entry] * (group == backend_registry.ENTRY_POINTS))
    assert "of_a_package" in flambeau.compiler.list_backends()
    assert not backend_registry._functions
    assert flambeau.compile(lambda x: x + 1, backend="of_a_package")(flambeau.zeros(1)).item() == 1
    assert list(backend_registry._functions) == ["of_a_package"]


def test_the_registry_has_pytorchs_name() -> None:
    registry = importlib.import_module("flambeau._dynamo.backends.registry")
    assert registry.register_backend is flambeau._dynamo.register_backend
    graph = flambeau.fx.symbolic_trace(lambda x: x * 2)
    for name in ("eager", "inductor"):
        assert registry.lookup_backend(name)(graph, [flambeau.ones(1)])(flambeau.ones(1)).item() == 2
