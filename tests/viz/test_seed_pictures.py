"""Pictures of the four documents: nodes, edges, labels and colours, by Graphviz and by flambeau.

What each should be is in `golden/`: a line `key | label | colour` for each node, `tail->head` for each edge, with what
is special about it. A picture that is meant to change is written anew with `python tests/viz/test_seed_pictures.py`.
"""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import flambeau as torch
from flambeau.viz import backward_picture, record
from flambeau.viz.drawing.svg import svg_of_picture
from flambeau.viz.drawing.x11 import colour_of

GOLDEN = Path(__file__).resolve().parent / "golden"
SVG = "{http://www.w3.org/2000/svg}"


def product_and_sum():
    """The first document: z = x·y, l = Σ z."""
    x, y = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, requires_grad=True)
    return backward_picture((x * y).sum(), {"x": x, "y": y})


def recurrent_step(**looks):
    """The second document: two products, a sum, tanh, a sum."""
    Wh, Wx = torch.ones(3, 3, requires_grad=True), torch.ones(3, 2, requires_grad=True)
    x, h = torch.ones(2, 1), torch.ones(3, 1)
    return backward_picture((Wh.mm(h) + Wx.mm(x)).tanh().sum(), {"Wh": Wh, "Wx": Wx}, **looks)


def recurrent_step_with_what_is_saved():
    return recurrent_step(show_saved=True)


def both_branches():
    """The second document: x² + x³."""
    x = torch.ones(10, requires_grad=True)
    return backward_picture((x ** 2 + x ** 3).sum(), {"x": x})


def one_branch_detached():
    x = torch.ones(10, requires_grad=True)
    return backward_picture((x.detach() ** 2 + x ** 3).sum(), {"x": x})


def leaves_and_root():
    """The third document: e = a·b + ln d · c."""
    a, b, c, d = (torch.tensor([value], requires_grad=True) for value in (2., 3., 5., 10.))
    return backward_picture(a * b + torch.log(d) * c, {"a": a, "b": b, "c": c, "d": d})


def program():
    return record(lambda x1, x2: torch.log(x1) + x1 * x2 - torch.sin(x2), 2., 5.)


def forward_graph():
    """The fourth document: ln x₁ + x₁x₂ - sin x₂, to the right."""
    return program().forward_picture()


def reverse_graph():
    """The same, turned: the way that adjoints go."""
    return program().reverse_picture()


def scalar_expression():
    """The fourth document: 3x² + x + 4 sin x."""
    x = torch.tensor(5., requires_grad=True)
    return backward_picture(3 * x ** 2 + x + 4 * torch.sin(x))


def tensor_expression():
    x = torch.ones(3, 4, 4, requires_grad=True)
    return backward_picture(x ** 2 + torch.sin(x))


PICTURES = [product_and_sum, recurrent_step, recurrent_step_with_what_is_saved, both_branches, one_branch_detached,
            leaves_and_root, forward_graph, reverse_graph, scalar_expression, tensor_expression]


def structure(svg):
    """The nodes and edges of an SVG document, in the manner of the golden files."""
    root = ElementTree.fromstring(svg)
    nodes, edges = [], []
    for group in root.iter(f"{SVG}g"):
        kind = group.get("class", "").split(" ")[0]
        title = group.findtext(f"{SVG}title")
        if kind == "node":
            shape = next(part for part in group if part.tag in (f"{SVG}polygon", f"{SVG}rect", f"{SVG}ellipse"))
            texts = ["".join(text.itertext()).replace("\u200b", "").strip() for text in group.iter(f"{SVG}text")]
            round_ = shape.tag == f"{SVG}ellipse"
            label = ("" if round_ else " / ").join(filter(None, texts))
            fill = shape.get("fill")
            nodes.append(f"{title} | {label} | {'white' if fill == 'none' else fill}{' round' if round_ else ''}")
        elif kind == "edge":
            path = group.find(f"{SVG}path")
            headless = group.find(f"{SVG}polygon") is None and path.get("marker-end") is None
            dotted = path.get("stroke-dasharray") is not None
            edges.append(title + " headless" * headless + " dotted" * dotted)
    return "\n".join([*sorted(nodes, key=natural), *sorted(edges, key=natural)]) + "\n"


def natural(line):
    """Orders v_10 after v_9."""
    return [int(part) if part.lstrip("-").isdigit() else part for part in re.split(r"(-?\d+)", line)]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.__name__)
def test_flambeau_draws_what_the_document_describes(picture):
    expected = (GOLDEN / f"{picture.__name__}.txt").read_text(encoding="utf-8")
    assert structure(svg_of_picture(picture())) == expected


@pytest.mark.skipif(not shutil.which("dot"), reason="there is no dot program here")
@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.__name__)
def test_graphviz_draws_the_same(picture):
    pytest.importorskip("graphviz")
    from flambeau.viz.drawing.dot import to_digraph
    expected = (GOLDEN / f"{picture.__name__}.txt").read_text(encoding="utf-8")
    drawn = structure(to_digraph(picture()).pipe(format="svg", encoding="utf-8"))
    for colour in ("darkolivegreen1", "darkolivegreen3"):
        drawn = drawn.replace(colour, colour_of(colour))
    assert drawn == expected


if __name__ == "__main__":
    for each in PICTURES:
        (GOLDEN / f"{each.__name__}.txt").write_text(structure(svg_of_picture(each())), encoding="utf-8")
