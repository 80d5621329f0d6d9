"""Dynamic shapes of nested inputs, fake inputs and shared constants: programs, ranges and refusals as PyTorch's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


@dataclass
class Pair:
    """An input of a registered class."""

    x: Any
    y: list[Any]


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    for torch in (flambeau, pytorch):
        torch.export.register_dataclass(Pair, serialized_type_name="tests.export.Pair")


def nested(torch: Any) -> Any:
    class Nested(torch.nn.Module):  # type: ignore[name-defined,misc]
        def forward(self, pair: Any, w: Any, d: Any, n: Any) -> Any:
            return pair.x + pair.y[0] + w[0] + d["k"]

    return Nested()


def inputs(torch: Any, length: int = 4) -> tuple[Any, ...]:
    return Pair(torch.ones(length), [torch.ones(length)]), (torch.ones(length),), {"k": torch.ones(length)}, 3


def outcome(torch: Any, shapes: Any) -> tuple[Any, ...]:
    """The placeholders' shapes and the ranges of an exported program, or the error."""
    try:
        program = torch.export.export(nested(torch), inputs(torch), dynamic_shapes=shapes)
    except Exception as error:
        return type(error).__name__, str(error).replace("flambeau", "torch")
    shown = [tuple(map(str, node.meta["val"].shape)) for node in program.graph.nodes
             if node.op == "placeholder" and hasattr(node.meta["val"], "shape")]
    names = {name: f"size {i}" for i, name in enumerate(dict.fromkeys(name for each in shown for name in each))}
    return [tuple(map(names.get, each)) for each in shown], [str(each) for each in program.range_constraints.values()]


SHAPES = {
    "all": lambda s, dim: ([s, [s]], (s,), {"k": s}, None),
    "by name": lambda s, dim: {"pair": [s, [s]], "w": ({0: dim},), "d": {"k": s}, "n": None},
    "a class": lambda s, dim: (Pair(s, [s]), (s,), {"k": s}, None),
    "fewer children": lambda s, dim: ([s], (s,), {"k": s}, None),
    "another container": lambda s, dim: ([s, [s]], [s], {"k": s}, None),
    "no container": lambda s, dim: ([s, [s]], None, {"k": s}, None),
    "more elements": lambda s, dim: {"pair": [s, [s]], "w": (s, s), "d": {"k": s}, "n": None},
    "other keys": lambda s, dim: ([s, [s]], (s,), {"q": s}, None),
    "fewer inputs": lambda s, dim: ([s, [s]], (s,)),
    "fewer names": lambda s, dim: {"pair": [s, [s]], "w": (s,)},
    "a dimension for a shape": lambda s, dim: ([s, [s]], (dim,), {"k": s}, None),
    "a number for a shape": lambda s, dim: ([s, [s]], (5,), {"k": s}, None),
    "a string for a dimension": lambda s, dim: ([s, [s]], (("x",),), {"k": s}, None),
    "more dimensions": lambda s, dim: ([s, [s]], ((dim, dim),), {"k": s}, None),
    "a dimension that is not there": lambda s, dim: ([s, [s]], ({3: dim},), {"k": s}, None),
    "a dimension for a number": lambda s, dim: ([s, [s]], (s,), {"k": s}, dim),
    "a shape for a number": lambda s, dim: ([s, [s]], (s,), {"k": s}, s),
    "a string": lambda s, dim: "shapes",
    "nothing": lambda s, dim: {},
}


@pytest.mark.parametrize("case", SHAPES)
def test_dynamic_shapes_have_the_structure_of_the_inputs(case):
    results = []
    for torch in (flambeau, pytorch):
        dim = torch.export.Dim("dim", max=10)
        results.append(outcome(torch, SHAPES[case]((dim,), dim)))
    assert results[0] == results[1]


def test_collections_describe_registered_classes_by_lists():
    results = []
    for torch in (flambeau, pytorch):
        dim, args = torch.export.Dim("dim", max=10), inputs(torch)
        by_tensor = torch.export.ShapesCollection()
        for tensor in (args[0].x, args[0].y[0], args[1][0], args[2]["k"]):
            by_tensor[tensor] = (dim,)
        examples = torch.export.AdditionalInputs()
        examples.add(inputs(torch, 5))
        module = nested(torch)
        program = torch.export.export(module, args, dynamic_shapes=by_tensor)
        ranges = [str(each) for each in program.range_constraints.values()]
        results.append((repr(by_tensor.dynamic_shapes(module, args)),
                        repr(examples.dynamic_shapes(module, args)), ranges))
    assert results[0] == results[1]


def test_a_tensor_that_is_several_inputs_has_one_size():
    results = []
    for torch in (flambeau, pytorch):
        class Sum(torch.nn.Module):  # type: ignore[name-defined,misc]
            def forward(self, a: Any, b: Any) -> Any:
                return a + b

        x, dim = torch.ones(4), torch.export.Dim("dim")
        program = torch.export.export(Sum(), (x, x), dynamic_shapes=({0: dim}, {0: dim}))
        results.append(([str(each) for each in program.range_constraints.values()],
                        program.module()(torch.ones(7), torch.ones(7)).tolist()))
    assert results[0] == results[1]


def code_of(program: Any) -> str:
    return re.sub(r"\n *# File:.*", "", str(program)).replace("flambeau", "torch")


def shifted(torch: Any) -> Any:
    class Shifted(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3, 2))
            self.shift = torch.ones(2)

        def forward(self, x: Any, y: Any) -> Any:
            return x[0] + y - self.weight + self.shift

    return Shifted()


def sharing(torch: Any) -> Any:
    class Inner(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.shift, self.scale = torch.ones(3), torch.full((3,), 2.)

        def forward(self, x: Any) -> Any:
            return x * self.scale + self.shift

    class Outer(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()
            self.shift = self.inner.shift

        def forward(self, x: Any) -> Any:
            return x + self.shift + self.inner(x)

    return Outer()


@pytest.mark.parametrize("fake_module", [False, True])
def test_fake_inputs_and_weights_are_examples(fake_module):
    results = []
    for torch, subclasses in ((flambeau, flambeau._subclasses), (pytorch, pytorch._subclasses)):
        mode = subclasses.FakeTensorMode()
        module = shifted(torch)
        with mode:
            if fake_module:
                module = shifted(torch)
            args = ([torch.empty(3, 2)], torch.empty(3, 2))
        program = torch.export.export(module, args)
        if not fake_module:
            given = ([torch.randn(3, 2)], torch.randn(3, 2))
            torch.testing.assert_close(program.module()(*given), module(*given))
        results.append((code_of(program), list(program.state_dict), list(program.constants)))
    assert results[0] == results[1]


def test_a_constant_has_the_name_of_its_first_attribute():
    results = []
    for torch in (flambeau, pytorch):
        module, x = sharing(torch), torch.arange(3.)
        program = torch.export.export(module, (x,))
        torch.testing.assert_close(program.module()(x), module(x))
        torch.testing.assert_close(torch.export.unflatten(program)(x), module(x))
        results.append((code_of(program), list(program.constants)))
    assert results[0] == results[1]


def test_a_map_is_exported():
    from flambeau._higher_order_ops.map import map as mapped

    class Mapped(flambeau.nn.Module):
        def forward(self, xs: Any, y: Any) -> Any:
            return mapped(lambda x, y: x * y, xs, y)

    args = flambeau.arange(6.).reshape(3, 2), flambeau.tensor(5.)
    module = Mapped()
    program = flambeau.export.export(module, args)
    flambeau.testing.assert_close(program.module()(*args), module(*args))
