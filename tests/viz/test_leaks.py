"""`viz.leaks()`: live graphs and the references to them."""

from __future__ import annotations

import gc
import threading
import warnings

import pytest

import flambeau as torch
from flambeau.viz import leaks


@pytest.fixture(scope="module", autouse=True)
def searches_among_objects_of_these_tests_only():
    """What earlier test files left is frozen, and so not listed: a search among all of it takes seconds."""
    gc.collect()
    gc.freeze()


def held_by(found):
    return {(holder.path, holder.where.partition(",")[0]) for leak in found for holder in leak.holders}


def mine(found, *names):
    """Of the leaks, those that this test made: another's may wait for nothing but its end."""
    return [leak for leak in found if any(name in holder.path for holder in leak.holders for name in names)]


class Trainer:
    def __init__(self):
        self.w = torch.ones(3, requires_grad=True)
        self.history = {"loss": []}
        self.state = torch.zeros(3)

    def step(self):
        self.state = torch.tanh(self.state + self.w)
        loss = self.state.sum()
        self.history["loss"].append(loss)


def test_losses_in_a_list():
    w = torch.ones(3, requires_grad=True)
    losses = []
    for _ in range(4):
        loss = (w * w).sum()
        loss.backward()
        losses.append(loss)
    del loss
    found = mine(leaks(), "losses")
    assert held_by(found) == {("losses[0 … 3]", "a local of test_losses_in_a_list()")}
    assert [(len(leak.heads), leak.nodes, leak.bytes) for leak in found] == [(4, 8, 0)]
    assert found[0].advice.startswith("keep numbers")
    losses[:] = [x.item() for x in losses]
    assert not mine(leaks(), "losses")


def test_attributes_and_dictionaries_of_objects():
    trainer = Trainer()
    for _ in range(3):
        trainer.step()
    found = mine(leaks(), "trainer")
    here = "a local of test_attributes_and_dictionaries_of_objects()"
    assert held_by(found) == {("trainer.history['loss'][0 … 2]", here)}
    assert found[0].nodes == 9
    trainer.history["loss"].clear()
    assert held_by(mine(leaks(), "trainer")) == {("trainer.state", here)}


def test_intended_references_are_not_reported():
    w = torch.ones(3, requires_grad=True)
    kept = (w * w).sum()
    assert mine(leaks(), "kept")
    assert not mine(leaks(keep=kept), "kept")
    assert not mine(leaks(keep=[kept]), "kept")


def test_closures_classes_threads_generators_and_containers():
    w = torch.ones(3, requires_grad=True)

    class Cache:
        last = w * 2

    def around():
        inner = w * 3
        return lambda: inner

    def generator():
        waiting = w * 4
        yield waiting.sum()

    function = around()
    running = generator()
    yielded = next(running)
    go, done = threading.Event(), threading.Event()

    def work():
        threaded = w * 5
        go.set()
        done.wait()
        return threaded

    thread = threading.Thread(target=work)
    thread.start()
    go.wait()
    nested = {"deep": [({"deeper": (w * 6,)},)]}
    try:
        found = held_by(leaks())
    finally:
        done.set()
        thread.join()
    here = "test_closures_classes_threads_generators_and_containers()"
    assert {(path, where) for path, where in found if "last" in path} == {
        (f"{here[:-2]}.<locals>.Cache.last", "an attribute of the class")}
    assert ("inner", f"a variable that the function {here[:-2]}.<locals>.around.<locals>.<lambda>() uses") in found
    assert ("threaded", f"a local of {here[:-2]}.<locals>.work()") in found
    assert ("nested['deep'][0][0]['deeper'][0]", f"a local of {here}") in found
    assert ("yielded", f"a local of {here}") in found
    del function, Cache, yielded, nested


def test_gradients_with_a_graph():
    model = torch.nn.Linear(2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model(torch.ones(1, 2)).pow(2).sum().backward(create_graph=True)
    found = mine(leaks(), "model.weight.grad")
    assert found
    assert "create_graph=True" in found[0].advice
    model.zero_grad()
    assert not mine(leaks(), "model")


def test_carried_hidden_states():
    w = torch.ones(3, requires_grad=True)
    h = torch.zeros(3)
    for _ in range(300):
        h = torch.tanh(h + w)
    found = mine(leaks(), "h")
    assert next(leak for leak in found if leak.nodes == 600).advice.endswith("detach() it between them")


def test_cycles_that_only_the_collector_frees():
    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.result = x * 2
            return ctx.result

        @staticmethod
        def backward(ctx, g):
            return g

    leaks()
    Keeps.apply(torch.ones(2, requires_grad=True))
    found = leaks()
    assert found.cycles == {"KeepsBackward": 1}
    assert "save_for_backward" in str(found)


def test_text_of_reports():
    w = torch.ones(3, requires_grad=True)
    again = w.exp()
    text = str(mine(leaks(), "again")[0]).splitlines()
    assert text[0] == "a graph of 1 node, 12 bytes kept for backward, behind ExpBackward0"
    assert text[1].startswith("    held by again, a local of test_text_of_reports(), test_leaks.py:")
    assert text[2] == "    → detach() it, or delete the name when the step is done"
    del again


def test_inspection_retains_nothing():
    w = torch.ones(3, requires_grad=True)
    losses = [(w * 2).sum()]
    leaks()
    losses.clear()
    assert leaks().cycles == {}
