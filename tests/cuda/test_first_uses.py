"""The first use of a CUDA device in a process: its result is that of later uses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("part", range(6))
def test_the_first_use_of_a_device_is_like_later_ones(part):
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "tests.cuda.first_uses", f"{part}/6"], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("uses"), done.stdout
    assert "---" not in done.stdout, done.stdout
