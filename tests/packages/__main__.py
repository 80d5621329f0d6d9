"""Command line: run the test suites of packages on flambeau and on PyTorch, and write a table.

    python -m tests.packages                          # all packages
    python -m tests.packages einops gpytorch
    python -m tests.packages transformers --fraction 0.2 --seed two -k "not generate"
    python -m tests.packages einops --only flambeau --failures

Passed on PyTorch is the measure: the last column is the share of those tests that pass on flambeau, too. Sources are
taken from `--sources/NAME` where it exists, else downloaded. Environments and outcomes stay in `--work`: PyTorch's
outcomes are used again unless `--again` is given.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
from pathlib import Path
from textwrap import dedent

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from .environments import Environment, source_of
from .report import Comparison, read, summary, table
from .suites import SUITES, Suite


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.packages", description=dedent(__doc__ or ""),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(suite.name for suite in SUITES))
    parser.add_argument("--work", type=Path, default=Path("build/packages"),
                        help="environments and outcomes (%(default)s)")
    parser.add_argument("--sources", type=Path, help="the packages' sources (WORK/sources)")
    parser.add_argument("--only", choices=("flambeau", "pytorch"), help="run in one environment")
    parser.add_argument("--fraction", type=float, default=1.0, help="the fraction of the tests to run (%(default)s)")
    parser.add_argument("--seed", default="", metavar="TEXT", help="another text samples other tests of that fraction")
    parser.add_argument("-k", metavar="EXPRESSION", help="pytest's selection of tests")
    parser.add_argument("-n", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (%(default)s)")
    parser.add_argument("--timeout", type=int, default=120, metavar="S",
                        help="seconds that a test may take (%(default)s)")
    parser.add_argument("--again", action="store_true", help="run on PyTorch, too, where outcomes are stored")
    parser.add_argument("--no-install", action="store_true", help="use the environments as they are")
    parser.add_argument("--failures", action="store_true", help="list the tests that fail on flambeau only")
    parser.add_argument("--table", type=Path, help="write the table to this Markdown file")
    return parser.parse_args()


def main() -> int:
    """Run the suites; 1 if one is below 95 %."""
    arguments = _arguments()
    by_name = {suite.name: suite for suite in SUITES}
    if unknown := [name for name in arguments.names if name not in by_name]:
        raise SystemExit(f"unknown package {', '.join(unknown)}; there are {', '.join(by_name)}")
    suites = [by_name[name] for name in arguments.names] or list(SUITES)
    work: Path = arguments.work.resolve()
    sources: Path = (arguments.sources or work / "sources").resolve()
    comparisons = [_compare(suite, work, sources, arguments) for suite in suites]
    text = table(comparisons)
    print(text)
    if arguments.table:
        arguments.table.write_text(text + "\n", encoding="utf-8")
    if arguments.failures:
        for comparison in comparisons:
            reasons = collections.Counter(summary(reason) for _, reason in comparison.failures)
            print(f"\n{comparison.name}: {len(comparison.failures)} tests pass on PyTorch only")
            for reason, count in reasons.most_common():
                print(f"{count:6} {reason}")
            for test, reason in comparison.failures:
                print(f"  {test} - {summary(reason)}")
    return int(any(comparison.share < 0.95 for comparison in comparisons))


def _compare(suite: Suite, work: Path, sources: Path, arguments: argparse.Namespace) -> Comparison:
    source = source_of(suite, sources)
    outcomes = {}
    for name in ("pytorch", "flambeau"):
        outcomes[name] = work / "outcomes" / f"{suite.name}-{name}.jsonl"
        outcomes[name].parent.mkdir(parents=True, exist_ok=True)
        stored = name == "pytorch" and outcomes[name].exists() and not arguments.again
        if stored or arguments.only not in (None, name):
            continue
        outcomes[name].unlink(missing_ok=True)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, transient=True) as progress:
            progress.add_task(f"{suite.name} on {name}")
            environment = Environment(work / name, oracle=name == "pytorch")
            if not arguments.no_install:
                environment.make()
                environment.install_package(suite, source)
            environment.test(suite, source, outcomes[name], fraction=arguments.fraction, seed=arguments.seed,
                             processes=arguments.n, timeout=arguments.timeout, select=arguments.k,
                             log=outcomes[name].with_suffix(".log"))
    return Comparison(suite.name, read(outcomes["pytorch"]), read(outcomes["flambeau"]))


if __name__ == "__main__":
    sys.exit(main())
