"""Draws the manual's pictures: `make docs-pictures` into docs/pictures, a test of CI's into a folder of its own.

They are kept in the repository so that the README shows one; Graphviz's `dot` draws them.
`training_pictures` draws those that matplotlib makes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import distributed_pictures
import training_pictures

import flambeau as torch
from flambeau.demo.traces import function
from flambeau.viz import backward_picture, record, render
from flambeau.viz.drawing.picture import Arrow, Box, Picture
from flambeau.viz.drawing.svg import svg_of_picture

PICTURES = Path(__file__).resolve().parent / "pictures"

TENSOR = "lightblue"
YES, NO = "palegreen", "mistyrose"

#: (operation, what it takes, what it gives)
Step = tuple[str, Sequence[str], str]


def flow(steps: Sequence[Step], labels: Mapping[str, str] | None = None,
         colour: Callable[[str], str] = lambda name: TENSOR) -> Picture:
    """Tensors in colour, operations in grey, from left to right, as the documents sketch them."""
    labels = labels or {}
    names = list(dict.fromkeys(name for _, operands, result in steps for name in (*operands, result)))
    picture = Picture("LR", pieces=[Box(name, labels.get(name, name), colour(name)) for name in names])
    for number, (operation, operands, result) in enumerate(steps):
        picture.pieces += [Box(f"op{number}", operation), *(Arrow(name, f"op{number}") for name in operands),
                           Arrow(f"op{number}", result)]
    return picture


# ----- the first document: tensors and operations, there and back -----

def tensors_and_operations(out: Path) -> None:
    there = flow([("multi", ("x", "y"), "z"), ("sum", ("z",), "l")])
    render(there, out / "tensor-function-forward.svg")
    back = Picture("RL", pieces=[
        Box("dl", "dl", TENSOR), Box("back_sum", "back_sum"), Box("dz", "dz", TENSOR), Box("back_mul", "back_multi"),
        Box("dx", "dx", TENSOR), Box("dy", "dy", TENSOR), Arrow("dl", "back_sum"), Arrow("back_sum", "dz"),
        Arrow("dz", "back_mul"), Arrow("back_mul", "dx"), Arrow("back_mul", "dy")])
    render(back, out / "tensor-function-backward.svg")
    both = Picture("LR", pieces=[*there.pieces, *back.pieces, Arrow("l", "dl", dotted=True)])
    render(both, out / "tensor-function.svg")
    A, B, E = (torch.tensor(value, requires_grad=True) for value in (2.0, 0.5, 1.0))
    render(flow([("multi", "AB", "C"), ("exp", "C", "D"), ("sum", "DE", "F")]), out / "exp-flow.svg")
    render(backward_picture((A * B).exp() + E, {"A": A, "B": B, "E": E}), out / "exp-graph.svg")


# ----- the second: a recurrent step, line by line -----

def recurrent_step(out: Path) -> None:
    Wh, Wx = torch.ones(3, 3, requires_grad=True), torch.ones(3, 2, requires_grad=True)
    x, h = torch.ones(2, 1), torch.ones(3, 1)
    i2h, h2h = Wx.mm(x), Wh.mm(h)
    total = i2h + h2h
    next_h = total.tanh()
    result = next_h.sum()
    names = {"Wh": Wh, "Wx": Wx}
    render(backward_picture(result, names), out / "recurrent-step.svg")
    render(backward_picture(result, names, show_attrs=True, show_saved=True), out / "recurrent-step-saved.svg")

    steps: list[Step] = [("mm", ("Wh", "h"), "h2h"), ("mm", ("Wx", "x"), "i2h"), ("add", ("h2h", "i2h"), "next_h"),
                         ("tanh", ("next_h",), "new"), ("sum", ("new",), "out")]
    render(flow(steps[:2]), out / "recurrent-growth-1.svg")
    render(flow(steps[:3]), out / "recurrent-growth-2.svg")
    unnamed = {"next_h": "unnamed", "new": "next_h"}
    render(flow(steps[:4], unnamed), out / "recurrent-growth-3.svg")
    render(flow(steps, unnamed), out / "recurrent-growth-4.svg")

    tensors = {"Wh": Wh, "h": h, "Wx": Wx, "x": x, "h2h": h2h, "i2h": i2h, "next_h": total, "new": next_h,
               "out": result}
    said = {name: f"{unnamed.get(name, name)}\nrequires_grad={tensor.requires_grad}"
            for name, tensor in tensors.items()}
    render(flow(steps, said, lambda name: YES if tensors[name].requires_grad else NO), out / "requires-grad.svg")


def names_and_branches(out: Path) -> None:
    """A name given twice; x² + x³, whole and with one branch detached."""
    twice = [("mul", ("x", "w1"), "first"), ("mul", ("first", "w2"), "y"), ("pow 2", "y", "out")]
    render(flow(twice, {"first": "(old y)"}), out / "new-node.svg")
    x = torch.ones(10, requires_grad=True)
    render(backward_picture((x ** 2 + x ** 3).sum(), {"x": x}), out / "branch-whole.svg")
    render(backward_picture((x.detach() ** 2 + x ** 3).sum(), {"x": x}), out / "branch-detached.svg")


# ----- the third: leaves and a root -----

def leaves_and_root(out: Path) -> None:
    a, b, c, d = (torch.tensor([value], requires_grad=True) for value in (2.0, 3.0, 5.0, 10.0))
    steps = [("mul", "ab", "u"), ("log", "d", "t"), ("mul", "tc", "v"), ("add", "uv", "e")]
    render(flow(steps), out / "leaves-flow.svg")
    render(backward_picture(a * b + torch.log(d) * c, {"a": a, "b": b, "c": c, "d": d}), out / "leaves-graph.svg")


# ----- the fourth: traces, and what make_dot draws -----

def traces(out: Path) -> None:
    program = record(function, 2.0, 5.0)
    render(program.forward_picture(), out / "forward-graph.svg")
    render(program.reverse_picture(), out / "reverse-graph.svg")
    x1, x2 = torch.tensor(2.0, requires_grad=True), torch.tensor(5.0, requires_grad=True)
    render(backward_picture(function(x1, x2), {"x1": x1, "x2": x2}), out / "autograd-graph.svg")
    x = torch.tensor(5.0, requires_grad=True)
    render(backward_picture(3 * x ** 2 + x + 4 * torch.sin(x), {"x": x}), out / "scalar-graph.svg")
    X = torch.ones(3, 4, 4, requires_grad=True)
    render(backward_picture(X ** 2 + torch.sin(X), {"x": X}), out / "tensor-graph.svg")


# ----- a network, with Graphviz and without -----

def digits(out: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Dropout(0.2),
                                torch.nn.Linear(128, 10))
    loss = torch.nn.functional.cross_entropy(model(torch.rand(32, 64)), torch.randint(0, 10, (32,)))
    picture = backward_picture(loss, dict(model.named_parameters()))
    render(picture, out / "digits-graph.svg")
    (out / "digits-graph-layered.svg").write_text(svg_of_picture(picture), encoding="utf-8")


# ----- docs/architecture.md -----

def architecture(out: Path) -> None:
    source = Path(__file__).resolve().parent / "architecture.dot"
    subprocess.run(["dot", "-Tsvg", str(source), "-o", str(out / "architecture.svg")], check=True)


GRAPHS = (architecture, tensors_and_operations, recurrent_step, names_and_branches, leaves_and_root, traces, digits)


def main(out: Path = PICTURES) -> None:
    """Draw every picture into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    for draw_some in (*GRAPHS, *training_pictures.PLOTS, distributed_pictures.simulated):
        draw_some(out)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
