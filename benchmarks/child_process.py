"""Measurements in child processes, which print the result as JSON on their last line."""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from . import limits

ROOT = Path(__file__).resolve().parent.parent


def log(*words: object) -> None:
    """Print progress on stderr."""
    print(*words, file=sys.stderr, flush=True)


def run_child(module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Any:
    """The result of `python -m benchmarks.<module> <arguments>`; None, with a message on stderr, if it failed."""
    done = subprocess.run([sys.executable, "-m", f"benchmarks.{module}", *arguments], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, env={**os.environ, **(environment or {})})
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        log(f"    benchmarks.{module} {' '.join(arguments)}: ended with status {done.returncode}")
        return None
    return json.loads(lines[-1])


def child_main(about: str, rows: Collection[str], peers: Collection[str], measure: Callable[[str, str], Any]) -> None:
    """The main function of a child: prints `measure(row, peer)` for the row and peer of the command line."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("row", choices=rows)
    parser.add_argument("peer", choices=peers)
    options = parser.parse_args()
    limits.apply()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print(json.dumps(measure(options.row, options.peer)))
