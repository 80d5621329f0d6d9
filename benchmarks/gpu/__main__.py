"""Benchmarks on a GPU: flambeau beside PyTorch and jax.

    python -m benchmarks.gpu                          all rows, sizes as on the CPU and 16 times larger
    python -m benchmarks.gpu --rows chain gpt2-step   some rows
    python -m benchmarks.gpu --operators              single operators, forward and with backward
    python -m benchmarks.gpu --write results_gpu.md --kept results_gpu.jsonl
    python -m benchmarks.gpu --table results_gpu.jsonl

All cases are made ready side by side, in several processes of each column; then one process measures at a time.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from ..child_process import log
from ..gpt2 import GPT2_ROWS
from ..peers import EAGER, PEERS
from ..workloads import ROWS
from . import operators, rows
from .cases import COLUMNS
from .session import Session


def main() -> int:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser("python -m benchmarks.gpu", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", default=[*ROWS, *GPT2_ROWS], choices=[*ROWS, *GPT2_ROWS])
    parser.add_argument("--factors", nargs="+", type=int, default=[1, 16])
    parser.add_argument("--operators", nargs="*", metavar="NAME", help="single operators; without names, all 60")
    parser.add_argument("--columns", nargs="+", default=list(COLUMNS), choices=COLUMNS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.15, help="of a turn")
    parser.add_argument("--processes", type=int, default=min(16, os.cpu_count() or 1))
    parser.add_argument("--ready", type=float, default=900, metavar="SECONDS",
                        help="what is not ready after so many seconds fails")
    parser.add_argument("--deadline", type=float, default=float("inf"), metavar="SECONDS",
                        help="measure no more after so many seconds")
    parser.add_argument("--fake", action="store_true", help="tiny sizes without a GPU, to test the script")
    parser.add_argument("--kept", type=Path, help="a file to which each result is added as a line of JSON")
    parser.add_argument("--table", type=Path, help="only print the table of results that were kept")
    parser.add_argument("--write", type=Path, help="write the table to this file")
    options = parser.parse_args()
    kind: Any = rows if options.operators is None else operators
    if options.table:
        print(kind.Results(map(json.loads, options.table.read_text().splitlines())).text())
        return 0
    began, records = time.monotonic(), list[dict[str, Any]]()

    def record(result: dict[str, Any]) -> None:
        records.append(result)
        if options.kept:
            with options.kept.open("a") as file:
                print(json.dumps(result), file=file)
        if "failed" in result:
            log(f"{result['case']}, {result['column']}: {result['failed']}")

    columns = {column: COLUMNS[column] for column in options.columns if importlib.util.find_spec(PEERS[column])}
    if kind is operators:
        columns = {column: 1 for column in columns if column in (rows.PYTORCH, EAGER)}
        plan = operators.plan(options.operators, columns)
    else:
        plan = rows.plan(options.rows, options.factors, columns)
    with Session(columns, plan, f"{kind.__name__}:make", options.processes, options.fake, record) as session:
        session.make_ready(options.ready)
        log(f"ready after {time.monotonic() - began:.0f} s; "
            f"{sum(each.get('reserved', 0) for each in _latest(records)) / 2 ** 30:.1f} GiB are kept")
        order = list(dict.fromkeys(case for each in plan.values() for case in each))
        session.measure(order, options.rounds, options.seconds, began + options.deadline)
    text = kind.Results(records).text()
    print(text)
    if options.write:
        options.write.write_text(f"# On a GPU\n\n{text}\n")
    log(f"done after {time.monotonic() - began:.0f} s")
    return 0


def _latest(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last record of each process that says what it keeps."""
    found = {each["process"]: each for each in records if "reserved" in each}
    return list(found.values())


if __name__ == "__main__":
    sys.exit(main())
