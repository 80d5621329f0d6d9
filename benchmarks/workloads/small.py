"""Graphs of tiny arrays, bound by the overhead per operator."""

from __future__ import annotations

from typing import Any

import numpy as np

from .workload import Arrays, JaxProgram, Program, Sizes, Workload, derivative, tensor

# ----- forty products and sums -----

def forty_arrays(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    side = sizes["side"]
    return {"a": rng.uniform(0.5, 1.5, (side, side)), "b": rng.uniform(0.2, 0.8, (side, side)),
            "g": rng.standard_normal((side, side))}


def forty(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str) -> Program:
    leaves = {name: tensor(torch, arrays[name], dtype, requires_grad=True) for name in "ab"}
    pairs = sizes["operations"] // 2

    def forward(a: Any, b: Any) -> Any:
        c = a
        for _ in range(pairs):
            c = c * b + a
        return c

    return Program(forward, (leaves["a"], leaves["b"]), leaves, derivative(leaves, tensor(torch, arrays["g"], dtype)))


def forty_jax(arrays: Arrays, sizes: Sizes) -> JaxProgram:
    import jax

    pairs = sizes["operations"] // 2

    def forward(a: Any, b: Any) -> Any:
        c = a
        for _ in range(pairs):
            c = c * b + a
        return c

    def step(state: Any, a: Any, b: Any, g: Any) -> Any:
        c, back = jax.vjp(forward, a, b)
        return state, (c, back(g))

    return JaxProgram(step, tuple(jax.device_put(arrays[name]) for name in "abg"),
                      named=lambda _, out: {"output": out[0], "gradient of a": out[1][0], "gradient of b": out[1][1]})


# ----- a formula of two scalars -----

def formula_arrays(_: Sizes, rng: np.random.Generator) -> Arrays:
    return {"x1": rng.uniform(1, 3, ()), "x2": rng.uniform(3, 6, ())}


def formula(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str) -> Program:
    leaves = {name: tensor(torch, arrays[name], dtype, requires_grad=True) for name in ("x1", "x2")}

    def forward(x1: Any, x2: Any) -> Any:
        return torch.log(x1) + x1 * x2 - torch.sin(x2)

    return Program(forward, tuple(leaves.values()), leaves, derivative(leaves))


def formula_jax(arrays: Arrays, sizes: Sizes) -> JaxProgram:
    import jax
    import jax.numpy as jnp

    def forward(x1: Any, x2: Any) -> Any:
        return jnp.log(x1) + x1 * x2 - jnp.sin(x2)

    def step(state: Any, x1: Any, x2: Any) -> Any:
        return state, jax.value_and_grad(forward, (0, 1))(x1, x2)

    return JaxProgram(step, (jax.device_put(arrays["x1"]), jax.device_put(arrays["x2"])),
                      named=lambda _, out: {"output": out[0], "gradient of x1": out[1][0],
                                            "gradient of x2": out[1][1]})


# ----- descent -----

def descent(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str) -> Program:
    """Gradient descent on |x| + (x - 5)² from 0. The loop is timed; its step is compiled."""
    def objective(x: Any) -> Any:
        return torch.abs(x) + (x - 5) ** 2

    def make_step(forward: Any) -> Any:
        def step(x: Any) -> Any:
            if x.grad is not None:
                x.grad.zero_()
            y = forward(x)
            y.backward()
            with torch.no_grad():
                x -= 0.05 * x.grad
            return y
        return step

    def loop(step: Any) -> Any:
        x = torch.tensor(0.0, dtype=getattr(torch, dtype), requires_grad=True)
        for _ in range(sizes["steps"]):
            step(x)
        return x

    return Program(objective, (), make_step=make_step, loop=loop)


def descent_jax(arrays: Arrays, sizes: Sizes) -> JaxProgram:
    import jax
    import jax.numpy as jnp

    def objective(x: Any) -> Any:
        return jnp.abs(x) + (x - 5) ** 2

    def step(x: Any) -> Any:
        y, slope = jax.value_and_grad(objective)(x)
        return x - 0.05 * slope, y

    def loop(step: Any, _: Any) -> Any:
        x = start
        for _ in range(sizes["steps"]):
            x, y = step(x)
        return x, y

    start = jax.device_put(np.float32(0))
    return JaxProgram(step, (), start, named=lambda x, _: {"output": x}, loop=loop)


ROWS = [
    Workload("forty", "40 mul/add on 4x4, fwd+bwd", 2.0, 0.8, {"side": 4, "operations": 40},
             {"side": 3, "operations": 6}, forty_arrays, {"": forty}, {"": forty_jax}),
    Workload("formula", "ln x1 + x1 x2 - sin x2, 0-d, fwd+bwd", 2.0, 0.8, {}, {}, formula_arrays,
             {"": formula}, {"": formula_jax}),
    Workload("descent", "150 steps of 1-d gradient descent, the step compiled", 2.0, 0.8, {"steps": 150},
             {"steps": 5}, lambda sizes, rng: {}, {"": descent}, {"": descent_jax}),
]
