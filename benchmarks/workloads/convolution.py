"""A 2-d convolution: forward, and forward with the gradients of input, weight and bias."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .workload import Arrays, JaxProgram, Program, Sizes, Workload, derivative, tensor


def arrays(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    batch, side, inputs, outputs, kernel = (sizes[name] for name in ("batch", "side", "inputs", "outputs", "kernel"))
    bound = (inputs * kernel * kernel) ** -0.5
    return {"x": rng.standard_normal((batch, inputs, side, side)),
            "weight": rng.uniform(-bound, bound, (outputs, inputs, kernel, kernel)),
            "bias": rng.uniform(-bound, bound, outputs), "g": rng.standard_normal((batch, outputs, side, side))}


def forward_only(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str) -> Program:
    def forward(x: Any, weight: Any, bias: Any) -> Any:
        return torch.nn.functional.conv2d(x, weight, bias, padding=sizes["kernel"] // 2)

    return Program(forward, tuple(tensor(torch, arrays[name], dtype) for name in ("x", "weight", "bias")))


def with_gradients(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str) -> Program:
    plain = forward_only(torch, arrays, sizes, dtype)
    leaves = dict(zip(("x", "weight", "bias"), (each.requires_grad_() for each in plain.inputs), strict=True))
    return Program(plain.forward, plain.inputs, leaves, derivative(leaves, tensor(torch, arrays["g"], dtype)))


#: layout of jax -> permutations of PyTorch's dimensions of images and weights, and their inverses
ORDERS = {"NCHW": ((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3)),
          "NHWC": ((0, 2, 3, 1), (2, 3, 1, 0), (0, 3, 1, 2), (3, 2, 0, 1))}


def convolution_jax(order: str, gradients: bool) -> Callable[..., JaxProgram]:
    to_image, to_weight, from_image, from_weight = ORDERS[order]
    spec = (order, "OIHW" if order == "NCHW" else "HWIO", order)
    bias_shape = (1, -1, 1, 1) if order == "NCHW" else (1, 1, 1, -1)

    def form(arrays: Arrays, sizes: Sizes) -> JaxProgram:
        import jax

        def forward(x: Any, weight: Any, bias: Any) -> Any:
            y = jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=spec)
            return y + bias.reshape(bias_shape)

        def step(state: Any, x: Any, weight: Any, bias: Any, g: Any) -> Any:
            if not gradients:
                return state, (forward(x, weight, bias),)
            y, back = jax.vjp(forward, x, weight, bias)
            return state, (y, *back(g))

        def named(_: Any, out: Any) -> dict[str, Any]:
            results = {"output": out[0].transpose(from_image)}
            if gradients:
                results |= {"gradient of x": out[1].transpose(from_image),
                          "gradient of weight": out[2].transpose(from_weight), "gradient of bias": out[3]}
            return results

        inputs = [np.ascontiguousarray(array) for array in (
            arrays["x"].transpose(to_image), arrays["weight"].transpose(to_weight), arrays["bias"],
            arrays["g"].transpose(to_image))]
        return JaxProgram(step, tuple(jax.device_put(inputs)), named=named)

    return form


SIZES = {"batch": 32, "side": 28, "inputs": 32, "outputs": 64, "kernel": 3}
TINY = {"batch": 2, "side": 5, "inputs": 3, "outputs": 4, "kernel": 3}

ROWS = [
    Workload("conv", "conv 3x3 32->64 28x28 batch 32 pad 1, fwd", 1.4, 1.1, SIZES, TINY, arrays, {"": forward_only},
             {order: convolution_jax(order, gradients=False) for order in ORDERS}, backward=False),
    Workload("conv-backward", "the same, fwd+bwd", 1.2, 1.2, SIZES, TINY, arrays, {"": with_gradients},
             {order: convolution_jax(order, gradients=True) for order in ORDERS}),
]
