"""Layers in jax, of parameters by PyTorch's names and in its layouts. Images are channels-last, as usual in jax."""

from __future__ import annotations

from typing import Any

Parameters = dict[str, Any]


def linear(p: Parameters, name: str, x: Any) -> Any:
    x = x @ p[f"{name}.weight"].T
    return x + p[f"{name}.bias"] if f"{name}.bias" in p else x


def convolution(p: Parameters, name: str, x: Any, stride: int = 1, padding: int = 0, groups: int = 1) -> Any:
    import jax

    x = jax.lax.conv_general_dilated(x, p[f"{name}.weight"], (stride, stride), [(padding, padding)] * 2,
                                     dimension_numbers=("NHWC", "OIHW", "NHWC"), feature_group_count=groups)
    return x + p[f"{name}.bias"] if f"{name}.bias" in p else x


def upconvolution(p: Parameters, name: str, x: Any) -> Any:
    """A transposed convolution with a kernel and stride of 2."""
    import jax.numpy as jnp

    n, h, w, _ = x.shape
    weight = p[f"{name}.weight"]  # (inputs, outputs, 2, 2)
    x = jnp.einsum("nhwi,iokl->nhkwlo", x, weight).reshape(n, 2 * h, 2 * w, weight.shape[1])
    return x + p[f"{name}.bias"]


def batch_norm(p: Parameters, name: str, x: Any) -> Any:
    import jax

    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def layer_norm(p: Parameters, name: str, x: Any) -> Any:
    import jax

    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def max_pool(x: Any, size: int, stride: int, padding: int = 0) -> Any:
    import jax
    import jax.numpy as jnp

    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, size, size, 1), (1, stride, stride, 1),
                                 ((0, 0), (padding, padding), (padding, padding), (0, 0)))


def attention(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """Of (batch, length, heads, width) arrays; `mask` tells which of (queries, keys) are used."""
    import jax
    import jax.numpy as jnp

    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
