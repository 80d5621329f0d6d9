"""Comparison of two revisions of flambeau: workloads and operators, timed alternately.

    python -m benchmarks.versions v0.1.0                        all workloads and small operators, against this checkout
    python -m benchmarks.versions HEAD~20 --rows gpt --rounds 15
    python -m benchmarks.versions HEAD~20 --only operators

Both revisions run the benchmarks of this checkout, each in its own process with its own cache directory. A ratio
is the base's time over this checkout's, the median of the rounds' ratios: below 1 is slower. A process may be a few
percent slower than another one of the same code, by where its memory lies. So what is slower by more than TOLERANCE is
measured again in `RETRIES` pairs of new processes, and their median counts; it is in bold if it is still below.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import limits, markdown, timing
from .child_process import ROOT, log

#: pairs of new processes in which what was slower is measured again
RETRIES = 5
#: a ratio below 1 - TOLERANCE counts as slower
TOLERANCE = 0.03
#: sizes of the operators' matrices
SIZES = ((8, 8), (64, 64))


# ----- in the child process -----

def import_from(checkout: str) -> None:
    """Import flambeau from `checkout` instead of an installed one."""
    sys.path.insert(0, checkout)
    import flambeau

    sys.path.pop(0)
    assert Path(flambeau.__file__).is_relative_to(checkout), flambeau.__file__


def serve_operators() -> None:
    """Reply to each line of stdin, [name, shape, mode] as JSON, with the seconds of one call; nan if it fails."""
    from . import operators
    from .peers import library

    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch = library("flambeau")
    runs: dict[str, Any] = {}
    for line in sys.stdin:
        name, shape, mode = json.loads(line)
        if line not in runs:
            try:
                call = operators.Call(torch, operators.OPERATORS[name], shape, mode)
            except (AttributeError, TypeError, NotImplementedError, RuntimeError):
                print("nan", file=replies, flush=True)  # an older revision
                continue
            with torch.set_grad_enabled(mode == operators.BOTH):
                for _ in range(20):
                    call.run()
            runs = {line: call.run}
        with torch.set_grad_enabled(mode == operators.BOTH):
            print(operators.turn(runs[line]), file=replies, flush=True)


# ----- in the parent process -----

@contextlib.contextmanager
def checkout_of(revision: str) -> Iterator[Path]:
    """A temporary work tree of a revision of this repository; a folder is used as it is."""
    if Path(revision).is_dir():
        yield Path(revision).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "base"
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", str(path), revision], cwd=ROOT, check=True)
        try:
            yield path
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(path)], cwd=ROOT, check=True)


def command(checkout: Path, *arguments: str) -> list[str]:
    """The command that runs one revision."""
    return [sys.executable, "-m", "benchmarks.versions", "--child", str(checkout), *arguments]


def median_ratio(times: Mapping[str, Sequence[float]]) -> float:
    """The median over the rounds of the ratio of the base's time to this checkout's."""
    return statistics.median(old / new for old, new in zip(times["base"], times["head"], strict=True))


def workload_times(row: str, peer: str, checkouts: Mapping[str, Path], environments: Mapping[str, dict[str, str]],
                   rounds: int, reference: Path) -> dict[str, list[float]]:
    """Seconds of one workload in one column, by revision."""
    from .turns import PeerProcess

    with contextlib.ExitStack() as stack:
        processes = {name: stack.enter_context(PeerProcess(
            row, peer, reference, command(path, row, peer, str(reference)), environments[name]))
            for name, path in checkouts.items()}
        for name, process in processes.items():
            if not process.runs:
                raise SystemExit(f"{name}: {row}, {peer}: " + "; ".join(process.notes))
        times: dict[str, list[float]] = {name: [] for name in processes}
        for name in timing.order(list(processes), rounds):
            times[name].append(processes[name].turn())
        return times


def workloads(rows: Collection[str], checkouts: Mapping[str, Path], environments: Mapping[str, dict[str, str]],
              rounds: int) -> str:
    """The table of workloads."""
    import multiprocessing

    from .peers import COMPILED, EAGER
    from .row import write_reference
    from .workloads import ROWS

    lines = []
    for row in rows:
        with tempfile.TemporaryDirectory() as folder:
            reference = Path(folder) / "reference"
            writing = multiprocessing.get_context("spawn").Process(target=write_reference, args=(row, reference))
            writing.start()
            writing.join()
            for peer in (EAGER, COMPILED):
                times = workload_times(row, peer, checkouts, environments, rounds, reference)
                ratio = median_ratio(times)
                if ratio < 1 - TOLERANCE:
                    again = [workload_times(row, peer, checkouts, environments, rounds, reference)
                             for _ in range(RETRIES)]
                    ratio = statistics.median(map(median_ratio, again))
                    times = {name: [each for pair in again for each in pair[name]] for name in times}
                old, new = (markdown.duration(statistics.median(times[name])) for name in ("base", "head"))
                shown = f"{ratio:.3f}" if ratio >= 1 - TOLERANCE else f"**{ratio:.3f}**"
                lines.append([ROWS[row].title, peer.removeprefix("flambeau "), old, new, shown])
                log(f"    {row}, {peer}: {old}, {new}, {shown}")
    return markdown.table(["workload", "", "base", "this checkout", "base / this checkout"], lines)


class OperatorProcess:
    """The process of one revision, which times operators on request."""

    def __init__(self, checkout: Path, environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(command(checkout, "operators"), cwd=ROOT, text=True, env=environment,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def turn(self, request: Any) -> float:
        """Seconds of one call."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def operator_ratio(request: Any, processes: Mapping[str, OperatorProcess], rounds: int) -> float:
    """The ratio of one operator, measured by turns."""
    times: dict[str, list[float]] = {name: [] for name in processes}
    for name in timing.order(list(processes), rounds):
        times[name].append(processes[name].turn(request))
    return median_ratio(times)


def small_operators(checkouts: Mapping[str, Path], environments: Mapping[str, dict[str, str]], rounds: int,
                    names: Sequence[str] | None = None) -> str:
    """The table of operators on small matrices (None: of all operators), and the list of slower ones.

    What is slower is measured again, as workloads are.
    """
    from .operators import BOTH, FORWARD, OPERATORS

    @contextlib.contextmanager
    def new_processes() -> Iterator[dict[str, OperatorProcess]]:
        with contextlib.ExitStack() as closing:
            processes = {name: OperatorProcess(path, environments[name]) for name, path in checkouts.items()}
            for process in processes.values():
                closing.callback(process.close)
            yield processes

    def again(request: Any) -> float:
        found = []
        for _ in range(RETRIES):
            with new_processes() as processes:
                found.append(operator_ratio(request, processes, 2 * rounds))
        return statistics.median(found)

    lines, slower = [], []
    with new_processes() as processes:
        for shape in SIZES:
            for mode in (FORWARD, BOTH):
                ratios = {name: operator_ratio((name, shape, mode), processes, rounds) for name in names or OPERATORS}
                by_name = {name: ratio for name, ratio in ratios.items() if not math.isnan(ratio)}
                for name, ratio in by_name.items():
                    if ratio < 1 - TOLERANCE:
                        by_name[name] = again((name, shape, mode))
                size = "{} x {}".format(*shape)
                worse = {name: value for name, value in by_name.items() if value < 1 - TOLERANCE}
                median = f"{statistics.median(by_name.values()):.3f}"
                lines.append([size, mode, median, f"{len(worse)} of {len(by_name)}"])
                log(f"    {size}, {mode}: {median}")
                if worse:
                    slower.append(f"- {size}, {mode}: " + ", ".join(
                        f"{name} {value:.3f}" for name, value in sorted(worse.items(), key=lambda each: each[1])) + ".")
    heads = ["matrix", "", "base / this checkout, median", f"slower by more than {TOLERANCE:.0%}"]
    return markdown.table(heads, lines) + ("\n\n" + "\n".join(slower) if slower else "")


def child(arguments: Sequence[str]) -> None:
    """The process of one revision: `CHECKOUT operators`, or `CHECKOUT ROW PEER REFERENCE`."""
    limits.apply()
    checkout, *rest = arguments
    import_from(checkout)
    if rest == ["operators"]:
        serve_operators()
    else:
        from . import turns

        turns.main(rest)


def main() -> None:
    """Parse the command line, measure, print Markdown."""
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
        return
    from .operators import OPERATORS
    from .workloads import ROWS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", help="a revision of this repository, or the folder of a checkout")
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--operators", nargs="+", choices=OPERATORS, metavar="NAME", help="these operators only")
    parser.add_argument("--only", choices=("workloads", "operators"))
    options = parser.parse_args()
    limits.apply()
    with checkout_of(options.base) as base, tempfile.TemporaryDirectory() as caches:
        checkouts = {"base": base, "head": ROOT}
        environments = {name: {**os.environ, "FLAMBEAU_CACHE_DIR": str(Path(caches) / name)} for name in checkouts}
        if options.only != "operators":
            print(workloads(options.rows, checkouts, environments, options.rounds), flush=True)
        if options.only != "workloads":
            print("\n" + small_operators(checkouts, environments, options.rounds, options.operators), flush=True)


if __name__ == "__main__":
    main()
