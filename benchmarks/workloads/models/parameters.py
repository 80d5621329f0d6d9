"""Initial parameters of models by NumPy, and the programs that train them by SGD."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from .. import jax_training
from ..workload import Arrays, JaxProgram, Program, Sizes, loaded, tensor, training

LR = 0.01
#: builds the model with a library: (torch, sizes)
Model = Callable[[Any, Sizes], Any]


def parameters(model: Model, sizes: Sizes, rng: np.random.Generator) -> Arrays:
    """Arrays for the parameters of a model, whose names and shapes flambeau's tells."""
    import flambeau

    with flambeau.device("meta"):
        shapes = {name: tuple(p.shape) for name, p in model(flambeau, sizes).named_parameters()}
    result: Arrays = {}
    for name, shape in shapes.items():
        if len(shape) > 1:
            scale = 0.05 if "embedding" in name else prod(shape[1:]) ** -0.5
            result[name] = scale * rng.standard_normal(shape, np.float32)
        else:  # random biases and norms, so that no gradient is zero by symmetry
            result[name] = 0.02 * rng.standard_normal(shape) + ("norm" in name and name.endswith("weight"))
    return result


def classifier(model: Model) -> Callable[..., Program]:
    """A form of a program: an SGD step on the cross entropy of `model(x)` and the classes `y`."""
    def form(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str, **options: Any) -> Program:
        network = loaded(torch, model(torch, sizes), arrays, dtype)

        def forward(x: Any, y: Any) -> Any:
            scores = network(x)
            return torch.nn.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), y.reshape(-1))

        optimizer = torch.optim.SGD(network.parameters(), lr=LR, **options)
        return Program(forward, (tensor(torch, arrays["x"], dtype), tensor(torch, arrays["y"], dtype)),
                       dict(network.named_parameters()), training(optimizer), trains=True)

    return form


def classifier_jax(scores: Callable[[dict[str, Any], Any, Sizes], Any]) -> Callable[..., JaxProgram]:
    """The same in jax, of a function of parameters by PyTorch's names, `x` and the sizes."""
    def form(arrays: Arrays, sizes: Sizes) -> JaxProgram:
        import jax

        def loss(p: dict[str, Any], x: Any, y: Any) -> Any:
            found = scores(p, x, sizes)
            return jax_training.cross_entropy(found.reshape(-1, found.shape[-1]), y.reshape(-1))

        held = {name: array for name, array in arrays.items() if name not in ("x", "y")}
        inputs = tuple(array.astype(np.int32) if array.dtype.kind == "i" else array
                       for array in (arrays["x"], arrays["y"]))
        return jax_training.program(loss, jax_training.sgd(LR), jax.device_put(held), jax.device_put(inputs),
                                    lambda p: p)

    return form
