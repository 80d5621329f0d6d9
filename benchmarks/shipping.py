"""Compiled programs beside onnxruntime and AOTInductor: `python -m benchmarks.shipping`.

Each model is exported to a shared library, to ONNX, and with PyTorch to a package of AOTInductor (which needs a C++
compiler; `--without-inductor` leaves it out). All run on one thread, by turns; times are medians of processor time in
microseconds. The ratio is the best other time by ours. Results are compared before anything is timed.

`--files` prints the other table: the files' bytes, and of a process that loads a file and runs it once the milliseconds
and the megabytes of resident memory, without and with the runtime's own library.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .shipping_models import NAMES, models

BATCHES = 1, 32
Call = Callable[[], Any]


def compiled(path: Path, x: np.ndarray, y: np.ndarray) -> Call:
    """A call of a shared library."""
    library = ctypes.CDLL(str(path))
    size = getattr(library, f"{path.stem}_arena_size")
    size.restype = ctypes.c_size_t
    arena = np.zeros(size(), np.uint8)
    arguments = [*(ctypes.c_void_p(a.ctypes.data) for a in (x, y, arena)), ctypes.c_size_t(arena.nbytes)]
    run = getattr(library, f"{path.stem}_run")

    def call(memory: tuple[np.ndarray, ...] = (x, y, arena)) -> np.ndarray:  # which must live as long as the call
        if run(*arguments):
            raise RuntimeError("the program failed")
        return y

    return call


def onnx(path: Path, x: np.ndarray) -> Call:
    """A call of an ONNX model."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    given = {session.get_inputs()[0].name: x}
    return lambda: session.run(None, given)[0]


def inductor(path: Path, x: np.ndarray) -> Call:
    """A call of a package of AOTInductor."""
    import torch

    torch.set_num_threads(1)
    runner = torch._inductor.aoti_load_package(str(path))
    given = torch.from_numpy(x)

    def call() -> np.ndarray:
        with torch.inference_mode():
            return runner(given).numpy()

    return call


def package(path: Path, name: str, x: np.ndarray, weights: dict[str, np.ndarray]) -> None:
    """Compile a model by AOTInductor, for one thread."""
    import torch

    torch.set_num_threads(1)
    model, _ = models(torch)[name]()
    model.load_state_dict({key: torch.from_numpy(value) for key, value in weights.items()})
    with torch.no_grad():
        program = torch.export.export(model.eval(), (torch.from_numpy(x),))
        torch._inductor.aoti_compile_and_package(program, package_path=str(path))


def build(folder: Path, name: str, batch: int, with_inductor: bool) -> tuple[dict[str, Path], np.ndarray, np.ndarray]:
    """The files of a model by runtime, an example, and the result that PyTorch's model or flambeau's has for it."""
    import flambeau
    from flambeau.export import export

    flambeau.manual_seed(0)
    model, shape = models(flambeau)[name]()
    x = flambeau.randn(batch, *shape)
    model.eval()
    program = export(model, (x,))
    paths = {"compiled": folder / f"{name}{batch}.so", "onnxruntime": folder / f"{name}{batch}.onnx"}
    for path in paths.values():
        program.save(path, **({"target": "native"} if path.suffix == ".so" else {}))
    if with_inductor:
        paths["AOTInductor"] = folder / f"{name}{batch}.pt2"
        package(paths["AOTInductor"], name, x.numpy(), {k: v.numpy() for k, v in model.state_dict().items()})
    with flambeau.no_grad():
        return paths, x.numpy(), model(x).numpy()


def calls(paths: dict[str, Path], x: np.ndarray, expected: np.ndarray) -> dict[str, Call]:
    """The calls by runtime, whose results have been compared."""
    found: dict[str, Call] = {}
    for runtime, path in paths.items():
        call = loaded(runtime, path, x, expected)
        np.testing.assert_allclose(call(), expected, 1e-3, 1e-4)
        found[runtime] = call
    return found


def loaded(runtime: str, path: Path, x: np.ndarray, like: np.ndarray) -> Call:
    """A call of a file."""
    if runtime == "compiled":
        return compiled(path, x, np.zeros_like(like))
    return onnx(path, x) if runtime == "onnxruntime" else inductor(path, x)


def medians(found: list[Call], seconds: float) -> list[float]:
    """The median processor times of calls that are made by turns, in microseconds."""
    times: list[list[float]] = [[] for _ in found]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for call, mine in zip(found, times, strict=True):
            start = time.process_time_ns()
            call()
            call()
            mine.append((time.process_time_ns() - start) / 2000)
    return [float(np.median(each)) for each in times]


_CHILD = """
import json, sys, time
from pathlib import Path
import numpy as np
from benchmarks.shipping import loaded, resident
runtime, path, x, y = sys.argv[1], Path(sys.argv[2]), np.load(sys.argv[3]), np.load(sys.argv[4])
before = resident()
if runtime == "onnxruntime":
    import onnxruntime
elif runtime == "AOTInductor":
    import torch._inductor
    torch._inductor.aoti_load_package
    from torch._inductor.package import package
between, start = resident(), time.perf_counter()
loaded(runtime, path, x, y)()
seconds, after = time.perf_counter() - start, resident()
print(json.dumps([seconds * 1e3, after - between, after - before]))
"""


def resident() -> float:
    """Resident memory of this process in megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def load(runtime: str, path: Path, x: np.ndarray, expected: np.ndarray) -> list[float]:
    """Milliseconds, megabytes and megabytes with the runtime's library of a process that loads a file and runs it."""
    np.save(path.with_suffix(".x.npy"), x)
    np.save(path.with_suffix(".y.npy"), expected)
    arguments = [runtime, str(path), str(path.with_suffix(".x.npy")), str(path.with_suffix(".y.npy"))]
    done = subprocess.run([sys.executable, "-c", _CHILD, *arguments], capture_output=True, text=True, check=True)
    result: list[float] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(NAMES), help="names of models")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--without-inductor", action="store_true")
    parser.add_argument("--files", action="store_true")
    options = parser.parse_args()
    others = ["onnxruntime", *([] if options.without_inductor else ["AOTInductor"])]
    if options.files:
        print("| model | runtime | bytes | load and run, ms | MB | MB with library |")
        print("| --- | --- | ---: | ---: | ---: | ---: |")
    else:
        print(f"| model | batch | compiled | {' | '.join(others)} | ratio |")
        print("| --- | ---: | ---: |" + " ---: |" * len(others) + " ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models:
            for batch in BATCHES[:1] if options.files else BATCHES:
                paths, x, expected = build(Path(folder), name, batch, not options.without_inductor)
                if options.files:
                    for runtime, path in paths.items():
                        cells = " | ".join(f"{each:.1f}" for each in load(runtime, path, x, expected))
                        print(f"| {name} | {runtime} | {path.stat().st_size:,} | {cells} |", flush=True)
                    continue
                mine, *theirs = medians([*calls(paths, x, expected).values()], options.seconds)
                cells = " | ".join(f"{each:.1f}" for each in (mine, *theirs))
                print(f"| {name} | {batch} | {cells} | {min(theirs) / mine:.2f} |", flush=True)


if __name__ == "__main__":
    main()
