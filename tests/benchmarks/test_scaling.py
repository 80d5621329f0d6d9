"""The model of scaling: formulas, fits that find known numbers, strategies in their limits, the page."""

from __future__ import annotations

import pytest

from benchmarks.scaling.fit import fit_link, fit_machine
from benchmarks.scaling.measure import SIZES
from benchmarks.scaling.model import Link, SharedMachine, ring_all_reduce, ring_reduce_scatter, tree_broadcast
from benchmarks.scaling.report import MACHINES, clusters, draw, page
from benchmarks.scaling.strategies import STRATEGIES, Cluster, Model, ddp, fsdp, pipeline

LINK = Link(1e-5, 1e-10)
CLUSTER = Cluster(1e12, LINK)


def measurements(machine):
    """What a machine that is exactly as its model says would measure."""
    counts, gradients = (1, 2, 3, 4, 6, 8), 1e6
    return {"cores": 2, "load": [0.0, 0.0], "when": "a day", "rate": 5e10,
            "messages": {size: LINK.message(size) for size in SIZES},
            "reductions": {n: {size: machine.all_reduce(n, size) for size in SIZES} for n in counts[1:]},
            "steps": {n: {"gradients": gradients, "compute": machine.compute(n), "step": machine.step(n, gradients)}
                      for n in counts}}


def test_collectives_cost_their_messages():
    assert ring_all_reduce(4, 4000, LINK) == pytest.approx(6 * (1e-5 + 1000e-10))
    assert ring_all_reduce(4, 4000, LINK) == 2 * ring_reduce_scatter(4, 4000, LINK)
    assert tree_broadcast(5, 4000, LINK) == pytest.approx(3 * LINK.message(4000))
    assert ring_all_reduce(1, 4000, LINK) == tree_broadcast(1, 4000, LINK) == 0


def test_fits_find_the_numbers_of_a_model():
    machine = SharedMachine(1.5, 0.01, 3e-5, 4e-10)
    found = fit_machine(measurements(machine))
    assert (found.cores, found.work) == pytest.approx((1.5, 0.01))
    assert (found.alpha, found.beta) == pytest.approx((3e-5, 4e-10))
    link = fit_link(measurements(machine)["messages"])
    assert (link.alpha, link.beta) == pytest.approx((LINK.alpha, LINK.beta))
    slower = measurements(machine)
    slower["steps"][8]["compute"] *= 100  # not fitted
    assert fit_machine(slower) == found
    assert fit_link({1: 1.0, 2: 0.5}).beta == 0  # no negative costs


def test_the_gpt_has_as_many_parameters_as_it_is_called_after():
    assert Model().parameters == pytest.approx(1.3e9, rel=0.02)
    small = Model(layers=2, width=8, vocabulary=11, context=5)
    assert small.parameters == 2 * 12 * 64 + 16 * 8
    assert small.flops(10) == 10 * (6 * small.parameters + 12 * 2 * 8 * 5)


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_in_their_limits(name):
    strategy, model = STRATEGIES[name], Model()
    alone = strategy(model, CLUSTER, 1, 1000)
    assert alone.total == pytest.approx(model.flops(1000) / 1e12)
    free = Cluster(1e12, Link(0, 0))
    for n in MACHINES[3:]:
        step = strategy(model, CLUSTER, n, 1e6)
        assert step.compute == pytest.approx(model.flops(1e6 / n) / 1e12)
        assert step.exposed >= 0
        assert step.idle >= 0
        assert strategy(model, free, n, 1e6).exposed == 0
        assert step.memory <= 16.01 * model.parameters + 1e9


def test_bubbles_buckets_and_memory():
    model = Model()
    step = pipeline(model, Cluster(1e12, Link(0, 0)), 8, 1e6, microbatches=4)
    assert step.idle / step.total == pytest.approx(7 / 11)  # (stages - 1) / (microbatches + stages - 1)
    default = STRATEGIES["DDP, 25 MiB buckets"](model, CLUSTER, 1024, 1e6)
    assert ddp(model, CLUSTER, 1024, 1e6).exposed <= default.exposed
    assert fsdp(model, CLUSTER, 1024, 1e6).memory < ddp(model, CLUSTER, 1024, 1e6).memory / 20


def test_the_page_says_what_was_measured_and_what_was_not(tmp_path):
    measured = measurements(SharedMachine(1.5, 0.01, 3e-5, 4e-10))
    text = page(measured)
    assert "| 8 (not fitted) |" in text
    assert "nothing of the second part was\nmeasured" in text
    assert text.count("| FSDP |") == 2
    assert max(map(len, (line for line in text.splitlines() if not line.startswith("|")))) <= 125
    assert clusters(measured)["sockets"].link.alpha > clusters(measured)["network"].link.alpha
    pytest.importorskip("matplotlib")
    draw(measured, tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == {"scaling-measured.png", "scaling-predicted.png"}
