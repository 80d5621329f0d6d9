"""Demo, part 2: gradient descent on |x| + (x - 5)² (convex) and on x cos 4x + 2|x| (many minima)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

import flambeau as torch
from flambeau.viz import Descent, descend, plot_descent

TITLE = "Gradient descent on a convex and a non-convex function"

STEPS = 150


def convex(x: Any) -> Any:
    """|x| + (x - 5)², with its minimum at 4.5."""
    return torch.abs(x) + (x - 5) ** 2


def non_convex(x: Any) -> Any:
    """x cos 4x + 2|x|, with a local minimum every quarter turn."""
    return x * torch.cos(4 * x) + 2 * torch.abs(x)


def run(objective: Callable[[Any], Any], start: float, step_size: float) -> Descent:
    """Record x ← x - step · f'(x)."""
    return descend(objective, start, step_size=step_size, steps=STEPS,
                   label=f"start {start:g}, step {step_size:g}")


def show(out: Path, console: Console) -> list[Path]:
    """Run the descents, print a table of their ends, and plot them."""
    convex_runs = [run(convex, start, 0.05) for start in (0.0, 10.0)]
    non_convex_runs = [run(non_convex, start, step_size) for start, step_size in (
        (-3.5, 0.05), (-3.5, 0.001), (-2.5, 0.001), (-2.0, 0.001), (-1.0, 0.001), (-0.5, 0.001))]
    table = Table(title_justify="left", box=None, pad_edge=False)
    table.add_column("objective")
    table.add_column("run")
    for head in (f"x after {STEPS} steps", "f(x)", "last step"):
        table.add_column(head, justify="right")
    for name, runs in (("|x| + (x - 5)²", convex_runs), ("x cos 4x + 2|x|", non_convex_runs)):
        for descent in runs:
            x = descent.positions
            table.add_row(name, descent.label, f"{x[-1]:.6f}", f"{descent.heights[-1]:.6f}", f"{x[-1] - x[-2]:.1e}")
    console.print(table)
    return [plot(convex, convex_runs, (0, 10), "|x| + (x - 5)²: every start reaches the minimum",
                 out / "descent-convex.png"),
            plot(non_convex, non_convex_runs, (-5, 5), "x cos 4x + 2|x|: the start determines the minimum, "
                 "and too large a step size does not converge", out / "descent-non-convex.png")]


def plot(objective: Callable[[Any], Any], runs: list[Descent], span: tuple[float, float], title: str,
         path: Path) -> Path:
    """One panel for each run: the objective, the steps taken, the true minimum, the last x."""
    figure = Figure(figsize=(10, 2.9 * -(-len(runs) // 2)), dpi=90, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=12)
    x = torch.linspace(*span, 400)
    lowest = x[torch.argmin(objective(x))].item()
    for descent, ax in zip(runs, figure.subplots(-(-len(runs) // 2), 2, squeeze=False).flat, strict=True):
        plot_descent(objective, descent, span=span, minimum=lowest, title=descent.label,
                     legend=ax is figure.axes[0], ax=ax)
    figure.savefig(path)
    return path
