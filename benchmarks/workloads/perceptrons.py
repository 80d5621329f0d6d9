"""Training steps of MLPs with two hidden layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import jax_training
from .workload import Arrays, JaxProgram, Program, Sizes, Workload, dense, loaded, tensor, training

NAMES = ("0", "2", "4")


def arrays(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    widths = [sizes[name] for name in ("inputs", "first", "second", "classes")]
    made: Arrays = {"x": rng.standard_normal((sizes["batch"], widths[0])),
                    "y": rng.integers(0, widths[-1], sizes["batch"])}
    for name, inputs, outputs in zip(NAMES, widths, widths[1:], strict=False):
        made |= dense(rng, name, inputs, outputs)
    return made


def perceptron(optimizer: str, lr: float) -> Callable[..., Program]:
    """A factory of programs with the optimizer `torch.optim.<name>`."""
    def form(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str, **options: Any) -> Program:
        nn = torch.nn
        model = nn.Sequential(nn.Linear(sizes["inputs"], sizes["first"]), nn.ReLU(),
                              nn.Linear(sizes["first"], sizes["second"]), nn.ReLU(),
                              nn.Linear(sizes["second"], sizes["classes"]))
        loaded(torch, model, arrays, dtype)

        def forward(x: Any, y: Any) -> Any:
            return nn.functional.cross_entropy(model(x), y)

        stepper = getattr(torch.optim, optimizer)(model.parameters(), lr=lr, **options)
        return Program(forward, (tensor(torch, arrays["x"], dtype), tensor(torch, arrays["y"], dtype)),
                       dict(model.named_parameters()), training(stepper), trains=True)

    return form


def perceptron_jax(optimizer: Callable[[float], Any], lr: float) -> Callable[..., JaxProgram]:
    def form(arrays: Arrays, sizes: Sizes) -> JaxProgram:
        import jax

        def loss(layers: Any, x: Any, y: Any) -> Any:
            for weight, bias in layers[:-1]:
                x = jax.nn.relu(x @ weight + bias)
            weight, bias = layers[-1]
            return jax_training.cross_entropy(x @ weight + bias, y)

        def named(layers: Any) -> Arrays:
            return {f"{name}.{kind}": array for name, (weight, bias) in zip(NAMES, layers, strict=True)
                    for kind, array in (("weight", weight.T), ("bias", bias))}

        layers = jax.device_put([(arrays[f"{name}.weight"].T, arrays[f"{name}.bias"]) for name in NAMES])
        inputs = jax.device_put((arrays["x"], arrays["y"].astype(np.int32)))
        return jax_training.program(loss, optimizer(lr), layers, inputs, named)

    return form


def row(name: str, title: str, floors: tuple[float, float], widths: tuple[int, int, int, int], batch: int,
        optimizer: str, lr: float) -> Workload:
    keys = ("inputs", "first", "second", "classes")
    ours = {"Adam": jax_training.adam, "SGD": jax_training.sgd}[optimizer]
    return Workload(name, title, *floors, {**dict(zip(keys, widths, strict=True)), "batch": batch},
                    {"inputs": 5, "first": 7, "second": 6, "classes": 3, "batch": 4}, arrays,
                    {"": perceptron(optimizer, lr)}, {"": perceptron_jax(ours, lr)}, optimizer=True)


ROWS = [
    row("mlp-tiny", "MLP 8-16-16-4, batch 16, Adam step", (2.0, 1.1), (8, 16, 16, 4), 16, "Adam", 1e-4),
    row("mlp-adam", "MLP 784-256-256-10, batch 128, Adam step", (1.3, 1.3), (784, 256, 256, 10), 128, "Adam", 1e-4),
    row("mlp-sgd", "MLP 1024-1024-1024-10, batch 256, SGD step", (1.7, 1.2), (1024, 1024, 1024, 10), 256, "SGD",
        1e-2),
]
