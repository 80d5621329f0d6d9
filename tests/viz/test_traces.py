"""The traces of the fourth document, and of other scalar programs."""

from __future__ import annotations

import math

import pytest

import flambeau as torch
from flambeau.viz import adjoint_trace, evaluation_trace, record, tangent_trace
from flambeau.viz.traces.expressions import evaluate


def f(x1, x2):
    return torch.log(x1) + x1 * x2 - torch.sin(x2)


def rounded(trace):
    return {index: round(value, 3) for index, value in trace.values.items()}


@pytest.mark.smoke
def test_the_forward_evaluation_trace():
    assert rounded(evaluation_trace(f, 2., 5.)) == {-1: 2, 0: 5, 1: 0.693, 2: 10, 3: -0.959, 4: 10.693, 5: 11.652}


def test_the_forward_derivative_traces():
    assert rounded(tangent_trace(f, 2., 5., wrt=0)) == {-1: 1, 0: 0, 1: 0.5, 2: 5, 3: 0, 4: 5.5, 5: 5.5}
    assert rounded(tangent_trace(f, 2., 5., wrt=1)) == {-1: 0, 0: 1, 1: 0, 2: 2, 3: 0.284, 4: 2, 5: 1.716}


def test_the_reverse_adjoint_trace():
    assert rounded(adjoint_trace(f, 2., 5.)) == {5: 1, 4: 1, 3: -1, 2: 1, 1: 1, 0: 1.716, -1: 5.5}


def test_the_formulas_equal_the_documents():
    rows = record(f, 2., 5.).evaluation_trace().rows
    assert [row[1] for row in rows] == ["x₁", "x₂", "ln v₋₁", "v₋₁ × v₀", "sin v₀", "v₁ + v₂", "v₄ - v₃", "v₅"]
    assert [row[2] for row in record(f, 2., 5.).evaluation_trace().rows] == [
        "", "", "ln 2", "2 × 5", "sin 5", "0.693 + 10", "10.693 - (-0.959)", ""]
    tangent = {row[0]: row[1:] for row in record(f, 2., 5.).tangent_trace(0).rows}
    assert tangent["v̇₁"] == ("v̇₋₁ / v₋₁", "1 / 2", "0.5")
    assert tangent["v̇₂"] == ("v̇₋₁ × v₀ + v̇₀ × v₋₁", "1 × 5 + 0 × 2", "5")
    assert tangent["v̇₃"] == ("v̇₀ × cos v₀", "0 × cos 5", "0")
    assert tangent["v̇₅"] == ("v̇₄ - v̇₃", "5.5 - 0", "5.5")
    adjoint = {row[0]: row[1:] for row in record(f, 2., 5.).adjoint_trace().rows}
    assert adjoint["v̄₅"] == ("∂y/∂v₅", "", "", "1")
    assert adjoint["v̄₃"] == ("v̄₅ × ∂v₅/∂v₃", "-v̄₅", "", "-1")
    assert adjoint["v̄₀"] == ("v̄₂ × ∂v₂/∂v₀ + v̄₃ × ∂v₃/∂v₀", "v̄₂ × v₋₁ + v̄₃ × cos v₀", "1 × 2 + (-1) × cos 5", "1.716")
    assert adjoint["v̄₋₁"] == ("v̄₁ × ∂v₁/∂v₋₁ + v̄₂ × ∂v₂/∂v₋₁", "v̄₁ / v₋₁ + v̄₂ × v₀", "1 / 2 + 1 × 5", "5.5")
    assert adjoint["∂y/∂x₁"] == ("v̄₋₁", "", "", "5.5")


def test_the_graphs_equal_the_documents():
    program = record(f, 2., 5.)
    forward = [(-1, 1), (-1, 2), (0, 2), (0, 3), (1, 4), (2, 4), (3, 5), (4, 5)]
    drawn = program.forward_picture()
    assert drawn.direction == "LR"
    assert sorted((int(a.tail[2:]), int(a.head[2:])) for a in drawn.arrows()) == forward
    turned = program.reverse_picture()
    assert turned.direction == "RL"
    assert sorted((int(a.head[2:]), int(a.tail[2:])) for a in turned.arrows()) == forward


@pytest.mark.parametrize(("program", "point", "last_formula"), [
    (lambda x: 3 * x ** 2, (5.,), "v₁ × 3"),
    (lambda x: 7 - x, (5.,), "7 - v₀"),
    (lambda x: x - 7, (5.,), "v₀ - 7"),
    (lambda x: x + 7, (5.,), "v₀ + 7"),
    (lambda x: x / 7, (5.,), "v₀ / 7"),
    (lambda x: 2 ** x, (5.,), "2^v₀"),
    (lambda x: x ** 3, (5.,), "v₀³"),
    (lambda x, y: x ** y, (2., 5.), "v₋₁^v₀"),
    (lambda x: torch.atan(x), (5.,), "arctan v₀"),
    (lambda x: torch.exp(-x), (5.,), "exp v₁"),
])
def test_constants_and_other_operators(program, point, last_formula):
    trace = record(program, *point).evaluation_trace()
    assert trace.rows[-2][1] == last_formula
    numbers = [torch.tensor(value, dtype=torch.float64) for value in point]
    assert trace.values[max(trace.values)] == pytest.approx(program(*numbers).item())


@pytest.mark.parametrize("program", [
    lambda x, y: torch.tanh(x * y) / (1 + x ** 2),
    lambda x, y: torch.sqrt(x) * torch.cos(y) - torch.abs(-x) / y,
    lambda x, y: torch.sigmoid(x) ** 2 + torch.atan(y) * 0.5 + torch.add(x, y, alpha=3),
    lambda x, y: 1 / x + 2 ** y - (3 - x),
    lambda x, y: x * 2,
])
def test_three_ways_to_the_same_derivatives(program):
    point = (1.5, 0.7)
    trace = record(program, *point)
    last = trace.last
    for wrt in range(2):
        tangents = trace.tangent_trace(wrt).values
        directions = tuple(torch.tensor(float(place == wrt), dtype=torch.float64) for place in range(2))
        primals = tuple(torch.tensor(value, dtype=torch.float64) for value in point)
        _, slope = torch.func.jvp(program, primals, directions)
        assert tangents[last] == pytest.approx(slope.item())
        assert trace.adjoint_trace().values[wrt - 1] == pytest.approx(slope.item())


def test_a_loop_gives_one_step_for_each_turn():
    def power(x):
        result = x
        for _ in range(4):
            result = result * x
        return result

    assert evaluation_trace(power, 2.).values == {0: 2, 1: 4, 2: 8, 3: 16, 4: 32}
    assert adjoint_trace(power, 2.).values[0] == 80


def test_tensors_can_be_given_and_are_left_alone():
    x = torch.tensor(2., requires_grad=True)
    assert adjoint_trace(lambda x: x.exp(), x).values[0] == pytest.approx(math.exp(2))
    assert x.grad is None


def test_invalid_programs_raise():
    with pytest.raises(ValueError, match="does not depend on its inputs"):
        record(lambda x: torch.tensor(1.), 1.)
    with pytest.raises(ValueError, match="no graph"):
        evaluation_trace(torch.tensor(1.))
    with pytest.raises(TypeError, match="should return a tensor, not float"):
        record(lambda x: 1.0, 1.)
    with pytest.raises(IndexError, match="wrt is 2, but the program has 1 inputs"):
        tangent_trace(lambda x: x * 2, 1., wrt=2)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def written_over(x):
    y = x * 3
    y.mul_(x)
    y[0] = x.sum()
    return y.sin()


W = torch.tensor([[1., 2.], [3., 4.], [-1., 0.5]], dtype=torch.float64, requires_grad=True)
PROGRAMS = {
    "layer": (lambda x, b: torch.tanh(W @ x + b).softmax(0), ([0.5, -0.25], [1., 1., 0.])),
    "activations": (lambda x: (torch.relu(x) ** 3 + torch.nn.functional.gelu(x) * torch.abs(x)).mean(),
                    ([1., -2., 3.],)),
    "broadcast": (lambda x, y: (x * y + y / x).sum(), ([[1., 2.], [3., 4.]], [0.5])),
    "several outputs": (lambda x: x.unbind()[0] * 2 + x.max(dim=0)[0], ([1., 4., 2.],)),
    "split": (lambda x: x.split(2)[1].prod(), ([1., 4., 2., 3.],)),
    "custom": (lambda x: Doubled.apply(x).exp(), (0.5,)),
    "in place": (written_over, ([1., 2.],)),
    "indexing": (lambda x: x[1:] * x[:-1], ([1., 4., 2.],)),
    "cat": (lambda x, y: torch.cat([x, x * y]).logsumexp(0), ([1., 2.], 3.)),
    "loss": (lambda x: torch.nn.functional.mse_loss(x, torch.zeros(3, dtype=torch.float64)), ([1., 2., 3.],)),
    "logits": (lambda x: torch.nn.functional.cross_entropy(x, torch.tensor([1, 0])), ([[1., 2.], [3., 4.]],)),
    "pairs": (lambda x: torch.einsum("i,j->ij", x, x).triu().sum(0), ([1., 2.],)),
    "norm": (lambda x: torch.nn.functional.layer_norm(x, (3,)).clamp(-1, 1), ([1., 4., 2.],)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_tensors(name):
    program, point = PROGRAMS[name]
    trace = record(program, *point)
    leaves = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in point]
    out = program(*leaves)
    assert torch.allclose(torch.as_tensor(trace.evaluation_trace().values[trace.last]).to(out.dtype), out.detach())
    wanted = torch.autograd.grad(out, leaves, torch.ones_like(out))
    found = trace.adjoint_trace()
    for index, gradient in zip(trace.inputs, wanted, strict=True):
        assert torch.allclose(torch.as_tensor(found.values[index]).to(gradient.dtype), gradient), index
    for wrt, leaf in enumerate(leaves):
        pushed = trace.tangent_trace(wrt)
        total = torch.as_tensor(pushed.values[trace.last]).sum().item()
        assert total == pytest.approx(wanted[wrt].sum().item()), leaf
        assert str(pushed)
        assert pushed._repr_html_()
    assert W.grad is None


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_formula_of_a_trace_gives_its_number(name):
    program, point = PROGRAMS[name]
    trace = record(program, *point)
    for table in (trace.tangent_trace(0), trace.adjoint_trace()):
        said = 0
        for index, formula in table.formulas.items():
            if "∂" in str(formula):
                continue
            value = torch.as_tensor(table.values[index])
            assert evaluate(formula) == pytest.approx(value.numpy(), abs=1e-12) or (
                value.numel() == 1 and float(evaluate(formula)) == pytest.approx(value.item())), (index, str(formula))
            said += 1
        assert said or name == "custom"


def test_traces_of_computed_tensors_show_saved_values():
    x1, x2 = torch.tensor(2., requires_grad=True), torch.tensor(5., requires_grad=True)
    y = f(x1, x2)
    for direct, graphs in ((evaluation_trace(f, x1, x2), evaluation_trace(y)),
                           (tangent_trace(f, x1, x2, wrt=1), tangent_trace(y, x2)),
                           (adjoint_trace(f, x1, x2), adjoint_trace(y))):
        assert str(graphs) == str(direct)
    z = (x1 + 7) * x2 / 3
    assert [row[1] for row in evaluation_trace(z).rows[2:-1]] == ["v₋₁ + c", "v₁ × v₀", "v₂ / c"]
    assert adjoint_trace(z).values[-1] == pytest.approx(5 / 3)
    assert x1.grad is None
    z.backward()  # the graph is still whole


def test_a_table_is_aligned_in_text_and_on_a_rich_console():
    from rich.console import Console
    trace = tangent_trace(f, 2., 5.)
    lines = str(trace).splitlines()
    assert lines[0] == "forward derivative trace, by x₁"
    columns = {len(line.replace("\u0307", "")) for line in lines[2:] if "ẋ" not in line and "ẏ" not in line}
    assert len(columns) == 1
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(trace)
    assert "v̇₋₁ × v₀ + v̇₀ × v₋₁" in console.export_text()
    console.file.close()


def test_formulas_with_square_brackets_survive_rich():
    from rich.console import Console
    console = Console(width=100, record=True, file=open("/dev/null", "w"), color_system="truecolor",  # noqa: SIM115
                      force_terminal=True)
    console.print(adjoint_trace(lambda x: x.relu() * 2, 3.))
    assert "[v₁ > 0]" in console.export_text(clear=False)
    assert "\x1b[" in console.export_text(styles=True)
    console.file.close()
