"""One row of the table: each column runs in its own process; the result is printed as one line of JSON.

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
from .child_process import log
from .peers import COMPILED, EAGER, PEERS, available, library
from .reference import Reference
from .turns import PeerProcess
from .workloads import WORKLOADS

#: group of `--peers` -> columns; those of flambeau are always measured
GROUPS = {"torch": ("PyTorch eager", "PyTorch tuned"), "compile": ("torch.compile",), "jax": ("jax.jit",)}


def chosen(groups: Collection[str]) -> list[str]:
    """The columns of the groups, and of flambeau, that are available."""
    columns = {column for group in groups for column in GROUPS[group]} | {EAGER, COMPILED}
    return [peer for peer in PEERS if peer in columns and available(peer)]


def write_reference(row: str, file: Path) -> None:
    """Write the row's `Reference`, by PyTorch or, if it is not installed, by flambeau, as a pickle."""
    workload = WORKLOADS[row]
    torch = library("torch" if available("PyTorch eager") else "flambeau")
    sizes = workload.checked or workload.sizes
    file.write_bytes(pickle.dumps(Reference(torch, workload, next(iter(workload.forms)), sizes)))


def measure(row: str, groups: Collection[str], number: int) -> dict[str, Any]:
    """The seconds of each peer in each round, its variant, and failures.

    Returns:
        {"times": {peer: [seconds]}, "variants": {peer: name}, "notes": [sentence]}
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        reference = Path(folder) / "reference"
        writing = multiprocessing.get_context("spawn").Process(target=write_reference, args=(row, reference))
        writing.start()
        writing.join()
        processes = {peer: stack.enter_context(PeerProcess(row, peer, reference)) for peer in chosen(groups)}
        ready = {peer: process for peer, process in processes.items() if process.runs}
        times: dict[str, list[float]] = {peer: [] for peer in ready}
        for peer in timing.order(list(ready), number):
            times[peer].append(ready[peer].turn())
        return {"times": times, "variants": {peer: process.variant for peer, process in ready.items()},
                "notes": [note for process in processes.values() for note in process.notes]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("row", choices=WORKLOADS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peers", nargs="*", choices=GROUPS, default=list(GROUPS))
    options = parser.parse_args()
    limits.apply()
    result = measure(options.row, options.peers, options.rounds)
    for note in result["notes"]:
        log(f"    {note}")
    log("    " + ", ".join(f"{peer} {statistics.median(times) * 1e6:,.0f} µs" + (f" ({result['variants'][peer]})"
                           if result["variants"][peer] else "") for peer, times in result["times"].items()))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
