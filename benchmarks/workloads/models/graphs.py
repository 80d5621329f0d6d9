"""A training step of a graph neural network: messages along edges, their means at nodes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from .. import jax_training
from ..workload import Arrays, JaxProgram, Program, Sizes, Workload, loaded, tensor, training
from .jax_layers import linear
from .parameters import LR, parameters


def gnn(torch: Any, sizes: Sizes) -> Any:
    nn, width = torch.nn, sizes["width"]

    class Layer(nn.Module):
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.own, self.message = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs, bias=False)

        def forward(self, x: Any, source: Any, target: Any, degree: Any) -> Any:
            sent = self.message(x)[source]
            received = torch.zeros(x.shape[0], sent.shape[1], dtype=x.dtype).index_add(0, target, sent)
            return self.own(x) + received / degree

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = [sizes["features"], *[width] * (sizes["layers"] - 1), sizes["classes"]]
            self.layers = nn.ModuleList([Layer(n, m) for n, m in pairwise(widths)])

        def forward(self, x: Any, source: Any, target: Any, degree: Any) -> Any:
            for k, layer in enumerate(self.layers):
                x = layer(x if k == 0 else nn.functional.relu(x), source, target, degree)
            return x

    return Network()


def arrays(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    nodes, edges = sizes["nodes"], sizes["edges"]
    target = rng.integers(0, nodes, edges)
    return {"x": rng.standard_normal((nodes, sizes["features"])), "y": rng.integers(0, sizes["classes"], nodes),
            "source": rng.integers(0, nodes, edges), "target": target,
            "degree": np.maximum(np.bincount(target, minlength=nodes), 1).astype(float)[:, None],
            **parameters(gnn, sizes, rng)}


_INPUTS = ("x", "source", "target", "degree", "y")


def program(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str, **options: Any) -> Program:
    network = loaded(torch, gnn(torch, sizes), arrays, dtype)

    def forward(x: Any, source: Any, target: Any, degree: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(network(x, source, target, degree), y)

    optimizer = torch.optim.SGD(network.parameters(), lr=LR, **options)
    return Program(forward, tuple(tensor(torch, arrays[name], dtype) for name in _INPUTS),
                   dict(network.named_parameters()), training(optimizer), trains=True)


def program_jax(arrays: Arrays, sizes: Sizes) -> JaxProgram:
    import jax
    import jax.numpy as jnp

    def loss(p: dict[str, Any], x: Any, source: Any, target: Any, degree: Any, y: Any) -> Any:
        for k in range(sizes["layers"]):
            x = x if k == 0 else jax.nn.relu(x)
            sent = linear(p, f"layers.{k}.message", x)[source]
            received = jnp.zeros((x.shape[0], sent.shape[1]), x.dtype).at[target].add(sent)
            x = linear(p, f"layers.{k}.own", x) + received / degree
        return jax_training.cross_entropy(x, y)

    held = {name: array for name, array in arrays.items() if name not in _INPUTS}
    inputs = tuple(arrays[name].astype(np.int32) if arrays[name].dtype.kind == "i" else arrays[name]
                   for name in _INPUTS)
    return jax_training.program(loss, jax_training.sgd(LR), jax.device_put(held), jax.device_put(inputs), lambda p: p)


ROWS = [
    Workload("gnn", "graph network, 3 layers of 64, 5,000 nodes, 40,000 edges, SGD step", 1.2, 1.2,
             {"layers": 3, "width": 64, "features": 64, "classes": 10, "nodes": 5000, "edges": 40_000},
             {"layers": 2, "width": 5, "features": 4, "classes": 3, "nodes": 7, "edges": 20}, arrays,
             {"": program}, {"": program_jax}, optimizer=True),
]
