"""Histograms of weights and activations, by layer and over training steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...engine.grad_mode import no_grad
from .canvas import INK, MUTED, array_of, axes_for, colour_of, named, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OVERLAP = 1.5  # height of peaks in rows
_BANDS = ((0.02, 0.98, (0, (2, 2))), (0.25, 0.75, "-"))  # quantiles, and the line's dashes


def activations(model: Any, *inputs: Any) -> dict[str, Any]:
    """The outputs of all innermost modules of a model, by name.

    Args:
        model: a module; it is called once, in its current mode, under `no_grad`.
        inputs: its arguments.

    Returns:
        The last output of each module.

    >>> import flambeau as torch
    >>> from flambeau.viz import activations
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> {name: tuple(x.shape) for name, x in activations(model, torch.ones(4, 2)).items()}
    {'0': (4, 3), '1': (4, 3)}
    """
    outputs: dict[str, Any] = {}

    def make_hook(name: str) -> Any:
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            tensor = output[0] if isinstance(output, (tuple, list)) else output
            if hasattr(tensor, "detach"):
                outputs[name] = tensor.detach().clone()

        return hook

    inner = [(name, module) for name, module in model.named_modules() if not list(module.children())]
    handles = [module.register_forward_hook(make_hook(name or type(module).__name__)) for name, module in inner]
    try:
        with no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return outputs


def plot_histograms(tensors: Any, *, bins: int = 80, span: tuple[float, float] | None = None,
                    gradients: bool = False, title: str | None = None, xlabel: str = "value",
                    ax: Axes | None = None) -> Axes:
    """Plot a histogram of each tensor, one row each, the first on top.

    Args:
        tensors: a module (its parameters), pairs (name, tensor), a mapping such as `activations` returns,
            or a list of tensors.
        bins: the maximum number of bins; rows of few elements have fewer.
        span: the range of values; the 0.1 % and 99.9 % quantiles if None.
        gradients: plot the tensors' gradients instead.
        title, xlabel: labels.
        ax: the axes; a new figure if None.

    Returns:
        The axes. Each row is scaled to its peak; its mean and standard deviation are written next to it.

    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import flambeau as torch
    >>> from flambeau.viz import plot_histograms
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
    >>> [label.get_text() for label in plot_histograms(model).get_yticklabels()]
    ['0.weight', '0.bias', '1.weight', '1.bias']
    """
    if hasattr(tensors, "named_parameters"):
        tensors = tensors.named_parameters()
    rows = named(tensors, "tensor")
    if gradients:
        rows = {name: x.grad for name, x in rows.items() if getattr(x, "grad", None) is not None}
    values = {name: _finite(x) for name, x in rows.items()}
    ax = axes_for(ax, 7.0, max(1.8, 1.0 + 0.5 * len(values)))
    low, high = span or _span(list(values.values()))
    for row, (name, found) in enumerate(values.items()):
        # fewer bins for few elements
        edges = np.linspace(low, high, min(bins, max(12, round(3 * found.size ** 0.5))) + 1)
        middles = (edges[:-1] + edges[1:]) / 2
        counts, _ = np.histogram(found, edges)
        shape = counts / max(counts.max(), 1) * _OVERLAP
        ax.fill_between(middles, row, row - shape, color=colour_of(row), alpha=0.55, linewidth=0, zorder=2 * row + 2,
                        label=name)
        ax.plot(middles, row - shape, color=colour_of(row), linewidth=1.2, zorder=2 * row + 3)
        ax.axhline(row, color=MUTED, linewidth=0.6, zorder=2 * row + 1)
        note = f"{found.mean():.2g} ± {found.std():.2g}" if found.size else "empty"
        lost = np.size(array_of(rows[name])) - found.size
        note += f"\n{lost} not finite" if lost else ""
        ax.annotate(note, (1, row), xycoords=("axes fraction", "data"), xytext=(6, 2), textcoords="offset points",
                    fontsize=8.5, color="#dc2626" if lost else INK, va="bottom", annotation_clip=False)
    ax.set_yticks(range(len(values)), list(values), fontfamily="monospace", fontsize=9, va="bottom")
    ax.set(xlim=(low, high), ylim=(max(len(values), 1) - 0.9, -_OVERLAP - 0.1))
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    ax.spines["left"].set_visible(False)
    return titled(ax, title, xlabel)


def plot_histogram_over_steps(history: Sequence[Any], steps: Sequence[float] | None = None, *, bins: int = 48,
                              span: tuple[float, float] | None = None, title: str | None = None,
                              xlabel: str = "step", ylabel: str = "value", ax: Axes | None = None) -> Axes:
    """Plot the histogram of one tensor over training steps.

    Args:
        history: the tensor at each step, `[w.detach().clone(), ...]`; sizes may differ.
        steps: the number of each step; 0, 1, 2, ... if None.
        bins: the number of bins.
        span: the range of values; the 0.1 % and 99.9 % quantiles if None.
        title, xlabel, ylabel: labels.
        ax: the axes; a new figure if None.

    Returns:
        The axes: darker bins have more elements; lines are the median, the quartiles, and the 2 % and 98 % quantiles.

    Raises:
        ValueError: `history` is empty, or `steps` has another length.

    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import flambeau as torch
    >>> from flambeau.viz import plot_histogram_over_steps
    >>> ax = plot_histogram_over_steps([torch.linspace(-1, 1, 50) * k for k in range(1, 6)])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['median', 'middle half', '96 %']
    """
    found = [_finite(x) for x in history]
    at = np.arange(len(found)) if steps is None else np.asarray(steps, float)
    if not found or len(at) != len(found):
        raise ValueError(f"{len(found)} tensors, but {len(at)} steps" if found else "there is no step to draw")
    ax = axes_for(ax)
    low, high = span or _span(found)
    edges = np.linspace(low, high, bins + 1)
    density = np.array([np.histogram(values, edges)[0] / max(values.size, 1) for values in found])
    between = (at[:-1] + at[1:]) / 2
    sides = np.concatenate([[at[0] - 0.5 if len(at) == 1 else 2 * at[0] - between[0]], between,
                            [at[0] + 0.5 if len(at) == 1 else 2 * at[-1] - between[-1]]])
    ax.pcolormesh(sides, edges, np.sqrt(density.T), cmap="Blues", rasterized=True)  # sqrt: tails are visible
    median = [np.median(values) if values.size else np.nan for values in found]
    ax.plot(at, median, color="#0f172a", linewidth=1.6, label="median")
    for (lower, upper, dashes), name in zip(_BANDS[::-1], ("middle half", "96 %"), strict=True):
        for quantile, label in ((lower, name), (upper, f"_{name}")):
            line = [np.quantile(values, quantile) if values.size else np.nan for values in found]
            ax.plot(at, line, color="#ea580c", linewidth=1.2, linestyle=dashes, label=label)
    ax.legend(fontsize=8.5, frameon=True, framealpha=0.85, edgecolor="none", labelcolor=INK, loc="upper left")
    ax.grid(False)
    ax.set(xlim=(sides[0], sides[-1]), ylim=(low, high))
    return titled(ax, title, xlabel, ylabel)


def _finite(x: Any) -> np.ndarray[Any, Any]:
    values = np.asarray(array_of(x), float).ravel()
    finite: np.ndarray[Any, Any] = values[np.isfinite(values)]
    return finite


def _span(rows: list[np.ndarray[Any, Any]]) -> tuple[float, float]:
    """The range of the 0.1 % to 99.9 % quantiles of all rows, with a margin."""
    ends = [np.quantile(values, (0.001, 0.999)) for values in rows if values.size]
    low, high = (min(e[0] for e in ends), max(e[1] for e in ends)) if ends else (0.0, 1.0)
    margin = 0.05 * (high - low) or 0.5
    return float(low - margin), float(high + margin)
