"""Both libraries compute the same in each timed operator; the tables of ratios."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau
from benchmarks import operators

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("name", operators.OPERATORS)
def test_both_compute_the_same(name):
    operator = operators.OPERATORS[name]
    ours, theirs = (operators.Call(lib, operator, (8, 40), operators.BOTH) for lib in (flambeau, torch))
    assert ours.differentiable == theirs.differentiable
    operators.compare(ours.observed(), theirs.observed())


@pytest.mark.parametrize(("found", "message"), [
    ([np.ones(2, np.float32), np.ones(2, np.float32)], "2 results, not 1"),
    ([np.ones(3, np.float32)], r"result 0: \(3,\) float32, not \(2,\) float32"),
    ([np.ones(2)], r"result 0: \(2,\) float64, not \(2,\) float32"),
    ([np.full(2, 1.1, np.float32)], "Mismatched elements: 2 / 2"),
    ([np.full(2, np.nan, np.float32)], "nan location mismatch"),
])
def test_results_that_differ_are_not_timed(found, message):
    with pytest.raises(AssertionError, match=message):
        operators.compare(found, [np.ones(2, np.float32)])


def test_operators_without_a_derivative_are_timed_forward_only():
    assert operators.times_of(operators.OPERATORS["x > 0"], (2, 2), operators.BOTH, threads=1, compiled=False) is None


FOUND = [(name, "2 x 2", mode, {"PyTorch eager": theirs, "flambeau eager": 1.0})
         for name, mode, theirs in (("a", "forward", 0.5), ("b", "forward", 2.0), ("c", "forward", 3.0),
                                    ("a", "forward and backward", 1.5))]


def test_table_of_medians_and_list_of_slow_operators():
    assert operators.lines(FOUND[:3], "flambeau eager") == (
        [["flambeau eager", "2 x 2", "forward", "2.00", "2 of 3"]], ["- flambeau eager, 2 x 2, forward: a 0.50."])


def test_table_of_operators():
    assert operators.operator_table(FOUND).splitlines() == [
        "|  | 2 x 2 | 2 x 2, with backward |", "| --- | ---: | ---: |", "| a | **0.50** | 1.50 |", "| b | 2.00 | - |",
        "| c | 3.00 | - |", "| median | 2.00 | 1.50 |", "| at least 1 | 2 of 3 | 1 of 1 |"]
