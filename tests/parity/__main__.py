"""Command line: run PyTorch's operator samples on the candidate and say where it differs.

    python -m tests.parity --list [--missing]
    python -m tests.parity exp nn.functional.conv2d --checks forward,grad -v
    python -m tests.parity --required
    python -m tests.parity --all --causes --json report.json
    python -m tests.parity add --checks grad --dtype complex128 --sample 3 -v

The environment's FLAMBEAU_CANDIDATE names another module to hold against PyTorch; with `torch` itself
everything must agree.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import fnmatch
import importlib
import json
import os
import sys
import time
import traceback
import warnings
from typing import Any


def _arguments() -> argparse.Namespace:
    from textwrap import dedent

    parser = argparse.ArgumentParser(
        "python -m tests.parity",
        description=dedent(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("ops", nargs="*", help="operator names, full or bare; * and ? match")
    parser.add_argument("--list", action="store_true", help="operators and whether the candidate has them")
    parser.add_argument("--missing", action="store_true", help="with --list: only those it has not")
    parser.add_argument("--all", action="store_true", help="every operator that is present, one process each")
    parser.add_argument("--required", action="store_true", help="like --all, for those the project promises")
    parser.add_argument("--checks", default="gating", help="comma-separated, or: gating, reported, all")
    parser.add_argument("--samples", type=int, default=8, help="samples per operator and check (default 8)")
    parser.add_argument("--sample", type=int, help="this sample only")
    parser.add_argument("--dtype", help="this dtype only")
    parser.add_argument("--reference", action="store_true", help="PyTorch's larger set of samples")
    parser.add_argument("--causes", action="store_true", help="group the failures by cause")
    parser.add_argument("--json", metavar="FILE", help="write every failure and the counts")
    parser.add_argument("-v", "--verbose", action="store_true", help="the sample and the traceback, too")
    return parser.parse_args()


def _checks(text: str) -> list[str]:
    from .runs import CHECKS
    from .suite import GATING, REPORTED

    groups = {"gating": GATING, "reported": REPORTED, "all": GATING + REPORTED}
    names = [n for part in text.split(",") for n in groups.get(part, (part,))]
    if unknown := [n for n in names if n not in CHECKS]:
        sys.exit(f"unknown check {unknown[0]!r}; there are {', '.join(CHECKS)}")
    return names


def _chosen(options: argparse.Namespace, side: Any) -> list[str]:
    from . import opdb

    table = opdb.operators()
    if options.required:
        return [n for n in opdb.REQUIRED if n in table]
    if options.all:
        return [n for n, op in table.items() if opdb.present(op, side)]
    names: list[str] = []
    for pattern in options.ops:
        found = [opdb.full_name(op) for op in opdb.named(pattern)] or fnmatch.filter(table, pattern)
        if not found:
            sys.exit(f"no operator {pattern!r} in PyTorch's table; see --list")
        names += found
    return list(dict.fromkeys(names))


def examine(name: str, checks: list[str], options: argparse.Namespace, side: Any) -> list[Any]:
    """Every outcome of one operator."""
    from . import opdb
    from .bridge import Side
    from .runs import Run
    from .suite import run_check

    run = Run(
        opdb.operators()[name],
        Side.named("torch"),
        side,
        options.samples,
        options.dtype,
        options.sample,
        options.reference,
    )
    if not opdb.present(run.op, side):
        return [run.outcome("present", "-", "-", opdb.absence(run.op, side))]
    return [outcome for check in checks for outcome in run_check(run, check)]


def _apart(name: str, checks: list[str], options: argparse.Namespace, side: Any) -> list[Any]:
    """`examine` in a child process: a crash of the candidate does not end the run."""
    from .outcome import Outcome

    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        try:
            with os.fdopen(send, "w") as pipe:
                json.dump([dataclasses.asdict(o) for o in examine(name, checks, options, side)], pipe)
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    try:
        return [Outcome(**fields) for fields in json.loads(text)]
    except json.JSONDecodeError:
        return [Outcome(name, "present", "-", "-", f"the process died (status {status})")]


def _tell(outcomes: list[Any], verbose: bool) -> None:
    for o in outcomes:
        if not o.ok:
            print(f"FAIL {o.op} {o.check} {o.dtype} #{o.sample}: {o.reason}")
            if verbose:
                print("     " + o.detail.strip().replace("\n", "\n     "))
                print("     " + o.replay())


def _row(name: str, outcomes: list[Any], checks: list[str]) -> str:
    cells = []
    for check in ["present", *checks]:
        mine = [o for o in outcomes if o.check == check]
        bad = sum(not o.ok for o in mine)
        if mine:
            cells.append(f"{check} {len(mine) - bad}/{len(mine)}" if bad else f"{check} ok")
    return f"{name:42} {'  '.join(cells)}"


def _causes(failures: list[Any]) -> None:
    groups: dict[str, list[Any]] = collections.defaultdict(list)
    for o in failures:
        groups[o.cause()].append(o)
    print("\nfailures by cause (samples, operators)")
    by_spread = sorted(groups.items(), key=lambda group: (-len({o.op for o in group[1]}), -len(group[1])))
    for cause, found in by_spread:
        ops = list(dict.fromkeys(o.op for o in found))
        checks = collections.Counter(o.check for o in found)
        print(f"{len(found):5} {len(ops):4}  {cause}")
        print(f"{'':12}in {', '.join(f'{check} {count}' for check, count in checks.most_common())}")
        print(f"{'':12}of {', '.join(ops[:10])}{' ...' if len(ops) > 10 else ''}")


def main() -> int:
    options = _arguments()
    import torch

    from . import opdb
    from .bridge import Side, candidate_name

    warnings.simplefilter("ignore")  # those of PyTorch's sample makers; calls under test record their own
    torch.set_num_threads(1)
    side = Side(importlib.import_module(candidate_name()))
    for library in (torch, side.module):
        library.set_warn_always(True)  # a warning given once a process would be compared by chance
    if options.list:
        for name, op in opdb.operators().items():
            there = opdb.present(op, side)
            if not (options.missing and there):
                star = "*" if name in opdb.REQUIRED else " "
                print(f"{star} {name:48} {'present' if there else opdb.absence(op, side)}")
        return 0
    checks, names = _checks(options.checks), _chosen(options, side)
    if not names:
        sys.exit("name operators, or give --list, --required or --all")
    many = options.all or options.required or len(names) > 20
    started, outcomes = time.monotonic(), []
    for name in names:
        found = (_apart if many else examine)(name, checks, options, side)
        outcomes += found
        if not (many and options.causes):
            _tell(found, options.verbose)
        if not many or any(not o.ok for o in found):
            print(_row(name, found, checks), flush=True)
    failures = [o for o in outcomes if not o.ok]
    if options.causes:
        _causes(failures)
    failing = len({o.op for o in failures})
    print(f"\n{len(names)} operators, {failing} with failures")
    print(f"{len(outcomes)} checks, {len(failures)} failures, {time.monotonic() - started:.0f} s")
    if options.json:
        counts = collections.Counter((o.op, o.check, o.ok) for o in outcomes)
        with open(options.json, "w") as file:
            json.dump(
                {
                    "counts": [
                        {"op": a, "check": c, "ok": ok, "count": n}
                        for (a, c, ok), n in sorted(counts.items())
                    ],
                    "failures": [dataclasses.asdict(o) for o in failures],
                },
                file,
                indent=1,
            )
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
