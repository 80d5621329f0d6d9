"""Workloads at small sizes compute the results of the same program in float64."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import flambeau
from benchmarks.peers import COMPILED, EAGER, variants
from benchmarks.reference import STEPS, Reference
from benchmarks.workloads import MODELS, ROWS, WORKLOADS

FORMS = [pytest.param(row, form, id=f"{row}-{form}" if form else row)
         for row, workload in ROWS.items() for form in workload.forms]


def reference(row, form):
    """By PyTorch where it is installed: then its programs are tested, too."""
    name = "torch" if importlib.util.find_spec("torch") else "flambeau"
    return Reference(importlib.import_module(name), WORKLOADS[row], form, WORKLOADS[row].tiny)


def results(row, form, peer):
    workload = WORKLOADS[row]
    runner = variants(peer, workload, workload.data(workload.tiny), workload.tiny)[form]()
    for _ in range(STEPS):
        output = runner.run()
    return runner.results(output)


@pytest.mark.parametrize(("row", "form"), FORMS)
def test_eager_steps_compute_what_the_reference_does(row, form):
    assert reference(row, form).mismatches(results(row, form, EAGER)) == []


@pytest.mark.skipif(not hasattr(flambeau, "compile"), reason="there is no compiler yet")
@pytest.mark.parametrize(("row", "form"), FORMS)
def test_compiled_steps_compute_what_the_reference_does(row, form):
    assert reference(row, form).mismatches(results(row, form, COMPILED)) == []


@pytest.mark.parametrize(("row", "form"), FORMS)
def test_results_include_gradients_and_updates_of_all_leaves(row, form):
    """One gradient and, if the workload trains, one update for every leaf."""
    workload, found = WORKLOADS[row], results(row, form, EAGER)
    gradients = [name for name in found if name.startswith("gradient")]
    updates = [name for name in found if name.startswith("updated")]
    assert len(updates) == (len(gradients) if workload.optimizer else 0)
    assert bool(gradients) == (workload.backward and row != "descent")
    assert all(np.abs(found[name]).max() > 0 for name in gradients)


@pytest.mark.parametrize("row", MODELS)
def test_steps_of_models_compute_what_the_reference_does(row):
    assert reference(row, "").mismatches(results(row, "", EAGER)) == []


def test_wrong_results_are_found():
    expected, right = reference("cnn", ""), results("cnn", "", EAGER)
    for name, array in right.items():
        off = 1.01 if name.startswith("gradient") else 1.0005
        wrong = {"zero": array * 0, "doubled": array * 2, "slightly off": array * off}
        if name.startswith("updated"):
            wrong = {"not updated": expected.start[name]}
        for changed in wrong.values():
            assert [said for said in expected.mismatches({**right, name: changed}) if said.startswith(f"{name}: ")]
    assert expected.mismatches({**right, "output": np.zeros(3)}) == ["output: shape (3,) instead of ()"]
    assert expected.mismatches({**right, "output": np.full((), np.nan)})


def test_missing_results_are_found():
    expected, right = reference("mlp-tiny", ""), results("mlp-tiny", "", EAGER)
    bare = {name: array for name, array in right.items() if not name.startswith("gradient")}
    assert expected.mismatches(bare, gradients=False) == []
    assert "no gradient of 0.weight" in expected.mismatches(bare)
    del bare["output"]
    assert expected.mismatches(bare, gradients=False) == ["no output"]


def test_a_reset_runner_starts_again():
    workload = ROWS["mlp-sgd"]
    runner = variants(EAGER, workload, workload.data(workload.tiny), workload.tiny)[""]()
    first = [runner.run().item() for _ in range(3)]
    runner.reset()
    assert [runner.run().item() for _ in range(3)] == first


def test_the_rows_are_those_of_the_table():
    assert len(ROWS) == 16
    assert all(row == workload.name and workload.eager_floor > 0 for row, workload in ROWS.items())
