"""Programs on other devices, their verifiers, and the modules of several calls."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.export.custom_ops import lib
from flambeau.export.passes import move_to_device_pass
from flambeau.export.unflatten import InterpreterModuleDispatcher
from flambeau.export.verifier import SpecViolationError


class WithConstants(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2), requires_grad=False)
        self.register_buffer("other", torch.ones(2), persistent=False)

    def forward(self, x):
        return x * self.weight + self.other + torch.zeros(2, device="cpu")


def test_moving_a_program_moves_its_tensors_and_devices():
    program = torch.export.export(WithConstants(), (torch.ones(2),))
    assert move_to_device_pass(program, {"cpu": "meta"}) is program
    moved = [*program.state_dict.values(), *program.constants.values(), *program.example_inputs[0]]
    assert len(moved) == 3
    assert all(x.device.type == "meta" for x in moved)
    assert isinstance(program.state_dict["weight"], torch.nn.Parameter)
    assert not program.state_dict["weight"].requires_grad
    assert [n.kwargs["device"] for n in program.graph.nodes if "device" in n.kwargs] == ["meta"]
    assert program.module()(torch.ones(2, device="meta")).device.type == "meta"
    same = move_to_device_pass(torch.export.export(WithConstants(), (torch.ones(2),)), {"cuda": "meta"})
    assert same.module()(torch.ones(2)).tolist() == [2., 2.]


def test_verifiers():
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    assert program.verifiers == [program.verifier]
    program.validate()
    for name in ("verifier", "verifiers"):
        with pytest.raises(RuntimeError, match=f"Unable to set ExportedProgram's {name} attribute"):
            setattr(program, name, None)
    program.graph_signature.output_specs.pop()
    with pytest.raises(SpecViolationError, match="1 outputs, its signature 0"):
        program.validate()


def test_calls_in_turn_start_again_after_an_error():
    calls = InterpreterModuleDispatcher({"weight"}, [torch.nn.Linear(2, 1), torch.nn.Linear(3, 1)])
    assert calls.weight is calls.call_modules()[0].weight
    assert calls(torch.ones(1, 2)).shape == calls(torch.ones(1, 3)).shape == (1, 1)
    calls(torch.ones(1, 2))
    with pytest.raises(RuntimeError):
        calls(torch.ones(1, 2))
    calls(torch.ones(1, 2))
    with pytest.raises(AssertionError, match="must not be empty"):
        InterpreterModuleDispatcher(set(), [])


def test_the_leaves_of_an_unflattened_programs_arguments():
    nested = torch.export.unflatten(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)))
    x = torch.ones(2)
    (leaf,) = nested.process_forward_inputs(x)
    assert leaf is x
    with pytest.raises(TypeError, match="no flat args adapter"):
        nested.process_forward_inputs(x, x)


def test_the_operator_of_inner_tensors_refuses_plain_ones():
    assert lib.ns == "export"
    with pytest.raises(AssertionError, match="traceable wrapper subclass"):
        torch.ops.export.access_subclass_inner_tensor(torch.ones(2), "data")
