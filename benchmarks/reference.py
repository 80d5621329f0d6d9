"""Whether what a peer computed is right: its results beside the same program's in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from .workloads.workload import Program, Sizes, Workload

Results = dict[str, np.ndarray]

#: steps that are run before results are compared: a program of flambeau's compiler replays from the third or fourth on
STEPS = 5

#: |error| over |expected|, as Euclidean norms: float32 sums of a thousand terms stay below it, TF32 does not
TOLERANCE = 1e-4

#: for gradients: where one of a network's rectified or pooled numbers is nearly zero, or nearly another, rounding
#: decides which way its gradient goes
GRADIENT_TOLERANCE = 5e-3

#: for updates, which an optimizer may make of quotients of small numbers
UPDATE_TOLERANCE = 5e-3


def results(program: Program, output: Any) -> Results:
    """What a run left: its output, and the gradient and, where steps train, the new value of every leaf."""
    found = {"output": output.detach().numpy()}
    for name, leaf in program.leaves.items():
        if leaf.grad is not None:
            found[f"gradient of {name}"] = leaf.grad.numpy()
        if program.trains:
            found[f"updated {name}"] = leaf.detach().numpy()
    return {name: np.array(array, np.float64) for name, array in found.items()}


class Reference:
    """The results of a workload in float64, by PyTorch or, where it is not installed, by flambeau itself.

    Where a gradient is too small beside its neighbours to be known in float32, Adam's update, a quotient
    of two such gradients, is not known either: those places of parameters are not compared.
    """

    def __init__(self, torch: Any, workload: Workload, form: str, sizes: Sizes) -> None:
        arrays = workload.data(sizes)
        program = workload.forms[form](torch, arrays, sizes, "float64")
        self.start = {f"updated {name}": leaf.detach().numpy().copy() for name, leaf in program.leaves.items()}
        self.known = {name: np.ones(array.shape, bool) for name, array in self.start.items()}
        step = program.make_step(program.forward)
        for _ in range(STEPS):
            self.expected = results(program, program.run(step))
            for name in program.leaves:
                gradient = np.abs(self.expected[f"gradient of {name}"])
                self.known[f"updated {name}"] &= gradient > 1e-3 * np.sqrt(np.mean(gradient ** 2))

    def complaints(self, found: Results, gradients: bool = True) -> list[str]:
        """What is wrong with the results of a peer after as many steps; empty: nothing.

        Args:
            gradients: whether the peer must give gradients; jax's steps of training keep theirs to themselves.
        """
        said = []
        for name, expected in self.expected.items():
            if name not in found:
                if gradients or not name.startswith("gradient"):
                    said.append(f"no {name}")
                continue
            actual = np.asarray(found[name], np.float64)
            if actual.shape != expected.shape:
                said.append(f"{name}: shape {actual.shape} instead of {expected.shape}")
                continue
            size, slack = expected, 0.0
            allowed = GRADIENT_TOLERANCE if name.startswith("gradient") else TOLERANCE
            if name.startswith("updated"):
                known = self.known[name]
                actual, expected, start = actual[known], expected[known], self.start[name][known]
                # each step rounds the parameter itself
                size, slack, allowed = expected - start, STEPS * 2.0 ** -24 * _norm(start), UPDATE_TOLERANCE
            error = _norm(actual - expected)
            if not error <= allowed * _norm(size) + slack:
                said.append(f"{name}: error {error:.2g} of {_norm(size):.2g}")
        return said


def _norm(array: np.ndarray) -> float:
    return float(np.linalg.norm(array.ravel()))
