"""Random numbers and functions' values of PyTorch on a GPU, in `cuda_numbers.npz`, and the expressions that make them.

`python -m tests._tensor.accelerated.cuda_numbers`, on a machine with PyTorch and a GPU of 132 multiprocessors (an
H100), writes the file. Each expression is evaluated after `torch.cuda.manual_seed(1234)`; the first 300 elements are
kept, and the offset that the generator has afterwards.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

PATH = Path(__file__).with_suffix(".npz")
SEED, KEPT, PROCESSORS = 1234, 300, 132
_SIZES = (7, 1025, 5000)

#: expressions whose values need no approximate instruction of a GPU
EXACT = [text.replace("{n}", str(n)) for n in _SIZES for text in (
    "torch.rand({n}, device='cuda', dtype=torch.float32)", "torch.rand({n}, device='cuda', dtype=torch.float64)",
    "torch.rand({n}, device='cuda', dtype=torch.float16)", "torch.rand({n}, device='cuda', dtype=torch.bfloat16)",
    "torch.randn({n}, device='cuda', dtype=torch.float64)", "torch.randint(10, ({n},), device='cuda')",
    "torch.randint(-5, 1 << 40, ({n},), device='cuda')", "torch.randperm({n}, device='cuda')",
    "torch.empty({n}, device='cuda').uniform_(-2, 3)",
    "torch.empty({n}, device='cuda', dtype=torch.float64).exponential_(1.5)",
    "torch.empty({n}, device='cuda').geometric_(0.3)", "torch.empty({n}, device='cuda', dtype=torch.int64).random_()",
    "torch.empty({n}, device='cuda').random_()", "torch.empty({n}, device='cuda', dtype=torch.uint8).random_()",
    "torch.empty({n}, device='cuda', dtype=torch.int32).random_(3, 17)",
    "torch.bernoulli(torch.linspace(0, 1, {n}, device='cuda'))", "torch.empty({n}, device='cuda').bernoulli_(0.3)",
    "torch.empty({n}, device='cuda').bernoulli_(torch.linspace(0, 1, {n}, device='cuda'))",
    "F.dropout(torch.ones({n}, device='cuda'), 0.3)",
    "F.dropout(torch.ones({n}, device='cuda', dtype=torch.bfloat16), 0.3)",
    "torch.nn.functional.alpha_dropout(torch.ones({n}, device='cuda'), 0.3, True)",
    "torch.poisson(torch.linspace(0, 30, {n}, device='cuda'))",
    "torch.binomial(torch.full(({n},), 20., device='cuda'), torch.linspace(0, 1, {n}, device='cuda'))",
    "torch.rand_like(torch.ones({n}, 2, device='cuda').t())",
    "torch.rrelu(-torch.ones({n}, device='cuda'), training=True)",
)] + [
    "torch.multinomial(torch.arange(1., 11., device='cuda'), 5)",
    "torch.multinomial(torch.arange(1., 11., device='cuda'), 50, True)",
    "torch.multinomial(torch.arange(1., 31., device='cuda').view(3, 10), 4)",
    "torch.multinomial(torch.arange(1., 3001., device='cuda').view(3, 1000), 700, True)",
    "torch.multinomial(torch.arange(1., 31., device='cuda').view(3, 10), 1)",
    "torch.multinomial(torch.arange(1., 31., device='cuda').view(3, 10).double(), 4, True)",
    "F.dropout2d(torch.ones(2, 3, 4, 5, device='cuda'))", "torch.randperm(70000, device='cuda')",
    "torch.randperm(40, device='cuda', dtype=torch.int32)",
    "torch.empty(3, 5, 7, device='cuda').transpose(0, 2).uniform_()",
    "torch.nn.Linear(5, 3, device='cuda').weight.detach()",
]
#: those whose values a GPU approximates: (expression, tolerance relative to the largest value or absolute below 1)
CLOSE = [text.replace("{n}", str(n)) for n in _SIZES for text in (
    "torch.randn({n}, device='cuda', dtype=torch.float32)", "torch.randn({n}, device='cuda', dtype=torch.complex64)",
    "torch.empty({n}, device='cuda').normal_(1, 2)", "torch.empty({n}, device='cuda').exponential_(1.5)",
    "torch._standard_gamma(torch.linspace(0.1, 9, {n}, device='cuda'))",
    "torch._standard_gamma(torch.linspace(0.1, 9, {n}, device='cuda', dtype=torch.float64))",
    "torch._sample_dirichlet(torch.linspace(0.1, 9, {n}, device='cuda').view(-1, 1).expand({n}, 3).contiguous())",
    "torch.normal(torch.linspace(0, 1, {n}, device='cuda'), torch.linspace(1, 2, {n}, device='cuda'))",
)] + ["F.gumbel_softmax(torch.zeros(4, 5, device='cuda'))",
      "torch.empty(40, 50, device='cuda')[:, ::2].normal_()",
      "torch.distributions.Beta(torch.tensor([2.], device='cuda'), torch.tensor([3.], device='cuda')).sample((5,))"]
#: functions of float32: name -> the bounds of 5000 arguments (`linspace`), of which every 13th is kept
FUNCTIONS = {"exp": (-9, 9), "log": (1e-3, 9), "sin": (-90, 90), "cos": (-90, 90), "tanh": (-9, 9), "erf": (-3, 3),
             "sigmoid": (-9, 9), "rsqrt": (0.1, 9)}


def evaluate(library: Any, expression: str) -> tuple[np.ndarray, int]:
    """The first elements of an expression's value, narrow floats as float32, and the generator's offset after it."""
    library.cuda.manual_seed(SEED)
    value = eval(expression, {"torch": library, "F": library.nn.functional})
    if value.dtype is library.bfloat16:
        value = value.float()
    found = value.detach().cpu().numpy().reshape(-1)[:KEPT]
    return found, int(library.cuda.get_rng_state().numpy().view(np.uint64)[1])


def recorded() -> dict[str, tuple[np.ndarray, int]]:
    """What the file has, by expression."""
    with np.load(PATH) as file:
        return {str(name): (file[f"v{i}"], int(file["offsets"][i])) for i, name in enumerate(file["names"])}


def write(values: dict[str, tuple[np.ndarray, int]]) -> None:
    """Write the file."""
    arrays = {f"v{i}": value for i, (value, _) in enumerate(values.values())}
    np.savez_compressed(PATH, names=np.array(list(values)), offsets=np.array([o for _, o in values.values()]), **arrays)


def function_expression(name: str) -> str:
    """The expression of a function's values."""
    low, high = FUNCTIONS[name]
    return f"torch.{name}(torch.linspace({low}, {high}, 5000, device='cuda')[::13])"


def _main() -> None:
    import torch

    assert re.search("H100|H200", torch.cuda.get_device_name()), "the file is for a GPU of 132 multiprocessors"
    names = [*EXACT, *CLOSE, *map(function_expression, FUNCTIONS)]
    write({name: evaluate(torch, name) for name in names})


if __name__ == "__main__":
    _main()
