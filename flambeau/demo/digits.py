"""Demo, part 3: training on scikit-learn's 1797 handwritten digits of 8x8 pixels."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import flambeau as torch
from flambeau import nn
from flambeau.viz import backward_picture, plot_losses, render

TITLE = "A classifier of handwritten digits"

EPOCHS = 60
BATCH = 32
MIN_ACCURACY = 0.97


class Training(NamedTuple):
    """The result of a training run."""

    model: Any
    losses: list[float]  # the mean over each epoch
    accuracies: list[float]  # on the test digits, after each epoch
    mistakes: list[tuple[Any, int, int]]  # image, prediction, label
    seconds: float


def digits() -> tuple[Any, Any, Any, Any]:
    """Images (N, 64) in [0, 1] and labels (N,), of the training set and of the test set."""
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images.astype(np.float32) / 16, labels.astype(np.int64), test_size=0.2,
                             stratify=labels, random_state=0)
    train, test, train_labels, test_labels = (torch.from_numpy(part) for part in parts)
    return train, train_labels, test, test_labels


def train(console: Console) -> Training:
    """Train by Adam on the cross entropy, in shuffled batches, with dropout."""
    torch.manual_seed(0)
    images, labels, test_images, test_labels = digits()
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10))
    loss_of = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    losses, accuracies = [], []
    started = time.perf_counter()
    with Progress(TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                  TextColumn("loss {task.fields[loss]:.4f}  test accuracy {task.fields[accuracy]:.2%}"),
                  console=console) as progress:
        task = progress.add_task("", total=EPOCHS, loss=float("nan"), accuracy=0.0)
        for _ in range(EPOCHS):
            model.train()
            total = 0.0
            for batch in torch.randperm(len(images)).split(BATCH):
                optimizer.zero_grad()
                loss = loss_of(model(images[batch]), labels[batch])
                loss.backward()
                optimizer.step()
                total += loss.item() * len(batch)
            losses.append(total / len(images))
            model.eval()
            with torch.no_grad():
                predicted = model(test_images).argmax(dim=1)
            accuracies.append((predicted == test_labels).float().mean().item())
            progress.update(task, advance=1, loss=losses[-1], accuracy=accuracies[-1])
    wrong = (predicted != test_labels).nonzero().flatten().tolist()
    mistakes = [(test_images[index].reshape(8, 8).numpy(), int(predicted[index]), int(test_labels[index]))
                for index in wrong]
    return Training(model, losses, accuracies, mistakes, time.perf_counter() - started)


def show(out: Path, console: Console) -> list[Path]:
    """Train, report the accuracy, plot the loss and draw the network's graph."""
    run = train(console)
    accuracy = run.accuracies[-1]
    console.print(f"\ntest accuracy {accuracy:.2%} after {EPOCHS} epochs, in {run.seconds:.1f} s "
                  f"({len(run.mistakes)} misclassified)")
    if accuracy < MIN_ACCURACY:
        raise RuntimeError(f"the classifier reached {accuracy:.2%}, less than {MIN_ACCURACY:.0%}")
    images, labels, _, _ = digits()
    loss = nn.CrossEntropyLoss()(run.model.train()(images[:BATCH]), labels[:BATCH])
    graph = backward_picture(loss, params=dict(run.model.named_parameters()))
    return [plot(run, out / "digits-training.png"), render(graph, out / "digits-graph.png")]


def plot(run: Training, path: Path) -> Path:
    """Plot the loss and the accuracy over the epochs, and the misclassified digits."""
    figure = Figure(figsize=(10, 3.8), dpi=90, layout="constrained")
    FigureCanvasAgg(figure)
    parts: Any = figure.subfigures(1, 2, width_ratios=(1.7, 1))
    curves, gallery = parts
    axes = plot_losses({"training loss": run.losses}, xlabel="epoch", legend=False, ax=curves.subplots(),
                       title=f"handwritten digits: {run.accuracies[-1]:.2%} of the test digits classified correctly")
    other = axes.twinx()
    other.plot(range(1, len(run.accuracies) + 1), run.accuracies, color="#ea580c", linewidth=1.8)
    other.axhline(MIN_ACCURACY, color="#ea580c", linewidth=0.7, linestyle=":")
    other.set_ylim(0.85, 1)
    other.set_ylabel("test accuracy", color="#ea580c")
    other.spines["top"].set_visible(False)
    axes.yaxis.label.set_color("#2563eb")
    gallery.suptitle("misclassified (prediction → label)", fontsize=10)
    for axes, mistake in zip(gallery.subplots(3, 3).flat, [*run.mistakes[:9], *[None] * 9], strict=False):
        axes.axis("off")
        if mistake is not None:
            image, prediction, truth = mistake
            axes.imshow(image, cmap="gray_r")
            axes.set_title(f"{prediction} → {truth}", fontsize=9)
    figure.savefig(path)
    return path
