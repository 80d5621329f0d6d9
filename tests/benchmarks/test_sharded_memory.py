"""Bytes by rank of sharded training equal the theory."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.child_process import ROOT


def test_bytes_of_two_processes():
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.sharded_memory", "--sizes", "2"]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    assert [row[1].split()[0] for row in rows] == ["DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3"]
    assert all(row[-1] == row[-2] for row in rows)
    assert [float(row[-1]) for row in rows] == sorted((float(row[-1]) for row in rows), reverse=True)
