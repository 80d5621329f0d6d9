"""Gradient flow: the sizes of each parameter's gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .canvas import INK, MUTED, array_of, axes_for, named, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MEAN, _MAX, _NONE = "#2563eb", "#bfdbfe", "#dc2626"


def gradient_sizes(parameters: Any) -> dict[str, tuple[float, float] | None]:
    """The mean and the maximum |gradient| of each parameter; None without a gradient.

    Args:
        parameters: a module, pairs (name, tensor) as of `named_parameters()`, or a mapping.

    >>> import flambeau as torch
    >>> from flambeau.viz import gradient_sizes
    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> (w * torch.tensor([3., -5.])).sum().backward()
    >>> gradient_sizes({"w": w, "b": torch.zeros(1, requires_grad=True)})
    {'w': (4.0, 5.0), 'b': None}
    """
    if hasattr(parameters, "named_parameters"):
        parameters = parameters.named_parameters()
    found: dict[str, tuple[float, float] | None] = {}
    for name, parameter in named(parameters, "parameter").items():
        if not parameter.requires_grad:
            continue
        sizes = None if parameter.grad is None else np.abs(array_of(parameter.grad))
        if sizes is None:
            found[name] = None
        else:
            found[name] = (float(sizes.mean()), float(sizes.max())) if sizes.size else (0.0, 0.0)
    return found


def plot_gradient_flow(parameters: Any, *, log: bool = True, biases: bool = True, title: str | None = None,
                       ax: Axes | None = None) -> Axes:
    """Plot the mean and the maximum |gradient| of every parameter, the first layer on top.

    Call it after `backward()`. Vanishing gradients are bars that shrink from bottom to top. Parameters without a
    gradient have red names.

    Args:
        parameters: a module, pairs (name, tensor), or a mapping.
        log: use a logarithmic axis.
        biases: include parameters whose name ends in "bias".
        title: the title.
        ax: the axes; a new figure if None.

    Returns:
        The axes.

    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import flambeau as torch
    >>> from flambeau.viz import plot_gradient_flow
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    >>> model(torch.ones(1, 2)).sum().backward()
    >>> [label.get_text() for label in plot_gradient_flow(model).get_yticklabels()]
    ['0.weight', '0.bias', '2.weight', '2.bias']
    """
    sizes = {name: size for name, size in gradient_sizes(parameters).items()
             if biases or not name.rpartition(".")[2].startswith("bias")}
    ax = axes_for(ax, 7.0, max(1.6, 0.9 + 0.3 * len(sizes)))
    rows = np.arange(len(sizes))
    means = np.array([0.0 if size is None else size[0] for size in sizes.values()])
    peaks = np.array([0.0 if size is None else size[1] for size in sizes.values()])
    ax.barh(rows, peaks, height=0.72, color=_MAX, label="greatest |gradient|")
    ax.barh(rows, means, height=0.36, color=_MEAN, label="mean |gradient|")
    ax.set_yticks(rows, list(sizes), fontfamily="monospace", fontsize=9)
    ax.set_ylim(len(sizes) - 0.4, -0.6)
    ax.grid(False, axis="y")
    positive = means[means > 0]
    if log and positive.size:
        ax.set_xscale("log")
        ax.set_xlim(positive.min() / 4, peaks[np.isfinite(peaks)].max(initial=positive.min()) * 2)
    for row, (size, label) in enumerate(zip(sizes.values(), ax.get_yticklabels(), strict=True)):
        note = "no gradient" if size is None else "" if size[1] > 0 else "all zero" if size[1] == 0 else "nan"
        if note:
            label.set_color(_NONE)
            ax.annotate(note, (0, row), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points",
                        va="center", fontsize=8.5, color=_NONE, fontstyle="italic")
    if sizes:
        ax.legend(fontsize=8.5, frameon=False, labelcolor=INK, ncols=2, loc="lower right", bbox_to_anchor=(1, 1),
                  borderaxespad=0.1)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_color(MUTED)
    return titled(ax, title, "size of the gradient")
