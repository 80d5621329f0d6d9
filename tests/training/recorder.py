"""Runs scripts and records the loss of each call of backward: `python recorder.py OUT LIMIT [SCRIPT ARGUMENT... ;]...`.

It is run by either library's interpreter, so it imports `torch` and the standard library only. The program ends when
LIMIT losses are recorded (0: when it ends by itself). With the environment variable PERTURBED=SEED each parameter is
changed once, after the first backward pass that reaches it, by up to a unit in its last place: what the losses differ
by then is how sensitive the program is to rounding.
"""

from __future__ import annotations

import json
import os
import random
import runpy
import sys
import time
import traceback
from typing import Any


class _Enough(BaseException):
    """The limit is reached; no program catches this as an error of its own."""


def _leaves(loss: Any) -> list[Any]:
    """The leaves of a graph."""
    found, seen, stack = [], set(), [loss.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        stack += [following for following, _ in node.next_functions]
    return found


class _Perturbation:
    """Changes each leaf once, by random relative amounts of at most 2**-23."""

    def __init__(self, seed: int) -> None:
        import torch

        self.generator = torch.Generator().manual_seed(seed)  # the program's random numbers stay as they are
        self.done: list[Any] = []

    def __call__(self, leaves: list[Any]) -> None:
        import torch

        for leaf in leaves:
            if any(leaf is other for other in self.done):
                continue
            self.done.append(leaf)
            noise = torch.rand(leaf.shape, generator=self.generator, dtype=torch.float64) * 2 - 1
            leaf.data.copy_(leaf.data.double() * (1 + noise * 2**-23))


def _patch(losses: list[float], limit: int) -> None:
    import torch

    original = torch.Tensor.backward
    perturb = _Perturbation(int(os.environ["PERTURBED"])) if "PERTURBED" in os.environ else None

    def backward(self: Any, *args: Any, **kwargs: Any) -> None:
        leaves = _leaves(self) if perturb is not None else []
        original(self, *args, **kwargs)
        if perturb is not None:
            perturb(leaves)
        losses.append(float(self.detach().sum()))
        if len(losses) == limit:
            raise _Enough

    torch.Tensor.backward = backward


def _seed() -> None:
    import numpy
    import torch

    torch.manual_seed(0)
    numpy.random.seed(0)
    random.seed(0)


def record(scripts: list[list[str]], limit: int) -> dict[str, Any]:
    """Run scripts one after the other, each in its own folder: their losses, seconds, and the error that ended them."""
    losses: list[float] = []
    _patch(losses, limit)
    error = None
    began = time.perf_counter()
    for script, *arguments in scripts:
        _seed()
        sys.argv = [script, *arguments]
        sys.path[0] = os.path.dirname(os.path.abspath(script))
        try:
            runpy.run_path(script, run_name="__main__")
        except _Enough:
            break
        except SystemExit as end:
            if end.code:
                error = f"SystemExit: {end.code}"
                break
        except BaseException as raised:
            traceback.print_exc()
            error = f"{type(raised).__name__}: {raised}"
            break
    return {"losses": losses, "seconds": time.perf_counter() - began, "error": error}


def main() -> None:
    """The command line."""
    out, limit, *rest = sys.argv[1:]
    scripts: list[list[str]] = [[]]
    for word in rest:
        if word == ";":
            scripts.append([])
        else:
            scripts[-1].append(word)
    found = record([script for script in scripts if script], int(limit))
    with open(out, "w", encoding="utf-8") as file:
        json.dump(found, file)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
