"""Demo, part 1: traces and graphs of f(x₁, x₂) = ln x₁ + x₁x₂ - sin x₂ at (2, 5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

import flambeau as torch
from flambeau.viz import backward_picture, record, render

TITLE = "One function, traced forward and backward"


def function(x1: Any, x2: Any) -> Any:
    """ln x₁ + x₁x₂ - sin x₂."""
    return torch.log(x1) + x1 * x2 - torch.sin(x2)


def show(out: Path, console: Console) -> list[Path]:
    """Print the traces and the derivatives of both modes, and draw the graphs."""
    program = record(function, 2.0, 5.0)
    console.print("f(x₁, x₂) = ln x₁ + x₁x₂ - sin x₂, at (2, 5)\n")
    console.print(program.evaluation_trace())
    forward = [program.tangent_trace(wrt) for wrt in (0, 1)]
    for table in forward:
        console.print(table)
    reverse = program.adjoint_trace()
    console.print(reverse)

    point: tuple[Any, ...] = torch.tensor(2.0), torch.tensor(5.0)
    for wrt in range(2):
        directions = tuple(torch.tensor(float(place == wrt)) for place in range(2))
        value, slope = torch.func.jvp(function, point, directions)
        console.print(f"torch.func.jvp, one forward pass:   f = {value.item():.3f}, "
                      f"∂f/∂x{'₁₂'[wrt]} = {slope.item():.3f}")
    leaves: list[Any] = [coordinate.requires_grad_() for coordinate in point]
    output = function(*leaves)
    output.backward()
    gradients = ", ".join(f"∂f/∂x{'₁₂'[place]} = {leaf.grad.item():.3f}" for place, leaf in enumerate(leaves))
    console.print(f"backward(), one reverse pass:       f = {output.item():.3f}, {gradients}")

    return [render(program.forward_picture(), out / "forward-graph.png"),
            render(program.reverse_picture(), out / "reverse-adjoint-graph.png"),
            render(backward_picture(output, params={"x1": leaves[0], "x2": leaves[1]}),
                   out / "autograd-graph.png")]
