"""Plots of training: drawn data and axes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt

import flambeau as torch
from flambeau import nn
from flambeau.viz import (
    Descent,
    activations,
    animate_descent,
    descend,
    gradient_sizes,
    plot_descent,
    plot_gradient_flow,
    plot_histogram_over_steps,
    plot_histograms,
    plot_losses,
    save_animation,
)
from flambeau.viz.training.canvas import array_of
from flambeau.viz.training.losses import smoothed


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


def convex(x):
    return torch.abs(x) + (x - 5) ** 2


def bowl(p):
    return p[0] ** 2 + 4 * p[1] ** 2


def lines(ax):
    return {line.get_label(): line for line in ax.lines}


def drawn(ax):
    """The figure, drawn: what cannot be laid out raises here."""
    ax.figure.canvas.draw()
    return ax


# ----- descents -----

def test_a_descent_equals_the_documents():
    run = descend(convex, 0., step_size=0.05, steps=150)
    assert run.positions.shape == run.heights.shape == (151,)
    assert abs(run.positions[-1] - 4.499998) < 1e-6
    assert run.positions[1] == pytest.approx(0.5)  # the slope at 0 is -10 there, PyTorch's sign(0) being 0
    assert run.label == "from 0, step size 0.05"
    assert descend(bowl, (1., 2.), steps=3).positions.shape == (4, 2)


def test_a_descent_takes_an_optimizer_and_keeps_its_tensors_apart():
    start = torch.tensor([1., 1.], dtype=torch.float64)
    run = descend(bowl, start, steps=5, optimizer=lambda p: torch.optim.Adam(p, lr=0.1))
    assert run.label == "from (1, 1), Adam"
    assert start.tolist() == [1., 1.]
    assert not start.requires_grad
    assert run.positions.dtype == np.float64
    assert run.heights[0] == 5


def test_a_curve_shows_objective_steps_and_both_minima():
    run = descend(convex, 0., steps=20)
    ax = drawn(plot_descent(convex, run, span=(0, 10), minimum=4.5, title="valley"))
    found = lines(ax)
    x, y = found["objective"].get_data()
    assert x[0] == 0
    assert x[-1] == 10
    assert y == pytest.approx(np.abs(x) + (x - 5) ** 2, rel=1e-5)
    assert np.array_equal(found["gradient steps"].get_xdata(), run.positions)
    assert np.array_equal(found["gradient steps"].get_ydata(), run.heights)
    assert found["true x"].get_xdata()[0] == 4.5
    assert found["final x"].get_xdata()[0] == run.positions[-1]
    assert ax.get_title(loc="left") == "valley"


def test_the_default_span_contains_the_paths():
    ax = plot_descent(convex, descend(convex, -3., steps=2), descend(convex, 12., steps=2))
    x = lines(ax)["objective"].get_xdata()
    assert x[0] < -3
    assert x[-1] > 12
    assert plot_descent(convex, span=(0, 1)).get_legend() is None


def test_contours_of_two_variables():
    runs = [descend(bowl, (1., 1.), steps=10), descend(bowl, (-1., 0.5), steps=10)]
    ax = drawn(plot_descent(bowl, *runs, minimum=torch.zeros(2)))
    assert len(ax.collections) == 2
    for run in runs:
        assert np.array_equal(np.stack(lines(ax)[run.label].get_data(), axis=1), run.positions)
    assert lines(ax)["true minimum"].get_xdata()[0] == 0
    flat = drawn(plot_descent(lambda p: p.sum() * 0, Descent(np.zeros((2, 2)), np.zeros(2))))  # no contour to draw
    assert not flat.collections


def test_an_animation_grows_and_is_saved(tmp_path):
    from PIL import Image
    runs = [descend(bowl, (1., 1.), steps=30), descend(bowl, (-1., 1.), steps=10)]
    animation = animate_descent(bowl, *runs, frames=8)
    path = save_animation(animation, tmp_path / "descent.gif", dpi=40)
    with Image.open(path) as gif:
        assert gif.n_frames == 8
        first = np.asarray(gif.convert("RGB"))
        gif.seek(7)
        assert (np.asarray(gif.convert("RGB")) != first).any()
        assert gif.info["loop"] == 0
    again = animate_descent(convex, descend(convex, 0., steps=6), frames=3)
    page = save_animation(again, tmp_path / "descent.html")
    assert page.read_text(encoding="utf-8").count("data:image/png;base64") == 3
    with pytest.raises(ValueError, match=r"should be \.gif or \.html"):
        save_animation(animation, tmp_path / "descent.mp4")


# ----- losses -----

def test_losses_of_several_runs():
    runs = {"a": torch.tensor([4., 2., 1.], requires_grad=True), "b": [torch.tensor(3.), 2.0]}
    ax = drawn(plot_losses(runs))
    assert lines(ax)["a"].get_ydata().tolist() == [4, 2, 1]
    assert lines(ax)["b"].get_data()[0].tolist() == [1, 2]
    assert ax.get_yscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    assert plot_losses([[1., 2.], [2., 1.]]).get_legend().get_texts()[1].get_text() == "run 2"
    assert plot_losses([3., 2., 1.]).get_legend() is None


def test_losses_that_are_not_positive_have_a_plain_axis():
    assert plot_losses([1., 0., -1.]).get_yscale() == "linear"
    assert plot_losses([1., float("nan"), 0.5]).get_yscale() == "log"
    assert plot_losses([1., 2.], log=False).get_yscale() == "linear"


def test_smoothing():
    assert smoothed([1., 1., 1.], 0.9) == pytest.approx([1, 1, 1])
    assert smoothed([float("nan"), 2., float("inf"), 4.], 0.5)[1:] == pytest.approx([2, 2, 10 / 3])
    ax = plot_losses([4., 2., 1.], smooth=0.5)
    assert lines(ax)["_each step"].get_ydata().tolist() == [4, 2, 1]
    assert lines(ax)["loss"].get_ydata() == pytest.approx(smoothed([4., 2., 1.], 0.5))
    with pytest.raises(ValueError, match=r"\[0, 1\)"):
        plot_losses([1.], smooth=1)


# ----- gradients -----

def model_with_gradients():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    model(torch.randn(5, 3)).sum().backward()
    return model


def test_gradient_sizes_are_the_mean_and_the_greatest():
    model = model_with_gradients()
    sizes = gradient_sizes(model)
    assert list(sizes) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    for name, parameter in model.named_parameters():
        assert sizes[name] == pytest.approx((parameter.grad.abs().mean().item(), parameter.grad.abs().max().item()))
    assert gradient_sizes(model.named_parameters()) == sizes
    assert gradient_sizes({"frozen": torch.ones(2)}) == {}


def test_gradient_flow_is_drawn_layer_by_layer():
    model = model_with_gradients()
    model.add_module("unused", nn.Linear(2, 2, bias=False))
    model[2].bias.grad.zero_()
    ax = drawn(plot_gradient_flow(model))
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["0.weight", "0.bias", "2.weight", "2.bias", "unused.weight"]
    sizes = list(gradient_sizes(model).values())
    widths = [bar.get_width() for bar in ax.containers[1]]
    assert widths == pytest.approx([0 if size is None else size[0] for size in sizes])
    said = {round(note.xy[1]): note.get_text() for note in ax.texts}
    assert said == {3: "all zero", 4: "no gradient"}
    assert ax.get_xscale() == "log"
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first layer is on top
    assert len(plot_gradient_flow(model, biases=False).get_yticks()) == 3
    drawn(plot_gradient_flow({}))


# ----- histograms -----

def test_activations_are_those_of_the_innermost_modules():
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2)))
    x = torch.randn(5, 3)
    found = activations(model, x)
    assert list(found) == ["0", "1.0", "1.1"]
    assert torch.equal(found["1.1"], model(x).detach())
    assert not any(value.requires_grad for value in found.values())
    assert not any(module._forward_hooks for module in model.modules())
    assert list(activations(nn.ReLU(), x)) == ["ReLU"]


def test_histograms_of_a_module_of_gradients_and_of_odd_tensors():
    model = model_with_gradients()
    ax = drawn(plot_histograms(model))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert len(plot_histograms(model, gradients=True).get_yticks()) == 4
    odd = {"empty": torch.zeros(0), "one": torch.tensor(3.), "integers": torch.arange(9), "flags": torch.ones(3) > 0,
           "broken": torch.tensor([1., float("nan"), float("inf")]), "half": torch.ones(4, dtype=torch.bfloat16)}
    said = [note.get_text() for note in drawn(plot_histograms(odd)).texts]
    assert said[0] == "empty"
    assert said[1] == "3 ± 0"
    assert said[4].endswith("2 not finite")
    assert plot_histograms([torch.ones(3), torch.zeros(3)], span=(-1, 2)).get_xlim() == (-1, 2)


def test_histograms_over_steps():
    history = [torch.linspace(-1, 1, 101) * k + k for k in range(1, 5)]
    ax = drawn(plot_histogram_over_steps(history, [0, 10, 20, 30]))
    assert lines(ax)["median"].get_data()[0].tolist() == [0, 10, 20, 30]
    assert lines(ax)["median"].get_ydata() == pytest.approx([1, 2, 3, 4])
    assert lines(ax)["middle half"].get_ydata() == pytest.approx([0.5, 1, 1.5, 2])
    assert ax.get_xlim() == (-5, 35)
    drawn(plot_histogram_over_steps(history[:1]))
    with pytest.raises(ValueError, match="4 tensors, but 2 steps"):
        plot_histogram_over_steps(history, [0, 1])
    with pytest.raises(ValueError, match="no step"):
        plot_histogram_over_steps([])


# ----- all of them -----

def test_every_plot_draws_on_the_axes_that_it_is_given():
    model = model_with_gradients()
    figure, panels = plt.subplots(1, 5)
    plots = (lambda ax: plot_descent(convex, descend(convex, 0., steps=3), ax=ax),
             lambda ax: plot_losses([1., 2.], ax=ax), lambda ax: plot_gradient_flow(model, ax=ax),
             lambda ax: plot_histograms(model, ax=ax),
             lambda ax: plot_histogram_over_steps([torch.ones(3)], ax=ax))
    for plot, panel in zip(plots, panels, strict=True):
        assert plot(panel) is panel
    assert plt.get_fignums() == [figure.number]


def test_array_conversion():
    assert array_of(torch.ones(2, requires_grad=True)).tolist() == [1, 1]
    assert array_of(torch.ones(2, dtype=torch.bfloat16)).dtype == np.float64
    assert array_of([torch.tensor(1.), 2]).tolist() == [1, 2]
    assert array_of(range(3)).tolist() == [0, 1, 2]


def test_matplotlib_is_imported_only_to_draw():
    code = ("import sys, flambeau.viz; assert 'matplotlib' not in sys.modules; sys.modules['matplotlib'] = None\n"
            "sys.modules['matplotlib.pyplot'] = None\n"
            "try: flambeau.viz.plot_losses([1.])\n"
            "except ModuleNotFoundError as error: print(error)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install flambeau[viz]" in done.stdout, done.stderr
