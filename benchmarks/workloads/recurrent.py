"""A tanh RNN over a sequence, forward and backward to its weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from .workload import Arrays, JaxProgram, Program, Sizes, Workload, derivative, loaded, tensor

NAMES = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")


def arrays(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    steps, batch, inputs, hidden = (sizes[name] for name in ("steps", "batch", "inputs", "hidden"))
    bound = hidden ** -0.5
    shapes = ((hidden, inputs), (hidden, hidden), (hidden,), (hidden,))
    return {"x": rng.standard_normal((steps, batch, inputs)), "g": rng.standard_normal((steps, batch, hidden)),
            **{name: rng.uniform(-bound, bound, shape) for name, shape in zip(NAMES, shapes, strict=True)}}


def module(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str) -> Program:
    model = loaded(torch, torch.nn.RNN(sizes["inputs"], sizes["hidden"]), arrays, dtype)

    def forward(x: Any) -> Any:
        return model(x)[0]

    leaves = dict(model.named_parameters())
    return Program(forward, (tensor(torch, arrays["x"], dtype),), leaves,
                   derivative(leaves, tensor(torch, arrays["g"], dtype)))


def cells(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str) -> Program:
    """The input projections of all steps in one matmul, then the loop over steps."""
    linear = torch.nn.functional.linear
    leaves = {name: tensor(torch, arrays[name], dtype, requires_grad=True) for name in NAMES}
    weight_ih, weight_hh, bias_ih, bias_hh = leaves.values()

    def forward(x: Any) -> Any:
        states = []
        for projected in linear(x, weight_ih, bias_ih).unbind():
            last = linear(states[-1], weight_hh, bias_hh) if states else bias_hh
            states.append(torch.tanh(projected + last))
        return torch.stack(states)

    return Program(forward, (tensor(torch, arrays["x"], dtype),), leaves,
                   derivative(leaves, tensor(torch, arrays["g"], dtype)))


def recurrence_jax(arrays: Arrays, sizes: Sizes, unroll: int) -> JaxProgram:
    import jax
    import jax.numpy as jnp

    def forward(weights: Any, x: Any) -> Any:
        weight_ih, weight_hh, bias_ih, bias_hh = weights

        def cell(state: Any, projected: Any) -> Any:
            state = jnp.tanh(projected + state @ weight_hh.T)
            return state, state

        start = jnp.zeros((x.shape[1], sizes["hidden"]), x.dtype)
        return jax.lax.scan(cell, start, x @ weight_ih.T + (bias_ih + bias_hh), unroll=unroll)[1]

    def step(state: Any, weights: Any, x: Any, g: Any) -> Any:
        y, back = jax.vjp(lambda weights: forward(weights, x), weights)
        return state, (y, back(g)[0])

    def named(_: Any, out: Any) -> dict[str, Any]:
        return {"output": out[0], **{f"gradient of {name}": array for name, array in zip(NAMES, out[1], strict=True)}}

    inputs = jax.device_put(([arrays[name] for name in NAMES], arrays["x"], arrays["g"]))
    return JaxProgram(step, inputs, named=named)


ROWS = [
    Workload("rnn", "tanh RNN, 64 -> 128, batch 32, 50 steps, fwd+bwd", 1.5, 1.2,
             {"steps": 50, "batch": 32, "inputs": 64, "hidden": 128},
             {"steps": 4, "batch": 2, "inputs": 3, "hidden": 5}, arrays,
             {"nn.RNN": module, "cells": cells},
             {"scan": lambda arrays, sizes: recurrence_jax(arrays, sizes, 1),
              "unrolled": lambda arrays, sizes: recurrence_jax(arrays, sizes, sizes["steps"])}),
]
