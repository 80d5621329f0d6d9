"""Benchmarks on a GPU: flambeau beside PyTorch and jax, the workloads of the table and GPT-2 small in bfloat16.

    python -m benchmarks.gpu                          all rows, sizes as on the CPU and 16 times larger
    python -m benchmarks.gpu --rows chain gpt2-step   some rows
    python -m benchmarks.gpu --write results_gpu.md

Every column runs in its own process, one after the other in each round. A time ends when the device is done. The share
of the roofline is that of the memory bandwidth, or of the peak of the arithmetic, whichever is larger, that the bytes
and operations of flambeau's compiled program need in the measured time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .child_process import ROOT, log
from .gpt2 import GPT2_ROWS
from .markdown import duration, table
from .peers import COMPILED, EAGER, PEERS, available, variants
from .workloads import ROWS

COLUMNS = ("PyTorch eager", "torch.compile", "jax.jit", EAGER, COMPILED)
#: what grows in the larger size of a row, the first that it has
_GROWING = ("elements", "rows", "batch")
#: part of a GPU's name -> bytes per second of memory, operations per second in float32, TF32 and bfloat16
PEAKS = {"H200": (4.8e12, 67e12, 494e12, 989e12), "H100": (3.35e12, 67e12, 494e12, 989e12),
         "A100": (2.04e12, 19.5e12, 156e12, 312e12), "4090": (1.01e12, 82.6e12, 82.6e12, 165e12)}


def grown(sizes: dict[str, int], factor: int) -> dict[str, int]:
    """The sizes of a workload with so many times the elements; its own where nothing grows.

    >>> grown({"rows": 4, "width": 8}, 16)
    {'rows': 64, 'width': 8}
    """
    key = next((each for each in _GROWING if each in sizes), None)
    if key is None:
        return {**sizes, "side": round(sizes["side"] * factor ** 0.5)} if "side" in sizes else dict(sizes)
    return {**sizes, key: sizes[key] * factor}


class OnDevice:
    """PyTorch or flambeau, with arrays and modules on the GPU."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._torch, name)

    def from_numpy(self, array: np.ndarray) -> Any:
        """A tensor on the GPU."""
        return self._torch.from_numpy(array).cuda()


# ----- in the child process -----

@contextlib.contextmanager
def _device(fake: bool, name: str) -> Iterator[None]:
    if fake and name == "flambeau":
        import flambeau

        with flambeau.testing.fake_cuda(memory=1 << 32):
            yield
    else:
        yield


def runner_of(row: str, column: str, factor: int, tiny: bool) -> tuple[Callable[[], Any], Callable[[], None], Any]:
    """What runs a row once, what waits for the device, and the library.

    Args:
        factor: how many times larger than on the CPU.
        tiny: use the sizes of the tests.
    """
    name = PEERS[column]
    if name == "jax":
        workload = ROWS[row]
        sizes = workload.tiny if tiny else grown(workload.sizes, factor)
        [(_, make), *_] = variants(column, workload, workload.data(sizes), sizes).items()
        return make().run, lambda: None, None
    library = __import__(name)
    torch = OnDevice(library)
    compiles = column in (COMPILED, "torch.compile")
    with library.device("cuda"):
        if row in GPT2_ROWS:
            return GPT2_ROWS[row](library, compiles, tiny), library.cuda.synchronize, library
        workload = ROWS[row]
        sizes = workload.tiny if tiny else grown(workload.sizes, factor)
        form = next(iter(workload.forms.values()))
        program = form(torch, workload.data(sizes), sizes, "float32")
        forward = program.forward
    step = program.make_step(forward)
    if compiles:
        step = library.compile(step)
    return lambda: program.run(step), library.cuda.synchronize, library


def measure(run: Callable[[], Any], wait: Callable[[], None], seconds: float) -> float:
    """Seconds of one call, after calls that compile: the mean over calls that take `seconds` together."""
    for _ in range(4):
        run()
    wait()
    calls = 1
    while True:
        started = time.perf_counter()
        for _ in range(calls):
            run()
        wait()
        elapsed = time.perf_counter() - started
        if elapsed >= seconds:
            return elapsed / calls
        calls = max(2 * calls, int(1.2 * calls * seconds / max(elapsed, 1e-9)))


def child(row: str, column: str, factor: int, fake: bool, seconds: float) -> dict[str, Any]:
    """The measurements of one process."""
    with _device(fake, PEERS[column]):
        run, wait, library = runner_of(row, column, factor, fake)
        found: dict[str, Any] = {"seconds": measure(run, wait, seconds)}
        if library is not None:
            found["memory"] = library.cuda.max_memory_allocated()
            found["device"] = library.cuda.get_device_name()
        if column == COMPILED:
            found["bytes"], found["operations"] = costs(library)
        return found


def costs(library: Any) -> tuple[float, float]:
    """The bytes and operations of the device programs of this process, which it runs once for each run of the row."""
    import gc

    from flambeau.ir.gpu.runtime_program import RuntimeProgram
    from flambeau.ir.kernels.cost_model import cost_of

    programs = [each for each in gc.get_objects() if isinstance(each, RuntimeProgram)]
    found = [cost_of(kernel) for program in programs for kernel in program.schedule.kernels]
    return float(sum(each.bytes for each in found)), float(sum(each.flops or 0 for each in found))


# ----- the table -----

def roofline(device: str, found: dict[str, Any], narrow: bool) -> str:
    """The share of the roofline, or nothing for a GPU whose peaks are not known.

    >>> roofline("NVIDIA H100 80GB HBM3", {"seconds": 1e-3, "bytes": 1.675e9, "operations": 0}, False)
    '50 % of bandwidth'
    """
    peaks = next((peak for name, peak in PEAKS.items() if name in device), None)
    if peaks is None or not found.get("bytes"):
        return ""
    bandwidth, plain, _, tensor = peaks
    memory = found["bytes"] / bandwidth / found["seconds"]
    arithmetic = found["operations"] / (tensor if narrow else plain) / found["seconds"]
    share, what = max((memory, "bandwidth"), (arithmetic, "arithmetic"))
    return f"{100 * share:.0f} % of {what}"


def rows(names: Sequence[str], factors: Sequence[int], rounds: int, fake: bool, seconds: float) -> Iterator[list[str]]:
    """The lines of the table."""
    for name in names:
        for factor in factors:
            if factor != 1 and (name not in ROWS or grown(ROWS[name].sizes, factor) == ROWS[name].sizes):
                continue
            found: dict[str, list[dict[str, Any]]] = {}
            for number in range(rounds):
                order = [each for each in COLUMNS if available(each) and not (name in GPT2_ROWS and each == "jax.jit")]
                for column in order if number % 2 == 0 else order[::-1]:
                    result = _in_process(name, column, factor, fake, seconds)
                    if result is not None:
                        found.setdefault(column, []).append(result)
            middle = {column: statistics.median(each["seconds"] for each in results)
                      for column, results in found.items()}
            compiled = next(iter(found.get(COMPILED, [])), {})
            share = roofline(compiled.get("device", ""), compiled | {"seconds": middle.get(COMPILED, 1)},
                             name in GPT2_ROWS) if compiled else ""
            memory = " / ".join(f"{max(each['memory'] for each in found[column]) / 2**30:.2f}"
                                for column in ("PyTorch eager", EAGER, COMPILED) if column in found)
            yield [f"{name} x {factor}", *(duration(middle[each]) if each in middle else "" for each in COLUMNS), share,
                   memory]


def _in_process(row: str, column: str, factor: int, fake: bool, seconds: float) -> dict[str, Any] | None:
    """What a process of its own measures; None where it fails, which is logged."""
    command = [sys.executable, "-m", "benchmarks.gpu", "--child", row, column, str(factor), "--seconds", str(seconds)]
    done = subprocess.run(command + ["--fake"] * fake, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        log(f"{row} x {factor}, {column}: {(done.stderr.strip().splitlines() or ['failed'])[-1][:300]}")
        return None
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", default=[*ROWS, *GPT2_ROWS], choices=[*ROWS, *GPT2_ROWS])
    parser.add_argument("--factors", nargs="+", type=int, default=[1, 16])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--fake", action="store_true", help="tiny sizes on the fake device, to test this script")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        row, column, factor = options.child
        print(json.dumps(child(row, column, int(factor), options.fake, options.seconds)))
        return
    lines = list(rows(options.rows, options.factors, options.rounds, options.fake, options.seconds))
    text = table(["row", *COLUMNS, "roofline", "GiB: PyTorch / flambeau eager / compiled"], lines)
    print(text)
    if options.write:
        options.write.write_text(f"# On a GPU\n\n{text}\n")


if __name__ == "__main__":
    main()
