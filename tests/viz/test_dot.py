"""`make_dot` equals torchviz, for flambeau's and for PyTorch's graphs."""

from __future__ import annotations

import builtins
import importlib.util
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import flambeau
from flambeau.viz import make_dot


def canonical(source: str) -> str:
    """A drawing's text with its nodes' names in order of appearance."""
    names: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        return "".join(names.setdefault(part, f"n{len(names)}") if part.isalnum() else part
                       for part in re.split(r"(\w+)", match.group()))

    return re.sub(r"^\t(?!graph|node)\w+( -> \w+)?(?= \[|$)", renamed, source, flags=re.M)


def square(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return 2 * g * x

    return Square.apply


def network(torch):
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.BatchNorm1d(8),
                               torch.nn.Linear(8, 3))


def recurrent_step(torch, x, w):
    """The second document's step: two products, a sum, tanh, a sum."""
    return (x.mm(w) + torch.ones(3, 3).mm(torch.ones(3, 4, requires_grad=True))).tanh().sum(), None


def with_names(torch, x, w):
    return (x @ w).exp().sum(), {"x": x, "w": w}


def view_of_view(torch, x, w):
    return (x @ w).view(-1)[2:5], None


def leaf(torch, x, w):
    return x, None


def view_of_leaf(torch, x, w):
    return x.view(-1), None


def three_outputs(torch, x, w):
    return ((x @ w).exp(), x * 2, (x * 3).view(-1)), None


def own_function(torch, x, w):
    return square(torch)(x).sum(), None


def stacked(torch, x, w):
    return torch.stack([x, x * 2, x ** 2]).sum(), None


def trained_network(torch, x, w):
    model = network(torch)
    loss = torch.nn.functional.cross_entropy(model(torch.ones(5, 4)), torch.tensor([0, 1, 2, 0, 1]))
    return loss, dict(model.named_parameters())


def without_graph(torch, x, w):
    return torch.ones(2), None


PROGRAMS = [recurrent_step, with_names, view_of_view, leaf, view_of_leaf, three_outputs, own_function, stacked,
            trained_network, without_graph]


def built(torch, program):
    x = torch.arange(6.).reshape(3, 2).requires_grad_()
    w = torch.ones(2, 4, requires_grad=True)
    return program(torch, x, w)


@pytest.fixture(scope="module")
def torchviz():
    pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torchviz")


@pytest.mark.parity
@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("attributes", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_pytorchs_graphs_are_drawn_as_torchviz_draws_them(torchviz, program, attributes, saved):
    import torch
    output, params = built(torch, program)
    looks = {"params": params, "show_attrs": attributes, "show_saved": saved}
    assert canonical(make_dot(output, **looks).source) == canonical(torchviz.make_dot(output, **looks).source)


@pytest.mark.parity
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_flambeaus_graphs_look_like_pytorchs(torchviz, program):
    import torch
    expected, expected_params = built(torch, program)
    output, params = built(flambeau, program)
    assert (canonical(make_dot(output, params).source)
            == canonical(torchviz.make_dot(expected, expected_params).source))


# Batch norm and the losses keep less for backward than PyTorch's do: that is no deviation of the drawing.
@pytest.mark.parity
@pytest.mark.parametrize("program", [program for program in PROGRAMS if program is not trained_network],
                         ids=lambda program: program.__name__)
def test_what_flambeau_saves_looks_like_what_pytorch_saves(torchviz, program):
    import torch
    expected, _ = built(torch, program)
    output, _ = built(flambeau, program)
    drawn = make_dot(output, show_saved=True).source
    assert canonical(drawn) == canonical(torchviz.make_dot(expected, show_saved=True).source)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_attributes_are_values_that_were_saved(program):
    output, _ = built(flambeau, program)
    assert "method" not in make_dot(output, show_attrs=True).source


@pytest.mark.smoke
def test_sizes_names_and_colours():
    x = flambeau.ones(3, 2, requires_grad=True)
    source = make_dot((x * 2).sum(), params={"x": x}).source
    assert '[label="x\n (3, 2)" fillcolor=lightblue]' in source
    assert '[label="\n ()" fillcolor=darkolivegreen1]' in source


def test_saved_tensors_are_orange_and_bases_darker_green():
    x = flambeau.ones(3, requires_grad=True)
    assert "fillcolor=orange" in make_dot(x ** 2, show_saved=True).source
    assert "darkolivegreen3" in make_dot((x * 2).view(3, 1)).source


def test_long_attributes_are_shortened():
    x = flambeau.ones(1, 1, 1, 1, 1, 1, 2, requires_grad=True)
    assert "..." in make_dot(x.sum(), show_attrs=True, max_attr_chars=12).source


def test_a_deep_graph_needs_no_recursion():
    x = flambeau.ones(1, requires_grad=True)
    y = x
    for _ in range(5000):
        y = y * 1.0001
    assert make_dot(y).source.count("MulBackward0") == 5000


def test_the_picture_grows_with_its_content():
    x = flambeau.ones(1, requires_grad=True)
    small, large = x * 2, x
    for _ in range(100):
        large = large * 2
    assert make_dot(small).graph_attr["size"] == "12,12"
    assert float(make_dot(large).graph_attr["size"].split(",")[0]) > 12


def test_a_freed_graph_can_still_be_drawn():
    x = flambeau.ones(2, requires_grad=True)
    y = (x.exp() * x).sum()
    y.backward()
    assert "[freed]" in make_dot(y, show_attrs=True, show_saved=True).source


def test_params_must_be_tensors():
    x = flambeau.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match=r"params\['x'\] is not a tensor but int"):
        make_dot(x * 2, params={"x": 2})


def test_without_the_graphviz_package_the_error_says_what_to_install(monkeypatch):
    real_import = builtins.__import__

    def no_graphviz(name, *args, **kwargs):
        if name == "graphviz":
            raise ModuleNotFoundError("No module named 'graphviz'", name="graphviz")
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_graphviz)
    with pytest.raises(ModuleNotFoundError, match=re.escape("pip install flambeau[viz]")):
        make_dot(flambeau.ones(2, requires_grad=True) * 2)


# Attributes of a matmul node other than tensors: sizes and strides, also of operands that it did not save.
_SIZES = re.compile(r"^(mat1|mat2|self)_sym_(sizes|strides) *:[^\"\n]*\n?", re.M)


def without_sizes(source):
    """A drawing's text without those lines, and without the padding that depends on the longest of them."""
    text = _SIZES.sub("", source.replace("\\n", "\n"))
    text = re.sub(r"-{10,}", "-", text)
    return re.sub(r'\n?"\]', '"]', re.sub(r" *: +", ": ", text))


@pytest.mark.parity
@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("program", [program for program in PROGRAMS if program is not trained_network],
                         ids=lambda program: program.__name__)
def test_what_flambeaus_nodes_show_is_what_pytorchs_show(torchviz, program, saved):
    import torch
    expected, names = built(torch, program)
    output, params = built(flambeau, program)
    drawn = make_dot(output, params, show_attrs=True, show_saved=saved).source
    wanted = torchviz.make_dot(expected, names, show_attrs=True, show_saved=saved).source
    assert without_sizes(canonical(drawn)) == without_sizes(canonical(wanted))


ALIASED = """
import sys, warnings
warnings.simplefilter("ignore")
import flambeau.alias
flambeau.alias.install()
import torch, torchviz
assert torch.__version__.endswith(flambeau.__version__)
sys.path.insert(0, {folder!r})
import test_dot
from flambeau.viz import make_dot
for program in test_dot.PROGRAMS:
    for attributes in (False, True):
        for saved in (False, True):
            output, params = test_dot.built(torch, program)
            looks = dict(params=params, show_attrs=attributes, show_saved=saved)
            mine, theirs = make_dot(output, **looks), torchviz.make_dot(output, **looks)
            assert test_dot.canonical(mine.source) == test_dot.canonical(theirs.source), program.__name__
print("the same")
"""


def test_torchviz_itself_draws_flambeaus_graphs_through_the_alias():
    if importlib.util.find_spec("torchviz") is None:
        pytest.skip("torchviz is not installed")
    done = subprocess.run([sys.executable, "-c", ALIASED.format(folder=str(Path(__file__).parent))],
                          capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "the same", done.stderr
