"""A training step of a small convolutional network on images of MNIST's size."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import jax_training
from .workload import Arrays, JaxProgram, Program, Sizes, Workload, dense, loaded, tensor, training

LR = 0.01


def flat(sizes: Sizes) -> int:
    """Features after the two convolutions, which shorten each side by 2, and the pooling."""
    return sizes["second"] * ((sizes["side"] - 4) // 2) ** 2


def arrays(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    first, second = sizes["first"], sizes["second"]
    made: Arrays = {"x": rng.standard_normal((sizes["batch"], 1, sizes["side"], sizes["side"])),
                    "y": rng.integers(0, sizes["classes"], sizes["batch"])}
    for name, inputs, outputs in (("0", 1, first), ("2", first, second)):
        bound = (inputs * 9) ** -0.5
        made |= {f"{name}.weight": rng.uniform(-bound, bound, (outputs, inputs, 3, 3)),
                 f"{name}.bias": rng.uniform(-bound, bound, outputs)}
    return made | dense(rng, "6", flat(sizes), sizes["hidden"]) | dense(rng, "8", sizes["hidden"], sizes["classes"])


def network(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str, **options: Any) -> Program:
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(1, sizes["first"], 3), nn.ReLU(), nn.Conv2d(sizes["first"], sizes["second"], 3),
                          nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(flat(sizes), sizes["hidden"]),
                          nn.ReLU(), nn.Linear(sizes["hidden"], sizes["classes"]))
    loaded(torch, model, arrays, dtype)

    def forward(x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(model(x), y)

    optimizer = torch.optim.SGD(model.parameters(), lr=LR, **options)
    return Program(forward, (tensor(torch, arrays["x"], dtype), tensor(torch, arrays["y"], dtype)),
                   dict(model.named_parameters()), training(optimizer), trains=True)


def network_jax(arrays: Arrays, sizes: Sizes) -> JaxProgram:
    """Images are channels-last, as in jax's libraries."""
    import jax
    import jax.numpy as jnp

    def convolve(x: Any, weight: Any, bias: Any) -> Any:
        return jax.lax.conv_general_dilated(x, weight, (1, 1), "VALID",
                                            dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias

    def loss(layers: Any, x: Any, y: Any) -> Any:
        x = jax.nn.relu(convolve(x, *layers[0]))
        x = jax.nn.relu(convolve(x, *layers[1]))
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = x.reshape(x.shape[0], -1)
        x = jax.nn.relu(x @ layers[2][0] + layers[2][1])
        return jax_training.cross_entropy(x @ layers[3][0] + layers[3][1], y)

    side, second, hidden = (sizes["side"] - 4) // 2, sizes["second"], sizes["hidden"]

    def named(layers: Any) -> Arrays:
        weights = [layers[0][0].transpose(3, 2, 0, 1), layers[1][0].transpose(3, 2, 0, 1),
                   layers[2][0].reshape(side, side, second, hidden).transpose(3, 2, 0, 1).reshape(hidden, -1),
                   layers[3][0].T]
        return {f"{name}.{kind}": array for name, weight, (_, bias) in zip("0268", weights, layers, strict=True)
                for kind, array in (("weight", weight), ("bias", bias))}

    weights = [arrays["0.weight"].transpose(2, 3, 1, 0), arrays["2.weight"].transpose(2, 3, 1, 0),
               arrays["6.weight"].reshape(hidden, second, side, side).transpose(2, 3, 1, 0).reshape(-1, hidden),
               arrays["8.weight"].T]
    layers = [(np.ascontiguousarray(weight), arrays[f"{name}.bias"])
              for name, weight in zip("0268", weights, strict=True)]
    x = np.ascontiguousarray(arrays["x"].transpose(0, 2, 3, 1))
    return jax_training.program(loss, jax_training.sgd(LR), jax.device_put(layers),
                                jax.device_put((x, arrays["y"].astype(np.int32))), named)


ROWS = [
    Workload("cnn", "MNIST CNN (conv 32, conv 64, pool, fc 128), batch 64, SGD step", 1.2, 1.4,
             {"batch": 64, "side": 28, "first": 32, "second": 64, "hidden": 128, "classes": 10},
             {"batch": 3, "side": 8, "first": 2, "second": 3, "hidden": 5, "classes": 4}, arrays,
             {"": network}, {"": network_jax}, optimizer=True),
]
