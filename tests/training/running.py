"""One program under one library: a folder with the program and its data, a process, and what it recorded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .catalogue import HERE, STUBS, Program

ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Run:
    """What a program did: its losses, its output, its seconds, and the error that ended it."""

    losses: list[float]
    printed: str
    seconds: float
    error: str | None


@dataclass(frozen=True)
class Interpreter:
    """How a Python with `torch` is started: PyTorch's, flambeau's with its alias, or `flambeau run` of this one."""

    name: str
    command: tuple[str, ...]


def here(oracle: bool) -> Interpreter:
    """This interpreter, in which both libraries are importable by their own names."""
    if oracle:
        return Interpreter("pytorch", (sys.executable,))
    return Interpreter("flambeau", (sys.executable, "-m", "flambeau", "run"))


def run(program: Program, interpreter: Interpreter, work: Path, sources: Path, steps: int, timeout: int, *,
        threads: int = 1, perturbed: int | None = None) -> Run:
    """Run a program in a fresh folder, `work/NAME/LIBRARY`.

    Args:
        sources: the folder of the repositories.
        steps: after so many steps the program is cut off, unless it ends by itself.
        timeout: in seconds.
        threads: of the library.
        perturbed: the seed of a change of all parameters by rounding (see `recorder`); None: they are not changed.
    """
    top = work / program.name.replace(" ", "-") / interpreter.name
    shutil.rmtree(top, ignore_errors=True)
    folder = top / "program"
    if program.source is not None:
        shutil.copytree(sources / program.source, folder, ignore=shutil.ignore_patterns(".git"))
    folder.mkdir(parents=True, exist_ok=True)
    if program.prepare is not None:
        program.prepare(folder)
    out = top / "recorded.json"
    words: list[str] = []
    for script, *arguments in program.scripts:
        words += [";", str(folder / script), *(a.replace("{steps}", str(steps)) for a in arguments)]
    limit = 0 if program.ends else steps * program.backwards
    command = [*interpreter.command, str(HERE / "recorder.py"), str(out), str(limit), *words]
    given = {name: value.format(folder=folder) for name, value in program.environment}
    paths = [STUBS]
    if "run" in interpreter.command:
        paths.append(ROOT)
    if "torchvision" in program.needs and interpreter.name == "pytorch":
        paths.append(STUBS.with_name("stubs_torchvision"))
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1",
                   "PYTHONPATH": os.pathsep.join(map(str, paths)), **given}
    if perturbed is not None:
        environment["PERTURBED"] = str(perturbed)
    with (top / "printed.txt").open("w") as printed, (top / "errors.txt").open("w") as errors:
        try:
            subprocess.run(command, cwd=folder, env=environment, stdout=printed, stderr=errors, check=False,
                           timeout=timeout)
        except subprocess.TimeoutExpired:
            return Run([], "", timeout, f"not done after {timeout} s")
    said = (top / "printed.txt").read_text(encoding="utf-8", errors="replace").replace(str(folder), "FOLDER")
    if not out.exists():
        complaint = (top / "errors.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return Run([], said, 0.0, complaint[-1] if complaint else "the process ended without a word")
    recorded = json.loads(out.read_text(encoding="utf-8"))
    return Run(recorded["losses"], said, recorded["seconds"], recorded["error"])
