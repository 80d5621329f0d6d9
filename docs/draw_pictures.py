"""Draws the manual's pictures into docs/pictures: `make docs-pictures`, when a drawing has changed.

They are kept in the repository so that the README shows one; Graphviz's `dot` draws them.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import flambeau as torch
from flambeau.demo import show
from flambeau.demo.traces import function
from flambeau.viz import backward_picture, record, render
from flambeau.viz.layered import draw
from flambeau.viz.picture import Arrow, Box, Picture

PICTURES = Path(__file__).resolve().parent / "pictures"

TENSOR, FUNCTION = "lightblue", "lightgrey"
YES, NO = "palegreen", "mistyrose"


def recurrent_step() -> None:
    """The second document's step, plain, with what it saves, and with requires_grad on every tensor."""
    Wh, Wx = torch.ones(3, 3, requires_grad=True), torch.ones(3, 2, requires_grad=True)
    x, h = torch.ones(2, 1), torch.ones(3, 1)
    i2h, h2h = Wx.mm(x), Wh.mm(h)
    total = i2h + h2h
    next_h = total.tanh()
    out = next_h.sum()
    names = {"Wh": Wh, "Wx": Wx}
    render(backward_picture(out, names), PICTURES / "recurrent-step.svg")
    render(backward_picture(out, names, show_attrs=True, show_saved=True),
           PICTURES / "recurrent-step-saved.svg")

    tensors = {"Wh": Wh, "h": h, "Wx": Wx, "x": x, "h2h": h2h, "i2h": i2h, "h2h + i2h": total,
               "next_h": next_h, "out": out}
    steps = [("mm", ("Wh", "h"), "h2h"), ("mm", ("Wx", "x"), "i2h"), ("add", ("h2h", "i2h"), "h2h + i2h"),
             ("tanh", ("h2h + i2h",), "next_h"), ("sum", ("next_h",), "out")]
    picture = Picture("LR", pieces=[Box(name, f"{name}\nrequires_grad={tensor.requires_grad}",
                                        YES if tensor.requires_grad else NO)
                                    for name, tensor in tensors.items()])
    for number, (operation, operands, result) in enumerate(steps):
        picture.pieces += [Box(f"op{number}", operation), *(Arrow(name, f"op{number}") for name in operands),
                           Arrow(f"op{number}", result)]
    render(picture, PICTURES / "requires-grad.svg")


def tensor_and_function() -> None:
    """z = x * y, l = z.sum(): tensors and functions, there and back."""
    picture = Picture("LR", pieces=[
        Box("x", "x", TENSOR), Box("y", "y", TENSOR), Box("mul", "multi"), Box("z", "z", TENSOR),
        Box("sum", "sum"), Box("l", "l", TENSOR), Arrow("x", "mul"), Arrow("y", "mul"), Arrow("mul", "z"),
        Arrow("z", "sum"), Arrow("sum", "l"),
        Box("dl", "dl", TENSOR), Box("back_sum", "back_sum"), Box("dz", "dz", TENSOR),
        Box("back_mul", "back_multi"), Box("dx", "dx", TENSOR), Box("dy", "dy", TENSOR),
        Arrow("l", "dl", dotted=True), Arrow("dl", "back_sum"), Arrow("back_sum", "dz"), Arrow("dz", "back_mul"),
        Arrow("back_mul", "dx"), Arrow("back_mul", "dy")])
    render(picture, PICTURES / "tensor-function.svg")


def branches() -> None:
    """The second document's x² + x³, whole and with one branch detached."""
    x = torch.ones(10, requires_grad=True)
    render(backward_picture((x ** 2 + x ** 3).sum(), {"x": x}), PICTURES / "branch-whole.svg")
    render(backward_picture((x.detach() ** 2 + x ** 3).sum(), {"x": x}), PICTURES / "branch-detached.svg")


def traces() -> None:
    program = record(function, 2.0, 5.0)
    render(program.forward_picture(), PICTURES / "forward-graph.svg")
    render(program.reverse_picture(), PICTURES / "reverse-graph.svg")
    x1, x2 = torch.tensor(2.0, requires_grad=True), torch.tensor(5.0, requires_grad=True)
    render(backward_picture(function(x1, x2), {"x1": x1, "x2": x2}), PICTURES / "autograd-graph.svg")


def digits() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Dropout(0.2),
                                torch.nn.Linear(128, 10))
    loss = torch.nn.functional.cross_entropy(model(torch.rand(32, 64)), torch.randint(0, 10, (32,)))
    picture = backward_picture(loss, dict(model.named_parameters()))
    render(picture, PICTURES / "digits-graph.svg")
    draw(picture).savefig(PICTURES / "digits-graph-layered.svg", metadata={"Date": None})


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    for draw_some in (recurrent_step, tensor_and_function, branches, traces, digits):
        draw_some()
    with tempfile.TemporaryDirectory() as folder:
        for path in show(Path(folder)):
            if path.name.startswith(("descent", "digits-training")):
                shutil.copy(path, PICTURES / path.name)


if __name__ == "__main__":
    main()
