"""Descent paths: the steps of an optimizer on a function of one or two variables, as plots and animations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._tensor.creation.from_data import tensor
from ...engine.grad_mode import no_grad
from .canvas import INK, MUTED, array_of, axes_for, colour_of, titled

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes

_CURVE_POINTS, _GRID_POINTS, _LEVELS = 400, 90, 24


class Descent(NamedTuple):
    """The path of a descent.

    Attributes:
        positions: (steps + 1,) or (steps + 1, 2), the start first.
        heights: (steps + 1,), the objective at these positions.
        label: its name in a legend.

    >>> from flambeau.viz import Descent, descend
    >>> path = descend(lambda x: x ** 2, 1., step_size=0.5, steps=1)
    >>> isinstance(path, Descent), path.heights.tolist()
    (True, [1.0, 0.0])
    """

    positions: np.ndarray[Any, Any]
    heights: np.ndarray[Any, Any]
    label: str = ""


def descend(objective: Callable[[Any], Any], start: Any, *, step_size: float = 0.05, steps: int = 100,
            optimizer: Callable[[list[Any]], Any] | None = None, label: str | None = None) -> Descent:
    """Run gradient descent, x ← x - step_size · ∇f(x), and record every step.

    Args:
        objective: maps a tensor of the start's shape to a scalar.
        start: one or two numbers (float32), or a tensor.
        step_size: the learning rate.
        steps: the number of steps.
        optimizer: creates another optimizer for a list of parameters, `lambda p: torch.optim.Adam(p, lr=0.1)`;
            `step_size` is then ignored.
        label: its name in a legend; start and step size if None.

    >>> import flambeau as torch
    >>> from flambeau.viz import descend
    >>> path = descend(lambda x: (x - 3) ** 2, 0., step_size=0.25, steps=3)
    >>> [round(float(x), 3) for x in path.positions]
    [0.0, 1.5, 2.25, 2.625]
    """
    x: Any = start.detach().clone() if hasattr(start, "detach") else tensor(np.asarray(start, np.float32))
    x.requires_grad_()
    rule = None if optimizer is None else optimizer([x])
    positions, heights = [array_of(x).copy()], []
    for step in range(steps + 1):
        x.grad = None
        value = objective(x)
        heights.append(float(value.detach()))
        if step == steps:
            break
        value.backward()
        if rule is None:
            with no_grad():
                x -= step_size * x.grad
        else:
            rule.step()
        positions.append(array_of(x).copy())
    if label is None:
        where = ", ".join(f"{value:g}" for value in np.ravel(positions[0]))
        label = f"from {where if np.ndim(positions[0]) == 0 else f'({where})'}"
        label += f", step size {step_size:g}" if rule is None else f", {type(rule).__name__}"
    return Descent(np.array(positions), np.array(heights), label)


def plot_descent(objective: Callable[[Any], Any], *descents: Descent, span: Any = None, minimum: Any = None,
                 legend: bool = True, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Plot a function and descent paths: a curve for one variable, contours for two.

    Args:
        objective: the function.
        descents: results of `descend`.
        span: `(low, high)` of x, or `((xlow, xhigh), (ylow, yhigh))`; that of the paths with a margin if None.
        minimum: the true minimum, optional.
        legend: show a legend.
        title: the title.
        ax: the axes; a new figure if None.

    Returns:
        The axes.

    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import flambeau as torch
    >>> from flambeau.viz import descend, plot_descent
    >>> def objective(x):
    ...     return torch.abs(x) + (x - 5) ** 2
    >>> ax = plot_descent(objective, descend(objective, 0.), minimum=4.5)
    >>> [line.get_label() for line in ax.lines if not line.get_label().startswith("_")]
    ['objective', 'gradient steps', 'true x', 'final x']
    """
    flat = descents[0].positions.ndim == 1 if descents else np.ndim(span) == 1
    ax = axes_for(ax, *((7.0, 3.4) if flat else (5.6, 4.8)))
    span = _span(descents, span)
    (_draw_curve if flat else _draw_contours)(ax, objective, span)
    for place, descent in enumerate(descents):
        _draw_path(ax, descent, place, alone=len(descents) == 1)
    if flat:
        if minimum is not None:
            ax.axvline(float(minimum), color="#16a34a", linewidth=1.4, label="true x")
        for place, descent in enumerate(descents):
            ax.axvline(descent.positions[-1], color=colour_of(place), linewidth=1.1, linestyle=(0, (4, 2)),
                       label="final x" if len(descents) == 1 else "_final x")
    elif minimum is not None:
        ax.plot(*np.ravel(array_of(minimum)), "*", color="#facc15", markersize=15, markeredgecolor=INK,
                label="true minimum", linestyle="none", zorder=5)
    if legend and (descents or minimum is not None) and ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=8.5, frameon=True, framealpha=0.9, edgecolor="none", labelcolor=INK)
    return titled(ax, title, "x" if flat else "x₁", "f(x)" if flat else "x₂")


def animate_descent(objective: Callable[[Any], Any], *descents: Descent, span: Any = None, minimum: Any = None,
                    title: str | None = None, frames: int = 60, interval: int = 60,
                    ax: Axes | None = None) -> FuncAnimation:
    """`plot_descent` as an animation of the steps.

    Args:
        objective, descents, span, minimum, title, ax: as in `plot_descent`.
        frames: the maximum number of frames, evenly spaced steps.
        interval: milliseconds per frame.

    Returns:
        A matplotlib animation: `save_animation(it, "descent.gif")`, or `it.to_jshtml()` in a notebook.

    >>> import matplotlib, pathlib, tempfile
    >>> matplotlib.use("Agg")
    >>> from flambeau.viz import animate_descent, descend, save_animation
    >>> animation = animate_descent(lambda x: x ** 2, descend(lambda x: x ** 2, 1., steps=3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_animation(animation, pathlib.Path(folder) / "descent.html").name
    'descent.html'
    """
    from matplotlib.animation import FuncAnimation

    drawn = plot_descent(objective, span=_span(descents, span), minimum=minimum, ax=ax)
    length = max(len(descent.heights) for descent in descents)
    stops = np.unique(np.linspace(0, length - 1, min(frames, length)).round().astype(int))
    artists = [_draw_path(drawn, descent, place, alone=len(descents) == 1) for place, descent in enumerate(descents)]
    drawn.legend(fontsize=8.5, frameon=True, framealpha=0.9, edgecolor="none", labelcolor=INK)
    flat = descents[0].positions.ndim == 1
    titled(drawn, title or " ", "x" if flat else "x₁", "f(x)" if flat else "x₂")
    counter = drawn.text(0.99, 1.02, "", transform=drawn.transAxes, ha="right", fontsize=9.5, color=INK)

    def show(frame: int) -> list[Any]:
        step = int(stops[frame])
        for descent, (line, _, end) in zip(descents, artists, strict=True):
            across, up = _points(descent)
            line.set_data(across[:step + 1], up[:step + 1])
            last = min(step, len(across) - 1)
            end.set_data([across[last]], [up[last]])
        counter.set_text(f"step {step}")
        return [*(part for group in artists for part in group), counter]

    figure = drawn.get_figure()
    assert figure is not None
    return FuncAnimation(figure, show, frames=len(stops), interval=interval, blit=False)  # type: ignore[arg-type]


def save_animation(animation: FuncAnimation, path: str | Path, *, dpi: int = 80) -> Path:
    """Write an animation to a file: a GIF (by Pillow), or a self-contained HTML page with controls.

    Args:
        animation: from `animate_descent`.
        path: its suffix is .gif or .html.
        dpi: the resolution of a GIF.

    Raises:
        ValueError: the path has another suffix.

    >>> from flambeau.viz import save_animation
    >>> save_animation(None, "descent.png")
    Traceback (most recent call last):
    ValueError: the ending of 'descent.png' should be .gif or .html
    """
    path = Path(path)
    if path.suffix == ".gif":
        animation.save(path, writer="pillow", dpi=dpi)
        _share_palette(path)
    elif path.suffix in (".html", ".htm"):
        path.write_text(animation.to_jshtml(), encoding="utf-8")
    else:
        raise ValueError(f"the ending of {str(path)!r} should be .gif or .html")
    return path


def _share_palette(path: Path) -> None:
    """Give all frames of a GIF one palette, without dithering, so that unchanged pixels are stored once."""
    from PIL import Image, ImageSequence

    with Image.open(path) as gif:
        duration = gif.info.get("duration", 100)
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(gif)]
    ends = Image.new("RGB", (frames[0].width, 2 * frames[0].height))  # first and last frame contain all colours
    ends.paste(frames[0], (0, 0))
    ends.paste(frames[-1], (0, frames[0].height))
    palette = ends.quantize(128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    first, *others = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    first.save(path, save_all=True, append_images=others, duration=duration, loop=0, optimize=True)


# ----- pieces -----

def _span(descents: Sequence[Descent], span: Any) -> Any:
    """The given range, or that of the paths with a margin."""
    if span is not None:
        return span
    stacked = np.concatenate([descent.positions for descent in descents])
    low, high = stacked.min(axis=0), stacked.max(axis=0)
    margin = np.maximum((high - low) * 0.12, 1e-3 + 0.05 * np.abs(high))
    return tuple(np.stack([low - margin, high + margin], axis=-1).tolist())


def _heights(objective: Callable[[Any], Any], points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with no_grad():
        return np.array([float(objective(tensor(np.asarray(point, np.float32)))) for point in points])


def _draw_curve(ax: Axes, objective: Callable[[Any], Any], span: Any) -> None:
    low, high = span
    x = np.linspace(low, high, _CURVE_POINTS)
    ax.plot(x, _heights(objective, x), color=MUTED, linewidth=2, label="objective", zorder=1)


def _draw_contours(ax: Axes, objective: Callable[[Any], Any], span: Any) -> None:
    (left, right), (low, high) = span
    x, y = np.linspace(left, right, _GRID_POINTS), np.linspace(low, high, _GRID_POINTS)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    z = _heights(objective, grid.reshape(-1, 2)).reshape(grid.shape[:2])
    # levels at quantiles: equal areas between lines, so that narrow valleys are resolved
    levels = np.unique(np.quantile(z[np.isfinite(z)], np.linspace(0, 1, _LEVELS)))
    if len(levels) > 1:
        ax.contourf(x, y, z, levels=levels, cmap="Blues_r", norm=_by_rank(levels), alpha=0.75, zorder=0)
        ax.contour(x, y, z, levels=levels[1:-1], colors="white", linewidths=0.5, alpha=0.8, zorder=0)
    ax.grid(False)
    ax.set(xlim=(left, right), ylim=(low, high))


def _by_rank(levels: np.ndarray[Any, Any]) -> Any:
    from matplotlib.colors import BoundaryNorm

    return BoundaryNorm(levels, 256)


def _points(descent: Descent) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    if descent.positions.ndim == 1:
        return descent.positions, descent.heights
    return descent.positions[:, 0], descent.positions[:, 1]


def _draw_path(ax: Axes, descent: Descent, place: int, alone: bool) -> tuple[Any, Any, Any]:
    """Draw the path, its start (hollow) and its end (filled)."""
    across, up = _points(descent)
    flat = descent.positions.ndim == 1
    colour = colour_of(1 if alone else place)
    label = "gradient steps" if alone and flat else descent.label
    line, = ax.plot(across, up, "o-", color=colour, linewidth=1.2, markersize=3, label=label, zorder=3)
    start, = ax.plot(across[:1], up[:1], "o", color="white", markeredgecolor=colour, markeredgewidth=1.8, markersize=8,
                     label="_start", zorder=4)
    end, = ax.plot(across[-1:], up[-1:], "o", color=colour, markeredgecolor="white", markersize=9, label="_end",
                   zorder=4)
    return line, start, end
