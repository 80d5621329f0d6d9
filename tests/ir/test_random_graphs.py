"""Random graphs: the verifier passes after every pass, and programs compute what NumPy does."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau import codegen
from flambeau.ir.fusion import intervals
from flambeau.ir.schedule import plan_cache
from flambeau.ir.schedule.program import Program
from tests.ir.evaluator import evaluate, widen
from tests.ir.legality import check
from tests.ir.random_graphs import Random

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")

TOLERANCE = {"float64": 1e-9, "float32": 2e-4}


def close(found, expected, tolerance):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    if found.dtype.kind not in "f":
        assert np.array_equal(found, expected)
        return
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    assert float(np.abs(widen(found) - expected).max(initial=0)) <= tolerance * scale


def runs_as_numpy(made, tolerance):
    """Run the program twice, the second time over other numbers, and compare all that it leaves behind."""
    program = Program(made.graph, made.targets, made.conditions)
    check(program.schedule)
    for turn in range(2):
        inputs = [a + a.dtype.type(0.25 * turn) for a in made.inputs]
        values = evaluate(made.graph, inputs)
        holds = all(bool(values[v]) == outcome for v, outcome in made.conditions)
        arrays = [np.ascontiguousarray(inputs[number]) for number in program.inputs]
        before = [a.copy() for a in arrays]
        new = program.run(arrays)
        assert (new is not None) == holds
        if not holds:
            assert all(np.array_equal(a, b) for a, b in zip(arrays, before, strict=True))
            continue
        left = iter(new)
        for target in made.targets:
            if target.overwrites is None:
                close(next(left), values[target.value], tolerance)
        written = {target.overwrites.attrs: target.value for target in made.targets if target.overwrites is not None}
        for number, array, old in zip(program.inputs, arrays, before, strict=True):
            if number in written:
                close(array, values[written[number]].reshape(array.shape), tolerance)
            else:
                assert np.array_equal(array, old)


@pytest.mark.parametrize("block", range(5))
def test_float64(block):
    for seed in range(block * 30, block * 30 + 30):
        made = Random(seed)
        try:
            runs_as_numpy(made, TOLERANCE["float64"])
        except Exception as error:
            raise AssertionError(f"graph of seed {seed}") from error


def test_small_column_sums(monkeypatch):
    monkeypatch.setattr(intervals, "MIN_COLUMN_SUM", 0)
    monkeypatch.setattr(intervals, "MIN_ROW", 1)
    monkeypatch.setattr(plan_cache, "read", lambda entry, graph: None)  # plans that were made with other limits
    for seed in range(2000, 2060):
        made = Random(seed)
        try:
            runs_as_numpy(made, TOLERANCE["float64"])
        except Exception as error:
            raise AssertionError(f"graph of seed {seed}") from error


def test_float32():
    for seed in range(1000, 1030):
        made = Random(seed, "float32", 12)
        try:
            runs_as_numpy(made, TOLERANCE["float32"])
        except Exception as error:
            raise AssertionError(f"graph of seed {seed}") from error
