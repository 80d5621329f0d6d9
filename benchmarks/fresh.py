"""Measures taken in processes of their own, which say what they found as JSON on their last line."""

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


def say(*words: object) -> None:
    """Progress, on stderr."""
    print(*words, file=sys.stderr, flush=True)


def found_by(module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Any:
    """What `python -m benchmarks.<module> <arguments>` printed; None, and a word on stderr, if it failed."""
    done = subprocess.run([sys.executable, "-m", f"benchmarks.{module}", *arguments], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, env={**os.environ, **(environment or {})})
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        say(f"    benchmarks.{module} {' '.join(arguments)}: ended with status {done.returncode}")
        return None
    return json.loads(lines[-1])


def answer(about: str, rows: Collection[str], peers: Collection[str], measure: Callable[[str, str], Any]) -> None:
    """What such a process does: prints `measure(row, peer)` of the row and the peer that its command line names."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("row", choices=rows)
    parser.add_argument("peer", choices=peers)
    options = parser.parse_args()
    limits.apply()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print(json.dumps(measure(options.row, options.peer)))
