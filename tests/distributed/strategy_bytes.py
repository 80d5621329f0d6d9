"""Bytes that a process sends in a step of each strategy, counted, beside the theory.

    python -m tests.distributed.strategy_bytes [--processes 2 4]

P are the bytes of all parameters, A those of the activations of the whole batch after a unit, n the processes. Rings
send 2 (n - 1) / n of an `all_reduce`, (n - 1) / n of an `all_gather` or a `reduce_scatter`, the least that is possible.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from .programs.strategy_bytes import UNITS
from .ranks import run

#: what a pipeline's step says of shapes, at most
HEADER = 64

#: strategy -> (the formula, bytes of P, A, n and rank)
THEORY: dict[str, tuple[str, Callable[[int, int, int, int], int]]] = {
    "DDP": ("2 (n - 1) / n P", lambda p, a, n, rank: 2 * (n - 1) * p // n),
    "ZeRO-1": ("3 (n - 1) / n P", lambda p, a, n, rank: 3 * (n - 1) * p // n),
    "fully_shard": ("3 (n - 1) / n P", lambda p, a, n, rank: 3 * (n - 1) * p // n),
    "fully_shard, whole between passes": ("2 (n - 1) / n P", lambda p, a, n, rank: 2 * (n - 1) * p // n),
    # an all_reduce of a pair of layers in each pass
    "TP": ("units 2 (n - 1) / n A", lambda p, a, n, rank: UNITS * 2 * (n - 1) * a // n),
    # activations to the next stage, gradients to the one before
    "PP": ("A for each neighbour", lambda p, a, n, rank: a * ((rank > 0) + (rank < n - 1))),
}


def compared(size: int) -> list[tuple[str, int, int, int, bool]]:
    """(strategy, rank, bytes, bytes of the theory, whether they are equal)."""
    found = []
    for rank, report in enumerate(run("strategy_bytes", "flambeau", size)):
        for name, (_, theory) in THEORY.items():
            expected = theory(report["parameters"], report["activations"], size, rank)
            extra = report[name] - expected
            found.append((name, rank, report[name], expected, 0 <= extra < HEADER if name == "PP" else extra == 0))
    return found


def main() -> int:
    """Print them; 1 if one differs."""
    parser = argparse.ArgumentParser("python -m tests.distributed.strategy_bytes")
    parser.add_argument("--processes", nargs="+", type=int, default=[2, 4])
    rows = [(size, *row) for size in parser.parse_args().processes for row in compared(size)]
    line = "{:>9} {:34} {:>4} {:>9} {:>9}  {}"
    print(line.format("processes", "strategy", "rank", "sent", "theory", "formula"))
    for size, name, rank, sent, expected, equal in rows:
        print(line.format(size, name, rank, sent, expected, THEORY[name][0] + ("" if equal else ": differs")))
    return int(not all(row[-1] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
