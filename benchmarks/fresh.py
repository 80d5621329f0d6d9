"""Measures taken in processes of their own, which say what they found as JSON on their last line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
