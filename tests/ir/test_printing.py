"""Text and cost of kernels."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau import codegen
from flambeau.ir import printing
from flambeau.ir.graph.extern_kernels import FallbackKernel
from flambeau.ir.graph.target import Target
from flambeau.ir.graph.value import Graph
from flambeau.ir.kernels.cost_model import Cost, computed_values, cost_of
from flambeau.ir.schedule.scheduler import Schedule

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")

F4 = np.dtype(np.float32)
F8 = np.dtype(np.float64)


class Example:
    """A graph, its inputs by name, and its plan."""

    def __init__(self, **shapes):
        self.graph = Graph()
        self.inputs = [self.graph.input(i, shape, F4) for i, shape in enumerate(shapes.values())]
        self.names = dict(zip(self.inputs, shapes, strict=True))

    def kernels(self, *values):
        return Schedule(self.graph, [Target(v) for v in values]).kernels

    def lines(self, *values):
        [kernel] = self.kernels(*values)
        return [line.partition(" = ")[2] for line in printing.statements(kernel, self.names)]


def test_operators_bind_as_in_python():
    made = Example(x=(8,), y=(8,))
    x, y = made.inputs
    apply = made.graph.apply
    assert made.lines((x + y) * x - (x - (y - x))) == ["x * (x + y) - (x - (y - x))"]
    assert made.lines(-(x + y) / -x) == ["-(x + y) / -x"]
    assert made.lines((x ** y) ** x) == ["(x ** y) ** x"]
    assert made.lines(x ** (y ** x)) == ["x ** y ** x"]
    assert made.lines(x / (y / x)) == ["x / (y / x)"]
    assert made.lines(made.graph.select(apply("lt", x, y) & apply("ge", x, 2.5), apply("exp", x), 0)) == [
        "where((x < y) & (x >= 2.5), exp(x), 0.0)"]
    assert made.lines(made.graph.cast(x, F8) * 0.1) == ["float64(x) * 0.1"]


def test_shared_subexpressions_are_separate_statements():
    made = Example(x=(8,))
    [x] = made.inputs
    y = made.graph.apply("exp", x)
    [kernel] = made.kernels(y * y + y)
    assert printing.statements(kernel, made.names) == ["%1 = exp(x)", "%3 = %1 + %1 * %1"]


def test_long_formulas_are_split_into_lines():
    made = Example(x=(8,))
    [x] = made.inputs
    y = x
    for i in range(60):
        y = (y + i) * 0.5
    lines = made.lines(y)
    assert len(lines) > 3
    assert all(len(line) < printing.WIDTH + 40 for line in lines)


def test_views():
    made = Example(x=(3, 4), v=(4,), t=(2, 3, 4))
    x, v, t = made.inputs
    graph = made.graph
    assert printing.view_text(graph.permute(x, (1, 0)), made.names) == "x.mT"
    assert printing.view_text(graph.permute(t, (1, 2, 0)), made.names) == "t.permute(1, 2, 0)"
    assert printing.view_text(graph.expand(v, (3, 4)), made.names) == "v"
    assert printing.view_text(graph.reshape(x, (4, 3)), made.names) == "x"
    assert printing.view_text(graph.reshape(x, (4, 3)), made.names, True) == "x.reshape(4, 3)"
    assert printing.view_text(graph.slice(x, 1, 1, 2), made.names) == "x[:, 1:3]"
    assert printing.view_text(graph.slice(x, 1, 0, 2, 2), made.names) == "x[:, 0:3:2]"
    assert printing.view_text(graph.select_index(t, 0, 1), made.names) == "t[1]"
    assert printing.view_text(graph.select_index(graph.slice(t, 2, 1, 2), 0, 0), made.names) == "t[0, :, 1:3]"
    assert printing.view_text(graph.select_index(x, 1, 2), made.names) == "x.as_strided((3,), (4,), 2)"
    assert printing.view_text(graph.expand(v, (3, 4)), {}) == "%1"


def test_printed_slices_match_strides():
    """What is written of slices selects what the strides say."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        shape = tuple(rng.integers(1, 5, rng.integers(1, 4)))
        made = Example(x=tuple(map(int, shape)))
        [x] = made.inputs
        array = np.arange(np.prod(shape)).reshape(shape)
        view = x
        for d in range(len(shape)):
            start = int(rng.integers(0, shape[d]))
            step = int(rng.integers(1, 3))
            length = int(rng.integers(1, (shape[d] - start - 1) // step + 2))
            view = made.graph.slice(view, d, start, length, step)
        text = printing.view_text(view, made.names)
        expected = np.lib.stride_tricks.as_strided(array.reshape(-1)[view.offset:], view.shape,
                                                   [s * array.itemsize for s in view.strides])
        if "as_strided" not in text:
            assert np.array_equal(eval(text, {"x": array}), expected), text


def test_reductions_matmuls_and_constants():
    made = Example(x=(6, 4), w=(4, 3))
    x, w = made.inputs
    graph = made.graph
    assert made.lines(graph.reduce("sum", x, [1])) == ["sum(x, dim=1)"]
    assert made.lines(graph.reduce("max", x * 2, [0, 1])) == ["max(x * 2.0)"]
    assert made.lines(graph.matmul(x, w)) == ["x @ w"]
    ramp = graph.constant(np.arange(4))
    assert printing.literal(ramp) == "arange(4)"
    assert printing.literal(graph.constant(np.array([3., 1.]))) == "constant[2]"
    assert printing.literal(graph.constant(0.1, F4)) == "0.1"


def test_guards_as_expressions():
    made = Example(x=(6,))
    [x] = made.inputs
    graph = made.graph
    found = graph.reduce("any", graph.apply("lt", x, 0) | graph.apply("ge", x * 2, 5), [0])
    assert printing.expression(found, made.names) == "any((x < 0.0) | (x * 2.0 >= 5.0))"
    y = x
    for _ in range(40):
        y = y * y + y
    long = graph.reduce("any", graph.apply("lt", y, 0), [0])
    assert printing.expression(long, made.names) == repr(long)


def test_concatenations_are_written_by_piece():
    made = Example(x=(2, 4), y=(3, 4))
    kernels = made.kernels(made.graph.cat(made.inputs, 0))
    assert [printing.statements(kernel, made.names) for kernel in kernels] == [
        ["%2.flat[0:8] = x"], ["%2.flat[8:20] = y"]]
    assert [cost_of(kernel) for kernel in kernels] == [Cost(64, 0, False), Cost(96, 0, False)]
    assert [printing.kernel_title(kernel) for kernel in kernels] == ["copy", "copy"]


def test_fallback_kernels():
    made = Example(x=(4,))
    whole = FallbackKernel("sort[dim=0]", lambda a: [np.sort(a)], "the primitive sort")
    [y] = made.graph.extern(whole, made.inputs, [((4,), F4)])
    [kernel] = made.kernels(y)
    assert printing.kernel_title(kernel) == "numpy sort"
    assert printing.statements(kernel, made.names) == [f"{y} = sort[dim=0](x)"]
    assert "# the primitive sort" in printing.graph_listing(made.graph, made.names)


def test_titles_name_operations_once_in_order():
    made = Example(x=(8,))
    [x] = made.inputs
    apply = made.graph.apply
    [kernel] = made.kernels(apply("exp", x * 2 + 1) * 3)
    assert printing.kernel_title(kernel) == "elementwise mul+add+exp"
    y = x
    for op in ("sin", "cos", "exp", "tanh", "sqrt", "log"):
        y = apply(op, y)
    [kernel] = made.kernels(y)
    assert printing.kernel_title(kernel) == "elementwise sin+cos+exp+tanh+sqrt…"


def test_cost_counts_each_element_once():
    made = Example(x=(6, 4), v=(4,))
    x, v = made.inputs
    graph = made.graph
    [kernel] = made.kernels((x + graph.expand(v, (6, 4))) * x)
    assert cost_of(kernel) == Cost(4 * (24 + 4 + 24), 48, False)
    [kernel] = made.kernels(graph.apply("exp", graph.slice(x, 0, 1, 2)))
    assert cost_of(kernel) == Cost(4 * (8 + 8), 160, False)
    [kernel] = made.kernels(graph.reduce("sum", x * x, [1]))
    assert cost_of(kernel) == Cost(4 * (24 + 6), 48, False)
    [kernel] = made.kernels(graph.cast(x, F8) * 2)
    assert cost_of(kernel) == Cost(24 * (4 + 8), 24, True)


def test_cost_of_matmuls_and_convolutions():
    made = Example(a=(5, 7), b=(7, 3), image=(2, 4, 6, 6), kernel=(8, 2, 3, 3))
    a, b, image, weight = made.inputs
    [kernel] = made.kernels(made.graph.matmul(a, b))
    assert cost_of(kernel) == Cost(4 * (35 + 21 + 15), 2 * 5 * 7 * 3, False)
    conv = made.graph.convolve("forward", image, weight, (2, 8, 4, 4), (1, 1), (0, 0), (1, 1), 2)
    [kernel] = made.kernels(conv)
    flops = 2 * (2 * 8 * 4 * 4) * 2 * 9
    assert cost_of(kernel).flops == flops
    assert printing.statements(kernel, made.names) == [f"{conv} = conv(image, kernel, groups=2)"]
    grad = made.graph.convolve("weight", conv, image, (8, 2, 3, 3), (1, 1), (0, 0), (1, 1), 2)
    assert cost_of(made.kernels(grad)[-1]).flops == flops
    back = made.graph.convolve("image", conv, weight, (2, 4, 6, 6), (1, 1), (0, 0), (1, 1), 2)
    assert cost_of(made.kernels(back)[-1]).flops == flops


def test_computed_values_exclude_kernel_inputs():
    made = Example(x=(6, 4), w=(4, 3))
    x, w = made.inputs
    y = made.graph.matmul(x * 2, w)
    first, second = made.kernels(y)
    assert [v.op for v in computed_values(first)] == ["mul"]
    assert [v.op for v in computed_values(second)] == ["matmul"]
