"""Comparison of revisions: imports of each process, and ratios."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import versions
from benchmarks.child_process import ROOT


def test_the_ratio_is_below_one_where_this_checkout_is_slower():
    assert versions.median_ratio({"base": [1.0, 2.0, 3.0], "head": [2.0, 4.0, 3.0]}) == 0.5


def test_a_folder_is_used_as_it_is(tmp_path):
    with versions.checkout_of(str(tmp_path)) as path:
        assert path == tmp_path


def test_each_process_imports_flambeau_from_its_own_checkout(tmp_path):
    other = tmp_path / "flambeau"
    other.mkdir()
    (other / "__init__.py").write_text("print('imported', __file__)")
    code = f"from benchmarks import versions; versions.import_from({str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"imported {other / '__init__.py'}"


@pytest.mark.parametrize("mode", ["forward", "forward and backward"])
def test_operators_are_timed_on_request(mode):
    process = versions.OperatorProcess(ROOT)
    try:
        assert 0 < process.turn(["x + y", [4, 4], mode]) < 1
    finally:
        process.close()
