"""Tables in Markdown, LaTeX and HTML: complete, escaped and parseable."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

import flambeau as torch
from flambeau.ops.declare import ELEMENTWISE, REGISTRY
from flambeau.viz import adjoint_trace, evaluation_trace, tangent_trace
from flambeau.viz.drawing.escaping import escaped
from flambeau.viz.traces.expressions import Symbol
from flambeau.viz.traces.formulas import forward, partial
from flambeau.viz.traces.notation import latex
from flambeau.viz.traces.tables import Cell, Table


def f(x1, x2):
    return torch.log(x1) + x1 * x2 - torch.sin(x2)


def tensors(x, w):
    y = torch.nn.functional.leaky_relu(x @ w, negative_slope=0.2)
    return (torch.softmax(y, 0) * torch.abs(x)).sum().sqrt()


TRACES = {
    "evaluation": lambda: evaluation_trace(f, 2., 5.), "tangent": lambda: tangent_trace(f, 2., 5.),
    "adjoint": lambda: adjoint_trace(f, 2., 5.),
    "tensors": lambda: evaluation_trace(tensors, [1., -2.], [[1., 2.], [3., 4.]]),
    "tensors, backward": lambda: adjoint_trace(tensors, [1., -2.], [[1., 2.], [3., 4.]]),
}


def mathtext(formula):
    """Whether matplotlib, which knows a good part of LaTeX's mathematics, can set a formula."""
    from matplotlib.mathtext import MathTextParser
    MathTextParser("path").parse(f"${formula}$")


def is_balanced(text):
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    assert len(re.findall(r"\\left[(\[|]", text)) == len(re.findall(r"\\right[)\]|]", text))
    begun, ended = re.findall(r"\\begin\{(\w+)\}", text), re.findall(r"\\end\{(\w+)\}", text)
    assert sorted(begun) == sorted(ended)
    assert text.isascii(), [c for c in text if not c.isascii()]


@pytest.mark.parametrize("name", TRACES)
def test_latex(name):
    whole = TRACES[name]().to_latex()
    is_balanced(whole)
    assert whole.startswith(r"\begin{array}{l")
    rows = whole.splitlines()[1:-1]
    columns = len(re.search(r"\{(l+r)\}", whole).group(1))
    assert all(row.count(" & ") == columns - 1 for row in rows if r"\begin" not in row)
    for row in rows:
        for cell in re.split(r" & | \\\\$", row.removesuffix(r" \\")):
            if cell and r"\begin" not in row:
                mathtext(cell)


def test_latex_equals_the_documents_rows():
    rows = evaluation_trace(f, 2., 5.).to_latex().splitlines()
    assert rows[1] == r"v_{-1} = & x_{1} = &  & 2 \\"
    assert rows[3] == r"v_{1} = & \ln v_{-1} = & \ln 2 = & 0.693 \\"
    assert rows[4] == r"v_{2} = & v_{-1} \times v_{0} = & 2 \times 5 = & 10 \\"
    adjoint = adjoint_trace(f, 2., 5.).to_latex()
    assert r"\bar{v}_{2} \times \frac{\partial v_{2}}{\partial v_{0}}" in adjoint
    assert r"\bar{v}_{2} \times v_{-1} + \bar{v}_{3} \times \cos v_{0} = " in adjoint
    assert r"\dot{v}_{-1}" in tangent_trace(f, 2., 5.).to_latex()


@pytest.mark.parametrize("key", [key for key, op in REGISTRY.items()
                                 if op.kind == ELEMENTWISE and op.differentiable and op.n_outputs == 1])
def test_the_latex_of_every_elementwise_operator(key):
    op = REGISTRY[key]
    inputs = [Symbol(f"x{place}", f"x_{{{place}}}") for place in range(len(op.inputs))]
    params = {name: 2 for name in op.params if name not in op.defaults}
    formulas = [forward(op, inputs, params), *(partial(op, place, inputs, Symbol("v"), params)
                                               for place in range(len(inputs)))]
    for formula in formulas:
        if formula is not None:
            written = latex(formula)
            is_balanced(written)
            if r"\begin" not in written:
                mathtext(written)


def test_latex_characters_are_escaped():
    assert escaped("50% of a_b & #1 {x}") == r"50\% of a\_b \& \#1 \{x\}"
    is_balanced(Cell("a_b{c}").latex)


class Reader(HTMLParser):
    """The cells of a table, and whether every tag is closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.rows = [], []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


@pytest.mark.parametrize("name", TRACES)
def test_html_holds_the_same_cells(name):
    trace = TRACES[name]()
    reader = Reader()
    reader.feed(trace.to_html())
    assert reader.open == []
    assert [tuple(row) for row in reader.rows] == [trace.heads, *(tuple(map(str, row)) for row in trace.rows)]


@pytest.mark.parametrize("name", TRACES)
def test_markdown_holds_the_same_cells(name):
    trace = TRACES[name]()
    lines = trace.to_markdown().splitlines()
    cells = [[re.sub(r"\\(.)", r"\1", cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    assert [tuple(cell.strip() for cell in row) for row in (cells[0], *cells[2:])] == [
        trace.heads, *(tuple(map(str, row)) for row in trace.rows)]


def test_markup_characters_are_escaped():
    table = Table("a < b", ("a|b", "c"), [("<script>", "x_1*")])
    assert "<script>" not in table.to_html()
    assert "&lt;script&gt;" in table.to_html()
    assert table.to_markdown().splitlines()[0] == r"| a\|b | c |"
    assert table.to_markdown().splitlines()[2] == r"| \<script> | x\_1\* |"


def test_a_notebook_shows_the_table_and_its_graph():
    pytest.importorskip("matplotlib")
    forward, backward = evaluation_trace(f, 2., 5.), adjoint_trace(f, 2., 5.)
    for trace, direction in ((forward, "LR"), (backward, "RL")):
        shown = trace._repr_html_()
        assert shown.count("<table") == 1
        assert shown.count("<svg") == 1
        assert trace.picture.direction == direction
        assert trace._repr_latex_().startswith("$$\n")
        assert trace._repr_markdown_().startswith("**")
