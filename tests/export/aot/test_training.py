"""Whole training steps: forward, backward and optimizer, with parameters and the optimizer's state as the state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.export import aot
from tests.export.aot.c_program import run
from tests.export.aot.models import Language
from tests.export.aot.results import agree

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-2),
}


def images(make: Any) -> tuple[Any, Any, nn.Module, tuple[Any, ...]]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 10))
    optimizer = make(model.parameters())

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    args = torch.randn(5, 1, 8, 8), torch.tensor([1, 2, 3, 4, 0])
    step(*args)
    return step, optimizer, model, args


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_training_step_trains(name, tmp_path):
    step, _, model, args = images(OPTIMIZERS[name])
    before = {key: value.clone() for key, value in model.state_dict().items()}
    path = tmp_path / f"{name}.so"
    report = aot.compile(step, args, path, target="native")
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())  # nothing was trained
    assert [each.name for each in report.interface.inputs] == ["x", "y"]
    losses = run(path, [x.numpy() for x in args], [np.zeros((), np.float32)], runs=4, state=True)
    agree([loss for [loss] in losses], [step(*args).numpy().copy() for _ in range(4)], 1e-4)


def test_a_language_model_trains(tmp_path):
    torch.manual_seed(0)
    model = Language(causal=True, length=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-3)
    tokens = torch.tensor([[1, 5, 2, 7], [3, 3, 19, 0]])

    def step(tokens: Any) -> Any:
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    path = tmp_path / "language.so"
    aot.compile(step, (tokens,), path, target="native")  # Adam's state is zeros: no step is needed before
    losses = run(path, [tokens.numpy()], [np.zeros((), np.float32)], runs=3, state=True)
    agree([loss for [loss] in losses], [step(tokens).numpy().copy() for _ in range(3)], 1e-4)


def test_gradients_of_spectra(tmp_path):
    torch.manual_seed(0)
    filters = torch.randn(5, dtype=torch.complex64).requires_grad_()

    def step(x: Any) -> Any:
        filters.grad = None
        y = torch.fft.irfft(torch.fft.rfft(x) * filters, n=8)
        loss = y.pow(2).mean() + torch.fft.fft(y).abs().log1p().mean()
        loss.backward()
        with torch.no_grad():
            filters.sub_(filters.grad * 0.1)
        return loss.detach()

    x = torch.randn(3, 8)
    path = tmp_path / "filters.so"
    aot.compile(step, (x,), path, target="native")
    losses = run(path, [x.numpy()], [np.zeros((), np.float32)], runs=3, state=True)
    agree([loss for [loss] in losses], [step(x).numpy().copy() for _ in range(3)], 1e-4)


def test_a_first_step_unlike_the_others_is_refused(tmp_path):
    torch.manual_seed(0)
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()

    x = torch.ones(2)
    with pytest.raises(aot.ExportError, match="run the step once before it is exported"):
        aot.compile(step, (x,), tmp_path / "step.so", target="native")
    assert not optimizer.state[weight]
    assert weight.grad is None


def test_python_objects_that_change_are_refused(tmp_path):
    calls = [0]

    def step(x: Any) -> Any:
        calls[0] += 1
        return x * calls[0]

    with pytest.raises(aot.ExportError, match="changed by the function, which a program does not repeat"):
        aot.compile(step, (torch.ones(2),), tmp_path / "step.so", target="native")


def test_gradients_that_are_left_are_state(tmp_path):
    weight = torch.ones(2, requires_grad=True)

    def step(x: Any) -> Any:
        (weight * x).sum().backward()
        return weight.grad.clone()

    x = torch.tensor([1.0, 2.0])
    path = tmp_path / "step.so"
    aot.compile(step, (x,), path, target="native")
    assert weight.grad is None
    got = run(path, [x.numpy()], [np.zeros(2, np.float32)], runs=2, state=True)
    assert [each.tolist() for [each] in got] == [[1, 2], [2, 4]]
