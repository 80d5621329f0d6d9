"""Peers: runners of the workloads for PyTorch, jax and flambeau, eager and compiled.

A peer may have several variants of a workload (forms of the program, optimizers, the compiled part). All are checked;
the fastest counts.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .limits import THREADS
from .reference import Results, results
from .workloads.workload import Arrays, JaxProgram, Program, Sizes, Workload

#: column -> the package that it needs, in the order of the table
PEERS = {"PyTorch eager": "torch", "PyTorch tuned": "torch", "torch.compile": "torch", "jax.jit": "jax",
         "flambeau eager": "flambeau", "flambeau compiled": "flambeau"}

EAGER, COMPILED = "flambeau eager", "flambeau compiled"


def library(name: str, threads: int = THREADS) -> Any:
    """torch or flambeau, limited to a number of threads."""
    module = importlib.import_module(name)
    module.set_num_threads(threads)
    return module


def available(peer: str) -> bool:
    """Whether the peer is installed."""
    if importlib.util.find_spec(PEERS[peer]) is None:
        return False
    return peer != COMPILED or hasattr(library("flambeau"), "compile")


class TensorRunner:
    """A program of PyTorch or flambeau with its step, eager or compiled."""

    gives_gradients = True

    def __init__(self, torch: Any, program: Program, step: Callable[..., Any]) -> None:
        self.torch, self.program, self.step = torch, program, step
        self.start = {name: leaf.detach().clone() for name, leaf in program.leaves.items()}

    def run(self) -> Any:
        return self.program.run(self.step)

    def reset(self) -> None:
        """Restore the initial parameters, so that timed steps do not train until all gradients vanish."""
        if self.program.trains:
            with self.torch.no_grad():
                for name, leaf in self.program.leaves.items():
                    leaf.copy_(self.start[name])

    def results(self, output: Any) -> Results:
        return results(self.program, output)


class JaxRunner:
    """A program of jax under jit. A run ends when its outputs are ready."""

    gives_gradients = False

    def __init__(self, program: JaxProgram) -> None:
        import jax

        self.program, self.wait, self.put = program, jax.block_until_ready, jax.device_put
        self.start, self.state = jax.tree.map(np.array, program.state), program.state
        # the state's buffers are donated to the next state; a loop starts from the same state each time
        self.step = jax.jit(program.step, donate_argnums=() if program.loop else 0)

    def run(self) -> Any:
        if self.program.loop:
            return self.wait(self.program.loop(self.step, self.state))
        self.state, output = self.step(self.state, *self.program.inputs)
        return self.wait(output)

    def reset(self) -> None:
        self.state = self.put(self.start)

    def results(self, output: Any) -> Results:
        state, output = output if self.program.loop else (self.state, output)
        return {name: np.array(array, np.float64) for name, array in self.program.named(state, output).items()}


Runner = TensorRunner | JaxRunner


def variants(peer: str, workload: Workload, arrays: Arrays, sizes: Sizes) -> dict[str, Callable[[], Runner]]:
    """Variant name -> factory of the peer's runner of the workload."""
    if peer == "jax.jit":
        return {form: partial(_jax, make, arrays, sizes) for form, make in workload.jax_forms.items()}
    # name -> (the compiled part, the optimizer's options)
    choices: dict[str, tuple[str, dict[str, bool]]] = {"": ("step" if peer == COMPILED else "", {})}
    if peer == "PyTorch tuned":
        choices = {option: ("", {option: True}) for option in ("foreach", "fused")} if workload.optimizer else {}
    elif peer == "torch.compile":
        choices = {"full step": ("step", {})}
        if workload.optimizer:
            choices["loss, fused optimizer"] = ("forward", {"fused": True})
        elif workload.backward:
            choices["forward"] = ("forward", {})
    factories: dict[str, Callable[[], Runner]] = {}
    for form, make in workload.forms.items():
        for choice, (compiled, options) in choices.items():
            name = ", ".join(part for part in (form, choice) if part)
            factories[name] = partial(_tensors, library(PEERS[peer]), make, arrays, sizes, compiled, options)
    return factories


def _jax(make: Callable[..., JaxProgram], arrays: Arrays, sizes: Sizes) -> Runner:
    return JaxRunner(make(arrays, sizes))


def _tensors(torch: Any, make: Callable[..., Program], arrays: Arrays, sizes: Sizes, compiled: str,
             options: dict[str, bool]) -> Runner:
    program = make(torch, arrays, sizes, "float32", **options)
    step = program.make_step(torch.compile(program.forward) if compiled == "forward" else program.forward)
    return TensorRunner(torch, program, torch.compile(step) if compiled == "step" else step)
