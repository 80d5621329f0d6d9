"""Transformers: GPT-2 small, a training step and greedy generation, and a training step of ViT-tiny."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..workload import Arrays, JaxProgram, Program, Sizes, Workload, loaded, tensor
from .jax_layers import Parameters, attention, convolution, layer_norm, linear
from .parameters import classifier, classifier_jax, parameters


def _block(torch: Any, width: int, heads: int, causal: bool) -> Any:
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def split(self, x: Any) -> Any:
            batch, length, _ = x.shape
            return [each.view(batch, length, heads, width // heads).transpose(1, 2)
                    for each in self.qkv(self.norm1(x)).split(width, dim=2)]

        def rest(self, x: Any, mixed: Any) -> Any:
            x = x + self.projection(mixed.transpose(1, 2).reshape(x.shape))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

        def forward(self, x: Any) -> Any:
            q, k, v = self.split(x)
            return self.rest(x, functional.scaled_dot_product_attention(q, k, v, is_causal=causal))

    return Block()


def _rest_jax(p: Parameters, name: str, x: Any, mixed: Any) -> Any:
    import jax

    x = x + linear(p, f"{name}.projection", mixed.reshape(x.shape))
    hidden = jax.nn.gelu(linear(p, f"{name}.up", layer_norm(p, f"{name}.norm2", x)), approximate=False)
    return x + linear(p, f"{name}.down", hidden)


def _split_jax(p: Parameters, name: str, x: Any, heads: int) -> Any:
    import jax.numpy as jnp

    return [each.reshape(*x.shape[:2], heads, -1)
            for each in jnp.split(linear(p, f"{name}.qkv", layer_norm(p, f"{name}.norm1", x)), 3, -1)]


# ----- GPT-2 -----

def gpt(torch: Any, sizes: Sizes) -> Any:
    nn, width = torch.nn, sizes["width"]

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(sizes["vocabulary"], width)
            self.position_embedding = nn.Embedding(sizes["context"], width)
            self.blocks = nn.ModuleList([_block(torch, width, sizes["heads"], True) for _ in range(sizes["layers"])])
            self.norm = nn.LayerNorm(width)

        def forward(self, x: Any) -> Any:
            x = self.embedding(x) + self.position_embedding(torch.arange(x.shape[1]))
            for block in self.blocks:
                x = block(x)
            return torch.nn.functional.linear(self.norm(x), self.embedding.weight)

        def next(self, token: Any, position: Any, keys: Any, values: Any, mask: Any) -> Any:
            """The scores after a token; `keys` and `values` of each layer receive its own."""
            x = self.embedding(token) + self.position_embedding(position)
            for block, key, value in zip(self.blocks, keys, values, strict=True):
                q, k, v = block.split(x)
                key.index_copy_(2, position, k)
                value.index_copy_(2, position, v)
                x = block.rest(x, torch.nn.functional.scaled_dot_product_attention(q, key, value, attn_mask=mask))
            return torch.nn.functional.linear(self.norm(x), self.embedding.weight)

    return GPT()


def texts(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    text = rng.integers(0, sizes["vocabulary"], (sizes["batch"], sizes["context"] + 1))
    return {"x": text[:, :-1].copy(), "y": text[:, 1:].copy(), **parameters(gpt, sizes, rng)}


def gpt_jax(p: Parameters, x: Any, sizes: Sizes) -> Any:
    import jax.numpy as jnp

    length = x.shape[1]
    x = p["embedding.weight"][x] + p["position_embedding.weight"][:length]
    mask = jnp.tril(jnp.ones((length, length), bool))
    for layer in range(sizes["layers"]):
        name = f"blocks.{layer}"
        x = _rest_jax(p, name, x, attention(*_split_jax(p, name, x, sizes["heads"]), mask))
    return layer_norm(p, "norm", x) @ p["embedding.weight"].T


def generation(torch: Any, arrays: Arrays, sizes: Sizes, dtype: str) -> Program:
    """Greedy generation of `tokens` tokens with caches of keys and values of a fixed length; a step makes one."""
    network = loaded(torch, gpt(torch, sizes), arrays, dtype)
    length, shape = sizes["context"], (1, sizes["heads"], sizes["context"], sizes["width"] // sizes["heads"])
    caches = [[torch.zeros(shape, dtype=getattr(torch, dtype)) for _ in range(sizes["layers"])] for _ in range(2)]
    places = [torch.tensor([i]) for i in range(sizes["tokens"])]
    masks = [(torch.arange(length) <= i)[None] for i in range(sizes["tokens"])]

    def forward(token: Any, position: Any, mask: Any) -> Any:
        return network.next(token, position, *caches, mask)

    def loop(step: Any) -> Any:
        token = tensor(torch, arrays["x"][:, :1], dtype)
        with torch.no_grad():
            for position, mask in zip(places, masks, strict=True):
                scores = step(token, position, mask)
                token = scores.argmax(-1)
        return scores

    return Program(forward, (), {}, loop=loop)


def generation_jax(arrays: Arrays, sizes: Sizes) -> JaxProgram:
    import jax
    import jax.numpy as jnp

    heads, length = sizes["heads"], sizes["context"]
    p = jax.device_put({name: array for name, array in arrays.items() if name not in ("x", "y")})
    shape = (sizes["layers"], 1, length, heads, sizes["width"] // heads)

    def step(state: Any, p: Parameters, token: Any) -> tuple[Any, Any]:
        keys, values, position = state
        x = p["embedding.weight"][token] + p["position_embedding.weight"][position]
        mask = jnp.arange(length) <= position
        for layer in range(sizes["layers"]):
            q, k, v = _split_jax(p, f"blocks.{layer}", x, heads)
            keys = jax.lax.dynamic_update_slice(keys, k[None], (layer, 0, position, 0, 0))
            values = jax.lax.dynamic_update_slice(values, v[None], (layer, 0, position, 0, 0))
            x = _rest_jax(p, f"blocks.{layer}", x, attention(q, keys[layer], values[layer], mask))
        return (keys, values, position + 1), layer_norm(p, "norm", x) @ p["embedding.weight"].T

    def loop(step: Any, state: Any) -> tuple[Any, Any]:
        token = jnp.asarray(arrays["x"][:, :1].astype(np.int32))
        for _ in range(sizes["tokens"]):
            state, scores = step(state, p, token)
            token = scores.argmax(-1).astype(np.int32)
        return state, scores

    state = (jnp.zeros(shape), jnp.zeros(shape), jnp.zeros((), jnp.int32))
    return JaxProgram(step, (), state, lambda state, scores: {"output": scores}, loop)


# ----- ViT-tiny -----

def vit(torch: Any, sizes: Sizes) -> Any:
    nn, width, patch = torch.nn, sizes["width"], sizes["patch"]

    class ViT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.class_embedding = nn.Parameter(torch.zeros(1, 1, width))
            self.position_embedding = nn.Parameter(torch.zeros(1, (sizes["side"] // patch) ** 2 + 1, width))
            self.blocks = nn.ModuleList([_block(torch, width, sizes["heads"], False) for _ in range(sizes["layers"])])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, sizes["classes"])

        def forward(self, x: Any) -> Any:
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.class_embedding.expand(x.shape[0], -1, -1), x], 1) + self.position_embedding
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x[:, 0]))

    return ViT()


def images(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    return {"x": rng.standard_normal((sizes["batch"], 3, sizes["side"], sizes["side"])),
            "y": rng.integers(0, sizes["classes"], sizes["batch"]), **parameters(vit, sizes, rng)}


def vit_jax(p: Parameters, x: Any, sizes: Sizes) -> Any:
    import jax.numpy as jnp

    batch, width = x.shape[0], sizes["width"]
    x = convolution(p, "patches", x.transpose(0, 2, 3, 1), sizes["patch"]).reshape(batch, -1, width)
    first = jnp.broadcast_to(p["class_embedding"], (batch, 1, width))
    x = jnp.concatenate([first, x], 1) + p["position_embedding"]
    for layer in range(sizes["layers"]):
        name = f"blocks.{layer}"
        x = _rest_jax(p, name, x, attention(*_split_jax(p, name, x, sizes["heads"])))
    return linear(p, "head", layer_norm(p, "norm", x[:, 0]))


_TINY = {"layers": 2, "heads": 2, "width": 8, "context": 6, "vocabulary": 11, "batch": 1}
_SMALL = {"layers": 12, "heads": 12, "width": 768, "vocabulary": 50257, "batch": 1}
#: the size at which results of GPT-2 are checked: in float64 the whole model and its results take 5 GB
_CHECKED = {"layers": 3, "heads": 12, "width": 768, "vocabulary": 1000, "batch": 1}

ROWS = [
    Workload("gpt2", "GPT-2 small, 1 text of 256, SGD step", 1.2, 1.2, {**_SMALL, "context": 256}, _TINY, texts,
             {"": classifier(gpt)}, {"": classifier_jax(gpt_jax)}, optimizer=True,
             checked={**_CHECKED, "context": 256}),
    Workload("gpt2-generation", "GPT-2 small, 16 tokens, one by one, cache of 128", 1.2, 1.2,
             {**_SMALL, "context": 128, "tokens": 16}, {**_TINY, "tokens": 4}, texts,
             {"": generation}, {"": generation_jax}, backward=False,
             checked={**_CHECKED, "context": 128, "tokens": 16}),
    Workload("vit", "ViT-tiny, 12 layers of 192, 4 images of 64 x 64 in patches of 8, SGD step", 1.2, 1.2,
             {"layers": 12, "heads": 3, "width": 192, "side": 64, "patch": 8, "batch": 4, "classes": 100},
             {"layers": 2, "heads": 2, "width": 8, "side": 8, "patch": 4, "batch": 2, "classes": 3}, images,
             {"": classifier(vit)}, {"": classifier_jax(vit_jax)}, optimizer=True),
]
