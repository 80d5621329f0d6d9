"""Exported programs compared with PyTorch: generated code, signatures, ranges of sizes, errors."""

from __future__ import annotations

import re
from typing import Any

import pytest

import flambeau
from tests.export.programs import PROGRAMS

pytorch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def exported(t: Any, name: str) -> Any:
    t.manual_seed(0)
    module, args = PROGRAMS[name](t)
    return t.export.export(module, args)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_code_and_the_signature_are_pytorchs(name):
    expected, got = exported(pytorch, name), exported(flambeau, name)
    assert got.graph_module.code == expected.graph_module.code
    assert str(got.graph_signature) == str(expected.graph_signature)
    assert [n.name for n in got.graph.nodes] == [n.name for n in expected.graph.nodes]
    assert got.module().code == expected.module().code


def structured(t: Any) -> Any:
    class Structured(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = t.nn.Parameter(t.ones(2))
            self.register_buffer("kept", t.ones(2))
            self.register_buffer("other", t.ones(2), persistent=False)
            self.plain = t.ones(2)

        def forward(self, x, ys, d, *rest, flag=True, **named):
            z = x * self.weight + self.kept - self.other * self.plain + t.tensor([1.0, 2.0])
            return {"a": z + ys[0] * d["k"], "b": [ys[1] + rest[0], 3, None], "c": named["z"] + int(flag)}

    def x():
        return t.rand(2)

    return t.export.export(Structured(), (x(), [x(), x()], {"k": x()}, x()), {"flag": False, "z": x()})


def test_structures_of_arguments_and_results():
    expected, got = structured(pytorch), structured(flambeau)
    assert str(got.graph_signature) == str(expected.graph_signature)
    assert got.graph_module.code == expected.graph_module.code
    assert got.module().code == expected.module().code
    assert list(got.state_dict) == list(expected.state_dict)
    assert list(got.constants) == list(expected.constants)
    assert repr(got.graph_signature.user_inputs) == repr(expected.graph_signature.user_inputs)
    assert repr(got.graph_signature.user_outputs) == repr(expected.graph_signature.user_outputs)
    assert str(got.call_spec) == str(expected.call_spec)


def dynamic(t: Any, forward: Any, args: Any, shapes: Any, **modules: Any) -> Any:
    class Program(t.nn.Module):
        def __init__(self):
            super().__init__()
            for name, module in modules.items():
                setattr(self, name, module)

    Program.forward = forward
    return t.export.export(Program(), args, dynamic_shapes=shapes)


def sizes_of(program: Any, t: Any) -> list[str]:
    return [str(tuple(node.meta["val"].shape)) for node in program.graph.nodes
            if node.op != "output" and isinstance(node.meta.get("val"), t.Tensor)]


DYNAMIC = {
    "sum": lambda t, b, s: dynamic(t, lambda m, x, y: x + y, (t.ones(4, 6), t.ones(4, 6)), ({0: b}, {0: b})),
    "product": lambda t, b, s: dynamic(t, lambda m, x: x.view(x.shape[0] * x.shape[1]), (t.ones(4, 6),),
                                       ({0: b, 1: s},)),
    "joined": lambda t, b, s: dynamic(t, lambda m, x, y: t.cat([x, y]).mean(0) * x.shape[0],
                                      (t.ones(4, 6), t.ones(3, 6)), ({0: b}, {0: s})),
    "derived": lambda t, b, s: dynamic(t, lambda m, x, y: x + y[1:], (t.ones(4, 6), t.ones(5, 6)),
                                       ({0: b}, {0: b + 1})),
    "counted": lambda t, b, s: dynamic(t, lambda m, x: t.arange(x.shape[0]), (t.ones(4, 6),), ({0: b},)),
    "made": lambda t, b, s: dynamic(t, lambda m, x: t.zeros(x.shape[0], 2) + x.new_ones(x.size(0), 1), (t.ones(4, 6),),
                                    ({0: b},)),
    "rows": lambda t, b, s: dynamic(t, lambda m, x: x.reshape(-1, 2).sum(0), (t.ones(4, 6),), ({0: b},)),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic_shapes(name):
    def program(t):
        return DYNAMIC[name](t, t.export.Dim("b"), t.export.Dim("s", max=64))

    expected, got = program(pytorch), program(flambeau)
    assert numbered(got.graph_module.code) == numbered(expected.graph_module.code)
    assert sizes_of(got, flambeau) == sizes_of(expected, pytorch)
    assert {str(k): str(v) for k, v in got.range_constraints.items()}.items() <= {
        str(k): str(v) for k, v in expected.range_constraints.items()}.items()


def numbered(code: str) -> str:
    """Code whose nodes of sizes are numbered from 1 in order: PyTorch counts nodes that it has removed again."""
    names = list(dict.fromkeys(re.findall(r"sym_size_int\w*", code)))
    return re.sub(r"sym_size_int\w*", lambda found: f"size_{names.index(found[0])}", code)


@pytest.mark.parametrize(("call", "kind"), [
    (lambda t: t.export.export(lambda x: x, (t.ones(2),)), ValueError),
    (lambda t: t.export.save(1, "file"), TypeError),
    (lambda t: t.export.Dim("1x"), AssertionError),
    (lambda t: t.export.Dim("b", min=4, max=2), AssertionError),
    (lambda t: t.export.export(t.nn.ReLU(), (t.ones(2),))(t.ones(2)), RuntimeError),
    (lambda t: t.export.export(t.nn.ReLU(), (t.ones(2),)).module()(t.ones(3)), AssertionError),
    (lambda t: t.export.export(t.nn.ReLU(), (t.ones(2),)).module()(t.ones(2), t.ones(2)), ValueError),
    (lambda t: t.export.export(t.nn.ReLU(), (t.ones(4),), dynamic_shapes=({0: t.export.Dim("b", max=5)},)).module()(
        t.ones(6)), AssertionError),
])
def test_errors(call, kind):
    with pytest.raises(kind) as expected:
        call(pytorch)
    with pytest.raises(kind) as got:
        call(flambeau)
    assert str(got.value).replace("flambeau", "torch") == str(expected.value)
