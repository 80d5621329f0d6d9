"""Checks of results: a peer's outputs, gradients and updates against the same program in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from .workloads.workload import Program, Sizes, Workload

Results = dict[str, np.ndarray]

#: steps before results are compared; compiled functions of flambeau replay from the third or fourth step on
STEPS = 5

#: bound of |error| / |expected| in Euclidean norms: float32 sums of a thousand terms are below it, TF32 is not
TOLERANCE = 1e-4

#: the bound for gradients: at inputs of relu near 0 and at near-ties of max-pooling, rounding decides the path of the
#: gradient
GRADIENT_TOLERANCE = 5e-3

#: errors below this share of the largest gradient's norm are allowed
ZERO_GRADIENT = 1e-7

#: the bound for updates, which may be quotients of small numbers
UPDATE_TOLERANCE = 5e-3


def results(program: Program, output: Any) -> Results:
    """The results of a run: its output, the gradients of the leaves and, if steps train, their new values."""
    computed = {"output": output.detach().numpy()}
    for name, leaf in program.leaves.items():
        if leaf.grad is not None:
            computed[f"gradient of {name}"] = leaf.grad.numpy()
        if program.trains:
            computed[f"updated {name}"] = leaf.detach().numpy()
    return {name: np.array(array, np.float64) for name, array in computed.items()}


class Reference:
    """The results of a workload in float64, by PyTorch or, if it is not installed, by flambeau.

    An element whose gradient is tiny compared with the others is inaccurate in float32, and so is its update by Adam, a
    quotient of gradients. Such elements of parameters are not compared.
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

    def mismatches(self, computed: Results, gradients: bool = True) -> list[str]:
        """Descriptions of the mismatches in a peer's results after `STEPS` steps.

        Args:
            gradients: whether gradients are required; training steps of jax do not return them.
        """
        messages = []
        # a gradient that is zero (of a shift before a norm) is rounding alone
        largest = max([_norm(array) for name, array in self.expected.items() if name.startswith("gradient")], default=0)
        for name, expected in self.expected.items():
            if name not in computed:
                if gradients or not name.startswith("gradient"):
                    messages.append(f"no {name}")
                continue
            actual = np.asarray(computed[name], np.float64)
            if actual.shape != expected.shape:
                messages.append(f"{name}: shape {actual.shape} instead of {expected.shape}")
                continue
            size, slack = expected, ZERO_GRADIENT * largest if name.startswith("gradient") else 0.0
            allowed = GRADIENT_TOLERANCE if name.startswith("gradient") else TOLERANCE
            if name.startswith("updated"):
                known = self.known[name]
                actual, expected, start = actual[known], expected[known], self.start[name][known]
                # each step rounds the parameter
                size, slack, allowed = expected - start, STEPS * 2.0 ** -24 * _norm(start), UPDATE_TOLERANCE
            error = _norm(actual - expected)
            if not error <= allowed * _norm(size) + slack:
                messages.append(f"{name}: error {error:.2g} of {_norm(size):.2g}")
        return messages


def _norm(array: np.ndarray) -> float:
    return float(np.linalg.norm(array.ravel()))
