"""Single operators compared with PyTorch eager: ratios, and the list of slow ones.

    python -m benchmarks.operators                  all, as JSON: [operator, size, mode, times of the peers]
    python -m benchmarks.operators cumsum gather    those whose name contains one of these

Each operator runs on float32 matrices of several sizes, forward under `no_grad`, and forward and backward.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import limits, markdown, timing
from .child_process import run_child
from .peers import COMPILED, EAGER, library

#: rows and columns
SIZES = ((64, 64), (512, 512), (2048, 1024))
FORWARD, BOTH = "forward", "forward and backward"
#: seconds per measurement of an operator, and the number of measurements
TURN, TURNS = 0.012, 3
#: operators with a smaller ratio (PyTorch's time over flambeau's) are listed
SLOW = 0.67

Operator = Callable[[Any, Any], Any]
Measurement = tuple[str, str, str, dict[str, float]]  # operator, size, mode, seconds by peer

#: name -> function of the library and a matrix
OPERATORS: dict[str, Operator] = {
    "x + x": lambda torch, x: x + x,
    "x * row": lambda torch, x: x * x[0],
    "x * column": lambda torch, x: x * x[:, :1],
    "outer product": lambda torch, x: x[:, 0][:, None] * x[0][None],
    "x / (|x| + 1)": lambda torch, x: x / (x.abs() + 1),
    "x ** 2": lambda torch, x: x ** 2,
    "x ** 3": lambda torch, x: x ** 3,
    "exp": lambda torch, x: x.exp(),
    "log": lambda torch, x: (x * x + 1).log(),
    "sqrt": lambda torch, x: (x * x).sqrt(),
    "sin": lambda torch, x: x.sin(),
    "tanh": lambda torch, x: x.tanh(),
    "sigmoid": lambda torch, x: x.sigmoid(),
    "erf": lambda torch, x: x.erf(),
    "atan2": lambda torch, x: torch.atan2(x, x + 1),
    "clamp": lambda torch, x: x.clamp(-1, 1),
    "relu": lambda torch, x: x.relu(),
    "leaky_relu": lambda torch, x: torch.nn.functional.leaky_relu(x),
    "elu": lambda torch, x: torch.nn.functional.elu(x),
    "gelu": lambda torch, x: torch.nn.functional.gelu(x),
    "silu": lambda torch, x: torch.nn.functional.silu(x),
    "softplus": lambda torch, x: torch.nn.functional.softplus(x),
    "glu": lambda torch, x: torch.nn.functional.glu(x, 1),
    "where": lambda torch, x: torch.where(x > 0, x, x * 0.1),
    "masked_fill": lambda torch, x: x.masked_fill(x > 0, 0.0),
    "a longer formula": lambda torch, x: (x.exp() * x.sin() + x.cos()).tanh().sum(1),
    "sum": lambda torch, x: x.sum(),
    "sum(0)": lambda torch, x: x.sum(0),
    "sum(1)": lambda torch, x: x.sum(1),
    "mean(0)": lambda torch, x: x.mean(0),
    "max": lambda torch, x: x.max(),
    "amax(0)": lambda torch, x: x.amax(0),
    "max(0)": lambda torch, x: x.max(0)[0],
    "max(1)": lambda torch, x: x.max(1)[0],
    "prod(1)": lambda torch, x: x.prod(1),
    "var(0)": lambda torch, x: x.var(0),
    "var(1)": lambda torch, x: x.var(1),
    "std": lambda torch, x: x.std(),
    "norm": lambda torch, x: x.norm(),
    "norm(dim=1)": lambda torch, x: x.norm(dim=1),
    "logsumexp(0)": lambda torch, x: x.logsumexp(0),
    "logsumexp(1)": lambda torch, x: x.logsumexp(1),
    "softmax(0)": lambda torch, x: x.softmax(0),
    "softmax(1)": lambda torch, x: x.softmax(1),
    "log_softmax(1)": lambda torch, x: x.log_softmax(1),
    "cumsum(0)": lambda torch, x: x.cumsum(0),
    "cumsum(1)": lambda torch, x: x.cumsum(1),
    "sort": lambda torch, x: x.sort(1)[0],
    "topk(5)": lambda torch, x: x.topk(5)[0],
    "transposed copy": lambda torch, x: x.t().contiguous(),
    "cat": lambda torch, x: torch.cat([x, x], 1),
    "stack": lambda torch, x: torch.stack([x, x], 1),
    "chunks joined": lambda torch, x: torch.cat(x.chunk(4, 1)[::-1], 1),
    "pad": lambda torch, x: torch.nn.functional.pad(x, (1, 1, 1, 1)),
    "roll": lambda torch, x: x.roll(3, 1),
    "flip": lambda torch, x: x.flip(1),
    "repeat": lambda torch, x: x.repeat(1, 2),
    "tril": lambda torch, x: x.tril(),
    "every other column": lambda torch, x: x[:, ::2] * 2,
    "rows by index": lambda torch, x: x[torch.arange(0, x.shape[0], 2)],
    "gather": lambda torch, x: x.gather(1, (x.abs() * 5).long()),
    "float16 and back": lambda torch, x: (x.half() * 2).float(),
    "float64": lambda torch, x: x.double() * 2,
    "dropout": lambda torch, x: torch.nn.functional.dropout(x, 0.1),
    "normal noise": lambda torch, x: x + torch.randn_like(x),
    "uniform noise": lambda torch, x: x + torch.rand_like(x),
    "rows shuffled": lambda torch, x: x[torch.randperm(x.shape[0])],
    "layer_norm": lambda torch, x: torch.nn.functional.layer_norm(x, x.shape[1:]),
    "rms_norm": lambda torch, x: torch.nn.functional.rms_norm(x, x.shape[1:]),
    "batch_norm": lambda torch, x: torch.nn.functional.batch_norm(x, None, None, training=True),
    "mse_loss": lambda torch, x: torch.nn.functional.mse_loss(x, x * 2),
    "binary_cross_entropy_with_logits": lambda torch, x: (
        torch.nn.functional.binary_cross_entropy_with_logits(x, x * 0 + 0.5)),
    "kl_div": lambda torch, x: torch.nn.functional.kl_div(x.log_softmax(1), x.softmax(1), reduction="batchmean"),
    "cosine_similarity": lambda torch, x: torch.nn.functional.cosine_similarity(x, x + 1),
    "product with itself": lambda torch, x: x[:256] @ x[:256].t(),
}


def forward_of(torch: Any, operator: Operator, x: Any) -> Callable[[], Any]:
    """A call of the operator on a matrix."""
    def run() -> Any:
        return operator(torch, x)

    return run


def both_of(torch: Any, operator: Operator, x: Any) -> Callable[[], Any]:
    """A call of the operator, the sum of its result, and backward to a leaf without a gradient."""
    leaf = x.clone().requires_grad_()

    def run() -> Any:
        leaf.grad = None
        result = operator(torch, leaf)
        (result.sum() if result.dim() else result).backward()

    return run


def turn(run: Callable[[], Any]) -> float:
    """Seconds of one call: the lower quartile of the calls within `TURN` seconds."""
    times = []
    time.sleep(timing.SETTLE)
    ending = time.perf_counter() + TURN
    while not times or time.perf_counter() < ending:
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return sorted(times)[len(times) // 4]


def times_of(operator: Operator, shape: Sequence[int], mode: str) -> dict[str, float]:
    """Seconds by peer: medians over `TURNS` measurements."""
    torch, flambeau = library("torch"), library("flambeau")
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    made = forward_of if mode == FORWARD else both_of
    runs = {"PyTorch eager": (torch, made(torch, operator, torch.from_numpy(array))),
            EAGER: (flambeau, made(flambeau, operator, flambeau.from_numpy(array)))}
    runs[COMPILED] = flambeau, flambeau.compile(made(flambeau, operator, flambeau.from_numpy(array)))
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(TURNS + 1):
        for name, (lib, run) in runs.items():
            with lib.set_grad_enabled(mode == BOTH):
                if number:
                    times[name].append(turn(run))
                else:
                    for _ in range(4):  # traced, compiled, and in the caches
                        run()
    return {name: statistics.median(values) for name, values in times.items()}


def measure(names: Sequence[str]) -> list[Measurement]:
    """(operator, size, mode, seconds by peer) of each operator, size and mode."""
    library("torch"), library("flambeau")
    timing.freeze_garbage()
    return [(name, "{} x {}".format(*shape), mode, times_of(operator, shape, mode))
            for name, operator in OPERATORS.items() if not names or any(part in name for part in names)
            for shape in SIZES for mode in (FORWARD, BOTH)]


def lines(measurements: Sequence[Measurement], peer: str) -> tuple[list[markdown.Cells], list[str]]:
    """Rows of the table by size and mode (PyTorch's time over the peer's), and the lists of slow operators."""
    ratios: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for name, size, mode, times in measurements:
        ratios.setdefault((size, mode), []).append((times["PyTorch eager"] / times[peer], name))
    rows, slow = [], []
    for (size, mode), each in ratios.items():
        values = [value for value, _ in each]
        faster = f"{sum(v > 1 for v in values)} of {len(values)}"
        rows.append([peer, size, mode, f"{statistics.median(values):.2f}", faster])
        named = [f"{name} {value:.2f}" for value, name in sorted(each) if value < SLOW]
        if named:
            slow.append(f"- {peer}, {size}, {mode}: {', '.join(named)}.")
    return rows, slow


def section(rounds: int) -> str:
    """The section as Markdown. `rounds` is ignored."""
    measurements = run_child("operators")
    if measurements is None:
        return "## Single operators\n\nPyTorch is not installed."
    rows, slow = [], []
    for peer in (EAGER, COMPILED):
        more, named = lines(measurements, peer)
        rows += more
        slow += named
    heads = ["", "matrix", "", "PyTorch eager / flambeau, median", "faster than PyTorch"]
    return (f"## Single operators\n\n{len(OPERATORS)} operators on float32 matrices (`benchmarks/operators.py`). "
            f"Listed below: operators that take more than {1 / SLOW:.1f} times as long as PyTorch's.\n\n"
            f"{markdown.table(heads, rows)}\n\n" + "\n".join(slow))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of operator names (default: all)")
    options = parser.parse_args()
    limits.apply()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print(json.dumps(measure(options.names)))


if __name__ == "__main__":
    main()
