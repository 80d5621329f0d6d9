"""Print the table of losses: each network under each strategy, beside one process and PyTorch on gloo.

    python -m tests.distributed.same_losses [--processes 2 4 8] [--models mlp cnn gpt] [--strategies DDP "PP + TP"]
                                            [--alone] [--markdown]

Errors are the largest over all steps and processes, relative to the loss. With --alone PyTorch is not run.
"""

from __future__ import annotations

import argparse
import sys

from ..ranks import run
from .comparison import TOLERANCE, error, reports
from .records import MODELS, STRATEGIES


def main() -> int:
    """Print it; 1 if losses differ."""
    parser = argparse.ArgumentParser("python -m tests.distributed.same_losses")
    parser.add_argument("--processes", nargs="+", type=int, default=[2, 4, 8])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--strategies", nargs="+", default=[each.name for each in STRATEGIES])
    parser.add_argument("--alone", action="store_true", help="without PyTorch")
    parser.add_argument("--markdown", action="store_true", help="a table for the manual")
    arguments = parser.parse_args()
    words = "|".join(arguments.models), "|".join(arguments.strategies)
    one = run("same_losses", "flambeau", 1, *words)[0]
    one_of_torch = None if arguments.alone else run("same_losses", "torch", 1, *words)[0]
    row = "| {} | {} | {} | {} | {} | {} |" if arguments.markdown else "{:34} {:>9} {:5} {:>18} {:>15} {:>15}"
    head = "strategy", "processes", "model", "first, last loss", "to one process", "to PyTorch's"
    print(row.format(*head), flush=True)
    if arguments.markdown:
        print(row.format("---", "---:", "---", "---", "---:", "---:"))

    def show(name: str, size: int, model: str, losses: list[float], of_one: float, of_torch: float | None) -> bool:
        print(row.format(name, size, model, f"{losses[0]:.5f}, {losses[-1]:.5f}", f"{of_one:.1e}",
                         "" if of_torch is None else f"{of_torch:.1e}"), flush=True)
        return max(of_one, of_torch or 0.0) <= TOLERANCE

    same = [show("one process", 1, model, one[model], 0.0, one_of_torch and error([one[model]], [one_of_torch[model]]))
            for model in arguments.models]
    for size in arguments.processes:
        ours = reports("flambeau", size, *words)
        theirs = None if arguments.alone else reports("torch", size, *words)
        for (model, name), losses in ours.items():
            same.append(show(name, size, model, losses[0], error(losses, [one[model]] * size),
                             theirs and error(losses, theirs[model, name])))
    print(f"{sum(same)} of {len(same)} agree to {TOLERANCE:g}")
    return int(not all(same))


if __name__ == "__main__":
    sys.exit(main())
