"""What cannot be compiled ahead of time is refused, with the user's line."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.export import aot, export


class Decomposing(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.linalg.qr(x).Q  # the line


def test_an_operator_without_a_kernel(tmp_path):
    with pytest.raises(aot.ExportError, match=r"linalg_qr has no compiled kernel.*test_refusals.py:\d+: .*# the line"):
        export(Decomposing(), (torch.randn(2, 3),)).save(tmp_path / "x.so")
    assert not [*tmp_path.iterdir()]


def test_random_numbers_without_a_counter_based_form(tmp_path):
    def step(p):
        return torch.poisson(p)

    with pytest.raises(
        aot.ExportError, match=r"poisson has no counter-based form. Draw them outside .*test_refusals"
    ):
        aot.compile(step, (torch.ones(4),), tmp_path / "x.so")


def test_elements_that_python_reads(tmp_path):
    def step(x: Any) -> Any:
        return x * x.sum().item()

    with pytest.raises(
        aot.ExportError, match=r"item\(\) passes a tensor's elements to Python \(.*test_refusals.py:\d+"
    ):
        aot.compile(step, (torch.ones(2),), tmp_path / "x.so")


def test_files_and_targets_that_do_not_exist(tmp_path):
    program = export(nn.ReLU(), (torch.ones(2),))
    with pytest.raises(ValueError, match=r"a program is saved as .so, .o, .wasm, .onnx, .pt2, not as '.exe'"):
        program.save(tmp_path / "x.exe")
    with pytest.raises(ValueError, match="there is no target 'z80': the targets are 'native', 'x86-64'"):
        program.save(tmp_path / "x.so", target="z80")
    with pytest.raises(ValueError, match=r"\.wasm files are of wasm32"):
        program.save(tmp_path / "x.so", target="wasm32")
    with pytest.raises(ValueError, match=r"only compiled programs .* take target, not .pt2"):
        program.save(tmp_path / "x.pt2", target="native")


def test_other_forms_of_a_program(tmp_path):
    import onnx

    program = export(nn.Linear(2, 3), (torch.ones(1, 2),))
    program.save(tmp_path / "x.pt2")
    assert torch.equal(
        torch.export.load(tmp_path / "x.pt2").module()(torch.ones(1, 2)), program.module()(torch.ones(1, 2))
    )
    program.save(tmp_path / "x.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "x.onnx"), full_check=True)
    assert [each.name for each in tmp_path.iterdir() if "onnx" in each.name] == ["x.onnx"]
