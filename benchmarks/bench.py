"""The benchmark tables: flambeau compared with PyTorch and jax.

    python benchmarks/bench.py                                  print the tables
    python benchmarks/bench.py --write benchmarks/results.md    and write them
    python benchmarks/bench.py --only table import              some sections
    python benchmarks/bench.py --only table --rows conv gpt     some rows of the table of workloads
    python benchmarks/bench.py --only table --peers torch       without torch.compile and jax

In each round the libraries run the same code one after the other, in an order that alternates, so that changes of the
machine's speed affect all. Columns of libraries that are not installed are empty.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import limits

limits.apply()

import numpy as np  # noqa: E402

import flambeau  # noqa: E402
from benchmarks import footprint, models, operators, row, startup, subsystems, varying_shapes  # noqa: E402
from benchmarks import table as workloads  # noqa: E402
from benchmarks.markdown import Cells, duration, table  # noqa: E402
from benchmarks.workloads import ROWS  # noqa: E402
from flambeau import codegen  # noqa: E402

try:
    import torch
except ModuleNotFoundError:
    torch = None
else:
    torch.set_num_threads(limits.THREADS)


# ----- timing -----

def seconds(run: Callable[[], Any], min_time: float = 0.02) -> float:
    """Seconds of one call: the mean over calls that take at least `min_time` seconds together."""
    calls = 1
    while True:
        gc.collect()
        gc.disable()
        started = time.perf_counter()
        for _ in range(calls):
            run()
        elapsed = time.perf_counter() - started
        gc.enable()
        if elapsed >= min_time:
            return elapsed / calls
        calls = max(calls * 2, int(calls * min_time / max(elapsed, 1e-9)) + 1)


def paired(make: Callable[[Any], Callable[[], Any]], rounds: int) -> tuple[float, float | None, float | None]:
    """Medians of flambeau and of PyTorch, and of the rounds' ratios (PyTorch / flambeau)."""
    ours, theirs = make(flambeau), make(torch) if torch else None
    ours()
    if theirs:
        theirs()
    first, second = [], []
    for number in range(rounds):
        turns = [(ours, first), (theirs, second)]
        for run, times in turns if number % 2 == 0 else turns[::-1]:
            if run is not None:
                times.append(seconds(run))
    if not second:
        return statistics.median(first), None, None
    ratios = [b / a for a, b in zip(first, second, strict=True)]
    return statistics.median(first), statistics.median(second), statistics.median(ratios)


def pair_row(name: str, make: Callable[[Any], Callable[[], Any]], rounds: int) -> Cells:
    ours, theirs, ratio = paired(make, rounds)
    return [name, duration(ours), duration(theirs), "-" if ratio is None else f"{ratio:.2f}x"]


PAIRED = ["", "flambeau", "PyTorch", "PyTorch / flambeau"]


# ----- small operations -----

def forty_operations(lib: Any) -> Callable[[], Any]:
    """Forty products and sums of 4x4 matrices that require grad, forward and backward."""
    a, b = lib.ones(4, 4), lib.full((4, 4), 0.5)
    a.requires_grad_()
    b.requires_grad_()
    one = lib.ones(4, 4)

    def run() -> None:
        a.grad = b.grad = None
        c = a
        for _ in range(20):
            c = c * b + a
        c.backward(one)

    return run


def forward_only(lib: Any) -> Callable[[], Any]:
    a, b = lib.ones(4, 4), lib.full((4, 4), 0.5)
    a.requires_grad_()
    b.requires_grad_()

    def run() -> None:
        c = a
        for _ in range(20):
            c = c * b + a

    return run


def without_graph(lib: Any) -> Callable[[], Any]:
    forward = forward_only(lib)

    def run() -> None:
        with lib.no_grad():
            forward()

    return run


def descent(lib: Any) -> Callable[[], Any]:
    """150 steps of gradient descent on |x| + (x - 5)²."""
    def objective(x: Any) -> Any:
        return lib.abs(x) + (x - 5) ** 2

    def run() -> None:
        x = lib.tensor(0, dtype=lib.float32, requires_grad=True)
        path = [x.detach().numpy().copy()]
        values = [objective(x).detach().numpy()]
        for _ in range(150):
            if x.grad is not None:
                x.grad.zero_()
            objective(x).backward()
            with lib.no_grad():
                x -= 0.05 * x.grad
            path.append(x.detach().numpy().copy())
            values.append(objective(x).detach().numpy())

    return run


def training_step(lib: Any) -> Callable[[], Any]:
    """One training step of the demo's classifier of digits: 64-128-10, batch 32, Adam."""
    lib.manual_seed(0)
    model = lib.nn.Sequential(lib.nn.Linear(64, 128), lib.nn.ReLU(), lib.nn.Linear(128, 10))
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-3)
    inputs, labels = lib.rand(32, 64), lib.randint(0, 10, (32,))

    def run() -> None:
        optimizer.zero_grad()
        lib.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return run


def small(rounds: int) -> str:
    rows = [pair_row("40 mul/add on 4x4, forward and backward", forty_operations, rounds),
            pair_row("the same, forward alone", forward_only, rounds),
            pair_row("the same, forward under no_grad", without_graph, rounds)]
    return "## Small operations\n\n" + table(PAIRED, rows)


def loops(rounds: int) -> str:
    rows = [pair_row("scalar gradient descent, 150 steps", descent, rounds),
            pair_row("training step, 64-128-10, batch 32, Adam", training_step, rounds)]
    return "## Loops\n\n" + table(PAIRED, rows)


# ----- import -----

def import_time(rounds: int) -> str:
    """Times of `import` in new processes, alternating, less the start of the interpreter."""
    def once(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).resolve().parent.parent)
        return time.perf_counter() - started

    codes = {"nothing": "pass", "numpy": "import numpy", "flambeau": "import flambeau"}
    if torch:
        codes["torch"] = "import torch"
    times: dict[str, list[float]] = {name: [] for name in codes}
    for number in range(rounds + 1):
        for name, code in codes.items():
            elapsed = once(code)
            if number:  # the first round fills the page cache
                times[name].append(elapsed)
    median = {name: statistics.median(values) for name, values in times.items()}
    net = {name: value - median["nothing"] for name, value in median.items()}
    theirs = net.get("torch")
    rows = [["`import`", duration(net["flambeau"]), duration(theirs),
             "-" if theirs is None else f"{theirs / net['flambeau']:.1f}x"],
            ["of which NumPy", duration(net["numpy"]), "-", "-"]]
    return "## Import\n\n" + table(PAIRED, rows)


# ----- large graphs -----

def resident() -> int:
    """The resident set size of this process, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def chain(lib: Any, length: int) -> tuple[float, float, float, float]:
    """Seconds of forward, backward and deletion, and bytes of memory, of a chain of scalar multiplications."""
    x = lib.ones((), requires_grad=True)
    gc.collect()
    before = resident()
    started = time.perf_counter()
    y = x
    for _ in range(length):
        y = y * 1.0000001
    forward = time.perf_counter() - started
    graph_bytes = resident() - before
    started = time.perf_counter()
    y.backward(retain_graph=True)
    backward = time.perf_counter() - started
    started = time.perf_counter()
    del y
    deleted = time.perf_counter() - started
    return forward, backward, deleted, graph_bytes


def large(rounds: int) -> str:
    if not Path("/proc/self/statm").exists():
        return "## Large graphs\n\nMemory is read from /proc, which this system does not have."
    code = ("import sys; sys.path[:0] = {path!r}; import bench, json; lib = bench.{lib}; "
            "bench.chain(lib, 100); print(json.dumps(bench.chain(lib, {length})))")
    rows = []
    for exponent in range(2, 7):
        length = 10 ** exponent
        for lib in ("flambeau", "torch") if torch else ("flambeau",):
            results = []
            for _ in range(min(rounds, 3)):
                done = subprocess.run(
                    [sys.executable, "-c", code.format(path=[str(Path(__file__).resolve().parent)], lib=lib,
                                                       length=length)],
                    capture_output=True, text=True, check=True)
                results.append([float(part) for part in done.stdout.strip()[1:-1].split(",")])
            forward, backward, deleted, graph_bytes = (statistics.median(column)
                                                for column in zip(*results, strict=True))
            memory = f"{graph_bytes / length:.0f} B" if length >= 10_000 else "-"  # resolution: a page
            rows.append([f"{length:,}", {"flambeau": "flambeau", "torch": "PyTorch"}[lib],
                         duration(forward / length), duration(backward / length), duration(deleted / length),
                         memory])
    return ("## Large graphs\n\nA chain of scalar multiplications in a new process: time and memory *per node*.\n\n"
            + table(["nodes", "", "forward", "backward", "deletion", "memory"], rows))


# ----- forward and reverse mode -----

def modes(rounds: int) -> str:
    """A full Jacobian in both modes, of a function whose cost does not depend on n and m."""
    lib = flambeau
    rows = []
    size = 4096
    for n, m in ((1, 256), (4, 64), (16, 16), (64, 4), (256, 1)):
        def function(x: Any, n: int = n, m: int = m) -> Any:
            wide = x.reshape(n, 1).expand(n, size // n).reshape(size)
            return lib.sin(wide * wide).reshape(m, size // m).sum(1)

        x = lib.linspace(0.1, 1, n)
        columns = [lib.zeros(n) for _ in range(n)]
        for index, column in enumerate(columns):
            column[index] = 1

        def forward(x: Any = x, columns: Any = columns, function: Any = function) -> list[Any]:
            return [lib.func.jvp(function, (x,), (column,))[1] for column in columns]

        def reverse(x: Any = x, m: int = m, function: Any = function) -> list[Any]:
            leaf = x.clone().requires_grad_()
            y = function(leaf)
            rows_of_jacobian = []
            for index in range(m):
                seed = lib.zeros(m)
                seed[index] = 1
                rows_of_jacobian.append(lib.autograd.grad(y, leaf, seed, retain_graph=True)[0])
            return rows_of_jacobian

        assert np.allclose(lib.stack(forward(), 1).numpy(), lib.stack(reverse()).numpy(), atol=1e-3)
        forward_time = statistics.median(seconds(forward) for _ in range(rounds))
        reverse_time = statistics.median(seconds(reverse) for _ in range(rounds))
        rows.append([str(n), str(m), f"{n} passes", f"{m} passes", duration(forward_time), duration(reverse_time)])
    text = table(["n inputs", "m outputs", "forward mode", "reverse mode", "time, forward mode",
                  "time, reverse mode"], rows)
    return f"## Forward and reverse mode\n\n<!-- modes -->\n\n{text}\n\n<!-- end modes -->"


# ----- cost of the graph -----

def memory(rounds: int) -> str:
    """Time and memory of a deep network: trained, with its first layers frozen, and under no_grad."""
    lib = flambeau
    lib.manual_seed(0)
    layers = [layer for _ in range(20) for layer in (lib.nn.Linear(256, 256), lib.nn.Tanh())]
    model = lib.nn.Sequential(*layers)
    batch = lib.randn(256, 256)

    def step() -> None:
        model.zero_grad()
        model(batch).sum().backward()

    def inference() -> None:
        with lib.no_grad():
            model(batch)

    def measured(name: str, run: Callable[[], Any]) -> Cells:
        run()
        took = statistics.median(seconds(run) for _ in range(rounds))
        model.zero_grad()
        gc.collect()
        tracemalloc.start()
        run()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return [name, duration(took), f"{peak / 1e6:.1f} MB"]

    rows = [measured("forward and backward", step), measured("forward with a graph", lambda: model(batch)),
            measured("forward under no_grad", inference)]
    for parameter in model[:-2].parameters():
        parameter.requires_grad_(False)
    rows.append(measured("forward and backward, all but the last layer frozen", step))
    return ("## Cost of the graph\n\n20 layers of width 256, batch 256; peak memory above that of the "
            "model.\n\n" + table(["", "time", "memory"], rows))


SECTIONS = {"operators": operators.section, "small": small, "loops": loops, "import": import_time, "large": large,
            "modes": modes, "memory": memory, "varying_shapes": varying_shapes.section, "startup": startup.section,
            "footprint": footprint.section, "subsystems": subsystems.section, "models": models.section}


def machine() -> str:
    """The machine, and the versions of the libraries."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        cpu = next((line.partition(":")[2].strip() for line in info.read_text().splitlines()
                    if line.startswith("model name")), cpu)
    if codegen.available():
        from flambeau.codegen import roofline
        from flambeau.runtime import target

        cpu += f" ({target.host().cpu}, {target.host().vector_bits}-bit vectors, {roofline.peaks()})"
    versions = []
    for name, package in (("NumPy", "numpy"), ("llvmlite", "llvmlite"), ("PyTorch", "torch"), ("jax", "jax")):
        try:
            versions.append(f"{name} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            versions.append(f"no {name}")
    return (f"{cpu}, {os.cpu_count()} cores, {limits.THREADS} threads each; {platform.system()} {platform.release()}, "
            f"Python {platform.python_version()}, flambeau {flambeau.__version__}, {', '.join(versions)}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the tables to a file")
    parser.add_argument("--only", nargs="+", choices=["table", *SECTIONS], default=["table", *SECTIONS],
                        metavar="SECTION", help=f"any of table, {', '.join(SECTIONS)}")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW",
                        help=f"rows of the table: {', '.join(ROWS)}")
    parser.add_argument("--peers", nargs="*", choices=row.GROUPS, default=list(row.GROUPS), metavar="PEER",
                        help=f"peers of the table, if installed: {', '.join(row.GROUPS)}")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    sections = {"table": partial(workloads.section, options.rows, options.peers), **SECTIONS}
    texts = [machine()]
    print(texts[0], flush=True)
    for name in options.only:
        texts.append(sections[name](options.rounds))
        print("\n" + texts[-1], flush=True)
        if options.write:  # after each section, so that an interrupted run leaves results
            options.write.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    if options.write:
        print(f"\nwritten to {options.write}")


if __name__ == "__main__":
    main()
