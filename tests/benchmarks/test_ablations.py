"""Ablations name what exists: special cases, rows and decision records."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from benchmarks.ablations import ABLATIONS
from benchmarks.peers import PEERS
from benchmarks.workloads import ROWS

RECORDS = Path(__file__).resolve().parents[2] / "docs" / "decisions"


@pytest.mark.parametrize("name", ABLATIONS)
def test_names_rows_and_records_exist(name):
    ablation = ABLATIONS[name]
    for place in ablation.replacements:
        module, _, path = place.partition(":")
        holder = importlib.import_module(f"flambeau.{module}")
        for each in path.split("."):
            holder = getattr(holder, each)
    assert all(row in ROWS and peer in PEERS for row, peer in ablation.rows)
    assert list(RECORDS.glob(f"{ablation.record}-*.md"))
