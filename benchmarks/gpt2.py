"""GPT-2 small (124 M parameters) in bfloat16: a training step, and generation; in PyTorch or in flambeau."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: (vocabulary, positions, width, layers, heads, batch, length)
SMALL, TINY = (50257, 1024, 768, 12, 12, 8, 1024), (20, 8, 16, 1, 2, 1, 4)
#: tokens that are generated after a prompt
NEW_TOKENS = 64


def model_of(torch: Any, sizes: tuple[int, ...]) -> Any:
    """The language model: token and position embeddings, pre-norm blocks, and a head tied to the embedding."""
    nn, functional = torch.nn, torch.nn.functional
    vocabulary, positions, width, layers, heads, _, _ = sizes

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            q, k, v = (each.view(batch, length, heads, width // heads).transpose(1, 2)
                       for each in self.qkv(self.norm1(x)).split(width, dim=-1))
            attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class GPT2(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(width)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
            for block in self.blocks:
                x = block(x)
            return functional.linear(self.norm(x), self.tokens.weight)

    return GPT2().to(torch.bfloat16)


def training_step(torch: Any, compiles: bool, tiny: bool, device: str) -> Callable[[], Any]:
    """A step of AdamW on a batch of random tokens."""
    sizes = TINY if tiny else SMALL
    torch.manual_seed(0)
    model = model_of(torch, sizes).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, sizes[0], (sizes[5], sizes[6] + 1), device=device)

    def step(inputs: Any, targets: Any) -> Any:
        optimizer.zero_grad()
        logits = model(inputs)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    run = torch.compile(step) if compiles else step
    return lambda: run(inputs, targets)


def generation(torch: Any, compiles: bool, tiny: bool, device: str) -> Callable[[], Any]:
    """Greedy generation by forward passes over a window of fixed length."""
    sizes = TINY if tiny else SMALL
    torch.manual_seed(0)
    model = model_of(torch, sizes).to(device).eval()
    count, length = (1, sizes[6]) if tiny else (NEW_TOKENS, 256)
    start = torch.randint(0, sizes[0], (1, length), device=device)

    def following(tokens: Any) -> Any:
        return torch.cat([tokens[:, 1:], model(tokens)[:, -1:].argmax(-1)], 1)

    run = torch.compile(following) if compiles else following

    def generate() -> Any:
        tokens = start
        with torch.no_grad():
            for _ in range(count):
                tokens = run(tokens)
        return tokens

    return generate


GPT2_ROWS: dict[str, Callable[[Any, bool, bool, str], Callable[[], Any]]] = {
    "gpt2-step": training_step, "gpt2-generate": generation}


def repeats(row: str, tiny: bool) -> int:
    """How often one run calls the model."""
    return 1 if row == "gpt2-step" or tiny else NEW_TOKENS


__all__ = ["GPT2_ROWS", "generation", "model_of", "repeats", "training_step"]
