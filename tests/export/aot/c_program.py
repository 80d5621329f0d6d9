"""A C program that loads a compiled program and runs it on files: compiled once for each target."""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

DRIVER = Path(__file__).parent / "driver.c"


class Failed(Exception):
    """The program returned a status: its number and its text."""


@functools.cache
def _folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="flambeau-driver-")
    _folders.append(folder)
    return Path(folder.name)


_folders: list[Any] = []


@functools.cache
def driver(compiler: tuple[str, ...] = ("cc",)) -> Path:
    """The program, compiled by a C compiler."""
    path = _folder() / f"driver{abs(hash(compiler))}"
    subprocess.run([*compiler, "-O1", "-std=gnu99", "-o", str(path), str(DRIVER), "-ldl"], check=True)
    return path


def run(
    library: Path,
    inputs: Sequence[np.ndarray],
    outputs: Sequence[np.ndarray],
    *,
    sizes: Sequence[int] = (),
    runs: int = 1,
    state: bool = False,
    command: Sequence[str] = (),
    compiler: tuple[str, ...] = ("cc",),
) -> list[list[np.ndarray]]:
    """Run a program.

    Args:
        library: the shared library, whose name is that of its functions.
        inputs: arrays.
        outputs: arrays with the shapes and dtypes of results.
        sizes: the dynamic sizes.
        runs: how often it runs.
        state: whether it has a state.
        command: an emulator.
        compiler: of the C program.

    Returns:
        For each run the results.

    Raises:
        Failed: a run returns a status.
    """
    words = [np.array([runs, state, len(sizes), *sizes, len(inputs), len(outputs)], np.int64).tobytes()]
    for a in inputs:
        words += [np.int64(a.nbytes).tobytes(), np.ascontiguousarray(a).tobytes()]
    words += [np.int64(a.nbytes).tobytes() for a in outputs]
    given, got = library.with_suffix(".in"), library.with_suffix(".out")
    given.write_bytes(b"".join(words))
    done = subprocess.run(
        [*command, str(driver(compiler)), str(library), library.stem, str(given), str(got)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Failed(done.returncode, done.stderr.strip())
    data, at, results = got.read_bytes(), 0, []
    for _ in range(runs):
        results.append([])
        for a in outputs:
            results[-1].append(np.frombuffer(data, a.dtype, a.size, at).reshape(a.shape))
            at += a.nbytes
    assert at == len(data)
    return results


def emulator() -> list[str]:
    """The command that runs programs for aarch64; [] where there is none."""
    if platform.machine() in ("aarch64", "arm64") or sys.platform != "linux":
        return []
    found = shutil.which("qemu-aarch64")
    sysroot = "/usr/aarch64-linux-gnu"
    return [] if found is None else [found, *(["-L", sysroot] if os.path.isdir(sysroot) else [])]
