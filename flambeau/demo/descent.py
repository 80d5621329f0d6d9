"""Gradient descent on |x| + (x - 5)², which has one minimum, and on x cos 4x + 2|x|, which has many."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

import flambeau as torch

TITLE = "Gradient descent, from a good start and from bad ones"

STEPS = 150


def convex(x: Any) -> Any:
    """|x| + (x - 5)², least at 4.5."""
    return torch.abs(x) + (x - 5) ** 2


def non_convex(x: Any) -> Any:
    """x cos 4x + 2|x|, with a valley every quarter turn."""
    return x * torch.cos(4 * x) + 2 * torch.abs(x)


class Descent(NamedTuple):
    """A run of gradient descent: its start and step size, and where it went."""

    start: float
    step_size: float
    path: Any  # (STEPS + 1,) positions
    heights: Any  # (STEPS + 1,) the objective there


def descend(objective: Callable[[Any], Any], start: float, step_size: float) -> Descent:
    """x ← x - step · f'(x), recorded."""
    x: Any = torch.tensor(start, requires_grad=True)
    path, heights = [x.item()], [objective(x).item()]
    for _ in range(STEPS):
        x.grad = None
        objective(x).backward()
        with torch.no_grad():
            x -= step_size * x.grad
        path.append(x.item())
        heights.append(objective(x).item())
    return Descent(start, step_size, np.array(path), np.array(heights))


def show(out: Path, console: Console) -> list[Path]:
    """Run the descents, table where they end, and plot them."""
    one_valley = [descend(convex, start, 0.05) for start in (0.0, 10.0)]
    many_valleys = [descend(non_convex, start, step_size) for start, step_size in (
        (-3.5, 0.05), (-3.5, 0.001), (-2.5, 0.001), (-2.0, 0.001), (-1.0, 0.001), (-0.5, 0.001))]
    table = Table(title_justify="left", box=None, pad_edge=False)
    table.add_column("objective")
    for head in ("start", "step size", f"x after {STEPS} steps", "f(x)", "last step"):
        table.add_column(head, justify="right")
    for name, runs in (("|x| + (x - 5)²", one_valley), ("x cos 4x + 2|x|", many_valleys)):
        for run in runs:
            table.add_row(name, f"{run.start:g}", f"{run.step_size:g}", f"{run.path[-1]:.6f}",
                          f"{run.heights[-1]:.6f}", f"{run.path[-1] - run.path[-2]:.1e}")
    console.print(table)
    return [plot(convex, one_valley, (0, 10), "|x| + (x - 5)²: every start ends in the one minimum",
                 out / "descent-convex.png"),
            plot(non_convex, many_valleys, (-5, 5), "x cos 4x + 2|x|: the start decides the valley, "
                 "and too long a step never settles", out / "descent-non-convex.png")]


def plot(objective: Callable[[Any], Any], runs: list[Descent], span: tuple[float, float], title: str,
         path: Path) -> Path:
    """One panel for each run: the objective, the steps taken, the true minimum, the last x."""
    figure = Figure(figsize=(11, 3.2 * -(-len(runs) // 2)), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    x = torch.linspace(*span, 400)
    y = objective(x)
    lowest = x[torch.argmin(y)].item()
    panels = figure.subplots(-(-len(runs) // 2), 2, squeeze=False).flat
    for run, axes in zip(runs, panels, strict=True):
        _panel(axes, run, x.numpy(), y.numpy(), lowest)
    panels[0].legend(loc="best", fontsize=8)
    figure.savefig(path)
    return path


def _panel(axes: Axes, run: Descent, x: Any, y: Any, lowest: float) -> None:
    axes.plot(x, y, color="0.5", label="objective")
    axes.plot(run.path, run.heights, "o-", markersize=3, linewidth=0.7, color="tab:red", label="gradient steps")
    axes.axvline(lowest, color="tab:green", linewidth=1, label="true minimum")
    axes.axvline(run.path[-1], color="tab:blue", linewidth=1, linestyle="--", label="final x")
    axes.set_title(f"start {run.start:g}, step size {run.step_size:g}", fontsize=10)
    axes.set_xlabel("x")
