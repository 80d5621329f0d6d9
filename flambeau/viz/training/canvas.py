"""Shared parts of plots: axes, conversion to arrays, colours. matplotlib is imported on first use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, MUTED, FAINT = "#334155", "#94a3b8", "#e2e8f0"
#: colours of runs and layers, distinguishable in greyscale and with colour blindness
COLOURS = ("#2563eb", "#ea580c", "#059669", "#9333ea", "#dc2626", "#0891b2", "#ca8a04", "#be185d")


def axes_for(ax: Axes | None, width: float = 7.0, height: float = 3.6) -> Axes:
    """The given axes, or those of a new pyplot figure, in the shared style.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError("plotting needs matplotlib, which is not installed: pip install flambeau[viz]",
                                      name="matplotlib") from missing

        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(MUTED)
    ax.tick_params(colors=INK, labelsize=9, length=3)
    ax.grid(True, color=FAINT, linewidth=0.7)
    ax.set_axisbelow(True)
    return ax


def titled(ax: Axes, title: str | None, xlabel: str = "", ylabel: str = "") -> Axes:
    """Set the title and the labels that are not empty; return the axes."""
    if title:
        ax.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK)
    for label, set_label in ((xlabel, ax.set_xlabel), (ylabel, ax.set_ylabel)):
        if label:
            set_label(label, fontsize=9.5, color=INK)
    return ax


def colour_of(place: int) -> str:
    """The colour of a run or layer by its number."""
    return COLOURS[place % len(COLOURS)]


def array_of(x: Any) -> np.ndarray[Any, Any]:
    """A tensor of any dtype, with or without a graph, or a list of 0-d tensors, as a NumPy array.

    >>> import flambeau as torch
    >>> from flambeau.viz.training.canvas import array_of
    >>> array_of([torch.tensor(1., requires_grad=True), 2.5])
    array([1. , 2.5])
    """
    if hasattr(x, "detach"):
        x = x.detach()
        if x.dtype.is_floating_point:
            x = x.double()
        return np.asarray(x.cpu().numpy())
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, Iterable):
        return np.array([array_of(item) for item in x])
    return np.asarray(x)


def named(things: Any, default: str) -> dict[str, Any]:
    """Tensors by name: from a mapping, pairs (name, tensor), a sequence (numbered), or one tensor.

    >>> from flambeau.viz.training.canvas import named
    >>> list(named([[1.], [2.]], "run")), list(named({"a": [1.]}, "run"))
    (['run 1', 'run 2'], ['a'])
    """
    if isinstance(things, Mapping):
        return {str(name): value for name, value in things.items()}
    if hasattr(things, "shape"):
        return {"": things}
    found = list(things)
    if found and all(isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) for item in found):
        return dict(found)
    if found and all(np.ndim(array_of(item)) == 0 for item in found):
        return {"": things}
    return {f"{default} {place}": value for place, value in enumerate(found, 1)}
