"""Training in jax: optimizers of pytrees of parameters, and the loss that the programs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .workload import Arrays, JaxProgram


def sgd(lr: float) -> tuple[Callable[[Any], Any], Callable[..., Any]]:
    """SGD, p ← p - lr · g, as (initial state, update) for `program`."""
    import jax

    def update(parameters: Any, gradients: Any, state: Any) -> tuple[Any, Any]:
        return jax.tree.map(lambda p, g: p - lr * g, parameters, gradients), state

    return lambda parameters: (), update


def adam(lr: float, decay: float = 0.0, beta1: float = 0.9, beta2: float = 0.999,
         eps: float = 1e-8) -> tuple[Callable[[Any], Any], Callable[..., Any]]:
    """Adam; with `decay`, AdamW."""
    import jax
    import jax.numpy as jnp

    def start(parameters: Any) -> Any:
        return (jnp.zeros((), jnp.int32), jax.tree.map(jnp.zeros_like, parameters),
                jax.tree.map(jnp.zeros_like, parameters))

    def update(parameters: Any, gradients: Any, state: Any) -> tuple[Any, Any]:
        count, mean, square = state
        count = count + 1
        mean = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, mean, gradients)
        square = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g * g, square, gradients)
        scale, root = lr / (1 - beta1 ** count), jnp.sqrt(1 - beta2 ** count)
        parameters = jax.tree.map(lambda p, m, v: (1 - lr * decay) * p - scale * m / (jnp.sqrt(v) / root + eps),
                                  parameters, mean, square)
        return parameters, (count, mean, square)

    return start, update


def program(loss: Callable[..., Any], optimizer: tuple[Callable[[Any], Any], Callable[..., Any]], parameters: Any,
            inputs: tuple[Any, ...], named: Callable[[Any], Arrays]) -> JaxProgram:
    """A training step; `named` converts parameters to PyTorch's names and shapes."""
    import jax

    start, update = optimizer

    def step(state: Any, *inputs: Any) -> tuple[Any, Any]:
        value, gradients = jax.value_and_grad(loss)(state[0], *inputs)
        return update(state[0], gradients, state[1]), value

    def results(state: Any, value: Any) -> Arrays:
        return {"output": value, **{f"updated {name}": array for name, array in named(state[0]).items()}}

    return JaxProgram(step, inputs, (parameters, start(parameters)), results)


def cross_entropy(logits: Any, labels: Any) -> Any:
    """Mean of -log softmax(logits)[label] over all but the last dimension."""
    import jax
    import jax.numpy as jnp

    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1)
    return -chosen.mean()
