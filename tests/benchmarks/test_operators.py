"""Both libraries compute the same in each timed operator; the table of ratios."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau
from benchmarks import operators

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("name", operators.OPERATORS)
def test_both_compute_the_same(name):
    array = np.random.default_rng(1).standard_normal((8, 40)).astype(np.float32)
    found = []
    for lib in (torch, flambeau):
        lib.manual_seed(0)
        leaf = lib.from_numpy(array.copy()).requires_grad_()
        y = operators.OPERATORS[name](lib, leaf)
        (y.sum() if y.dim() else y).backward()
        found.append((y.detach().numpy(), leaf.grad.numpy()))
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_table_of_medians_and_list_of_slow_operators():
    found = [(name, "2 x 2", "forward", {"PyTorch eager": theirs, "flambeau eager": 1.0})
             for name, theirs in (("a", 0.5), ("b", 2.0), ("c", 3.0))]
    assert operators.lines(found, "flambeau eager") == (
        [["flambeau eager", "2 x 2", "forward", "2.00", "2 of 3"]], ["- flambeau eager, 2 x 2, forward: a 0.50."])
