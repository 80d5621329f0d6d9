"""The manual's plots of trainings: descents, losses, gradients, weights and activations."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from PIL import Image

import flambeau as torch
from flambeau import nn
from flambeau.demo import show
from flambeau.viz import (
    activations,
    animate_descent,
    descend,
    plot_descent,
    plot_gradient_flow,
    plot_histogram_over_steps,
    plot_histograms,
    plot_losses,
    save_animation,
)

DPI = 90


def save(ax: Any, path: Path) -> None:
    """Write the figure, in few colours: a quarter of the bytes."""
    ax.figure.savefig(path, dpi=DPI)
    plt.close(ax.figure)
    lighten(path)


def lighten(path: Path) -> None:
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(160, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def demo(out: Path) -> None:
    """The plots of `flambeau demo`."""
    with tempfile.TemporaryDirectory() as folder:
        for path in show(Path(folder)):
            if path.name.startswith(("descent", "digits-training")):
                lighten(Path(shutil.copy(path, out / path.name)))


def bowl(p: Any) -> Any:
    """x² / 2 + 10 y²: twenty times as steep across as along."""
    x, y = p
    return x ** 2 / 2 + 10 * y ** 2


def wave(x: Any) -> Any:
    """x cos 4x + 2|x|."""
    return x * torch.cos(4 * x) + 2 * torch.abs(x)


def descents(out: Path) -> None:
    starts = [descend(wave, start, step_size=0.005, steps=120) for start in (-3.5, -2.5, -1.0, 2.0)]
    save(plot_descent(wave, *starts, span=(-5, 5), title="x cos 4x + 2|x|: the start decides the valley"),
         out / "descent-starts.png")
    start, steps = (-2.0, 1.0), 70
    rules = [descend(bowl, start, step_size=0.09, steps=steps, label="gradient descent"),
             descend(bowl, start, steps=steps, label="with momentum",
                     optimizer=lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.85)),
             descend(bowl, start, steps=steps, label="Adam", optimizer=lambda p: torch.optim.Adam(p, lr=0.12))]
    span = ((-2.3, 1.0), (-1.25, 1.25))
    save(plot_descent(bowl, *rules, span=span, minimum=(0, 0), title="a long bowl, three rules"),
         out / "descent-bowl.png")
    _, ax = plt.subplots(figsize=(5.4, 3.9), layout="constrained")
    animation = animate_descent(bowl, *rules, span=span, minimum=(0, 0), title="a long bowl, three rules", frames=36,
                                interval=110, ax=ax)
    save_animation(animation, out / "descent-bowl.gif", dpi=72)
    plt.close(ax.figure)


def network(activation: type, layers: int = 5) -> Any:
    torch.manual_seed(1)
    inner = [module for _ in range(layers) for module in (nn.Linear(32, 32), activation())]
    return nn.Sequential(nn.Linear(10, 32), activation(), *inner, nn.Linear(32, 1))


def train(model: Any, optimizer: Any, steps: int = 300) -> tuple[list[Any], list[Any]]:
    """The losses, and the first layer's weight at each tenth step."""
    torch.manual_seed(0)
    X = torch.randn(512, 10)
    Y = (2 * X[:, :1] + X[:, 1:2] ** 2).tanh()
    losses, weights = [], []
    for step in range(steps):
        batch = torch.randint(0, len(X), (32,))
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(X[batch]), Y[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if step % 10 == 0:
            weights.append(model[0].weight.detach().clone())
    return losses, weights


def trainings(out: Path) -> None:
    losses = {}
    for name, make in (("SGD, 0.05", lambda p: torch.optim.SGD(p, lr=0.05)),
                       ("SGD with momentum, 0.05", lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)),
                       ("Adam, 0.003", lambda p: torch.optim.Adam(p, lr=0.003))):
        model = network(nn.Tanh, layers=2)
        losses[name], weights = train(model, make(model.parameters()))
    save(plot_losses(losses, smooth=0.92, title="one network, three optimizers"), out / "losses.png")
    save(plot_histogram_over_steps(weights, range(0, 300, 10), title="weights of the first layer under Adam"),
         out / "weights-over-steps.png")
    save(plot_histograms(model, title="weights and biases after the training"), out / "weights.png")
    save(plot_histograms(activations(model, torch.randn(256, 10)), title="activations, layer by layer"),
         out / "activations.png")


def gradients(out: Path) -> None:
    _, panels = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained", sharex=True)
    for ax, activation in zip(panels, (nn.Sigmoid, nn.ReLU), strict=True):
        model = network(activation)
        train(model, torch.optim.SGD(model.parameters(), lr=0.01), steps=1)
        plot_gradient_flow(model, biases=False, ax=ax)
        ax.set_title(activation.__name__, loc="left", fontsize=11, fontweight="bold", color="#334155")
    panels[0].set_xlim(1e-7, 1e-1)
    save(panels[0], out / "gradient-flow.png")


PLOTS = (demo, descents, trainings, gradients)
