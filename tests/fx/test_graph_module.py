"""Graph modules: pickles, copies, folders, submodules, hooks; graphs: checks, insertion, iteration."""

from __future__ import annotations

import copy
import importlib
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.unused = torch.nn.ReLU()
        self.register_buffer("scale", torch.full((2,), 3.0))

    def forward(self, x):  # type: ignore[no-untyped-def]  # annotations would become part of the code
        return torch.linalg.norm(self.linear(x) * self.scale) + torch.einsum("ij->", x)


@pytest.fixture
def gm() -> Any:
    torch.manual_seed(0)
    return torch.fx.symbolic_trace(Net())


def test_pickles_and_copies_compute_the_same(gm: Any) -> None:
    x = torch.ones(3, 2)
    for other in (pickle.loads(pickle.dumps(gm)), copy.deepcopy(gm), copy.copy(gm)):
        assert other.code == gm.code
        assert torch.equal(other(x), gm(x))
        other.graph.lint()


def test_a_folder_can_be_imported(gm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gm.to_folder(tmp_path / "written_module", "Written")
    monkeypatch.syspath_prepend(tmp_path)
    written = importlib.import_module("written_module").Written()
    assert torch.equal(written(torch.ones(3, 2)), gm(torch.ones(3, 2)))
    for name in [name for name in sys.modules if name.startswith("written_module")]:
        del sys.modules[name]


def test_submodules(gm: Any) -> None:
    assert gm.add_submodule("a.b", torch.nn.ReLU())
    assert not gm.add_submodule("scale.b", torch.nn.ReLU())
    gm.delete_all_unused_submodules()
    assert [name for name, _ in gm.named_modules()] == ["", "linear"]
    assert not gm.delete_submodule("missing")


def test_hooks_are_called(gm: Any) -> None:
    seen: list[str] = []
    created, erased = lambda node: seen.append(f"+{node}"), lambda node: seen.append(f"-{node}")
    gm._register_create_node_hook(created)
    gm._register_erase_node_hook(erased)
    with gm._set_replace_hook(lambda old, new, user: seen.append(f"{old}->{new} in {user}")):
        output = gm.graph.output_node()
        with gm.graph.inserting_before(output):
            node = gm.graph.call_function(torch.relu, (output.args[0],))
        output.replace_input_with(output.args[0], node)
        output.replace_input_with(node, node.args[0])
        gm.graph.erase_node(node)
    assert seen == ["+relu", "add->relu in output", "relu->add in output", "-relu"]


def test_nodes_are_sorted_by_their_place() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    last = graph.output(x)
    for _ in range(20):  # always at the same place, and before it
        with graph.inserting_after(x):
            graph.call_function(torch.neg, (x,))
        with graph.inserting_before(last):
            graph.call_function(torch.abs, (x,))
    nodes = list(graph.nodes)
    assert sorted(set(nodes)) == nodes
    assert graph.find_nodes(op="call_function", target=torch.neg) == [n for n in nodes if n.target is torch.neg]


def test_operators_are_fast_again_after_tracing(gm: Any) -> None:
    from flambeau._tensor.overriding import entry_points

    before = entry_points.in_use[0]
    torch.fx.symbolic_trace(lambda x, flag: torch.relu(x), concrete_args={"flag": True})
    assert entry_points.in_use[0] == before


@pytest.mark.parity
def test_questions_about_tensors_are_nodes_with_their_answers():
    pytorch = pytest.importorskip("torch")
    rows = []
    for module in (torch, pytorch):
        graph = module.fx.Graph()
        x = graph.placeholder("x")
        x.meta["val"] = module.ones(2, 3)
        nodes = [graph.create_size_node(x, 1), graph.create_stride_node(x, 0), graph.create_storage_offset_node(x)]
        rows.append([(node.name, str(node.target), str(node.args), node.meta["val"]) for node in nodes])
        assert graph.create_size_node(graph.placeholder("y"), 0).meta == {}
    assert rows[0] == rows[1]


def test_an_error_of_an_operator_shows_the_generated_line(capsys: pytest.CaptureFixture[str]) -> None:
    traced = torch.fx.symbolic_trace(lambda x: torch.dot(torch.ones(2), x))
    with pytest.raises(TypeError) as caught:
        traced(5)
    assert "of the traced Module's generated forward function:" in capsys.readouterr().err, caught.traceback
