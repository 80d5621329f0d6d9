"""Command line: run training programs under flambeau and under PyTorch, and write a table.

    python -m tests.training                              # all
    python -m tests.training vae "fx invert" --steps 10
    python -m tests.training --here     # this interpreter; programs of this package that need no other

Without `--here` there are two virtual environments in `--work`, PyTorch's and flambeau's with its `torch` alias; what
the programs need is installed into both. The repositories are taken from `--sources`, else downloaded.
"""

from __future__ import annotations

import argparse
import sys
import tarfile
import urllib.request
from pathlib import Path
from textwrap import dedent

from tests.packages.environments import Environment

from .catalogue import LEFT_OUT, OWN, PROGRAMS, REPOSITORIES, Program
from .comparison import Comparison, table
from .running import Interpreter, here, run

#: PyTorch's runs that measure how sensitive a program is to rounding: (threads, seed of the change of parameters)
SENSITIVITY = ((2, None), (1, 1), (1, 2), (1, 3))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.training", description=dedent(__doc__ or ""),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(p.name for p in PROGRAMS))
    parser.add_argument("--steps", type=int, default=50, help="of each program (%(default)s)")
    parser.add_argument("--here", action="store_true", help="with this interpreter, which has both libraries")
    parser.add_argument("--work", type=Path, default=Path("build/training"), help="environments and runs (%(default)s)")
    parser.add_argument("--sources", type=Path, help="the folder of examples/ and nanoGPT/ (WORK/sources)")
    parser.add_argument("--no-install", action="store_true", help="use the environments as they are")
    parser.add_argument("--timeout", type=int, default=900, metavar="S", help="seconds of a program (%(default)s)")
    parser.add_argument("--table", type=Path, help="write the table to this Markdown file")
    return parser.parse_args()


def main() -> int:
    """Run the programs; 1 if one does not agree."""
    given = _arguments()
    by_name = {program.name: program for program in PROGRAMS}
    if unknown := [name for name in given.names if name not in by_name]:
        raise SystemExit(f"unknown program {', '.join(unknown)}; there are {', '.join(by_name)}")
    every = [p for p in OWN if not p.needs] if given.here else list(PROGRAMS)
    programs = [by_name[name] for name in given.names] or every
    work: Path = given.work.resolve()
    sources: Path = (given.sources or work / "sources").resolve()
    for program in programs:
        _fetch(program, sources)
    libraries = [here(True), here(False)] if given.here else _environments(programs, work, given.no_install)
    comparisons = []
    for program in programs:
        theirs, mine = (run(program, library, work / "runs", sources, given.steps, given.timeout)
                        for library in libraries)
        compared = Comparison(program, mine, theirs)
        if compared.losses_differ:
            again = tuple(
                run(program, libraries[0], work / "again", sources, given.steps, given.timeout, threads=threads,
                    perturbed=seed) for threads, seed in SENSITIVITY)
            compared = Comparison(program, mine, theirs, again)
        comparisons.append(compared)
        print(f"{program.name}: {compared.complaint or 'agrees'}", file=sys.stderr, flush=True)
    said = table(comparisons)
    if not given.names and not given.here:
        said += "\n\nNot run:\n" + "\n".join(f"- {name}: {why}" for name, why in LEFT_OUT.items())
    print(said)
    if given.table:
        given.table.write_text(said + "\n", encoding="utf-8")
    return int(any(comparison.complaint for comparison in comparisons))


def _environments(programs: list[Program], work: Path, as_they_are: bool) -> list[Interpreter]:
    needs = sorted({package for program in programs for package in program.needs})
    found = []
    for name in ("pytorch", "flambeau"):
        environment = Environment(work / name, oracle=name == "pytorch")
        if not as_they_are:
            environment.make()
            # torchvision's wheel names the very release of PyTorch that it is for
            environment.install(*(package.replace("torchvision", "torchvision==0.28.*") for package in needs))
        found.append(Interpreter(name, (str(environment.python),)))
    return found


def _fetch(program: Program, sources: Path) -> None:
    if program.source is None:
        return
    name = program.source.split("/")[0]
    if (sources / name).exists():
        return
    repository, revision = REPOSITORIES[name]
    sources.mkdir(parents=True, exist_ok=True)
    archive = sources / f"{name}.tar.gz"
    urllib.request.urlretrieve(f"https://github.com/{repository}/archive/{revision}.tar.gz", archive)
    with tarfile.open(archive) as tar:
        top = tar.getnames()[0].split("/")[0]
        tar.extractall(sources, filter="data")
    (sources / top).rename(sources / name)


if __name__ == "__main__":
    sys.exit(main())
