"""A matmul, and a batched matmul."""

from __future__ import annotations

from typing import Any

import numpy as np

from .workload import Arrays, JaxProgram, Program, Sizes, Workload, tensor


def arrays(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    shape = (*([sizes["batch"]] if "batch" in sizes else []), sizes["side"], sizes["side"])
    return {name: rng.standard_normal(shape) for name in "ab"}


def matmul(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str) -> Program:
    return Program(torch.matmul, tuple(tensor(torch, arrays[name], dtype) for name in "ab"))


def matmul_jax(arrays: Arrays, sizes: Sizes) -> JaxProgram:
    import jax
    import jax.numpy as jnp

    def step(state: Any, a: Any, b: Any) -> Any:
        return state, jnp.matmul(a, b)

    return JaxProgram(step, tuple(jax.device_put(arrays[name]) for name in "ab"))


ROWS = [
    Workload("matmul", "matmul 1024^3", 1.8, 1.0, {"side": 1024}, {"side": 9}, arrays, {"": matmul},
             {"": matmul_jax}, backward=False),
    Workload("bmm", "batched matmul 32 x 128^3", 1.3, 1.2, {"batch": 32, "side": 128}, {"batch": 3, "side": 5}, arrays,
             {"": matmul}, {"": matmul_jax}, backward=False),
]
