"""Single operators compared with PyTorch eager: ratios by operator and size, and the list of slow ones.

    python -m benchmarks.operators                          all, as a table in Markdown
    python -m benchmarks.operators cumsum gather            those whose name contains one of these
    python -m benchmarks.operators --group indexing --sizes 4x4 64x64 --json kept.json
    python -m benchmarks.operators --dtype bfloat16         on inputs of another dtype
    python -m benchmarks.operators --table kept.json        the table of measurements that were kept, with a text above

Each operator of `operator_list` runs on inputs of several sizes, forward under `no_grad`, and forward and backward
with a gradient of the result's shape. The results of both libraries are compared before they are timed. The libraries
run by turns in one process; the smallest time of each counts. `benchmarks/operators.md` has the table.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import limits, markdown, timing
from .child_process import log, run_child
from .operator_list import GROUPS, OPERATORS, Inputs, Operator
from .peers import COMPILED, EAGER, library

#: rows and columns
SIZES = ((4, 4), (64, 64), (512, 512), (2048, 1024))
FORWARD, BOTH = "forward", "forward and backward"
MODES = (FORWARD, BOTH)
PYTORCH = "PyTorch eager"
#: seconds of a batch of calls, and the number of batches of each library
BATCH, BATCHES = 0.0015, 7
#: calls before the measurement, of operators that take less than a batch: launches of layouts that come again and again
#: are in use (`flambeau._tensor.fastpath.repeated_layouts`)
WARM_UP = 40
#: operators with a smaller ratio (PyTorch's time over flambeau's) are listed
SLOW = 0.67

#: what stands above the table
ABOUT = (
    "{} operators (`benchmarks/operator_list.py`) on float32 matrices of four sizes, and on images, sequences and "
    "batches of about as many elements: PyTorch's time over flambeau's, both eager, on one thread. The libraries "
    "run by turns in one process, small operators after 40 calls of each; each time is the smallest of {} batches of "
    "calls, in processor time. What is "
    "below 1 is bold. A row without figures with backward has no gradient.")

Measurement = tuple[str, str, str, dict[str, float]]  # operator, size, mode, seconds by peer


class Differs(AssertionError):
    """The libraries' results differ."""


class Call:
    """A call of an operator of one library: forward, or forward and backward to leaves without gradients."""

    def __init__(self, torch: Any, operator: Operator, shape: tuple[int, int], mode: str,
                 dtype: str = "float32") -> None:
        self.torch, self.operator, self.inputs = torch, operator, Inputs(torch, shape, mode == BOTH, dtype)
        torch.manual_seed(0)
        with torch.set_grad_enabled(mode == BOTH):
            self.result = operator(torch, self.inputs)
        tensor = isinstance(self.result, torch.Tensor)
        #: whether there is something to differentiate
        self.differentiable = tensor and self.result.requires_grad
        self.run = self.forward_of()
        if mode == BOTH and self.differentiable:
            gradient = np.asarray(np.random.default_rng(0).standard_normal(tuple(self.result.shape)))
            self.gradient = torch.from_numpy(gradient).to(self.result.dtype)
            self.run = self.both_of()

    def forward_of(self) -> Callable[[], Any]:
        torch, operator, inputs = self.torch, self.operator, self.inputs

        def run() -> Any:
            return operator(torch, inputs)

        return run

    def both_of(self) -> Callable[[], Any]:
        torch, operator, inputs, gradient = self.torch, self.operator, self.inputs, self.gradient
        leaves = inputs.leaves

        def run() -> Any:
            for leaf in leaves:
                leaf.grad = None
            result = operator(torch, inputs)
            result.backward(gradient.clone())  # a new one, as from an operator: nobody else refers to it
            return result

        return run

    def observed(self) -> list[Any]:
        """The result and the leaves' gradients, as arrays."""
        self.torch.manual_seed(0)
        result = self.run()
        found = [self.array_of(result) if isinstance(result, self.torch.Tensor) else np.asarray(result)]
        return found + [self.array_of(leaf.grad) for leaf in self.inputs.leaves if leaf.grad is not None]

    def array_of(self, tensor: Any) -> Any:
        """A tensor as an array; NumPy has no bfloat16."""
        tensor = tensor.detach()
        return (tensor.float() if tensor.dtype == self.torch.bfloat16 else tensor).numpy()


#: relative differences that rounding explains, by dtype of the inputs
TOLERANCES = {"float32": 1e-3, "float64": 1e-3, "float16": 2e-2, "bfloat16": 1e-1}


def compare(found: Sequence[Any], expected: Sequence[Any], tolerance: float = TOLERANCES["float32"]) -> None:
    """Raise `Differs` unless all arrays agree up to rounding."""
    if len(found) != len(expected):
        raise Differs(f"{len(found)} results, not {len(expected)}")
    for number, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            raise Differs(f"result {number}: {ours.shape} {ours.dtype}, not {theirs.shape} {theirs.dtype}")
        theirs = theirs.astype(np.float64)
        size = float(np.max(np.abs(theirs), initial=0, where=np.isfinite(theirs)))
        # a gradient that cancels out is rounding of something of the order of 1
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance / 100 * max(size, 1))


def batch_of(run: Callable[[], Any], calls: int, now: Callable[[], float]) -> float:
    """Seconds of one call."""
    started = now()
    for _ in range(calls):
        run()
    return (now() - started) / calls


def turn(run: Callable[[], Any], now: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of one call: the smallest of a few batches."""
    calls = max(1, round(BATCH / max(batch_of(run, 1, now), 1e-9)))
    return min(batch_of(run, calls, now) for _ in range(BATCHES))


def times_of(operator: Operator, shape: tuple[int, int], mode: str, *, threads: int,
             compiled: bool, dtype: str = "float32") -> dict[str, float] | None:
    """Seconds by peer: the smallest of `BATCHES` batches by turns. None where there is nothing to differentiate.

    Raises:
        Differs: if the libraries' results differ.
    """
    # the processor time of one thread leaves out what other processes take
    now = time.thread_time if threads == 1 else time.perf_counter
    torch, flambeau = library("torch", threads), library("flambeau", threads)
    calls = {PYTORCH: Call(torch, operator, shape, mode, dtype), EAGER: Call(flambeau, operator, shape, mode, dtype)}
    if mode == BOTH and not (calls[EAGER].differentiable and calls[PYTORCH].differentiable):
        return None
    runs = {name: call.run for name, call in calls.items()}
    if compiled:
        runs[COMPILED] = flambeau.compile(calls[EAGER].run)
    with torch.set_grad_enabled(mode == BOTH), flambeau.set_grad_enabled(mode == BOTH):
        compare(calls[EAGER].observed(), calls[PYTORCH].observed(), TOLERANCES[dtype])
        sizes, best = {}, {}
        for name, run in runs.items():
            for _ in range(4 if name == COMPILED else 2):  # traced, compiled, and in the caches
                run()
            if name != COMPILED and batch_of(run, 1, now) < BATCH:
                batch_of(run, WARM_UP, now)
            sizes[name] = max(1, round(BATCH / max(batch_of(run, 1, now), 1e-9)))
            best[name] = float("inf")
        for number in range(BATCHES):
            for name in list(runs)[::1 if number % 2 else -1]:
                best[name] = min(best[name], batch_of(runs[name], sizes[name], now))
    return best


def measure(names: Sequence[str], *, sizes: Sequence[tuple[int, int]] = SIZES, modes: Sequence[str] = MODES,
            groups: Sequence[str] = (), threads: int = 1, compiled: bool = False,
            dtype: str = "float32") -> list[Measurement]:
    """(operator, size, mode, seconds by peer) of each operator, size and mode. Logged are operators that differ, and
    those that refuse the dtype."""
    library("torch", threads), library("flambeau", threads)
    timing.freeze_garbage()
    found: list[Measurement] = []
    for group, operators in GROUPS.items():
        for name, operator in operators.items():
            if (groups and group not in groups) or (names and not any(part in name for part in names)):
                continue
            for shape in sizes:
                for mode in modes:
                    try:
                        times = times_of(operator, shape, mode, threads=threads, compiled=compiled, dtype=dtype)
                    except (AssertionError, RuntimeError) as error:
                        if not isinstance(error, AssertionError) and dtype == "float32":
                            raise
                        log(f"    {name}, {size_of(shape)}, {mode}: {str(error).strip()[:400]}")
                        continue
                    if times is not None:
                        found.append((name, size_of(shape), mode, times))
    return found


def size_of(shape: Sequence[int]) -> str:
    return "{} x {}".format(*shape)


def ratio_of(times: dict[str, float], peer: str = EAGER) -> float:
    """PyTorch's time over the peer's."""
    return times[PYTORCH] / times[peer]


def lines(measurements: Sequence[Measurement], peer: str) -> tuple[list[markdown.Cells], list[str]]:
    """Rows of the table by size and mode (PyTorch's time over the peer's), and the lists of slow operators."""
    ratios: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for name, size, mode, times in measurements:
        ratios.setdefault((size, mode), []).append((ratio_of(times, peer), name))
    rows, slow = [], []
    for (size, mode), each in ratios.items():
        values = [value for value, _ in each]
        faster = f"{sum(v > 1 for v in values)} of {len(values)}"
        rows.append([peer, size, mode, f"{statistics.median(values):.2f}", faster])
        named = [f"{name} {value:.2f}" for value, name in sorted(each) if value < SLOW]
        if named:
            slow.append(f"- {peer}, {size}, {mode}: {', '.join(named)}.")
    return rows, slow


def operator_table(measurements: Sequence[Measurement]) -> str:
    """One row for each operator, one column for each size and mode; ratios below 1 are bold."""
    columns = list(dict.fromkeys((size, mode) for _, size, mode, _ in measurements))
    by_name: dict[str, dict[tuple[str, str], float]] = {}
    for name, size, mode, times in measurements:
        by_name.setdefault(name, {})[size, mode] = ratio_of(times)

    def cell(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}" if value >= 0.995 else f"**{value:.2f}**"

    rows = [[name, *(cell(ratios.get(column)) for column in columns)] for name, ratios in by_name.items()]
    each = [[ratios[column] for ratios in by_name.values() if column in ratios] for column in columns]
    rows.append(["median", *(f"{statistics.median(values):.2f}" for values in each)])
    rows.append(["at least 1", *(f"{sum(v >= 0.995 for v in values)} of {len(values)}" for values in each)])
    heads = ["", *(size + (", with backward" if mode == BOTH else "") for size, mode in columns)]
    return markdown.table(heads, rows)


def section(rounds: int) -> str:
    """The section as Markdown. `rounds` is ignored."""
    measurements = run_child("operators", "--compiled", "--threads", str(limits.THREADS), "--json", "-")
    if measurements is None:
        return "## Single operators\n\nPyTorch is not installed."
    rows, slow = [], []
    for peer in (EAGER, COMPILED):
        more, named = lines(measurements, peer)
        rows += more
        slow += named
    heads = ["", "matrix", "", "PyTorch eager / flambeau, median", "faster than PyTorch"]
    return (f"## Single operators\n\n{len(OPERATORS)} operators (`benchmarks/operator_list.py`); "
            "`operators.md` has their table. "
            f"Listed below: operators that take more than {1 / SLOW:.1f} times as long as PyTorch's.\n\n"
            f"{markdown.table(heads, rows)}\n\n" + "\n".join(slow))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of operator names (default: all)")
    parser.add_argument("--group", nargs="*", choices=GROUPS, default=(), help="groups of operators (default: all)")
    parser.add_argument("--sizes", nargs="*", default=["{}x{}".format(*shape) for shape in SIZES],
                        metavar="ROWSxCOLUMNS")
    parser.add_argument("--modes", nargs="*", choices=MODES, default=MODES)
    parser.add_argument("--dtype", choices=TOLERANCES, default="float32", help="of the inputs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--compiled", action="store_true", help="time compiled functions, too")
    parser.add_argument("--json", metavar="FILE", help="write measurements there (-: the output) instead of a table")
    parser.add_argument("--table", nargs="*", metavar="FILE",
                        help="the table of measurements in these files; later ones replace earlier ones")
    options = parser.parse_args()
    if options.table is not None:
        kept = {tuple(each[:3]): each for path in options.table for each in json.loads(Path(path).read_text())}
        order = {name: number for number, name in enumerate(OPERATORS)}
        sizes = [size_of(shape) for shape in SIZES]
        print(ABOUT.format(len(OPERATORS), BATCHES) + "\n")
        print(operator_table(sorted((each for each in kept.values() if each[0] in order), key=lambda each: (
            order[each[0]], sizes.index(each[1]), MODES.index(each[2])))))
        return
    limits.apply(options.threads)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    shapes = [(int(rows), int(columns)) for rows, columns in (size.split("x") for size in options.sizes)]
    found = measure(options.names, sizes=shapes, modes=options.modes, groups=options.group, threads=options.threads,
                    compiled=options.compiled, dtype=options.dtype)
    if options.json is None:
        print(operator_table(found))
    elif options.json == "-":
        print(json.dumps(found))
    else:
        Path(options.json).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
