"""Generated programs on CUDA devices, in several processes.

    FLAMBEAU_TEST_CUDA=1 python -m tests.random_programs.on_a_device --seeds 0-500 --processes 12

On a GPU that PyTorch can use, both libraries run each program there, all tensors on the device; where PyTorch has no
GPU, flambeau's run on the device is compared with PyTorch's on the CPU. Without FLAMBEAU_TEST_CUDA=1 the device is the
tests' stand-in.
"""

from __future__ import annotations

import argparse
import multiprocessing
import queue
import re
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any

from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

from .comparison import Disagreement, compare
from .differential import libraries
from .execution import Step, run
from .generation import written
from .shrinking import decided, shortened

#: texts of errors after which a process cannot use its GPU any more
_LOST = ("device-side assert", "illegal memory access", "misaligned address", "unspecified launch failure",
         "an illegal instruction", "AcceleratorError")


#: errors of the CPU where a GPU's kernel has an assertion, which ends the use of the GPU
_OUT_OF_BOUNDS = re.compile(r"out of (DATA )?bounds|index out of range|out-of-bounds")


class LostDeviceError(RuntimeError):
    """A program has ended the use of the GPU in this process."""


@contextmanager
def default_device(*used: ModuleType) -> Iterator[None]:
    """A block in which some libraries make tensors on the device."""
    for library in used:
        library.set_default_device("cuda")
    try:
        yield
    finally:
        for library in used:
            library.set_default_device(None)


@contextmanager
def same_numbers() -> Iterator[None]:
    """A block in which the device draws the CPU's random numbers."""
    import flambeau
    from flambeau._tensor.accelerated import generators

    generator = flambeau.default_generator
    made = generators._made()
    before, made[:] = list(made), [generator]
    # devices' generators tell by it how much they have drawn
    generator.get_offset = lambda: zlib.crc32(generator.get_state().numpy().tobytes())
    try:
        yield
    finally:
        del generator.get_offset
        made[:] = before


def outlined(steps: list[Step]) -> list[Step]:
    """Steps without the texts of errors and warnings and the names of nodes, which change between releases of PyTorch.

    What is left: which statements fail, the values, metadata and gradients, and which tensors have a graph.
    """
    return [replace(each, error=each.error and "an error", warned=[], seen={
        name: {what: value if what != "grad_fn" else value is not None for what, value in seen.items()} | (
            {"grad": seen["grad"] and {**seen["grad"], "grad_fn": seen["grad"]["grad_fn"] is not None}}
            if "grad" in seen else {})
        for name, seen in each.seen.items()}) for each in steps]


class Check:
    """The check of programs in this process; to be used in a block with devices.

    Attributes:
        oracle: what a program on the device is compared with.
        other_words: whether the last program's errors, warnings or nodes have other names than in this PyTorch.
    """

    other_words = False

    def __init__(self) -> None:
        self.here, self.there = libraries()
        self.on_gpu = self.there.cuda.is_available()
        self.oracle = "PyTorch on the GPU" if self.on_gpu else "PyTorch on the CPU"

    def written(self, seed: int) -> tuple[list[str], list[Step]]:
        """The program of a seed, up to an index that would end the use of a GPU, and what it does on the CPU."""
        program, steps = written(seed, self.there)
        fatal = next((number for number, each in enumerate(steps) if _OUT_OF_BOUNDS.search(each.error or "")), None)
        return program[:fatal], steps[:fatal]

    def disagreement(self, program: list[str], steps: list[Step] | None = None) -> Disagreement | None:
        """Where a program does something else on the device.

        Args:
            steps: what it does under PyTorch on the CPU, where that is known.

        Raises:
            LostDeviceError: the GPU cannot be used any more.
        """
        if self.on_gpu:
            with default_device(self.here, self.there):
                steps = self._steps(program, self.there)
                mine = self._steps(program, self.here)
                self.other_words = compare(mine, steps) is not None
                return decided(program, compare(outlined(mine), outlined(steps)), steps, self.here, self.there)
        steps = run(program, self.there) if steps is None else steps
        with default_device(self.here), same_numbers():
            mine = self._steps(program, self.here)
        refused = next((number for number, each in enumerate(mine)
                        if "device type tensor to numpy" in (each.error or "")), None)
        return compare(mine[:refused], steps[:refused])

    def _steps(self, program: list[str], library: ModuleType) -> list[Step]:
        steps = run(program, library)
        for each in steps:
            if each.error and any(text in each.error for text in _LOST):
                raise LostDeviceError(f"{each.text}: {each.error[:200]}")
        return steps

    def __call__(self, seed: int, shorten: bool) -> str | None:
        """What to print of the program of a seed; None where it does the same.

        Raises:
            LostDeviceError: the GPU cannot be used any more.
        """
        program, steps = self.written(seed)
        found = self.disagreement(program, steps)
        if found is None:
            return None
        if shorten:
            program, found = shortened(program, found, self.disagreement)
        lines = program[:found.index + 1] if shorten else program[max(0, found.index - 1):found.index + 1]
        found = replace(found, sides=("device", "oracle"))
        shown = ["    " + line for text in lines for line in text.split("\n")]
        return "\n".join([f"seed {seed}:", *shown, f"  {found}"])


def _work(seeds: list[int], shorten: bool, results: Any) -> None:
    """Check programs in a process of their own, and send (seed, what was found) of each."""
    import warnings

    warnings.simplefilter("ignore")
    with cupy_devices(memory=1 << 32):
        check = Check()
        results.put(("begun", check.oracle))
        for seed in seeds:
            try:
                results.put((seed, check(seed, shorten) or ("other words" if check.other_words else None)))
            except LostDeviceError as error:
                results.put((seed, f"lost device: {error}"))
                results.close()
                results.join_thread()
                return
            except Exception as error:
                results.put((seed, f"{type(error).__name__}: {str(error)[:300]}"))
        results.put(("ended", None))
        results.close()
        results.join_thread()


class _Part:
    """The seeds of one process."""

    def __init__(self, seeds: list[int], shorten: bool) -> None:
        self.left, self.shorten = seeds, shorten
        self.start()

    def start(self) -> None:
        """Start a process for the seeds that are left."""
        context = multiprocessing.get_context("spawn")
        self.results = context.Queue()
        self.process = context.Process(target=_work, args=(self.left, self.shorten, self.results), daemon=True)
        self.process.start()


def _end(parts: list[_Part]) -> None:
    for each in parts:
        each.process.kill()


def main() -> int:
    """Check programs; the exit status says whether all agreed."""
    parser = argparse.ArgumentParser("python -m tests.random_programs.on_a_device", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-100", metavar="A-B", help="from A up to B (default 0-100)")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--shorten", action="store_true", help="print programs as short as they can be")
    parser.add_argument("--limit", type=float, default=float("inf"), metavar="SECONDS", help="stop after so long")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = list(range(int(first), int(last or int(first) + 1)))
    began, count, differing = time.monotonic(), Counter[str](), list[int]()
    parts = [_Part(each, options.shorten) for number in range(options.processes)
             if (each := seeds[number::options.processes])]
    oracle = ""
    with ExitStack() as stack:
        stack.callback(_end, parts)
        while parts and time.monotonic() < began + options.limit:
            idle = True
            for part in list(parts):
                try:
                    seed, found = part.results.get_nowait()
                except queue.Empty:
                    if not part.process.is_alive():
                        count["crashed"] += bool(part.left)
                        print(f"seed {part.left[:1]}: its process ended", flush=True)
                        part.left = part.left[1:]
                        parts.remove(part) if not part.left else part.start()
                    continue
                idle = False
                if seed == "begun":
                    oracle = found
                elif seed == "ended":
                    parts.remove(part)
                else:
                    part.left = part.left[part.left.index(seed) + 1:]
                    lost = found is not None and found.startswith("lost device")
                    words = found == "other words"
                    count["agree" if found is None else "lost" if lost else found if words else "differ"] += 1
                    if found is not None and not words:
                        differing.append(seed)
                        print(f"seed {seed}: {found}" if lost or "\n" not in found else found, flush=True)
                    if lost and part.left:
                        part.process.join()
                        part.start()
                    elif lost:
                        parts.remove(part)
            if idle:
                time.sleep(0.05)
    print(f"{sum(count.values())} programs beside {oracle}: {dict(count)}, {time.monotonic() - began:.0f} s"
          + (f"; seeds {sorted(differing)}" if differing else ""))
    return 1 if differing or count["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
