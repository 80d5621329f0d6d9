"""Exported programs: what they compute, saving, nesting, decompositions, dynamic sizes, what is refused."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import pytest

import flambeau as torch
from flambeau.export.decomposition import functionalized
from flambeau.export.dynamic_shapes import UserError
from flambeau.fx.experimental.symbolic_shapes import ConstraintViolationError, GuardOnDataDependentSymNode
from flambeau.utils._pytree import tree_leaves
from tests.export.programs import PROGRAMS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def agree(got: Any, expected: Any) -> None:
    for x, y in zip(tree_leaves(got), tree_leaves(expected), strict=True):
        if isinstance(y, torch.Tensor):
            torch.testing.assert_close(x, y, equal_nan=True)
        else:
            assert x == y


def run(program: Any, args: Any) -> Any:
    torch.manual_seed(1)
    return program(*[x.clone() for x in args])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_what_its_module_does(name):
    torch.manual_seed(0)
    module, args = PROGRAMS[name](torch)
    state = {key: value.clone() for key, value in module.state_dict().items()}
    expected = run(module, args)
    written = {key: value.clone() for key, value in module.state_dict().items()}
    module.load_state_dict(state)
    program = torch.export.export(module, args)
    agree(dict(module.state_dict()), state)  # an export leaves the module as it is
    agree(run(program.module(), args), expected)
    agree(dict(module.state_dict()), written)
    module.load_state_dict(state)
    agree(run(torch.export.unflatten(program), args), expected)
    module.load_state_dict(state)
    agree(run(functionalized(program).module(), args), expected)
    agree(dict(module.state_dict()), written)
    module.load_state_dict(state)
    core = program.run_decompositions()
    schemas = [getattr(node.target, "_given_schema", None) for node in core.graph.nodes if node.op == "call_function"]
    assert not [str(schema) for schema in schemas if schema is not None and schema.is_mutable]
    agree(run(core.module(), args), expected)
    module.load_state_dict(state)
    if name == "reductions":
        return  # PyTorch too saves no program that returns a `torch.return_types`
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    assert str(loaded) == str(program)
    agree(run(loaded.module(), args), expected)
    module.load_state_dict(state)


def module_of(forward: Any, **attributes: Any) -> Any:
    class Program(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, value in attributes.items():
                setattr(self, name, value)

    Program.forward = forward
    return Program()


b, s = torch.export.Dim("b"), torch.export.Dim("s", max=64)


def _unpooled(x, dims):
    pool, unpool = (getattr(torch.nn.functional, f"max_{kind}{dims}d") for kind in ("pool", "unpool"))
    return unpool(*pool(x, 2, return_indices=True), 2, output_size=x.shape[-dims:])


@pytest.mark.parametrize(("forward", "shape", "sizes", "further"), [
    (lambda m, x: x.reshape(x.shape[0] * 2, -1), (4, 6), {0: b}, (9, 6)),
    (lambda m, x: x[: x.shape[0] // 2] * x.shape[0], (4, 6), {0: b}, (7, 6)),
    (lambda m, x: x[1:] + x[:-1], (4, 6), {0: b}, (9, 6)),
    (lambda m, x: torch.nn.functional.max_pool1d(x[None], 2), (4, 6), {0: b, 1: s}, (3, 11)),
    (lambda m, x: torch.nn.functional.max_pool1d(x[None], 2, return_indices=True), (4, 6), {0: b, 1: s}, (3, 11)),
    (lambda m, x: _unpooled(x, 1), (4, 6), {0: b, 1: s}, (3, 12)),
    (lambda m, x: _unpooled(x[:, None].repeat(1, 4, 1), 2), (4, 6), {0: b, 1: s}, (3, 12)),
    (lambda m, x: _unpooled(x[:, None, None].repeat(1, 4, 2, 1), 3), (4, 6), {0: b, 1: s}, (3, 12)),
    (lambda m, x: torch.nn.functional.adaptive_max_pool1d(x[None], 2, return_indices=True), (4, 6), {0: b}, (5, 6)),
    (lambda m, x: torch.nn.functional.fractional_max_pool2d(
        x[None, None], 2, output_size=2, return_indices=True, _random_samples=x[:1, :2][None]), (4, 6), {0: b}, (5, 6)),
    (lambda m, x: x.repeat(2, 1).chunk(2), (4, 6), {0: b}, (5, 6)),
    (lambda m, x: x / x.size(0) + torch.arange(x.shape[1], device=x.device), (4, 6), {0: b, 1: s}, (3, 9)),
    (lambda m, x: x.expand(3, *x.shape).flatten(0, 1).softmax(-1), (4, 6), {0: b}, (5, 6)),
    (lambda m, x: torch.nn.functional.pad(x, (0, 8 - x.shape[1])), (4, 6), {0: b}, (5, 6)),
])
def test_other_sizes_than_the_examples(forward, shape, sizes, further):
    module = module_of(forward)
    program = torch.export.export(module, (torch.randn(shape),), dynamic_shapes=(sizes,))
    x = torch.randn(further)
    agree(program.module()(x), module(x))
    agree(program.run_decompositions().module()(x), module(x))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    agree(torch.export.load(file).module()(x), module(x))


def test_modules_with_dynamic_sizes():
    for module, shape, sizes, further in (
            (torch.nn.LSTM(6, 3, batch_first=True), (2, 5, 6), {0: b, 1: s}, (3, 7, 6)),
            (torch.nn.TransformerEncoderLayer(6, 2, 8, batch_first=True).eval(), (2, 5, 6), {0: b, 1: s}, (3, 7, 6)),
            (torch.nn.Conv2d(3, 4, 3, 2), (2, 3, 9, 9), {0: b, 2: torch.export.Dim("h"), 3: torch.export.Dim("w")},
             (1, 3, 12, 15))):
        program = torch.export.export(module, (torch.randn(shape),), dynamic_shapes=(sizes,))
        x = torch.randn(further)
        agree(program.module()(x), module(x))


def test_hints():
    module = module_of(lambda m, x, y: x + y)
    auto = torch.export.Dim.AUTO
    program = torch.export.export(module, (torch.ones(4, 6), torch.ones(4, 6)), dynamic_shapes=({0: auto}, {0: auto}))
    assert program.module()(torch.ones(3, 6), torch.ones(3, 6)).shape == (3, 6)
    with pytest.raises(AssertionError, match=r"Guard failed: y\.size\(\)\[0\] == x\.size\(\)\[0\]"):
        program.module()(torch.ones(3, 6), torch.ones(2, 6))
    fixed = torch.export.export(module_of(lambda m, x: x.view(2, 2, 6)), (torch.ones(4, 6),),
                                dynamic_shapes=({0: auto},))
    assert not fixed.range_constraints
    with pytest.raises(UserError, match="Constraints violated"):
        torch.export.export(module_of(lambda m, x: x.view(2, 2, 6)), (torch.ones(4, 6),), dynamic_shapes=(
            {0: torch.export.Dim.DYNAMIC},))


@pytest.mark.parametrize("forward", [
    lambda m, x: x + 1 if x.shape[0] > 5 else x,
    lambda m, x: sum(x[i] for i in range(x.shape[0])),
    lambda m, x: x.view(4, 6),
    lambda m, x: x + torch.ones(4, 1),
    lambda m, x: [x] * x.shape[0],
    lambda m, x: torch.tensor([x.shape[0]]),
])
def test_decisions_by_a_dynamic_size_are_refused_with_their_line(forward):
    with pytest.raises(UserError, match=r"(?s)Constraints violated \(b\)!.*test_export\.py\", line \d+, in <lambda>"):
        torch.export.export(module_of(forward), (torch.ones(4, 6),), dynamic_shapes=({0: b},))


@pytest.mark.parametrize(("forward", "kind"), [
    (lambda m, x: x + 1 if x.sum() > 0 else x, GuardOnDataDependentSymNode),
    (lambda m, x: x * x.sum().item(), GuardOnDataDependentSymNode),
    (lambda m, x: x[x > 0], UserError),
    (lambda m, x: x.nonzero(), UserError),
])
def test_decisions_by_data_are_refused_with_their_line(forward, kind):
    with pytest.raises(kind, match=r"(?s)aten\.\w+.*test_export\.py\", line \d+, in <lambda>"):
        torch.export.export(module_of(forward), (torch.ones(4, 6),))


@dataclass
class Pair:
    x: Any
    y: Any


@pytest.mark.parametrize(("size", "text"), [
    (6, r"Static shape constraint of 6 does not match input size of 5, for L\['x'\]\[1\].size\(\)\[0\]"),
    (torch.export.Dim("rows", min=6), r"5 not in range \[6, int_oo\]"),
    (torch.export.Dim("rows", max=3), r"5 not in range \[2, 3\]")])
def test_sizes_of_examples_outside_of_their_ranges(size, text):
    class Second(torch.nn.Module):
        def forward(self, x):
            return x[1] * 2

    with pytest.raises(ConstraintViolationError, match=text):
        torch.export.export(Second(), ([torch.ones(2), torch.ones(5, 4)],), dynamic_shapes={"x": [None, {0: size}]})


def test_parameters_precede_buffers_and_modes_are_fixed():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(1))
            self.linear = torch.nn.Linear(2, 1)

        def forward(self, x):
            return self.linear(x) * self.scale

    program = torch.export.export(Scaled(), (torch.ones(3, 2),))
    assert [*program.state_dict] == ["linear.weight", "linear.bias", "scale"]
    for name in ("train", "eval"):
        with pytest.raises(NotImplementedError, match=rf"Calling {name}\(\) is not supported yet\."):
            getattr(program.module(), name)()


@pytest.mark.parametrize("bias", [True, False])
def test_decomposition_of_linear_with_a_dynamic_batch(bias):
    module, x = torch.nn.Linear(3, 2, bias=bias), torch.randn(5, 3)
    program = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},)).run_decompositions()
    targets = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert targets == ["aten.permute.default", "aten.addmm.default" if bias else "aten.mm.default"]
    other = torch.randn(7, 3)
    agree(program.module()(other), module(other))


@pytest.mark.parametrize("value", [1.5, -1.5])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_both_branches_of_cond(value, shape):
    torch.manual_seed(0)

    class Branches(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(4, 5), torch.nn.Linear(4, 5)

        def forward(self, x, t):
            return torch.cond(t > 0, lambda x: {"y": self.a(x).relu(), "s": x.sum()},
                              lambda x: {"y": self.b(x).sin(), "s": x.mean()}, (x,))

    module, x = Branches().eval(), torch.randn(3, 4)
    program = torch.export.export(module, (x, torch.full(shape, 2.0)))
    args = x, torch.full(shape, value)
    agree(program.module()(*args), module(*args))


def test_dataclasses_and_decomposition_tables():
    torch.export.register_dataclass(Pair, serialized_type_name="tests.Pair")
    program = torch.export.export(module_of(lambda m, p: Pair(p.y, p.x + 1)), (Pair(torch.ones(2), torch.zeros(2)),))
    got = program.module()(Pair(torch.ones(2), torch.zeros(2)))
    assert isinstance(got, Pair)
    agree(got.y, torch.full((2,), 2.0))
    table = torch.export.default_decompositions()
    table[torch.ops.aten.silu.default] = lambda x: x * torch.sigmoid(x)
    core = torch.export.export(torch.nn.SiLU(), (torch.ones(2),)).run_decompositions(table)
    assert [str(n.target) for n in core.graph.nodes if n.op == "call_function"] == [
        "aten.sigmoid.default", "aten.mul.Tensor"]


def test_writes_to_inputs_and_buffers_become_outputs():
    def forward(m, x):
        m.count.add_(1)
        x.mul_(2)
        return x + m.count

    module = module_of(forward)
    module.register_buffer("count", torch.zeros(1))
    program = torch.export.export(module, (torch.ones(2),)).run_decompositions()
    assert dict(program.graph_signature.buffers_to_mutate) == {"add": "count"}
    assert dict(program.graph_signature.user_inputs_to_mutate) == {"mul": "x"}
    x = torch.ones(2)
    agree(program.module()(x), torch.full((2,), 3.0))
    agree((x, module.count), (torch.full((2,), 2.0), torch.ones(1)))


def test_programs_know_that_they_are_exported():
    seen = []

    def forward(m, x):
        compiler = torch.compiler
        seen.append((compiler.is_exporting(), compiler.is_compiling(), compiler.is_dynamo_compiling()))
        return x

    torch.export.export(module_of(forward), (torch.ones(1),))
    assert seen == [(True, True, False)]
    assert not torch.compiler.is_exporting()


def test_archives_of_others_are_refused(tmp_path):
    file = tmp_path / "other.pt2"
    file.write_bytes(b"nothing")
    with pytest.raises(RuntimeError, match="no archive"):
        torch.export.load(file)
    torch.save({}, tmp_path / "state.pt")
    with pytest.raises(RuntimeError, match="was not written by"):
        torch.export.load(tmp_path / "state.pt")
    extra = {"note": ""}
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(1),)), file, extra_files={"note": "text"})
    torch.export.load(file, extra_files=extra)
    assert extra == {"note": "text"}


def test_a_range_of_one_and_two():
    """The size is no constant, although there is one size from 2 on."""
    class Halves(torch.nn.Module):
        def forward(self, x):
            return x.view(x.shape[0], -1).sum(1), torch.cat([x, x]).reshape(-1, 3)

    for example in (1, 2):
        shapes = ({0: torch.export.Dim("batch", min=1, max=2)},)
        program = torch.export.export(Halves(), (torch.randn(example, 4, 3),), dynamic_shapes=shapes)
        for n in (1, 2):
            x = torch.randn(n, 4, 3)
            sums, rows = program.module()(x)
            torch.testing.assert_close(sums, x.sum((1, 2)))
            assert rows.shape == (8 * n, 3)
