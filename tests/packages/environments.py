"""The two virtual environments of the tests: PyTorch's, and flambeau's with its `torch` alias."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path

from .suites import Suite

ROOT = Path(__file__).resolve().parents[2]
PYTORCH = "torch==2.13.0"
RUNNER = ("numpy>=2", "pytest>=8,<9", "pytest-timeout", "pytest-xdist")


class Environment:
    """A virtual environment in which a `torch` is installed.

    Args:
        folder: of the environment; it is made if it is not there.
        oracle: whether `torch` is PyTorch, not flambeau.
    """

    def __init__(self, folder: Path, *, oracle: bool) -> None:
        self.folder, self.oracle = folder, oracle
        self.python = folder / "bin" / "python"

    def make(self) -> None:
        """Create the environment with its `torch`, unless it is there."""
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", self.folder], check=True)
            self.install("pip>=24", *RUNNER)
        if self.oracle:
            self.install(PYTORCH)
        else:
            self.install("-e", str(ROOT))
            subprocess.run([self.folder / "bin" / "flambeau", "alias", "install"], check=True)

    def install(self, *requirements: str, variables: tuple[tuple[str, str], ...] = ()) -> None:
        """Install with pip, with variables of the environment; its output is shown if it fails."""
        command = [str(self.python), "-m", "pip", "install", "-q", *requirements]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              env={**os.environ, **dict(variables)})
        if done.returncode:
            raise SystemExit(f"pip could not install {' '.join(requirements)}:\n{done.stdout[-4000:]}")

    def install_package(self, suite: Suite, source: Path) -> None:
        """Install a package from its source, with what its tests need."""
        if suite.install:
            self.install(*suite.install)
        if suite.package is not None:
            self.install(str(source / suite.package), variables=suite.environment)
        self.install(*RUNNER)  # a package may have asked for others

    def test(self, suite: Suite, source: Path, outcomes: Path, *, fraction: float, seed: str, processes: int,
             timeout: int, select: str | None, log: Path) -> int:
        """Run the tests of a package; outcomes are appended to a file. The exit status of pytest."""
        command = [str(self.python), "-m", "pytest", "-p", "outcomes", "-p", "torchvision_library",
                   "-p", "no:cacheprovider", "-q",
                   f"--timeout={timeout}", "-n", str(processes), "--max-worker-restart=200",
                   "--continue-on-collection-errors",  # files that need other packages are lost, not the run
                   *suite.options_with(select), *suite.tests]
        environment = {**os.environ, **dict(suite.environment), "OUTCOMES_FILE": str(outcomes),
                       "OUTCOMES_FRACTION": str(fraction), "OUTCOMES_SEED": seed,
                       "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONPATH": str(Path(__file__).parent),
                       "VIRTUAL_ENV": str(self.folder),
                       "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        with log.open("w", encoding="utf-8") as file:
            return subprocess.run(command, cwd=source, env=environment, stdout=file, stderr=subprocess.STDOUT,
                                  check=False).returncode


def source_of(suite: Suite, folder: Path) -> Path:
    """The source of a package: a folder that is there already, or the revision's archive from GitHub."""
    source = folder / suite.name
    if not source.exists():
        folder.mkdir(parents=True, exist_ok=True)
        archive = folder / f"{suite.name}.tar.gz"
        urllib.request.urlretrieve(f"https://github.com/{suite.repository}/archive/{suite.revision}.tar.gz", archive)
        with tarfile.open(archive) as tar:
            top = tar.getnames()[0].split("/")[0]
            tar.extractall(folder, filter="data")
        (folder / top).rename(source)
    return source
