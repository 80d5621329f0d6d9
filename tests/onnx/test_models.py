"""Models exported to ONNX: checked, run by onnxruntime against eager mode; options, files, what is refused."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import flambeau as torch
from flambeau.onnx import verification
from flambeau.onnx.errors import OnnxExporterError, UnsupportedOperatorError
from flambeau.utils._pytree import tree_leaves
from tests.export.programs import PROGRAMS

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.filterwarnings(
    "ignore::DeprecationWarning")]

#: programs with operators that ONNX does not have, or with random numbers
_WITHOUT = {"pointwise": "aten.lgamma.default", "training_norm": None}


def agree(got: Any, expected: Any) -> None:
    for result, value in zip(tree_leaves(got), tree_leaves(expected), strict=True):
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(result, value.detach(), rtol=1e-4, atol=1e-5, equal_nan=True)
        else:
            assert result == value


@pytest.mark.parametrize("name", PROGRAMS)
def test_models(name):
    torch.manual_seed(0)
    module, args = PROGRAMS[name](torch)
    if name in _WITHOUT:
        if _WITHOUT[name]:
            with pytest.raises(UnsupportedOperatorError, match=rf"(?s){_WITHOUT[name]}.*programs\.py\", line"):
                torch.onnx.export(module, args)
        return
    program = torch.onnx.export(module, args)
    onnx.checker.check_model(program.model_proto, full_check=True)
    agree(program(*args), module(*args))


def module_of(forward: Any) -> Any:
    class Program(torch.nn.Module):
        pass

    Program.forward = forward
    return Program()


batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=512)


class Attention(torch.nn.Module):
    """Self-attention written by hand."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.norm = torch.nn.Linear(12, 36), torch.nn.Linear(12, 12), torch.nn.LayerNorm(12)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, 4, c // 4).permute(2, 0, 3, 1, 4)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(b, n, c))


class Language(torch.nn.Module):
    """A small language model whose output layer has the weights of its embedding."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = torch.nn.Embedding(20, 8), torch.nn.Embedding(32, 8)
        self.attention, self.norm = torch.nn.Linear(8, 24), torch.nn.LayerNorm(8)
        self.head = torch.nn.Linear(8, 20, bias=False)
        self.head.weight = self.tokens.weight
        self.register_buffer("mask", torch.tril(torch.ones(32, 32)).view(1, 1, 32, 32), persistent=False)

    def forward(self, tokens):
        tokens = tokens.long().remainder(20)
        b, t = tokens.size()
        assert t <= 32
        x = self.tokens(tokens) + self.positions(torch.arange(0, t, device=tokens.device))
        q, k, v = (y.view(b, t, 2, 4).transpose(1, 2) for y in self.attention(self.norm(x)).split(8, dim=2))
        scores = (q @ k.transpose(-2, -1)) / k.size(-1) ** 0.5
        scores = scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).contiguous().view(b, t, 8)
        return self.head(x + y)[:, [-1], :]


class Messages(torch.nn.Module):
    """A layer of a graph network."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 6)

    def forward(self, x):
        source = torch.arange(x.size(0)).flip(0)
        return torch.zeros(x.size(0), 6).index_add_(0, source, self.layer(x)[source])


DYNAMIC = {
    "language": lambda: (Language(), (2, 5), {0: batch, 1: torch.export.Dim("length", max=32)}, (3, 9)),
    "messages": lambda: (Messages(), (5, 4), {0: batch}, (7, 4)),
    "mlp": lambda: (torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()), (3, 8), {0: batch}, (5, 8)),
    "attention": lambda: (Attention(), (2, 5, 12), {0: batch, 1: length}, (3, 9, 12)),
    "encoder": lambda: (torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), (2, 5, 8),
                        {0: batch, 1: length}, (3, 4, 8)),
    "lstm": lambda: (torch.nn.LSTM(6, 3, batch_first=True, bidirectional=True), (2, 5, 6), {0: batch, 1: length},
                     (4, 7, 6)),
    "cnn": lambda: (torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, 2, 1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
                                        torch.nn.Upsample(scale_factor=2), torch.nn.AdaptiveAvgPool2d(1),
                                        torch.nn.Flatten()).eval(), (2, 3, 8, 8),
                    {0: batch, 2: torch.export.Dim("h"), 3: torch.export.Dim("w")}, (3, 3, 12, 10)),
    "sizes": lambda: (module_of(lambda m, x: (x[: x.shape[0] // 2] * x.shape[0], torch.arange(x.shape[0]), x.std(0),
                                              x.new_ones(x.shape[0] + 1), x.flatten(), torch.tril(x @ x.T))),
                      (4, 6), {0: batch}, (7, 6)),
    "parts": lambda: (module_of(lambda m, x: (*x.chunk(2, 1), x[1:] + x[:-1], x.repeat(2, 1), x.expand(2, *x.shape),
                                              torch.cat([x, x]), x.reshape(x.shape[0], 2, -1), x.unflatten(1, (2, 3)))),
                      (4, 6), {0: batch}, (7, 6)),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic_sizes(name):
    module, shape, sizes, further = DYNAMIC[name]()
    program = torch.onnx.export(module, (torch.randn(shape),), dynamic_shapes=(sizes,))
    x = torch.randn(further)
    agree(program(x), module(x))
    first = program.model_proto.graph.input[0].type.tensor_type.shape.dim[0]
    assert first.dim_param == "batch"


def test_names_files_and_weights(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(40, 20), torch.nn.Tanh())
    x = torch.randn(3, 40)
    path = tmp_path / "model.onnx"
    program = torch.onnx.export(module, (x,), path, input_names=["features"], output_names=["scores"],
                                dynamic_axes={"features": {0: "rows"}, "scores": {0: "rows"}}, verify=True)
    assert (tmp_path / "model.onnx.data").stat().st_size >= 40 * 20 * 4
    onnx.checker.check_model(str(path))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert [each.name for each in session.get_inputs()] == ["features"]
    assert session.get_inputs()[0].shape == ["rows", 40]
    assert session.get_outputs()[0].shape == ["rows", 20]
    more = torch.randn(7, 40)
    agree(torch.from_numpy(session.run(None, {"features": more.numpy()})[0]), module(more))
    assert {t.name for t in program.model_proto.graph.initializer} >= {"0.weight", "0.bias"}
    torch.onnx.export(module, (x,), tmp_path / "whole.onnx", external_data=False)
    assert not (tmp_path / "whole.onnx.data").exists()
    program.apply_weights({"0.weight": torch.zeros(20, 40), "0.bias": torch.zeros(20)})
    agree(program(x), torch.zeros(3, 20))
    program.save(tmp_path / "bare.onnx", include_initializers=False)
    assert len(onnx.load(tmp_path / "bare.onnx").graph.initializer) == 0
    assert torch.onnx.export(module, (x,), tmp_path / "classic.onnx", dynamo=False, opset_version=20,
                             keep_initializers_as_inputs=True) is None
    assert [each.name for each in onnx.load(tmp_path / "classic.onnx").graph.input] == ["input", "0.weight", "0.bias"]


def test_arguments_by_name_constants_and_structures():
    module = module_of(lambda m, x, ys, *, scale=1.0, flag=True: {"a": x * scale + ys[0], "b": [ys[1], 3]})
    x, ys = torch.randn(2), [torch.randn(2), torch.randn(2)]
    program = torch.onnx.export(module, (x, ys), kwargs={"scale": 2.0})
    agree(program(x, ys, scale=2.0), [x * 2.0 + ys[0], ys[1], 3])
    assert [each.name for each in program.model_proto.graph.input] == ["x", "ys_0", "ys_1"]
    exported = torch.export.export(torch.nn.ReLU(), (x,))
    agree(torch.onnx.export(exported)(x), torch.relu(x))
    half = torch.nn.Linear(2, 2).half()
    agree(torch.onnx.export(half, (x.half(),))(x.half()), half(x.half()))


def test_translations_of_the_program():
    def tenfold(converter, x, **options):
        return converter.op("Mul", converter.x(x), converter.const(10.0))

    x = torch.rand(3)
    program = torch.onnx.export(module_of(lambda m, x: torch.lgamma(x)), (x,), custom_translation_table={
        torch.ops.aten.lgamma.default: tenfold})
    agree(program(x), x * 10)


@pytest.mark.parametrize(("forward", "name"), [
    (lambda m, x: torch.special.i0(x), "i0"),
    (lambda m, x: torch.cummax(x, 0)[0], "cummax"),
    (lambda m, x: torch.linalg.svdvals(x[0]), "svd"),
])
def test_operators_without_a_counterpart_are_refused_with_their_line(forward, name):
    place = r"test_models\.py\", line \d+, in <lambda>"
    with pytest.raises(UnsupportedOperatorError, match=rf"(?s)aten\.\w*{name}.*{place}"):
        torch.onnx.export(module_of(forward), (torch.randn(2, 4, 4),))


def test_versions_are_checked():
    with pytest.raises(ValueError, match="Unsupported ONNX opset version: 9"):
        torch.onnx.export(torch.nn.ReLU(), (torch.ones(1),), opset_version=9)
    assert issubclass(UnsupportedOperatorError, OnnxExporterError)
    assert not torch.onnx.is_in_onnx_export()


class Repeats(torch.nn.Module):
    """Equal nodes, constants that are computed, transpositions that cancel."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        doubled = self.linear(x) + self.linear(x) * (torch.ones(4) * 2 + torch.arange(4))
        return doubled.view(x.shape[0], 2, 2), x.transpose(0, 1).transpose(0, 1) + 1


def test_optimize():
    torch.manual_seed(0)
    module = Repeats()
    program = torch.onnx.export(module, (torch.rand(3, 4),), dynamic_shapes=({0: batch},))
    before = [node.op_type for node in program.model.graph.node]
    names = [each.name for each in program.model.graph.output]
    x = torch.rand(5, 4)
    agree(program(x), module(x))
    program.optimize()
    after = [node.op_type for node in program.model.graph.node]
    assert before.count("Gemm") == 2
    assert after.count("Gemm") == 1
    assert "Transpose" not in after
    assert "Expand" not in after
    assert [each.name for each in program.model.graph.output] == names
    agree(program(x), module(x))  # by a session of the new model
    module.linear.weight.data.fill_(0.5)
    program.apply_weights(module.state_dict())
    agree(program(x), module(x))
    found = verification.verify_onnx_program(program, (x,), compare_intermediates=True)
    assert len(found) > 2
    assert all(each.max_abs_diff < 1e-4 for each in found)


def test_optimize_without_onnxscript(monkeypatch):
    program = torch.onnx.export(torch.nn.ReLU(), (torch.ones(2),))
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(OnnxExporterError, match="onnxscript"):
        program.optimize()
