"""Elementwise operators and row reductions of large arrays: bound by memory bandwidth unless fused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .workload import Arrays, JaxProgram, Program, Sizes, Workload, derivative, tensor


def jax_derivative(forward: Callable[..., Any], arrays: Arrays, leaves: tuple[str, ...], rest: tuple[str, ...] = (),
                   cotangent: str | None = None) -> JaxProgram:
    """Forward and backward in jax; the leaves are the first arguments of `forward`."""
    import jax

    def step(state: Any, leaves: Any, rest: Any, g: Any) -> Any:
        if cotangent is None:
            return state, jax.value_and_grad(lambda leaves: forward(*leaves, *rest))(leaves)
        y, back = jax.vjp(lambda leaves: forward(*leaves, *rest), leaves)
        return state, (y, back(g)[0])

    def named(_: Any, out: Any) -> dict[str, Any]:
        return {"output": out[0], **{f"gradient of {name}": array for name, array in zip(leaves, out[1], strict=True)}}

    inputs = jax.device_put(([arrays[name] for name in leaves], [arrays[name] for name in rest],
                             arrays[cotangent] if cotangent else 0.0))
    return JaxProgram(step, inputs, named=named)


# ----- a chain of elementwise operators, and a sum -----

def chain(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str) -> Program:
    leaves = {"x": tensor(torch, arrays["x"], dtype, requires_grad=True)}

    def forward(x: Any) -> Any:
        return (torch.tanh(x) * torch.exp(x) + 2 * torch.sigmoid(x) - 1).sum()

    return Program(forward, (leaves["x"],), leaves, derivative(leaves))


def chain_jax(arrays: Arrays, sizes: Sizes) -> JaxProgram:
    import jax
    import jax.numpy as jnp

    return jax_derivative(lambda x: (jnp.tanh(x) * jnp.exp(x) + 2 * jax.nn.sigmoid(x) - 1).sum(), arrays, ("x",))


# ----- log-softmax and negative log-likelihood -----

def likelihood_arrays(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    return {"x": rng.standard_normal((sizes["rows"], sizes["classes"])),
            "y": rng.integers(0, sizes["classes"], sizes["rows"])}


def likelihood(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str) -> Program:
    functional = torch.nn.functional
    leaves = {"x": tensor(torch, arrays["x"], dtype, requires_grad=True)}

    def forward(x: Any, y: Any) -> Any:
        return functional.nll_loss(functional.log_softmax(x, dim=1), y)

    return Program(forward, (leaves["x"], tensor(torch, arrays["y"], dtype)), leaves, derivative(leaves))


def likelihood_jax(arrays: Arrays, sizes: Sizes) -> JaxProgram:
    from .jax_training import cross_entropy

    return jax_derivative(cross_entropy, {"x": arrays["x"], "y": arrays["y"].astype(np.int32)}, ("x",), ("y",))


# ----- layer norm and gelu -----

def norm_arrays(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    rows, width = sizes["rows"], sizes["width"]
    return {"x": rng.standard_normal((rows, width)), "weight": rng.uniform(0.5, 1.5, width),
            "bias": rng.uniform(-0.5, 0.5, width), "g": rng.standard_normal((rows, width))}


def norm(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str) -> Program:
    functional = torch.nn.functional
    leaves = {name: tensor(torch, arrays[name], dtype, requires_grad=True) for name in ("x", "weight", "bias")}

    def forward(x: Any, weight: Any, bias: Any) -> Any:
        return functional.gelu(functional.layer_norm(x, (sizes["width"],), weight, bias))

    return Program(forward, tuple(leaves.values()), leaves, derivative(leaves, tensor(torch, arrays["g"], dtype)))


def norm_jax(arrays: Arrays, sizes: Sizes) -> JaxProgram:
    import jax

    def forward(x: Any, weight: Any, bias: Any) -> Any:
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return jax.nn.gelu((x - mean) * jax.lax.rsqrt(variance + 1e-5) * weight + bias, approximate=False)

    return jax_derivative(forward, arrays, ("x", "weight", "bias"), cotangent="g")


ROWS = [
    Workload("chain", "(tanh x exp x + 2 sigmoid x - 1).sum() on 4M, fwd+bwd", 1.5, 1.3, {"elements": 1 << 22},
             {"elements": 50}, lambda sizes, rng: {"x": rng.standard_normal(sizes["elements"])},
             {"": chain}, {"": chain_jax}),
    Workload("log-softmax", "log-softmax + nll, 4096 x 1000, fwd+bwd", 1.3, 1.2, {"rows": 4096, "classes": 1000},
             {"rows": 6, "classes": 5}, likelihood_arrays, {"": likelihood}, {"": likelihood_jax}),
    Workload("layer-norm", "layer norm + gelu, 4096 x 1024, fwd+bwd", 1.3, 1.3, {"rows": 4096, "width": 1024},
             {"rows": 4, "width": 6}, norm_arrays, {"": norm}, {"": norm_jax}),
]
