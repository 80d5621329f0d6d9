"""`aoti_compile_and_package`: exported programs as files, and their compiled functions."""

from __future__ import annotations

import io

import pytest

import flambeau as torch


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 3)
        self.register_buffer("scale", torch.ones(3))

    def forward(self, x, *, y):
        return {"scaled": self.linear(x) * self.scale + y, "sum": x.sum()}


@pytest.fixture
def module():
    torch.manual_seed(0)
    return Scaled()


@pytest.fixture
def program(module):
    return torch.export.export(module, (torch.ones(4, 2),), {"y": torch.ones(3)},
                               dynamic_shapes={"x": {0: torch.export.Dim("n")}, "y": None})


def test_a_loaded_package_computes_as_the_module(module, program, tmp_path):
    path = torch._inductor.aoti_compile_and_package(program, package_path=tmp_path / "model.pt2")
    loaded = torch._inductor.aoti_load_package(path)
    for size in (4, 7, 3):
        x = torch.randn(size, 2)
        found, expected = loaded(x, y=torch.ones(3)), module(x, y=torch.ones(3))
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value.detach())
            assert not found[name].requires_grad


def test_constants_are_replaced(module, program):
    loaded = torch._inductor.aoti_load_package(torch._inductor.aoti_compile_and_package(
        program, package_path=io.BytesIO()))
    assert loaded.get_constant_fqns() == ["linear.weight", "linear.bias", "scale"]
    assert loaded.get_metadata()["AOTI_DEVICE_KEY"] == "cpu"
    x = torch.ones(1, 2)
    for user_managed in (False, True):
        loaded.load_constants({"scale": torch.zeros(3)}, check_full_update=False, user_managed=user_managed)
        assert loaded(x, y=torch.ones(3))["scaled"].tolist() == [[1.0, 1.0, 1.0]]
    with pytest.raises(RuntimeError, match=r"Missing constants: linear.weight, linear.bias"):
        loaded.load_constants({"scale": torch.zeros(3)}, check_full_update=True)
    with pytest.raises(RuntimeError, match=r"Unexpected constants: shift"):
        loaded.load_constants({"shift": torch.zeros(3)}, check_full_update=False)


def test_what_is_refused(program, tmp_path):
    with pytest.raises(ValueError, match=r"Only ExportedProgram is supported"):
        torch._inductor.aoti_compile_and_package(3)
    with pytest.raises(AssertionError, match=r"ending in .pt2"):
        torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "model.so"))
    with pytest.raises(RuntimeError, match=r"Unexpected optimization option"):
        torch._inductor.aoti_compile_and_package(program, inductor_configs={"no_such": 1})
    torch.export.save(program, tmp_path / "saved.pt2")
    with pytest.raises(RuntimeError, match=r"not written by aoti_compile_and_package"):
        torch._inductor.aoti_load_package(tmp_path / "saved.pt2")
