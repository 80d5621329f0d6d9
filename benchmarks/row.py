"""Times one row of the table, each column in a process of its own, and prints what was found as one line of JSON.

    python -m benchmarks.row gpt --rounds 9 --peers torch jax
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import pickle
import statistics
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from . import limits, timing
from .fresh import say
from .peers import COMPILED, EAGER, PEERS, available, library
from .reference import Reference
from .turns import Player
from .workloads import ROWS

#: what `--peers` may name, and the columns that it stands for; flambeau's are always there
GROUPS = {"torch": ("PyTorch eager", "PyTorch tuned"), "compile": ("torch.compile",), "jax": ("jax.jit",)}


def chosen(groups: Collection[str]) -> list[str]:
    """The columns that are to be filled and can be."""
    wanted = {column for group in groups for column in GROUPS[group]} | {EAGER, COMPILED}
    return [peer for peer in PEERS if peer in wanted and available(peer)]


def write_reference(row: str, file: Path) -> None:
    """The row's results in float64, by PyTorch or, where it is not installed, by flambeau, pickled."""
    workload = ROWS[row]
    torch = library("torch" if available("PyTorch eager") else "flambeau")
    file.write_bytes(pickle.dumps(Reference(torch, workload, next(iter(workload.forms)), workload.sizes)))


def measure(row: str, groups: Collection[str], number: int) -> dict[str, Any]:
    """Seconds of every peer in every round, in which way it ran, and who failed.

    Returns:
        {"times": {peer: [seconds]}, "ways": {peer: name}, "notes": [sentence]}
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as playing:
        reference = Path(folder) / "reference"
        writing = multiprocessing.get_context("spawn").Process(target=write_reference, args=(row, reference))
        writing.start()
        writing.join()
        players = {peer: playing.enter_context(Player(row, peer, reference)) for peer in chosen(groups)}
        ready = {peer: player for peer, player in players.items() if player.runs}
        times: dict[str, list[float]] = {peer: [] for peer in ready}
        for peer in timing.order(list(ready), number):
            times[peer].append(ready[peer].turn())
        return {"times": times, "ways": {peer: player.way for peer, player in ready.items()},
                "notes": [note for player in players.values() for note in player.notes]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("row", choices=ROWS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peers", nargs="*", choices=GROUPS, default=list(GROUPS))
    options = parser.parse_args()
    limits.apply()
    found = measure(options.row, options.peers, options.rounds)
    for note in found["notes"]:
        say(f"    {note}")
    say("    " + ", ".join(f"{peer} {statistics.median(times) * 1e6:,.0f} µs" + (f" ({found['ways'][peer]})"
                           if found["ways"][peer] else "") for peer, times in found["times"].items()))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
