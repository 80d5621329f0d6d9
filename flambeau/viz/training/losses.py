"""Loss curves of several runs, with moving averages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .canvas import INK, array_of, axes_for, colour_of, named, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def smoothed(values: Any, weight: float) -> np.ndarray[Any, Any]:
    """The bias-corrected exponential moving average, sₖ = w sₖ₋₁ + (1 - w) xₖ.

    Values that are not finite are skipped.

    >>> from flambeau.viz.training.losses import smoothed
    >>> smoothed([4., 2., 2.], 0.5).round(3).tolist()
    [4.0, 2.667, 2.286]
    """
    total = mass = 0.0
    found = []
    for value in np.asarray(values, float):
        if np.isfinite(value):
            total = weight * total + (1 - weight) * float(value)
            mass = weight * mass + (1 - weight)
        found.append(total / mass if mass else float("nan"))
    return np.array(found)


def plot_losses(runs: Any, *, smooth: float = 0.0, log: bool = True, legend: bool = True,
                xlabel: str = "step", ylabel: str = "loss", title: str | None = None, ax: Axes | None = None) -> Axes:
    """Plot losses over the steps of one or several runs.

    Args:
        runs: the losses of a run (a tensor, or a list of numbers or 0-d tensors), or several: a list, or a
            mapping from their names.
        smooth: the weight of the past in the moving average, in [0, 1): 0.9 averages about ten steps. The losses
            themselves are drawn faintly.
        log: use a logarithmic loss axis, unless a loss is 0 or less.
        legend: show the names of runs.
        xlabel, ylabel, title: labels.
        ax: the axes; a new figure if None.

    Returns:
        The axes.

    Raises:
        ValueError: `smooth` is outside [0, 1).

    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from flambeau.viz import plot_losses
    >>> ax = plot_losses({"sgd": [3., 2., 1.5], "adam": [3., 1., .4]}, smooth=0.5)
    >>> ax.get_yscale(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('log', ['sgd', 'adam'])
    """
    if not 0 <= smooth < 1:
        raise ValueError(f"smooth should lie in [0, 1), but is {smooth}")
    ax = axes_for(ax)
    curves = {name: np.asarray(array_of(run), float).ravel() for name, run in named(runs, "run").items()}
    for place, (name, values) in enumerate(curves.items()):
        steps, colour = np.arange(1, len(values) + 1), colour_of(place)
        if smooth:
            ax.plot(steps, values, color=colour, linewidth=0.8, alpha=0.3, label="_each step")
        shown = smoothed(values, smooth) if smooth else values
        ax.plot(steps, shown, color=colour, linewidth=1.8, label=name or ylabel)
        if len(values):
            ax.plot(steps[-1:], shown[-1:], "o", color=colour, markersize=4, label="_last")
    if log and all((values[np.isfinite(values)] > 0).all() for values in curves.values()):
        ax.set_yscale("log")
        ax.grid(True, which="minor", axis="y", color="#f1f5f9", linewidth=0.5)
    if legend and any(curves):
        ax.legend(fontsize=9, frameon=False, labelcolor=INK)
    ax.margins(x=0.02)
    return titled(ax, title, xlabel, ylabel)
