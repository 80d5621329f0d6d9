"""A training step of a small GPT: pre-norm blocks of causal attention and an MLP with gelu."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import jax_training
from .workload import Arrays, JaxProgram, Program, Sizes, Workload, loaded, tensor, training

LR, DECAY = 1e-3, 0.01


def shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """Parameter name -> shape."""
    width, vocabulary = sizes["width"], sizes["vocabulary"]
    result: dict[str, tuple[int, ...]] = {"tokens.weight": (vocabulary, width),
                                         "positions.weight": (sizes["context"], width)}
    for layer in range(sizes["layers"]):
        for name, outputs, inputs in (("qkv", 3 * width, width), ("projection", width, width),
                                      ("up", 4 * width, width), ("down", width, 4 * width)):
            result |= {f"blocks.{layer}.{name}.weight": (outputs, inputs), f"blocks.{layer}.{name}.bias": (outputs,)}
        for name in ("norm1", "norm2"):
            result |= {f"blocks.{layer}.{name}.weight": (width,), f"blocks.{layer}.{name}.bias": (width,)}
    return result | {"norm.weight": (width,), "norm.bias": (width,), "head.weight": (vocabulary, width)}


def arrays(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    made: Arrays = {name: rng.integers(0, sizes["vocabulary"], (sizes["batch"], sizes["context"]))
                    for name in ("x", "y")}
    for name, shape in shapes(sizes).items():
        # random biases and norms, so that no gradient is zero by symmetry
        made[name] = (0.06 if len(shape) == 2 else 0.02) * rng.standard_normal(shape)
        if "norm" in name and name.endswith("weight"):
            made[name] += 1
    return made


def model(torch: Any, sizes: Sizes) -> Any:
    nn, functional = torch.nn, torch.nn.functional
    width, heads = sizes["width"], sizes["heads"]

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            q, k, v = (each.view(batch, length, heads, width // heads).transpose(1, 2)
                       for each in self.qkv(self.norm1(x)).split(width, dim=2))
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.projection(mixed.transpose(1, 2).contiguous().view(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(sizes["vocabulary"], width)
            self.positions = nn.Embedding(sizes["context"], width)
            self.blocks = nn.ModuleList([Block() for _ in range(sizes["layers"])])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, sizes["vocabulary"], bias=False)

        def forward(self, x: Any) -> Any:
            x = self.tokens(x) + self.positions(torch.arange(x.shape[1], device=x.device))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return GPT()


def gpt(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str, **options: Any) -> Program:
    network = loaded(torch, model(torch, sizes), arrays, dtype)

    def forward(x: Any, y: Any) -> Any:
        logits = network(x)
        return torch.nn.functional.cross_entropy(logits.view(-1, sizes["vocabulary"]), y.view(-1))

    optimizer = torch.optim.AdamW(network.parameters(), lr=LR, weight_decay=DECAY, **options)
    return Program(forward, (tensor(torch, arrays["x"], dtype), tensor(torch, arrays["y"], dtype)),
                   dict(network.named_parameters()), training(optimizer), trains=True)


def gpt_jax(arrays: Arrays, sizes: Sizes) -> JaxProgram:
    """Weights are (inputs, outputs), as in jax's libraries; embeddings as in PyTorch."""
    import jax
    import jax.numpy as jnp

    width, heads, layers = sizes["width"], sizes["heads"], sizes["layers"]

    def to_jax_layout(name: str, array: Any) -> Any:
        plain = array.ndim == 1 or name in ("tokens.weight", "positions.weight")
        return array if plain else array.T

    def norm(p: Any, name: str, x: Any) -> Any:
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]

    def linear(p: Any, name: str, x: Any) -> Any:
        return x @ p[f"{name}.weight"] + p[f"{name}.bias"]

    def attention(q: Any, k: Any, v: Any) -> Any:
        length = q.shape[1]
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (width // heads) ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)

    def loss(p: Any, x: Any, y: Any) -> Any:
        batch, length = x.shape
        x = p["tokens.weight"][x] + p["positions.weight"][jnp.arange(length)]
        for layer in range(layers):
            block = f"blocks.{layer}"
            qkv = linear(p, f"{block}.qkv", norm(p, f"{block}.norm1", x))
            q, k, v = (each.reshape(batch, length, heads, -1) for each in jnp.split(qkv, 3, -1))
            x = x + linear(p, f"{block}.projection", attention(q, k, v).reshape(batch, length, width))
            hidden = jax.nn.gelu(linear(p, f"{block}.up", norm(p, f"{block}.norm2", x)), approximate=False)
            x = x + linear(p, f"{block}.down", hidden)
        return jax_training.cross_entropy(norm(p, "norm", x) @ p["head.weight"], y)

    parameters = {name: np.ascontiguousarray(to_jax_layout(name, arrays[name])) for name in shapes(sizes)}
    inputs = tuple(arrays[name].astype(np.int32) for name in ("x", "y"))
    return jax_training.program(loss, jax_training.adam(LR, DECAY), jax.device_put(parameters),
                                jax.device_put(inputs),
                                lambda p: {name: to_jax_layout(name, array) for name, array in p.items()})


ROWS = [
    Workload("gpt", "4-layer GPT, 4 heads, 128 wide, 64 tokens, vocabulary 65, batch 12, AdamW step", 1.2, 1.4,
             {"layers": 4, "heads": 4, "width": 128, "context": 64, "vocabulary": 65, "batch": 12},
             {"layers": 2, "heads": 2, "width": 8, "context": 5, "vocabulary": 11, "batch": 3}, arrays,
             {"": gpt}, {"": gpt_jax}, optimizer=True),
]
