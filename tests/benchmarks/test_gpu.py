"""The benchmark of a GPU, without one at tiny sizes."""

from __future__ import annotations

import json

import pytest

from benchmarks.gpu import operators, rows
from benchmarks.gpu.cases import Libraries, cases, grown
from benchmarks.gpu.session import Session
from benchmarks.gpu.worker import Worker
from benchmarks.peers import COMPILED, EAGER
from flambeau import codegen


@pytest.mark.parametrize(("row", "column"), [("chain", COMPILED), ("mlp-tiny", EAGER), ("gpt", EAGER),
                                             ("gpt2-generate", EAGER)])
def test_a_row_is_measured(row, column):
    libraries = Libraries(column, fake=True)
    with libraries.in_use():
        worker = Worker(libraries, rows.make(libraries))
        made = worker.ready((row, 1), 60)
        turn = worker.turn((row, 1), 1e-4)
    assert made["memory"] > 0
    assert 0 < turn["host"] <= turn["seconds"]
    if column == COMPILED and codegen.available():
        assert made["bytes"] > 0
        assert "eager because" not in made


def test_an_operator_is_measured():
    libraries = Libraries(EAGER, fake=True)
    with libraries.in_use():
        worker = Worker(libraries, operators.make(libraries))
        for mode in operators.MODES:
            worker.ready(("softmax(1)", 64, 64, mode), 60)
            assert worker.turn(("softmax(1)", 64, 64, mode), 1e-4)["seconds"] > 0
        with pytest.raises(operators.NotDifferentiable):
            worker.ready(("x > 0", 64, 64, operators.BOTH), 60)


def test_a_session_records_turns_and_failures():
    records = []
    plan = {EAGER: [("formula", 1), ("nothing", 1)]}
    with Session({EAGER: 1}, plan, "benchmarks.gpu.rows:make", 1, True, records.append) as session:
        session.make_ready(60)
        session.measure(plan[EAGER], 2, 1e-4, float("inf"))
    results = rows.Results(map(json.loads, map(json.dumps, records)))
    assert len(results.times[EAGER, ("formula", 1)]) == 2
    assert "KeyError" in results.failed[EAGER, ("nothing", 1)]
    assert "formula" in results.text()


def test_tables_have_ratios_shares_and_failures():
    def record(column, number, seconds):
        return {"column": column, "case": ["chain", 16], "round": number, "seconds": seconds, "host": seconds / 2}

    results = rows.Results([
        {"column": EAGER, "device": "NVIDIA H100 80GB HBM3"},
        *({"column": column, "case": ["chain", 16], "kind": "ready", "memory": 2 ** 30, "observed": observed,
           "bytes": 3.35e9, "operations": 1.0}
          for column, observed in ((rows.PYTORCH, 1.0), ("jax.jit", 1.0), (EAGER, 1.1), (COMPILED, 1.001))),
        *(record(column, number, seconds * (1 + number)) for number in range(3) for column, seconds in (
            (rows.PYTORCH, 4e-3), ("jax.jit", 3e-3), (EAGER, 2e-3), (COMPILED, 2e-3))),
        {"column": "torch.compile", "case": ["chain", 16], "failed": "not ready after 9 s"}])
    assert results.cells(("chain", 16)) == [
        "chain x 16", "8 ms", "-", "6 ms", "4 ms", "4 ms", "2.00", "1.50", "25 % of bandwidth, 17 % of bandwidth",
        "1.000, -, 1.000, 1.000"]
    assert results.notes() == ["- chain x 16, torch.compile: not ready after 9 s",
                               "- chain x 16, flambeau eager: 1.1, not 1"]


def test_rooflines_and_sizes():
    assert rows.roofline("NVIDIA A100", 1.0, 1.0, 156e12, "gpt2-step").startswith("50 %")
    assert rows.roofline("NVIDIA A100", 1.0, 1.0, 156e12, "conv").startswith("100 %")
    assert not rows.roofline("another", 1.0, 1.0, 1.0, "chain")
    assert grown({"side": 1024}, 16) == {"side": 4096}
    assert grown({}, 16) == {}
    assert rows.plan(["chain", "gpt2-step"], [1, 16], [EAGER, "jax.jit"]) == {
        EAGER: [("gpt2-step", 1), ("chain", 16), ("chain", 1)], "jax.jit": [("chain", 16), ("chain", 1)]}
    assert cases(["formula"], [1, 16]) == [("formula", 1)]
