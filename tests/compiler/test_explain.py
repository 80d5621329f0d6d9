"""`compile.explain`: kernels with their lines, fallbacks, guards, and reasons for not compiling."""

from __future__ import annotations

import array
import re

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen, nn

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")

HERE = "test_explain.py:"


def explain(function, *args, **kwargs):
    return torch.compile.explain(function)(*args, **kwargs)


def line_of(text):
    """The number of the line of this file that ends with such a comment."""
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if line.rstrip().endswith(f"# {text}"))


def test_kernels_have_formulas_and_source_lines():
    def f(x, y):
        z = x * 2 + y  # first
        return z.exp()  # second

    found = explain(f, torch.ones(3, 4), torch.ones(4))
    assert found.graph_count == 1
    assert found.graph_break_count == 0
    assert found.break_reasons == []
    [kernel] = found.kernels
    title, formula, result, *lines = kernel.splitlines()
    assert title == "0  elementwise mul+add+exp"
    assert re.fullmatch(r" +%\d+ = exp\(x \* 2\.0 \+ y\)", formula)
    assert re.fullmatch(r" +return %\d+", result)
    assert f"{HERE}{line_of('first')}  z = x * 2 + y  # first" in lines[0]
    assert f"{HERE}{line_of('second')}  return z.exp()  # second" in lines[1]


def test_values_have_the_users_names():
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(x, target):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), target)  # loss
        loss.backward()
        optimizer.step()  # step
        return loss

    found = str(explain(step, torch.randn(5, 4), torch.randn(5, 2)))
    for text in ("x @ model[0].weight.mT + model[0].bias", "model[2].weight.exp_avg", "model[0].weight.grad = ",
                 "model[2].bias = ", "betas[1]", "(free to change: ", "lr", "4 modules", "return %",
                 "x is a tensor of float32[5, 4]", "target is a tensor of float32[5, 2]", "grad mode is on",
                 "weight_decay == 0", "these names have the same values: model", "1 optimizer"):
        assert text in found, text
    line = f"{HERE}{line_of('loss')}  loss = nn.functional.mse_loss(model(x), target)  # loss"
    assert f"{line}  (forward and backward)" in found
    assert f"{HERE}{line_of('step')}  optimizer.step()  # step" in found
    assert "  (backward)" in found


def test_saved_values_for_an_outer_backward():
    w = torch.randn(4, 3, requires_grad=True)
    found = explain(lambda x: torch.softmax(x @ w, -1).log().mean(), torch.randn(5, 4))
    text = str(found)
    assert "Its results are differentiable: backward is a program of" in text
    assert "Kernels of backward:" in text
    assert re.search(r"save %\d+ for backward", text)
    assert re.search(r"gradient of w = %\d+", text)
    assert "grad_output" in text
    assert len(found.kernels) > len(found.replay.program.schedule.kernels)


def test_views_are_printed_as_method_calls():
    table = torch.randn(6, 4)
    part = table[2:4].t()

    def f(x):
        return (x[:, 1:3] + part * 2).t() @ x[:, ::2]

    text = str(explain(f, torch.randn(4, 5)))
    assert "part * 2.0 + x[:, 1:3]" in text
    assert ".mT @ x[:, 0:5:2]" in text


def test_arguments_that_are_views():
    text = str(explain(lambda x: x * 2, torch.randn(4, 5)[1:, ::2]))
    assert "= x * 2.0" in text
    assert "x is a tensor of float32[3, 3], strides (5, 2)" in text


def test_slices_of_an_argument():
    def f(x):
        return x[1] + x[:, 1:3].sum(), x.reshape(2, 6).t().contiguous() * 2

    text = str(explain(f, torch.randn(3, 4)))
    assert "x[1] + " in text
    assert "sum(x[:, 1:3])" in text


def test_data_guards_have_outcomes_and_source_lines():
    def f(x):
        if x.sum() > 3:  # condition
            return x * 2
        return x - 1

    more, less = explain(f, torch.ones(4)), explain(f, torch.zeros(4))
    assert any(guard.startswith("sum(x) > 3.0 is True") and f"{HERE}{line_of('condition')}" in guard
               for guard in more.guards)
    assert any(guard.startswith("sum(x) > 3.0 is False") for guard in less.guards)


def test_earlier_calls_do_not_change_the_explanation():
    def f(x):
        return x * 2 if x.sum() > 3 else x - 1

    made = torch.compile(f)
    for x in (torch.ones(4), torch.zeros(4)) * 2:
        made(x)
        made(x)
    more, less = (torch.compile.explain(made)(x) for x in (torch.ones(4), torch.zeros(4)))
    assert "x * 2.0" in str(more)
    assert "x - 1.0" in str(less)


def test_fallback_operators_have_source_lines():
    def f(x):
        y = torch.sort(x.exp())[0]  # sorting
        return y * 2

    found = explain(f, torch.randn(5))
    [fallback] = found.fallbacks
    assert "sort" in fallback
    assert f"{HERE}{line_of('sorting')}  y = torch.sort(x.exp())[0]  # sorting" in fallback
    assert "Operators that run eagerly, between compiled kernels:" in str(found)
    assert any("numpy sort" in kernel for kernel in found.kernels)


def test_random_numbers_are_drawn_by_the_interpreter():
    found = explain(lambda x: x + torch.rand(3), torch.ones(3))
    assert found.fallbacks[0].startswith("random numbers")


def test_element_reads_are_graph_breaks_with_source_lines():
    def f(x):
        if x.sum().item() > 3:  # reading
            return x * 2
        return x

    found = explain(f, torch.ones(4))
    assert found.replay is None
    assert found.graph_count == 2
    assert found.graph_break_count == 1
    assert len(found.kernels) == 2
    assert found.fallbacks == []
    assert "x is a tensor of float32[4]" in found.guards
    [reason] = found.break_reasons
    assert reason.startswith("item() passes a tensor's elements to Python (")
    text = str(found)
    assert text.startswith("f is split: a call runs 2 programs, with Python between them.")
    assert f"{HERE}{line_of('reading')}  if x.sum().item() > 3:  # reading" in text
    assert f"{HERE}{line_of('reading')}" in found.kernels[0]


def test_a_function_without_a_part_to_compile():
    def f(x):
        return x.tolist()  # listing

    found = explain(f, torch.ones(4))
    assert found.replay is None
    assert found.graph_count == 0
    assert found.graph_break_count == -1
    assert found.kernels == found.guards == found.fallbacks == []
    assert len(found.break_reasons) == 1
    text = str(found)
    assert text.startswith("f is not compiled: each call runs eagerly.")
    assert f"{HERE}{line_of('listing')}  return x.tolist()  # listing" in text
    assert "torch.where" in text


def test_per_call_differences_have_source_lines():
    seen = bytearray()  # neither a list nor a set: no state of programs

    def f(x):
        seen.append(len(seen))  # adding
        return x * len(seen)

    text = str(explain(f, torch.ones(4)))
    assert "seen is changed by the function, which a program does not repeat" in text
    assert f"{HERE}{line_of('adding')}" in text


def test_modules_are_explained_by_parameter_names():
    made = torch.compile(nn.Sequential(nn.Linear(4, 3), nn.ReLU()))
    x = torch.randn(2, 4)
    with torch.no_grad():
        for _ in range(4):
            made(x)
        found = torch.compile.explain(made)(x)  # created before lines are recorded
    assert "maximum(0.0, input @ self[0].weight.mT + self[0].bias)" in str(found)
    assert str(found).startswith("Sequential is compiled")
    assert "grad mode is off" in str(found)


def test_methods_are_explained_by_attribute_names():
    class Trainer:
        def __init__(self):
            self.model = nn.Linear(4, 2)
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)

        def step(self, x):
            self.optimizer.zero_grad()
            loss = self.model(x).square().mean()
            loss.backward()
            self.optimizer.step()
            return loss

    text = str(explain(Trainer().step, torch.randn(3, 4)))
    for each in ("self.model.weight", "self.model.bias.momentum_buffer", "momentum != 0"):
        assert each in text, each


def test_decorated_methods():
    class Layer:
        def __init__(self):
            self.weight = torch.randn(4, 2)

        @torch.compile
        def apply(self, x):
            return x @ self.weight

    text = str(explain(Layer().apply, torch.randn(3, 4)))
    assert text.startswith("apply is compiled")
    assert "= x @ self.weight" in text


def test_arguments_of_every_kind_are_guards():
    def f(x, pair, scale=2.0, *, name="a"):
        return x * scale + pair[0] + pair[1] + len(name)

    x = torch.randn(3, 2).t().requires_grad_()
    guards = explain(f, x, [torch.ones(2, 3), 1], name="ab").guards
    assert guards[:5] == ["x is a tensor of float32[2, 3], strides (1, 2), requires grad",
                          "pair[0] is a tensor of float32[2, 3]", "pair[1] is 1", "name is 'ab'",
                          "the default dtype is float32, and grad mode is on"]


def test_long_formulas_stay_readable():
    def f(x):
        for _ in range(25):
            x = x * x * 0.5 + x  # used three times each
        return x

    found = explain(f, torch.ones(3))
    assert len(str(found)) < 5000


def test_eager_modes_are_reported_as_the_reason():
    made = torch.compile(lambda x: x * 2)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        text = str(torch.compile.explain(made)(torch.ones(2)))
    assert "a mode is active that is not compiled" in text


def test_the_eager_backend():
    found = torch.compile.explain(torch.compile(lambda x: x * 2, backend="eager"))(torch.ones(2))
    assert found.break_reasons == ["its backend runs functions eagerly"]


def test_objects_as_arguments():
    class Options:
        scale = 2.0

    found = explain(lambda x, options: x * options.scale, torch.ones(2), Options())
    assert found.break_reasons == []
    found = explain(lambda x, scales: x * scales[0], torch.ones(2), array.array("d", [2.0]))
    assert found.break_reasons == ["an argument is of class array, whose contents cannot be guarded"]
    assert "Pass the tensors and numbers" in str(found)


def test_objects_that_differ_in_each_call():
    class Batch:
        __slots__ = ("x",)  # attributes in a dictionary would be inputs

        def __init__(self):
            self.x = torch.ones(2)

    made = torch.compile(lambda batch: batch.x * 2)
    for _ in range(12):
        made(Batch())
    assert torch.compile.explain(made)(Batch()).break_reasons == [
        "an argument is another object each time, of class Batch"]


def test_explain_has_only_the_functions_side_effects():
    total = torch.zeros(2)

    def f(x):
        total.add_(x)
        return total * 2

    made = torch.compile(f)
    explanation = torch.compile.explain(made)(torch.ones(2))
    assert total[0].item() == 1  # it calls the function until there is a program, but leaves the effects of one call
    assert np.allclose(made(torch.ones(2)).numpy(), 4)
    assert "total = %" in str(explanation)
