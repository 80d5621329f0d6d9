"""The training steps of `tests.compiler.models`, compiled ahead of time and run from C beside eager steps.

    python -m tests.export.aot.steps [names]

A line for each: how far three steps are from eager ones (the largest difference of a result, by its scale), "random"
for steps that draw random numbers of their own, or why the step is refused, with the user's line.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import flambeau as torch
from flambeau.export import aot
from flambeau.utils._pytree import tree_leaves
from tests.compiler.models import generative, science, sequences, vision  # noqa: F401 (they fill the catalogue)
from tests.compiler.models.catalogue import MODELS
from tests.export.aot.c_program import Failed, run

RUNS = 3


def arrays(x: Any) -> list[np.ndarray]:
    """The tensors among results or arguments, as arrays."""
    return [each.detach().numpy().copy() for each in tree_leaves(x) if isinstance(each, torch.Tensor)]


def compare(name: str, folder: Path) -> str:
    """Compile a step and run it beside eager ones.

    Raises:
        ExportError: it is refused.
        Failed: a run returned a status.
    """
    torch.manual_seed(0)
    scenario = MODELS[name]()
    args = scenario.arguments(0)
    expected = arrays(scenario.function(*args))  # SGD with momentum makes its state in its first step
    path = folder / f"{name}.so"
    report = aot.compile(scenario.function, args, path, target="native")
    if any(each.name == "seed" for each in report.interface.settings):
        run(path, arrays(args), expected, runs=RUNS, state=True)
        return "random"
    got = run(path, arrays(args), expected, runs=RUNS, state=bool(report.state))
    worst = 0.0
    for results in got:
        wanted = arrays(scenario.function(*args))
        for x, y in zip(results, wanted, strict=True):
            if y.size:
                worst = max(worst, float(np.abs(x.astype(np.float64) - y).max() / max(1.0, np.abs(y).max())))
    return f"{worst:.1e}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    compiled = 0
    names = parser.parse_args().names
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                outcome = compare(name, Path(folder))
                compiled += 1
            except aot.ExportError as error:
                outcome = f"refused: {error}"
            except Failed as error:
                outcome = f"failed: {error.args}"
            print(f"{name}: {outcome}", flush=True)
    print(f"{compiled} of {len(names)} compiled")
    sys.exit(0)


if __name__ == "__main__":
    main()
