"""Values of exported models compared with those of their programs; modules that know how they are exported."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.onnx.testing import assert_onnx_program
from flambeau.onnx.verification import VerificationInfo, verify_onnx_program

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 3)

    def forward(self, x, *, scale):
        return self.linear(x).relu() * scale, x + 1


@pytest.fixture(scope="module")
def program():
    torch.manual_seed(0)
    n = torch.export.Dim("n")
    return torch.onnx.export(Scaled(), (torch.randn(4, 2),), kwargs={"scale": torch.tensor(2.)},
                             dynamic_shapes={"x": {0: n}, "scale": None})


def test_outputs_and_values_between_them(program):
    outputs = verify_onnx_program(program)
    assert [info.name for info in outputs] == [each.name for each in program.model.graph.output]
    args, kwargs = (torch.randn(7, 2),), {"scale": torch.tensor(-1.)}
    inside = verify_onnx_program(program, args, kwargs, compare_intermediates=True)
    assert {info.name for info in outputs} < {info.name for info in inside}
    assert all(info.max_abs_diff < 1e-5 for info in (*outputs, *inside))
    name = program.model.graph.node[0].output[0]
    linear, x = program.compute_values([name, "x"], args, kwargs)
    assert x.equal(args[0])
    torch.testing.assert_close(linear, args[0] @ program.exported_program.state_dict["linear.weight"].detach().T
                               + program.exported_program.state_dict["linear.bias"].detach())
    with pytest.raises(ValueError, match="Value 'y' not found in the model"):
        program.compute_values(["y"], args, kwargs)


def test_a_changed_model_is_found():
    changed = torch.onnx.export(Scaled(), (torch.ones(1, 2),), kwargs={"scale": torch.tensor(2.)})
    for backend in ("onnxruntime", "reference"):
        assert_onnx_program(changed, backend=backend)
    changed.apply_weights({"linear.bias": torch.full((3,), 9.)})
    for backend in ("onnxruntime", "reference"):
        with pytest.raises(AssertionError, match="not close"):
            assert_onnx_program(changed, backend=backend)
    assert verify_onnx_program(changed)[0].max_abs_diff > 1
    with pytest.raises(ValueError, match="Unsupported backend 'other'"):
        assert_onnx_program(changed, backend="other")
    with pytest.raises(ValueError, match="Expected strategy 'Strict'"):
        assert_onnx_program(changed, strategy="Strict")
    with pytest.raises(ValueError, match="does not contain an exported_program"):
        verify_onnx_program(torch.onnx.ONNXProgram(changed.model))


@pytest.mark.parity
def test_differences_are_pytorchs():
    pytorch = pytest.importorskip("torch")
    from torch.onnx.verification import VerificationInfo as PyTorchs

    for x, y in (([1., 2.], [1., 2.5]), ([True, False], [True, True]), ([], []), (3, 4.)):
        expected = PyTorchs.from_tensors("x", pytorch.tensor(x), pytorch.tensor(y)).asdict()
        got = VerificationInfo.from_tensors("x", torch.tensor(x), torch.tensor(y)).asdict()
        assert str(got).replace("flambeau.", "torch.") == str(expected)


def test_axes_are_renamed(program):
    shape = program.model.graph.input[0].type.tensor_type.shape
    program.rename_axes({"n": "rows"})
    assert shape.dim[0].dim_param == "rows"
    program.rename_axes({"rows": "n"})
    assert {each.type.tensor_type.shape.dim[0].dim_param for each in program.model.graph.output} == {"n"}


def test_modules_with_their_own_arguments():
    class Sum(torch.onnx.ExportableModule):
        def forward(self, x, y):
            return x + y

        def example_arguments(self):
            return (torch.ones(2),), {"y": torch.ones(2)}

        def dynamic_shapes(self):
            n = torch.export.Dim("n")
            return {"x": {0: n}, "y": {0: n}}

        def input_names(self):
            return ["left", "right"]

        def output_names(self):
            return ["sum"]

    made = torch.onnx.export(Sum())
    assert [each.name for each in (*made.model.graph.input, *made.model.graph.output)] == ["left", "right", "sum"]
    assert made(torch.ones(5), y=torch.ones(5))[0].tolist() == [2.] * 5
    with pytest.raises(TypeError, match="abstract"):
        torch.onnx.ExportableModule()
