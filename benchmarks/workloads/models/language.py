"""A training step of a language model of two LSTM layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..workload import Arrays, Sizes, Workload
from .jax_layers import Parameters, linear
from .parameters import classifier, classifier_jax, parameters


def lstm(torch: Any, sizes: Sizes) -> Any:
    nn, width, vocabulary = torch.nn, sizes["width"], sizes["vocabulary"]

    class LanguageModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, width)
            self.lstm = nn.LSTM(width, width, sizes["layers"], batch_first=True)
            self.head = nn.Linear(width, vocabulary)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(self.embedding(x))[0])

    return LanguageModel()


def arrays(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    text = rng.integers(0, sizes["vocabulary"], (sizes["batch"], sizes["length"] + 1))
    return {"x": text[:, :-1].copy(), "y": text[:, 1:].copy(), **parameters(lstm, sizes, rng)}


def lstm_jax(p: Parameters, x: Any, sizes: Sizes) -> Any:
    import jax
    import jax.numpy as jnp

    width = sizes["width"]
    x = p["embedding.weight"][x].transpose(1, 0, 2)
    for k in range(sizes["layers"]):
        gates = x @ p[f"lstm.weight_ih_l{k}"].T + p[f"lstm.bias_ih_l{k}"] + p[f"lstm.bias_hh_l{k}"]
        recurrent = p[f"lstm.weight_hh_l{k}"].T

        def cell(state: Any, gate: Any, recurrent: Any = recurrent) -> Any:
            h, c = state
            i, f, g, o = jnp.split(gate + h @ recurrent, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((x.shape[1], width), x.dtype)
        _, x = jax.lax.scan(cell, (zero, zero), gates)
    return linear(p, "head", x.transpose(1, 0, 2))


ROWS = [
    Workload("lstm-lm", "language model, 2 LSTM layers of 256, vocabulary 2,000, 16 texts of 64, SGD step", 1.2, 1.2,
             {"layers": 2, "width": 256, "vocabulary": 2000, "batch": 16, "length": 64},
             {"layers": 2, "width": 4, "vocabulary": 7, "batch": 2, "length": 5}, arrays,
             {"": classifier(lstm)}, {"": classifier_jax(lstm_jax)}, optimizer=True),
]
