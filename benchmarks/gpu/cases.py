"""What is measured on a GPU: the workloads in two sizes and GPT-2 small, by each library, and what they need."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..gpt2 import GPT2_ROWS, repeats
from ..peers import COMPILED, EAGER, PEERS
from ..workloads import ROWS

#: the columns, and of how many parts of the processes theirs are
COLUMNS = {"PyTorch eager": 1, "torch.compile": 6, "jax.jit": 3, EAGER: 2, COMPILED: 4}
#: what grows in the larger size of a row, the first that it has
_GROWING = ("elements", "rows", "batch")
#: rows whose time is that of convolutions, which all libraries round to TF32
CONVOLUTIONS = ("conv", "conv-backward", "cnn")

Case = tuple[str, int]  # row, how many times larger than on the CPU


def grown(sizes: dict[str, int], factor: int) -> dict[str, int]:
    """The sizes of a workload with so many times the elements; its own where nothing grows.

    >>> grown({"rows": 4, "width": 8}, 16)
    {'rows': 64, 'width': 8}
    """
    key = next((each for each in _GROWING if each in sizes), None)
    if key is None:
        return {**sizes, "side": round(sizes["side"] * factor ** 0.5)} if "side" in sizes else dict(sizes)
    return {**sizes, key: sizes[key] * factor}


def cases(rows: Sequence[str], factors: Sequence[int]) -> list[Case]:
    """The rows in all sizes that they have.

    >>> cases(["formula", "chain", "gpt2-step"], [1, 16])
    [('formula', 1), ('chain', 1), ('chain', 16), ('gpt2-step', 1)]
    """
    return [(row, factor) for row in rows for factor in factors
            if factor == 1 or (row in ROWS and grown(ROWS[row].sizes, factor) != ROWS[row].sizes)]


def has(column: str, case: Case) -> bool:
    """Whether a column has a case: there is no GPT-2 in jax."""
    return not (column == "jax.jit" and case[0] in GPT2_ROWS)


class OnDevice:
    """PyTorch or flambeau; what a workload makes is on the device.

    Args:
        torch: the library.
        device: the name of the device.
    """

    def __init__(self, torch: Any, device: str) -> None:
        self._torch, self._device = torch, device

    def __getattr__(self, name: str) -> Any:
        return getattr(self._torch, name)

    def from_numpy(self, array: np.ndarray) -> Any:
        """A copy of an array on the device."""
        return self._torch.from_numpy(array).to(self._device)

    def tensor(self, data: Any, **options: Any) -> Any:
        """A tensor on the device."""
        return self._torch.tensor(data, device=self._device, **options)


@dataclass
class Running:
    """A case that a library can run.

    Attributes:
        run: runs it once, without waiting for the device.
        wait: waits for the device.
        memory: bytes that tensors have now, and at most since the last call with `True`; None where it is not known.
        observed: a number that all libraries should agree on, from what `run` returned.
        repeats: how often one run calls the compiled function.
    """

    run: Callable[[], Any]
    wait: Callable[[], None]
    memory: Callable[[bool], tuple[int, int]] | None
    observed: Callable[[Any], float | None]
    repeats: int = 1


class Libraries:
    """A column's library in this process, and its device.

    Args:
        column: the column.
        fake: use tiny sizes and no GPU: flambeau's fake device, and the CPU under the other libraries.
    """

    def __init__(self, column: str, fake: bool) -> None:
        self.column, self.fake, self.name = column, fake, PEERS[column]
        self.device = "cpu" if fake and self.name == "torch" else "cuda"
        self.library = importlib.import_module(self.name)
        if column == "torch.compile":  # each case is compiled for its own sizes, however many share their code
            dynamo = importlib.import_module("torch._dynamo")
            dynamo.config.automatic_dynamic_shapes = False
            dynamo.config.recompile_limit = dynamo.config.accumulated_recompile_limit = 1000

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """A block in which there is the device."""
        with (self.library.testing.fake_cuda(memory=1 << 32) if self.fake and self.name == "flambeau"
              else nullcontext()):
            yield

    def device_name(self) -> str:
        """What the device is called; nothing where the library does not say."""
        return str(self.library.cuda.get_device_name()) if self.name != "jax" and self.device == "cuda" else ""

    def memory(self, reset: bool = False) -> tuple[int, int]:
        """Bytes that tensors have now, and at most since the last reset."""
        if self.name == "jax" or self.device == "cpu":
            return 0, 0
        cuda = self.library.cuda
        if reset:
            cuda.reset_peak_memory_stats()
        return cuda.memory_allocated(), cuda.max_memory_allocated()

    def reserved(self) -> int:
        """Bytes of the device that this process keeps, after giving back what it can."""
        if self.name == "jax" or self.device == "cpu":
            return 0
        self.library.cuda.empty_cache()
        return int(self.library.cuda.memory_reserved())

    def wait(self) -> None:
        """Wait for the device."""
        if self.device == "cuda" and self.name != "jax":  # whose results are waited for
            self.library.cuda.synchronize()

    def running(self, case: Case) -> Running:
        """Make what a case needs."""
        return self._of_jax(case) if self.name == "jax" else self._of_torch(case)

    def _of_torch(self, case: Case) -> Running:
        (row, factor), library = case, self.library
        compiles = self.column in (COMPILED, "torch.compile")
        if row in GPT2_ROWS:
            run = GPT2_ROWS[row](library, compiles, self.fake, self.device)
            return Running(run, self.wait, self.memory, _norm, repeats(row, self.fake))
        workload = ROWS[row]
        sizes = workload.tiny if self.fake else grown(workload.sizes, factor)
        with library.device(self.device):  # of modules
            program = next(iter(workload.forms.values()))(OnDevice(library, self.device), workload.data(sizes), sizes,
                                                          "float32")
        step = program.make_step(program.forward)
        if compiles:
            step = library.compile(step)
        return Running(lambda: program.run(step), self.wait, self.memory, _norm,
                       sizes["steps"] if program.loop else 1)

    def _of_jax(self, case: Case) -> Running:
        row, factor = case
        jax, workload = self.library, ROWS[row]
        sizes = workload.tiny if self.fake else grown(workload.sizes, factor)
        # PyTorch's default: products in float32, convolutions in TF32
        precision = "tensorfloat32" if row in CONVOLUTIONS else "float32"
        with jax.default_matmul_precision(precision):
            program = next(iter(workload.jax_forms.values()))(workload.data(sizes), sizes)
        step = jax.jit(program.step, donate_argnums=() if program.loop else 0)
        last: list[Any] = [(program.state, None)]

        def run() -> Any:
            with jax.default_matmul_precision(precision):
                last[0] = program.loop(step, program.state) if program.loop else step(last[0][0], *program.inputs)
            return program.named(*last[0]).get("output", program.named(*last[0]).get("loss"))

        return Running(run, lambda: jax.block_until_ready(last[0]), None, _norm, sizes["steps"] if program.loop else 1)


def _norm(result: Any) -> float | None:
    """The norm of the floats of a result."""
    if result is None:
        return None
    array = np.asarray(result.detach().float().cpu().numpy() if hasattr(result, "detach") else result)
    if array.dtype.kind != "f":
        return None
    return float(np.linalg.norm(array.astype(np.float64)))


def programs(column: str) -> list[Any]:
    """The device programs that flambeau's compiler has made in this process."""
    if column != COMPILED:
        return []
    from flambeau.ir.gpu.runtime_program import RuntimeProgram

    return [each for each in gc.get_objects() if isinstance(each, RuntimeProgram)]


def costs(made: Sequence[Any]) -> tuple[float, float]:
    """The bytes and operations of device programs."""
    from flambeau.ir.kernels.cost_model import cost_of

    found = [cost_of(kernel) for program in made for kernel in program.schedule.kernels]
    return float(sum(each.bytes for each in found)), float(sum(each.flops or 0 for each in found))


def reasons(column: str) -> list[str]:
    """Why calls of functions compiled by flambeau run eagerly."""
    if column != COMPILED:
        return []
    from flambeau.compiler.on_devices.device_calls import DeviceCalls

    return [reason for each in gc.get_objects() if isinstance(each, DeviceCalls) for reason in each.reasons]
