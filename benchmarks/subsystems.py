"""Parts of programs that the table of workloads does not have: loading of data, layers, transforms, generation.

    python benchmarks/bench.py --only subsystems
    python -m benchmarks.subsystems fft sparse          some of them

The same code runs on flambeau and on PyTorch in one process, eagerly, in turns.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from . import limits

limits.apply()

from . import markdown, timing  # noqa: E402
from .child_process import log  # noqa: E402
from .peers import library  # noqa: E402

LIBRARIES = {"flambeau": "flambeau", "PyTorch": "torch"}


# ----- loading of data -----


class Images:
    """Pictures (3, 32, 32) with a label; an item is normalized, and flipped at random, as programs do."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.pixels = torch.randint(0, 256, (1024, 3, 32, 32), dtype=torch.uint8)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image = self.pixels[index].float() / 255
        if self.torch.rand(()) < 0.5:
            image = image.flip(-1)
        return (image - 0.5) / 0.25, index % 10


class Tokens:
    """Windows of 256 tokens of one long text, and the same moved by one."""

    def __init__(self, torch: Any) -> None:
        self.text = torch.randint(0, 50_000, (300_000,))

    def __len__(self) -> int:
        return 2048

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self.text[index:index + 256], self.text[index + 1:index + 257]


def loader(kind: type, workers: int, torch: Any) -> Callable[[], Any]:
    """One epoch of batches of 64; workers persist."""
    batches = torch.utils.data.DataLoader(kind(torch), 64, shuffle=True, num_workers=workers,
                                          persistent_workers=workers > 0)

    def run() -> None:
        for _ in batches:
            pass

    return run


# ----- layers -----


def step_of(model: Any, torch: Any, loss: Callable[[], Any]) -> Callable[[], Any]:
    """A training step with AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def run() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return run


def transformer(torch: Any) -> Callable[[], Any]:
    """A training step of four encoder layers of width 256 on 16 texts of 128 tokens, some of them padding."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.1, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    x, padding = torch.randn(16, 128, 256), torch.arange(128) >= torch.arange(113, 129)[:, None]
    return step_of(model, torch, lambda: model(x, src_key_padding_mask=padding).square().mean())


def transformer_inference(torch: Any) -> Callable[[], Any]:
    """The same encoder without gradients, by its inference path."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).eval()
    x = torch.randn(16, 128, 256)

    def run() -> None:
        with torch.no_grad():
            model(x)

    return run


def packed_lstm(torch: Any) -> Callable[[], Any]:
    """A training step of a two-layer LSTM of width 128 over 32 packed sequences of 10 to 72 elements."""
    torch.manual_seed(0)
    model = torch.nn.LSTM(64, 128, 2, batch_first=True)
    x, lengths = torch.randn(32, 72, 64), torch.arange(72, 8, -2)

    def loss() -> Any:
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        return model(packed)[0].data.square().mean()

    return step_of(model, torch, loss)


def autocast(torch: Any) -> Callable[[], Any]:
    """A training step of an MLP of width 1024 on a batch of 256 under autocast to bfloat16."""
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 1024))
    x = torch.randn(256, 1024)

    def loss() -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return model(x).float().square().mean()

    return step_of(model, torch, loss)


# ----- transforms and sparse matrices -----


def fft(length: int, count: int, torch: Any) -> Callable[[], Any]:
    """The real Fourier transform, there and back, with gradients."""
    x = torch.randn(count, length, requires_grad=True)

    def run() -> None:
        torch.fft.irfft(torch.fft.rfft(x) * 0.5).square().sum().backward()
        x.grad = None

    return run


def stft(torch: Any) -> Callable[[], Any]:
    """Spectrograms of 16 signals of one second at 16 kHz."""
    x, window = torch.randn(16, 16_000), torch.hann_window(400)
    return lambda: torch.stft(x, 400, 160, window=window, return_complex=True).abs()


def sparse(layout: str, torch: Any) -> Callable[[], Any]:
    """A sparse matrix (10,000, 10,000) of 200,000 elements times a dense one of 64 columns."""
    rng = np.random.default_rng(0)
    indices = torch.tensor(rng.integers(0, 10_000, (2, 200_000)))
    with warnings.catch_warnings(action="ignore"):  # of unchecked invariants and of the beta state, once a process
        a = torch.sparse_coo_tensor(indices, torch.ones(200_000), (10_000, 10_000)).coalesce()
        a = a if layout == "COO" else a.to_sparse_csr()
    b = torch.randn(10_000, 64)
    return lambda: a @ b


# ----- generation -----


def gpt2(torch: Any, layers: int = 12, width: int = 768, heads: int = 12, vocabulary: int = 50_257) -> Any:
    """GPT-2 (small) whose forward takes and returns the keys and values of earlier tokens."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any, cache: Any) -> tuple[Any, Any]:
            q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2)
                       for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
            causal = cache is None
            if cache is not None:
                k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            x = x + self.out(y.transpose(1, 2).flatten(2))
            return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh")), (k, v)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(1024, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(width)

        def forward(self, tokens: Any, caches: Any, start: int) -> tuple[Any, list[Any]]:
            x = self.token(tokens) + self.position(torch.arange(start, start + tokens.shape[1]))
            kept = []
            for block, cache in zip(self.blocks, caches or [None] * layers, strict=True):
                x, new = block(x, cache)
                kept.append(new)
            return self.norm(x[:, -1]) @ self.token.weight.t(), kept

    torch.manual_seed(0)
    return Model().eval()


def generate(batch: int, torch: Any, prompt: int = 32, count: int = 16) -> Callable[[], Any]:
    """Greedy generation of 16 tokens after a prompt of 32, with a cache."""
    model = gpt2(torch)
    texts = torch.arange(batch * prompt).reshape(batch, prompt)

    def run() -> None:
        with torch.no_grad():
            tokens, caches, start = texts, None, 0
            for _ in range(count):
                scores, caches = model(tokens, caches, start)
                start += tokens.shape[1]
                tokens = scores.argmax(-1, keepdim=True)

    return run


#: by name: the title, what one run does (for the rate: a unit and how many), and the maker
PARTS: dict[str, tuple[str, tuple[str, int], Callable[[Any], Callable[[], Any]]]] = {
    **{f"images-{n}": (f"DataLoader, images, {n} workers", ("batches", 16), partial(loader, Images, n))
       for n in (0, 2, 4)},
    **{f"tokens-{n}": (f"DataLoader, tokens, {n} workers", ("batches", 32), partial(loader, Tokens, n))
       for n in (0, 2, 4)},
    "transformer": ("Transformer encoder, training step", ("steps", 1), transformer),
    "transformer-inference": ("Transformer encoder, inference path", ("calls", 1), transformer_inference),
    "lstm": ("LSTM over packed sequences, training step", ("steps", 1), packed_lstm),
    "fft": ("rfft and irfft, 64 x 4,096, with backward", ("calls", 1), partial(fft, 4096, 64)),
    "fft-long": ("rfft and irfft, 262,144, with backward", ("calls", 1), partial(fft, 262_144, 1)),
    "stft": ("stft, 16 x 16,000", ("calls", 1), stft),
    "sparse-coo": ("sparse (COO) times dense", ("calls", 1), partial(sparse, "COO")),
    "sparse-csr": ("sparse (CSR) times dense", ("calls", 1), partial(sparse, "CSR")),
    "autocast": ("MLP under autocast, training step", ("steps", 1), autocast),
    "generate-1": ("GPT-2 small, generation, batch 1", ("tokens", 16), partial(generate, 1)),
    "generate-8": ("GPT-2 small, generation, batch 8", ("tokens", 128), partial(generate, 8)),
}


def measure(name: str, number: int) -> dict[str, list[float]]:
    """The seconds of a run by library, one value a round; libraries that are not installed are absent."""
    make = PARTS[name][2]
    runs = {}
    for title, package in LIBRARIES.items():
        try:
            torch = library(package)
        except ModuleNotFoundError:
            continue
        runs[title] = make(torch)
    for run in runs.values():
        timing.warm(run)
    return timing.rounds(runs, number, lambda _: None)


def section(number: int, names: Iterable[str] = PARTS) -> str:
    """The section as Markdown: medians of rates, and of the rounds' ratios."""
    rows = []
    for name in names:
        title, (unit, count), _ = PARTS[name]
        times = measure(name, number)
        ours, theirs = times["flambeau"], times.get("PyTorch")
        rates = [f"{count / statistics.median(each):,.4g}" if each else "-" for each in (ours, theirs)]
        ratio = "-" if theirs is None else f"{statistics.median(b / a for a, b in zip(ours, theirs, strict=True)):.2f}x"
        rows.append([title, f"{unit} / s", *rates, ratio])
        log(f"subsystems, {name}: {', '.join(rows[-1][1:])}")
    return ("## Parts of programs\n\nEager, the same code on both, as rates.\n\n"
            + markdown.table(["", "", "flambeau", "PyTorch", "PyTorch's time / flambeau's"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(PARTS), metavar="NAME", help=", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in PARTS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    print(section(options.rounds, options.names))


if __name__ == "__main__":
    main()
