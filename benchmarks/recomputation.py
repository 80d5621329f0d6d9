"""Memory and time of a compiled GPT of 12 blocks, by what its backward pass computes again.

    python -m benchmarks.recomputation

Bytes are those of the programs: saved tensors, and the arenas of intermediate values. Times are medians of steps that
are run by turns; results are compared with eager ones first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import flambeau as torch
import flambeau.nn as nn
import flambeau.nn.functional as F
from flambeau.utils.checkpoint import checkpoint

VOCABULARY, TOKENS, BATCH, WIDTH, HEADS, BLOCKS = 512, 128, 4, 192, 6, 12
ROUNDS = 9


class Block(nn.Module):
    """A block of a transformer, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        b, t, c = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(b, t, 3, HEADS, c // HEADS).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + F.dropout(self.out(attended), 0.1, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norms[1](x)))), 0.1, self.training)


class GPT(nn.Module):
    """A language model; its blocks are checkpointed or not."""

    def __init__(self, checkpointed: bool) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(BLOCKS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.checkpointed = checkpointed

    def forward(self, tokens: Any) -> Any:
        x = self.token(tokens) + self.place(torch.arange(TOKENS))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), tokens.flatten())


class Row:
    """A way to compile the model.

    Args:
        name: shown in the table.
        checkpointed: whether the blocks are checkpointed.
        budget: the memory budget.
        whole: whether the backward pass is a part of the compiled function.
    """

    def __init__(self, name: str, checkpointed: bool, budget: float, whole: bool) -> None:
        self.name, self.budget, self.whole = name, budget, whole
        torch.manual_seed(0)
        self.model = GPT(checkpointed)
        self.times: list[float] = []

        def forward(tokens: Any) -> Any:
            return self.model(tokens)

        def step(tokens: Any) -> Any:
            loss = self.model(tokens)
            loss.backward()
            return loss

        self.function = step if whole else forward
        self.compiled = torch.compile(self.function)

    def step(self, function: Callable[[Any], Any], tokens: Any) -> list[Any]:
        """Run a step; return the loss and the gradients."""
        self.model.zero_grad()
        torch.manual_seed(1)
        with torch._functorch.config.patch(activation_memory_budget=self.budget):
            loss = function(tokens)
        if not self.whole:
            loss.backward()
        return [loss.detach(), *(p.grad for p in self.model.parameters())]

    def check(self, tokens: Any) -> None:
        """Compile, and compare with the uncompiled step."""
        for _ in range(3):
            found = self.step(self.compiled, tokens)
        for a, b in zip(found, self.step(self.function, tokens), strict=True):
            assert torch.allclose(a, b, rtol=1e-3, atol=1e-6), self.name

    def memory(self) -> tuple[int, int, int]:
        """Bytes of saved tensors, and of the arenas of the forward and the backward program."""
        [entry] = [entry for cache in self.compiled._signatures.values() for entry in cache.entries]
        forward = entry.program.execution_plan.arena
        if entry.backward is None:
            return 0, forward, 0
        return (sum(v.size * v.dtype.itemsize for v in entry.backward.saved), forward,
                entry.backward.program.execution_plan.arena)


def main() -> None:
    """Print the table."""
    torch.manual_seed(3)
    tokens = torch.randint(0, VOCABULARY, (BATCH, TOKENS))
    rows = [Row("nothing", False, 1, False), Row("checkpointed blocks", True, 1, False),
            Row("budget 0.75", False, 0.75, False), Row("budget 0.5", False, 0.5, False),
            Row("budget 0.25", False, 0.25, False), Row("budget 0", False, 0, False),
            Row("whole step: nothing", False, 1, True), Row("whole step: checkpointed blocks", True, 1, True),
            Row("whole step: budget 0.5", False, 0.5, True)]
    for row in rows:
        row.check(tokens)
    for _ in range(ROUNDS):
        for row in rows:
            start = time.perf_counter()
            row.step(row.compiled, tokens)
            row.times.append(time.perf_counter() - start)
    base = {whole: next(row.times for row in rows if row.whole is whole) for whole in (False, True)}
    print("| computed again | saved, MB | peak, MB | time, ms | of the first |\n| --- | ---: | ---: | ---: | ---: |")
    for row in rows:
        saved, forward, backward = row.memory()
        ratio = median(a / b for a, b in zip(row.times, base[row.whole], strict=True))
        print(f"| {row.name} | {saved / 1e6:.1f} | {(saved + max(forward, backward)) / 1e6:.1f} | "
              f"{median(row.times) * 1e3:.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
