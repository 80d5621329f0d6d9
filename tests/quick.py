"""`make quick`: run the tests nearest to what changed, within a time budget.

    python -m tests.quick [--base REF] [--seconds N] [--list] [pytest's own arguments]

Changed are the files that differ from the merge base with `--base` (default: the upstream branch, else HEAD)
and untracked files. Each test file gets a distance from the change:

0. it changed itself, it mirrors a changed module (`flambeau/ir/printing.py` - `tests/ir/test_printing.py`),
   or it checks the entire tree and takes a second;
1. it imports a changed module, or a test module that changed;
2. it is in the first test folder of a changed module's package (FOLDERS);
3. it is in another one, or mirrors a module that imports a changed module;
4. it is one of the broad tests (BROAD).

Files are taken in the order of distance, the cheapest first (`durations.txt`, written by
`make test ARGS=--store-durations`). A file that does not fit the budget is sampled: the tests whose id names a
changed definition or module, and every n-th of the others. `make test` runs everything.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pytest

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
DURATIONS = TESTS / "durations.txt"
PLAN = "FLAMBEAU_QUICK_PLAN"  # environment variable: the file with the plan for pytest's workers

# Checks of the tree as a whole that take about a second.
ALWAYS = ("test_architecture.py", "test_assertions.py", "test_packaging.py")

# Package of flambeau -> folders under tests/ that exercise it, the nearest first.
FOLDERS: dict[str, tuple[str, ...]] = {
    "": ("_tensor",),
    "_tensor": ("_tensor", "ops"),
    "autograd": ("autograd",),
    "backends": ("backends", "kernels", "codegen"),
    "cli": ("cli",),
    "codegen": ("codegen", "backends", "kernels"),
    "compiler": ("compiler",),
    "engine": ("engine", "autograd"),
    "func": ("func",),
    "functorch": ("func",),
    "ir": ("ir", "compiler"),
    "kernels": ("kernels", "ops"),
    "ops": ("ops", "ir"),
    "profiler": ("autograd",),
    "runtime": ("runtime", "codegen"),
}

# Tests that run much of the package, for the rest of the budget.
BROAD = ("ops/test_generic.py", "programs/test_programs.py", "test_doctests.py")

UNKNOWN_SECONDS = 3.0  # the cost of a test file that `durations.txt` does not list
STARTUP_SECONDS = 12.0  # importing PyTorch and collecting, in each worker


@dataclass(frozen=True)
class Tree:
    """What a selection reads of a checkout: paths are relative to its root, with slashes."""

    tests: frozenset[str]  # test files, under tests/
    imports: Mapping[str, frozenset[str]]  # Python file -> the package's and tests' files it imports
    seconds: Mapping[str, float] = field(default_factory=dict)


def changed_files(base: str) -> list[str]:
    """Paths that differ from the merge base with `base`, and untracked ones."""
    root = git("merge-base", base, "HEAD").strip()
    return sorted({*git("diff", "--name-only", root).split("\n"),
                   *git("ls-files", "--others", "--exclude-standard").split("\n")} - {""})


def default_base() -> str:
    """The upstream of the current branch if it has one, else HEAD."""
    upstream = subprocess.run(["git", "rev-parse", "--abbrev-ref", "@{upstream}"], cwd=ROOT, text=True,
                              capture_output=True, check=False)
    return upstream.stdout.strip() if upstream.returncode == 0 else "HEAD"


def git(*arguments: str) -> str:
    """The output of a git command in this checkout."""
    return subprocess.run(["git", *arguments], cwd=ROOT, text=True, capture_output=True, check=True).stdout


def changed_names(base: str, paths: Iterable[str]) -> set[str]:
    """Names of the functions and classes whose lines changed, and of the changed modules."""
    names: set[str] = set()
    root = git("merge-base", base, "HEAD").strip()
    for path in paths:
        file = ROOT / path
        if file.suffix == ".md":
            names.add(file.stem)
        if file.suffix != ".py" or not file.is_file():
            continue
        names.add(file.parent.name if file.stem == "__init__" else file.stem)
        hunks = re.findall(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", git("diff", "-U0", root, "--", path), re.M)
        lines = {line for start, count in hunks for line in range(int(start), int(start) + int(count or 1))}
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) \
                    and not lines.isdisjoint(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
                names.add(node.name)
            elif isinstance(node, ast.Assign) and node.lineno in lines:
                names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return {name.strip("_") for name in names} - {""}


def read_tree() -> Tree:
    """The test files, imports and durations of this checkout."""
    sources = [path.relative_to(ROOT).as_posix() for folder in ("flambeau", "tests")
               for path in (ROOT / folder).rglob("*.py") if not {"stubs", "child"} & {*path.parts}]
    known = frozenset(sources)
    return Tree(frozenset(path for path in sources if PurePosixPath(path).name.startswith("test_")),
                {path: imported_files(path, known) for path in sources}, read_durations())


def read_durations() -> dict[str, float]:
    """Test file -> seconds of one run of it, by `durations.txt`."""
    if not DURATIONS.is_file():
        return {}
    rows = (line.split() for line in DURATIONS.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return {f"tests/{path}": float(seconds) for seconds, path in rows}


def imported_files(path: str, known: frozenset[str]) -> frozenset[str]:
    """Files of the checkout that a Python file imports, at any level of nesting."""
    found: set[str] = set()
    parents = PurePosixPath(path).parent.parts
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [*parents[: len(parents) - node.level + 1]] if node.level else []
            base += (node.module or "").split(".") if node.module else []
            modules = [base, *([*base, alias.name] for alias in node.names)]
        else:
            continue
        for parts in modules:
            stem = "/".join(parts)
            found.update({f"{stem}.py", f"{stem}/__init__.py"} & known)
    return frozenset(found - {path})


def mirrors(module: str, test: str) -> bool:
    """Whether a test file is the one that mirrors a file of the package, by folder and name."""
    parts = PurePosixPath(module).with_suffix("").parts[1:]
    folder = PurePosixPath(test).parent.parts[1:]
    words = PurePosixPath(test).stem.removeprefix("test_").split("_")
    top = parts[0] if len(parts) > 1 else ""
    if folder[:1] not in ((top,), ()) or (top == "" and folder):
        return False
    for name in reversed([part for part in parts if part != "__init__"] if top else parts):
        own = name.strip("_").split("_")
        if words == own[: len(words)] or own == words[: len(own)]:
            return name != top or not folder
    return False


def distances(tree: Tree, changed: Iterable[str]) -> dict[str, int]:
    """Test file -> its distance from the change (see the module's docstring); files far from it are absent."""
    changed = list(changed)
    found: dict[str, int] = {f"tests/{name}": 0 for name in ALWAYS if f"tests/{name}" in tree.tests}

    def put(test: str, distance: int) -> None:
        found[test] = min(distance, found.get(test, distance))

    modules = [path for path in changed if path.startswith("flambeau/") and path.endswith(".py")]
    importers = {path for path, imported in tree.imports.items() if not imported.isdisjoint(modules)}
    exercised = [FOLDERS.get(package, (package,)) for package in map(top_package, modules)]
    support = {path for path in changed if path.startswith("tests/") and path.endswith(".py")}
    for test in tree.tests:
        folder = PurePosixPath(test).parts[1]
        if test in changed or any(mirrors(module, test) for module in modules):
            put(test, 0)
        elif test in importers or not tree.imports[test].isdisjoint(support):
            put(test, 1)
        elif any(folder == folders[0] for folders in exercised):
            put(test, 2)
        elif any(folder in folders for folders in exercised) \
                or any(mirrors(module, test) for module in importers if module.startswith("flambeau/")):
            put(test, 3)
        if folder == "docs" and any(path.endswith(".md") for path in changed):
            put(test, 0)
    if modules:
        for name in BROAD:
            if f"tests/{name}" in tree.tests:
                put(f"tests/{name}", 4)
    return found


def top_package(module: str) -> str:
    """The first folder under the package of a file's path; "" for a module of the package itself."""
    parts = PurePosixPath(module).parts[1:]
    return parts[0] if len(parts) > 1 else ""


def allocate(found: Mapping[str, int], seconds: Mapping[str, float], budget: float) -> dict[str, float]:
    """Test file -> the fraction of its tests to run, so that all take `budget` seconds of one processor.

    A file takes at most half of what is left, so that no single one starves the rest.
    """
    plan: dict[str, float] = {}
    for test in sorted(found, key=lambda test: (found[test], seconds.get(test, UNKNOWN_SECONDS), test)):
        cost = max(seconds.get(test, UNKNOWN_SECONDS), 0.01)
        share = cost if cost <= budget / 2 else budget / 2
        if share < 0.5 < cost:
            continue
        plan[test] = min(1.0, share / cost)
        budget -= share
    return plan


def sample(ids: list[str], fraction: float, names: Iterable[str]) -> list[bool]:
    """Which of the tests of one file run: those whose id names something that changed, and every n-th other one."""
    if fraction >= 1 or not ids:
        return [True] * len(ids)
    pattern = re.compile("|".join(rf"(?<![a-zA-Z]){re.escape(name)}(?![a-zA-Z])" for name in sorted(names)) or r"(?!)")
    named = [bool(pattern.search(each.partition("[")[2] or each.partition("::")[2])) for each in ids]
    every = max(1, round(1 / fraction))
    few = sum(named) <= max(4, 2 * fraction * len(ids))
    return [(few and by_name) or index % every == 0 for index, by_name in enumerate(named)]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that the plan leaves out (this module is loaded by `-p tests.quick`)."""
    plan = json.loads(Path(os.environ[PLAN]).read_text(encoding="utf-8"))
    by_file: dict[str, list[pytest.Item]] = {}
    for item in items:
        by_file.setdefault(item.path.relative_to(ROOT).as_posix(), []).append(item)
    dropped = {id(item) for path, group in by_file.items()
               for item, runs in zip(group, sample([item.nodeid for item in group], plan["fractions"].get(path, 1),
                                                   plan["names"]), strict=True) if not runs}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in dropped])
    items[:] = [item for item in items if id(item) not in dropped]


def main(arguments: list[str]) -> int:
    """Select, report and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.quick", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--base", default=None, help="compare with the merge base of this commit and HEAD")
    parser.add_argument("--seconds", type=float, default=100, help="time budget (default 100)")
    parser.add_argument("--jobs", type=int, default=2, help="tests run at a time (default 2)")
    parser.add_argument("--list", action="store_true", help="print the selection and stop")
    options, rest = parser.parse_known_args(arguments)
    base = options.base or default_base()
    try:
        changed = changed_files(base)
    except subprocess.CalledProcessError as error:
        print(f"the selection compares with a git commit, and git said: {error.stderr.strip()}\n"
              "In a tree without git, or without that commit, run `make test`, or name another one by --base.",
              file=sys.stderr)
        return 2
    if not changed:
        print(f"nothing differs from {base}: the smoke tests", flush=True)
        if options.list:
            return 0
        return subprocess.call([sys.executable, "-m", "pytest", "-q", "-m", "smoke", *rest], cwd=ROOT)
    tree = read_tree()
    found = distances(tree, changed)
    plan = allocate(found, tree.seconds, max(10.0, (options.seconds - STARTUP_SECONDS) * options.jobs))
    print(f"{len(changed)} files differ from {base}; {len(plan)} of {len(tree.tests)} test files")
    for test in sorted(plan, key=lambda test: (found[test], test)):
        print(f"  distance {found[test]}  {plan[test]:4.0%}  {test}")
    if len(plan) < len(found):
        print(f"  not run, for want of time: {len(found) - len(plan)} files of distance {max(found.values())}")
    sys.stdout.flush()
    if options.list:
        return 0
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump({"fractions": plan, "names": sorted(changed_names(base, changed))}, file)
        file.flush()
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(options.jobs), "--dist", "worksteal",
                   "-p", "tests.quick", *sorted(plan), *rest]
        return subprocess.call(command, cwd=ROOT, env={**os.environ, PLAN: file.name})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
